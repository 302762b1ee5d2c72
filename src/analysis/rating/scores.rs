//! The figures of ratings, and their tables: mean opinion scores by run, agreement and kappa by pair of raters (MedGuards, A.3 and Table 6).

use std::ops::Range;

use itertools::Itertools;

use super::BEST;
use super::key::{KeyEntry, KeyRun, SheetKey};
use crate::analysis::metrics::agreement::cohen_kappa;
use crate::analysis::metrics::over_runs::{mean, share};
use crate::analysis::table::{Cell, Table};

/// Digits of a mean, as Table 6 has them.
const DIGITS: usize = 3;

/// One entry, unblinded, and the score of each rater; `None` where it was not rated.
pub struct Rated<'a> {
    pub entry: &'a KeyEntry,
    pub scores: Vec<Option<u8>>,
}

/// The scores that these raters gave to some entries; what was not rated is in no mean.
fn given(entries: &[&Rated<'_>], raters: Range<usize>) -> Vec<f64> {
    let of_rater = |rater: usize| entries.iter().filter_map(move |one| one.scores[rater]);
    raters.flat_map(of_rater).map(f64::from).collect()
}

/// All that `rate score` prints.
pub fn tables(key: &SheetKey, raters: &[String], entries: &[Rated<'_>]) -> Vec<Table> {
    let mut tables = vec![opinions(key, raters, entries)];
    if raters.len() > 1 {
        tables.push(agreement(raters, entries));
    }
    tables
}

/// A row a run.
fn opinions(key: &SheetKey, raters: &[String], entries: &[Rated<'_>]) -> Table {
    let runs = key.runs.iter().enumerate().map(|(place, run)| {
        let own: Vec<&Rated<'_>> = entries.iter().filter(|one| one.entry.run == place).collect();
        (run, own)
    });
    let rows: Vec<(&KeyRun, Vec<&Rated<'_>>)> = runs.collect();
    let n = raters.len();
    let mean_of = |own: &[&Rated<'_>], raters: Range<usize>| mean(&given(own, raters));
    let mut table = Table::of("ratings", "Mean opinion scores", &rows)
        .text("run", |(run, _)| &run.path)
        .text("system", |(run, _)| &run.system)
        .text("models", |(run, _)| run.models.join(", "))
        .number("entries", |(_, own)| own.len())
        .number("unrated", |(_, own)| own.len() * n - given(own, 0..n).len())
        .under("MOS by rater");
    for (place, rater) in raters.iter().enumerate() {
        table = table.number(rater, |(_, own)| number(mean_of(own, place..place + 1)));
    }
    table
        .under("")
        .number("MOS", |(_, own)| number(mean_of(own, 0..n)))
        .number("normalised MOS", |(_, own)| {
            number(mean_of(own, 0..n).map(|mean| mean / f64::from(BEST)))
        })
        .note(
            "From 0, completely incorrect, to 3, excellent; normalised to 1. The mean is over all scores that were given; entries that a \
             rater left out are counted as unrated, not as 0.",
        )
        .build()
}

/// A row a pair of raters, over the entries that both have rated.
fn agreement(raters: &[String], entries: &[Rated<'_>]) -> Table {
    let pairs = (0..raters.len()).tuple_combinations();
    let both = |(one, two): (usize, usize)| -> (Vec<u8>, Vec<u8>) {
        let scores = |rated: &Rated<'_>| rated.scores[one].zip(rated.scores[two]);
        entries.iter().filter_map(scores).unzip()
    };
    let identical = |pair| {
        let (left, right) = both(pair);
        left.iter().zip(&right).filter(|(one, two)| one == two).count()
    };
    let kappa = |pair| {
        let (left, right) = both(pair);
        number(cohen_kappa(&left, &right))
    };
    Table::of("raters", "Agreement of raters", pairs)
        .text("raters", |(one, two)| format!("{} and {}", raters[one], raters[two]))
        .number("rated by both", |pair| both(pair).0.len())
        .number("identical scores", identical)
        .number("agreement", |pair| {
            number(share(identical(pair), both(pair).0.len()))
        })
        .number("Cohen's kappa", kappa)
        .note(
            "Over all entries of the sheet that both rated. Agreement is the share of identical scores; kappa takes off what chance would \
             give, and does not exist where both gave one and the same score throughout.",
        )
        .build()
}

fn number(value: Option<f64>) -> Option<Cell> {
    value.map(|value| Cell::Number(value, DIGITS))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    static ENTRY: KeyEntry = KeyEntry { code: String::new(), item: String::new(), run: 0 };

    fn rated(scores: &[Option<u8>]) -> Rated<'static> {
        Rated { entry: &ENTRY, scores: scores.to_vec() }
    }

    #[test]
    fn unrated_entries_are_counted_and_are_not_zero() {
        let entries =
            [rated(&[Some(3), Some(2)]), rated(&[Some(0), None]), rated(&[None, Some(1)])];
        let entries: Vec<&Rated<'_>> = entries.iter().collect();
        assert_eq!(given(&entries, 0..2), [3.0, 0.0, 2.0, 1.0]);
        assert_eq!(given(&entries, 1..2), [2.0, 1.0]);
        assert!(given(&[], 0..2).is_empty());
    }

    fn told(names: &[&str], entries: &[Rated<'_>]) -> Value {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        agreement(&names, entries).json()["rows"].take()
    }

    /// The paper's 57.5 %: 46 of 80.
    #[test]
    fn agreement_is_the_share_of_identical_scores() {
        let entry = |place: u8| {
            let left = place % 4;
            let right = if place < 46 { left } else { (left + 1) % 4 };
            rated(&[Some(left), Some(right)])
        };
        let entries: Vec<Rated> = (0..80).map(entry).collect();
        let rows = told(&["A", "B"], &entries);
        assert_eq!(rows.as_array().unwrap().len(), 1);
        assert_eq!(
            (&rows[0]["rated by both"], &rows[0]["identical scores"]),
            (&json!(80), &json!(46))
        );
        assert_eq!(rows[0]["agreement"], 0.575);
        assert!(rows[0]["Cohen's kappa"].as_f64().unwrap() < 0.575);
    }

    #[test]
    fn pairs_are_over_what_both_rated() {
        let entries = [
            rated(&[Some(1), Some(1), None]),
            rated(&[Some(2), None, None]),
            rated(&[Some(1), Some(1), None]),
        ];
        let rows = told(&["A", "B", "C"], &entries);
        let pairs: Vec<(&Value, &Value)> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (&row["raters"], &row["rated by both"]))
            .collect();
        let [ab, ac, bc] = ["A and B", "A and C", "B and C"].map(Value::from);
        assert_eq!(pairs, [(&ab, &json!(2)), (&ac, &json!(0)), (&bc, &json!(0))]);
        assert_eq!(rows[0]["agreement"], 1.0);
        assert_eq!(rows[0]["Cohen's kappa"], Value::Null);
        assert_eq!(rows[1]["agreement"], Value::Null);
        assert_eq!(rows[1]["Cohen's kappa"], Value::Null);
    }
}
