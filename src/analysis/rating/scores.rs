//! The figures of ratings: mean opinion scores by run, agreement and kappa by pair of raters (MedGuards, A.3 and Table 6).

use serde::{Deserialize, Serialize};

use super::BEST;
use super::key::{Key, KeyEntry};
use super::rater::{Rater, RaterEntry, Verdict};
use crate::analysis::metrics::kappa::{Weights, cohen_kappa};
use crate::analysis::metrics::over_runs::mean;
use crate::diagnosis::Failure;

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
    /// Of each source that the entry names; empty where it names none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Vec<Option<Verdict>>>,
}

impl Rated {
    /// Every entry of the key, in its order.
    pub fn all(key: &Key, raters: &[Rater]) -> Vec<Rated> {
        let rated = |(place, entry): (usize, &KeyEntry)| {
            let own = || raters.iter().map(move |rater| &rater.entries[place]);
            Rated {
                code: entry.code.clone(),
                item: entry.item.clone(),
                run: entry.run,
                scores: own().map(RaterEntry::score).collect(),
                comments: own().map(|one| one.comment.clone()).collect(),
                citations: match entry.citations {
                    0 => Vec::new(),
                    _ => own().map(|one| one.citations.clone()).collect(),
                },
            }
        };
        key.entries.iter().enumerate().map(rated).collect()
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
        let of_rater = |rater: usize| -> Vec<f64> {
            let scores = entries.iter().filter_map(|entry| entry.scores[rater]);
            scores.map(f64::from).collect()
        };
        let by_rater: Vec<Vec<f64>> = (0..n_raters).map(of_rater).collect();
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

/// What raters said of the sources that some entries name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CitationCounts {
    pub supports: usize,
    pub says_nothing: usize,
    pub contradicts: usize,
    pub unrated: usize,
}

impl CitationCounts {
    /// Over all raters.
    pub fn of(entries: &[&Rated]) -> CitationCounts {
        let mut counts = CitationCounts::default();
        for verdict in entries.iter().flat_map(|entry| entry.citations.iter().flatten()) {
            *match verdict {
                Some(Verdict::Supports) => &mut counts.supports,
                Some(Verdict::SaysNothing) => &mut counts.says_nothing,
                Some(Verdict::Contradicts) => &mut counts.contradicts,
                None => &mut counts.unrated,
            } += 1;
        }
        counts
    }

    /// Verdicts that were given.
    pub fn rated(&self) -> usize {
        self.supports + self.says_nothing + self.contradicts
    }
}

/// How two raters agree, over the entries that both have rated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RaterPair {
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
/// Raters whose scores are not of the same entries.
pub fn pairs(names: &[String], entries: &[Rated]) -> Result<Vec<RaterPair>, Failure> {
    let mut pairs = Vec::new();
    for first in 0..names.len() {
        for other in first + 1..names.len() {
            let both =
                entries.iter().filter_map(|entry| entry.scores[first].zip(entry.scores[other]));
            let (left, right): (Vec<u8>, Vec<u8>) = both.unzip();
            let same = left.iter().zip(&right).filter(|(one, two)| one == two);
            let n_identical = same.count();
            pairs.push(RaterPair {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(run: usize, scores: &[Option<u8>]) -> Rated {
        Rated {
            code: String::new(),
            item: String::new(),
            run,
            scores: scores.to_vec(),
            comments: vec![String::new(); scores.len()],
            citations: Vec::new(),
        }
    }

    #[test]
    fn unrated_entries_are_counted_and_are_not_zero() {
        let entries =
            [rated(0, &[Some(3), Some(2)]), rated(0, &[Some(0), None]), rated(0, &[None, Some(1)])];
        let mos = Mos::of(&entries.iter().collect::<Vec<_>>(), 2);
        assert_eq!((mos.n_entries, mos.n_unrated), (3, 2));
        assert_eq!(mos.by_rater, [Some(1.5), Some(1.5)]);
        assert_eq!(mos.mean, Some(1.5));
        assert_eq!(mos.normalised(), Some(0.5));
        let none = rated(0, &[None, Some(2)]);
        let mos = Mos::of(&[&none], 2);
        assert_eq!(mos.by_rater, [None, Some(2.0)]);
        let nobody = Mos::of(&[&rated(0, &[None])], 1);
        assert_eq!((nobody.mean, nobody.normalised()), (None, None));
        assert_eq!(Mos::of(&[], 1).mean, None);
    }

    /// The paper's 57.5 %: 46 of 80.
    #[test]
    fn agreement_is_the_share_of_identical_scores() {
        let entry = |place: u8| {
            let left = place % 4;
            let right = if place < 46 { left } else { (left + 1) % 4 };
            rated(0, &[Some(left), Some(right)])
        };
        let entries: Vec<Rated> = (0..80).map(entry).collect();
        let names = ["A".to_owned(), "B".to_owned()];
        let pairs = pairs(&names, &entries).unwrap();
        assert_eq!(pairs.len(), 1);
        assert_eq!((pairs[0].n_both, pairs[0].n_identical), (80, 46));
        assert_eq!(pairs[0].agreement, Some(0.575));
        assert!(pairs[0].kappa.unwrap() < 0.575);
    }

    #[test]
    fn pairs_are_over_what_both_rated() {
        let entries = [
            rated(0, &[Some(1), Some(1), None]),
            rated(0, &[Some(2), None, None]),
            rated(0, &[Some(1), Some(1), None]),
        ];
        let names = ["A", "B", "C"].map(str::to_owned);
        let pairs = pairs(&names, &entries).unwrap();
        let told: Vec<(&str, &str, usize)> =
            pairs.iter().map(|pair| (&*pair.first, &*pair.other, pair.n_both)).collect();
        assert_eq!(told, [("A", "B", 2), ("A", "C", 0), ("B", "C", 0)]);
        assert_eq!((pairs[0].agreement, pairs[0].kappa), (Some(1.0), None));
        assert_eq!((pairs[1].agreement, pairs[1].kappa_quadratic), (None, None));
    }

    #[test]
    fn verdicts_on_sources_are_counted_over_all_raters() {
        let mut entry = rated(0, &[Some(3), Some(3)]);
        entry.citations = vec![
            vec![Some(Verdict::Supports), Some(Verdict::Contradicts)],
            vec![Some(Verdict::Supports), None],
        ];
        let counts = CitationCounts::of(&[&entry, &rated(0, &[Some(1), None])]);
        assert_eq!((counts.supports, counts.says_nothing, counts.contradicts), (2, 0, 1));
        assert_eq!((counts.unrated, counts.rated()), (1, 3));
    }

    #[test]
    fn two_apart_is_disputed() {
        assert!(rated(0, &[Some(0), Some(2)]).is_disputed());
        assert!(rated(0, &[Some(1), None, Some(3)]).is_disputed());
        assert!(!rated(0, &[Some(1), Some(2)]).is_disputed());
        assert!(!rated(0, &[Some(3), None]).is_disputed());
        assert!(!rated(0, &[None, None]).is_disputed());
    }
}
