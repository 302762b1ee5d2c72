//! Whether a stated confidence is met: the reliability table, the Brier score, the expected calibration error.

use serde::{Deserialize, Serialize};

use crate::analysis::table::{Cell, Labelled, Table};

/// Bins of a reliability table, unless asked otherwise.
pub const BINS: usize = 10;

/// A stated confidence, 0 to 1, and whether its answer was right.
pub type Prediction = (f64, bool);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    pub bins: Vec<Bin>,
    /// The mean squared distance of the confidences from 1 where right and 0 where wrong (Brier, 1950).
    pub brier: f64,
    /// The mean over all predictions of their bin's distance between confidence and accuracy (Guo et al., ICML 2017, §2).
    pub ece: f64,
    pub n: usize,
}

/// The predictions with a confidence above `low`, up to and with `high`; the first bin has 0 too.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    pub low: f64,
    pub high: f64,
    pub n: usize,
    /// The mean of the confidences; `null` in an empty bin.
    pub confidence: Option<f64>,
    /// The share of right answers; `null` in an empty bin.
    pub accuracy: Option<f64>,
}

/// From the predictions of one run, or of several together, into `bins` of equal width; `None` without any. What lies outside 0 to 1 is no
/// confidence, and left out.
pub fn calibration(predictions: &[Prediction], bins: usize) -> Option<Calibration> {
    let predictions = predictions.iter().copied();
    let predictions: Vec<Prediction> =
        predictions.filter(|(confidence, _)| (0.0..=1.0).contains(confidence)).collect();
    if predictions.is_empty() {
        return None;
    }
    let bins: Vec<Bin> = (0..bins).map(|at| bin(&predictions, at, bins)).collect();
    let n = predictions.len() as f64;
    let squares = predictions
        .iter()
        .map(|(confidence, right)| (confidence - f64::from(u8::from(*right))).powi(2));
    let gaps = bins.iter().filter_map(|bin| {
        let gap = bin.accuracy? - bin.confidence?;
        Some(bin.n as f64 / n * gap.abs())
    });
    Some(Calibration {
        brier: squares.sum::<f64>() / n,
        ece: gaps.sum(),
        n: predictions.len(),
        bins,
    })
}

fn bin(predictions: &[Prediction], at: usize, bins: usize) -> Bin {
    // Quotients, not multiples of a width: a confidence of 0.3 is then the very edge 3/10.
    let edge = |number: usize| number as f64 / bins as f64;
    let (low, high) = (edge(at), edge(at + 1));
    let members: Vec<&Prediction> = predictions
        .iter()
        .filter(|(confidence, _)| (*confidence > low || at == 0) && *confidence <= high)
        .collect();
    let n = members.len();
    let mean = |sum: f64| (n > 0).then(|| sum / n as f64);
    Bin {
        low,
        high,
        n,
        confidence: mean(members.iter().map(|(confidence, _)| confidence).sum()),
        accuracy: mean(members.iter().filter(|(_, right)| *right).count() as f64),
    }
}

/// The scores of each, then every bin: how many answers, their mean confidence, the share that is right.
pub fn table(rows: &[Labelled<'_, Calibration>]) -> Table {
    let title = "Calibration of the team's confidence";
    let mut table =
        Table::grouped("calibration", title, rows.iter().map(|row| (row.group.clone(), row)))
            .text("", |row| &row.label)
            .replies(|row| row.health)
            .number("answers", |row| row.of.n)
            .number("expected calibration error", |row| row.of.ece)
            .number("Brier score", |row| row.of.brier);
    let short = |value: Option<f64>| value.map(|value| Cell::Number(value, 2));
    for (place, bin) in rows.first().into_iter().flat_map(|row| row.of.bins.iter().enumerate()) {
        table = table
            .under(format!("{:.1}–{:.1}", bin.low, bin.high))
            .number("n", |row| Some(row.of.bins.get(place)?.n))
            .number("confidence", |row| short(row.of.bins.get(place)?.confidence))
            .number("right", |row| short(row.of.bins.get(place)?.accuracy));
    }
    table
        .note("Answers by the confidence that the team states: how many, their mean confidence, and the share that is right. Items that errored state none. On notes an answer is whether there is an error, and its confidence that of detection: the arbiter's, else the mean of the agents who gave this answer; of `medreflex` the mean review of an accepted answer, divided by five. A bin holds confidences above its low end, up to and with its high end.")
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidences_on_an_edge_fall_below_it() {
        let predictions: Vec<Prediction> =
            (0..=10).map(|tenths| (f64::from(tenths) / 10.0, true)).collect();
        let table = calibration(&predictions, BINS).unwrap();
        let counts: Vec<usize> = table.bins.iter().map(|bin| bin.n).collect();
        assert_eq!(counts, [2, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        assert_eq!(table.bins[2].confidence, Some(0.3));
        assert_eq!((table.bins[0].low, table.bins[9].high), (0.0, 1.0));
    }

    #[test]
    fn every_prediction_is_in_one_bin() {
        let predictions: Vec<Prediction> =
            (0..1000).map(|i| (f64::from(i) / 999.0, i % 3 == 0)).collect();
        for bins in [1, 3, 7, 10, 49] {
            let table = calibration(&predictions, bins).unwrap();
            assert_eq!(table.bins.len(), bins);
            assert_eq!(table.bins.iter().map(|bin| bin.n).sum::<usize>(), 1000);
        }
    }

    #[test]
    fn sure_and_right_is_perfect_and_sure_and_wrong_the_worst() {
        let right = calibration(&[(1.0, true), (0.0, false)], BINS).unwrap();
        assert_eq!((right.brier, right.ece), (0.0, 0.0));
        let wrong = calibration(&[(1.0, false), (0.0, true)], BINS).unwrap();
        assert_eq!((wrong.brier, wrong.ece), (1.0, 1.0));
    }

    #[test]
    fn a_bin_that_is_met_on_average_has_no_error() {
        let predictions = [(0.7, true), (0.7, true), (0.8, false), (0.8, true)];
        let table = calibration(&predictions, 1).unwrap();
        assert!(table.ece.abs() < 1e-15);
        let split = calibration(&predictions, BINS).unwrap();
        assert!((split.ece - 0.3).abs() < 1e-15, "{}", split.ece);
        assert_eq!(split.bins[0].confidence, None);
    }

    #[test]
    fn what_is_no_confidence_is_left_out() {
        let found = calibration(&[(0.5, true), (1.5, true), (f64::NAN, false)], BINS).unwrap();
        assert_eq!((found.n, found.brier), (1, 0.25));
        assert_eq!(calibration(&[(-0.1, true)], BINS), None);
        assert_eq!(calibration(&[], BINS), None);
    }
}

#[cfg(test)]
mod table_tests {
    use super::*;

    #[test]
    fn every_bin_is_listed() {
        let calibration = calibration(&[(0.9, true), (0.9, false), (0.3, false)], 10).unwrap();
        let table = super::table(&[Labelled {
            group: String::new(),
            label: "A run".to_owned(),
            of: &calibration,
            health: None,
        }]);
        assert_eq!(table.columns.len(), 5 + 30);
        assert_eq!(table.rows[0].cells.len(), table.columns.len());
        let nines = table.columns.iter().position(|column| column.over == "0.8–0.9");
        let cells = &table.rows[0].cells[nines.unwrap()..];
        assert_eq!(cells[..3], [Cell::Count(2), Cell::Number(0.9, 2), Cell::Number(0.5, 2)]);
    }

    #[test]
    fn a_row_with_fewer_bins_than_the_first_has_empty_cells() {
        let [ten, five] = [10, 5].map(|bins| calibration(&[(0.9, true)], bins).unwrap());
        let row = |of| Labelled { group: String::new(), label: String::new(), of, health: None };
        let table = super::table(&[row(&ten), row(&five)]);
        assert_eq!(table.rows[1].cells.last(), Some(&Cell::Nothing));
    }
}
