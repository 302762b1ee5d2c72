//! What ratings come to: mean opinion scores by run, agreement and kappa by pair of raters (MedGuards, A.3 and Table 6).

use serde::{Deserialize, Serialize};

use super::key::Key;
use super::rater::Rater;
use super::{BEST, RatingError};
use crate::metrics::kappa::{Weights, cohen_kappa};

/// Scores this far apart are told one by one.
pub const FAR: u8 = 2;

/// One entry, unblinded. Vectors run over the raters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rated {
    pub code: String,
    pub item: String,
    /// The place of its run in the key.
    pub run: usize,
    /// `null` where the entry was not rated.
    pub scores: Vec<Option<u8>>,
    pub comments: Vec<String>,
}

impl Rated {
    /// Every entry of the key, in its order.
    pub fn all(key: &Key, raters: &[Rater]) -> Vec<Rated> {
        let entries = key.entries.iter().enumerate();
        entries
            .map(|(place, entry)| Rated {
                code: entry.code.clone(),
                item: entry.item.clone(),
                run: entry.run,
                scores: raters.iter().map(|rater| rater.scores[place]).collect(),
                comments: raters
                    .iter()
                    .map(|rater| rater.comments[place].clone())
                    .collect(),
            })
            .collect()
    }

    /// Whether two raters differ by [`FAR`] or more.
    pub fn is_disputed(&self) -> bool {
        let scores = || self.scores.iter().flatten();
        match (scores().min(), scores().max()) {
            (Some(least), Some(most)) => most - least >= FAR,
            _ => false,
        }
    }
}

/// Mean opinion scores over some entries, from 0 to 3. What was not rated is in no mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Mos {
    pub n_entries: usize,
    /// Scores that are missing, over all raters.
    pub n_unrated: usize,
    /// `None` for a rater who rated none of them.
    pub by_rater: Vec<Option<f64>>,
    /// Over every score that was given.
    pub mean: Option<f64>,
}

impl Mos {
    pub fn of(entries: &[&Rated], n_raters: usize) -> Mos {
        let of_rater = |rater: usize| -> Vec<u8> {
            let scores = entries.iter().filter_map(|entry| entry.scores[rater]);
            scores.collect()
        };
        let by_rater: Vec<Vec<u8>> = (0..n_raters).map(of_rater).collect();
        let all = by_rater.concat();
        Mos {
            n_entries: entries.len(),
            n_unrated: entries.len() * n_raters - all.len(),
            by_rater: by_rater.iter().map(|scores| mean(scores)).collect(),
            mean: mean(&all),
        }
    }

    /// From 0 to 1, as Table 6 has it.
    pub fn normalised(&self) -> Option<f64> {
        self.mean.map(|mean| mean / f64::from(BEST))
    }
}

fn mean(scores: &[u8]) -> Option<f64> {
    let sum: u32 = scores.iter().copied().map(u32::from).sum();
    (!scores.is_empty()).then(|| f64::from(sum) / scores.len() as f64)
}

/// How two raters agree, over the entries that both have rated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    pub first: String,
    pub other: String,
    pub n_both: usize,
    pub n_identical: usize,
    /// The share of identical scores; `null` without an entry that both rated.
    pub agreement: Option<f64>,
    /// `null` where chance leaves nothing to disagree on.
    pub kappa: Option<f64>,
    pub kappa_quadratic: Option<f64>,
}

/// Every two raters.
///
/// # Errors
/// None that is known: two raters' scores are of the same entries.
pub fn pairs(names: &[String], entries: &[Rated]) -> Result<Vec<Pair>, RatingError> {
    let mut pairs = Vec::new();
    for first in 0..names.len() {
        for other in first + 1..names.len() {
            let both = entries
                .iter()
                .filter_map(|entry| entry.scores[first].zip(entry.scores[other]));
            let (left, right): (Vec<u8>, Vec<u8>) = both.unzip();
            let same = left.iter().zip(&right).filter(|(one, two)| one == two);
            let n_identical = same.count();
            pairs.push(Pair {
                first: names[first].clone(),
                other: names[other].clone(),
                n_both: left.len(),
                n_identical,
                agreement: (!left.is_empty()).then(|| n_identical as f64 / left.len() as f64),
                kappa: cohen_kappa(&left, &right, Weights::None)?,
                kappa_quadratic: cohen_kappa(&left, &right, Weights::Quadratic)?,
            });
        }
    }
    Ok(pairs)
}
