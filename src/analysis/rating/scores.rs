//! The figures of ratings, and their tables: mean opinion scores by run, agreement and kappa by pair of raters (MedGuards, A.3 and Table 6),
//! entries that raters see differently.

use super::BEST;
use super::key::{Key, KeyEntry, KeyRun};
use crate::analysis::metrics::kappa::{Weights, cohen_kappa};
use crate::analysis::metrics::over_runs::mean;
use crate::analysis::table::{Cell, Table};

/// Scores this far apart are told one by one.
const FAR: u8 = 2;
/// Digits of a mean, as Table 6 has them.
const DIGITS: usize = 3;

/// One entry, unblinded. Vectors run over the raters.
#[derive(Clone, Debug)]
pub struct Rated {
    pub code: String,
    pub item: String,
    /// The place of its run in the key.
    pub run: usize,
    /// `None` where the entry was not rated.
    pub scores: Vec<Option<u8>>,
    pub comments: Vec<String>,
}

impl Rated {
    /// An entry that nobody has rated yet.
    pub fn of(KeyEntry { code, item, run }: &KeyEntry) -> Rated {
        let (scores, comments) = (Vec::new(), Vec::new());
        Rated { code: code.clone(), item: item.clone(), run: *run, scores, comments }
    }

    /// Whether two raters differ by [`FAR`] or more.
    fn is_disputed(&self) -> bool {
        let scores = || self.scores.iter().flatten();
        match (scores().min(), scores().max()) {
            (Some(least), Some(most)) => most - least >= FAR,
            _ => false,
        }
    }
}

/// Mean opinion scores over some entries, from 0 to 3. What was not rated is in no mean.
struct Mos {
    n_entries: usize,
    /// Scores that are missing, over all raters.
    n_unrated: usize,
    /// `None` for a rater who rated none of them.
    by_rater: Vec<Option<f64>>,
    /// Over every score that was given.
    mean: Option<f64>,
}

impl Mos {
    fn of(entries: &[&Rated], n_raters: usize) -> Mos {
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
    fn normalised(&self) -> Option<f64> {
        self.mean.map(|mean| mean / f64::from(BEST))
    }
}

/// How two raters agree, over the entries that both have rated.
struct RaterPair {
    first: String,
    other: String,
    n_both: usize,
    n_identical: usize,
    /// The share of identical scores; `None` without an entry that both rated.
    agreement: Option<f64>,
    /// `None` where chance leaves nothing to disagree on.
    kappa: Option<f64>,
    kappa_quadratic: Option<f64>,
}

/// Every two raters.
fn pairs(names: &[String], entries: &[Rated]) -> Vec<RaterPair> {
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
                kappa: cohen_kappa(&left, &right, Weights::None),
                kappa_quadratic: cohen_kappa(&left, &right, Weights::Quadratic),
            });
        }
    }
    pairs
}

/// All that `rate score` prints.
pub fn tables(key: &Key, raters: &[String], entries: &[Rated]) -> Vec<Table> {
    let pairs = pairs(raters, entries);
    let mut tables = vec![opinions(key, raters, entries)];
    if !pairs.is_empty() {
        tables.push(agreement(&pairs));
        tables.push(disputed(key, raters, entries));
    }
    tables
}

/// A row a run.
fn opinions(key: &Key, raters: &[String], entries: &[Rated]) -> Table {
    let runs = key.runs.iter().enumerate().map(|(place, run)| {
        let own: Vec<&Rated> = entries.iter().filter(|entry| entry.run == place).collect();
        (run, Mos::of(&own, raters.len()))
    });
    let rows: Vec<(&KeyRun, Mos)> = runs.collect();
    let mut table = Table::of("ratings", "Mean opinion scores", &rows)
        .text("run", |(run, _)| &run.path)
        .text("system", |(run, _)| &run.system)
        .text("models", |(run, _)| run.models.join(", "))
        .number("entries", |(_, mos)| mos.n_entries)
        .number("unrated", |(_, mos)| mos.n_unrated)
        .under("MOS by rater");
    for (place, rater) in raters.iter().enumerate() {
        table = table.number(rater, |(_, mos)| number(mos.by_rater[place]));
    }
    table
        .under("")
        .number("MOS", |(_, mos)| number(mos.mean))
        .number("normalised MOS", |(_, mos)| number(mos.normalised()))
        .note(
            "From 0, completely incorrect, to 3, excellent; normalised to 1. The mean is over all scores that were given; entries that a \
             rater left out are counted as unrated, not as 0.",
        )
        .build()
}

/// A row a pair of raters.
fn agreement(pairs: &[RaterPair]) -> Table {
    Table::of("raters", "Agreement of raters", pairs)
        .text("raters", |pair| format!("{} and {}", pair.first, pair.other))
        .number("rated by both", |pair| pair.n_both)
        .number("identical scores", |pair| pair.n_identical)
        .number("agreement", |pair| number(pair.agreement))
        .number("Cohen's kappa, unweighted", |pair| number(pair.kappa))
        .number("Cohen's kappa, quadratic weights", |pair| number(pair.kappa_quadratic))
        .note(
            "Over all entries of the sheet that both rated. Agreement is the share of identical scores; kappa takes off what chance would \
             give, and does not exist where both gave one and the same score throughout.",
        )
        .build()
}

/// A row an entry on which raters are far apart.
fn disputed(key: &Key, raters: &[String], entries: &[Rated]) -> Table {
    let disputed: Vec<&Rated> = entries.iter().filter(|entry| entry.is_disputed()).collect();
    let title = format!("Entries on which raters differ by {FAR} or more");
    let none = disputed.is_empty().then(|| "There is none.".to_owned());
    let mut table = Table::of("disputed", title, disputed)
        .text("item", |entry| &entry.item)
        .text("entry", |entry| &entry.code)
        .text("run", |entry| &key.runs[entry.run].path)
        .under("score");
    for (place, rater) in raters.iter().enumerate() {
        table = table.number(rater, |entry| entry.scores[place].map(usize::from));
    }
    table = table.under("comment");
    for (place, rater) in raters.iter().enumerate() {
        table = table.text(rater, |entry| &entry.comments[place]);
    }
    table.notes(none).build()
}

fn number(value: Option<f64>) -> Option<Cell> {
    value.map(|value| Cell::Number(value, DIGITS))
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
        let pairs = pairs(&names, &entries);
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
        let pairs = pairs(&names, &entries);
        let told: Vec<(&str, &str, usize)> =
            pairs.iter().map(|pair| (&*pair.first, &*pair.other, pair.n_both)).collect();
        assert_eq!(told, [("A", "B", 2), ("A", "C", 0), ("B", "C", 0)]);
        assert_eq!((pairs[0].agreement, pairs[0].kappa), (Some(1.0), None));
        assert_eq!((pairs[1].agreement, pairs[1].kappa_quadratic), (None, None));
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
