//! What a recipe quotes of its paper: figures that stand beside ours, rows that nothing here runs, tables as they are printed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::analysis::metrics::bootstrap::Estimate;
use crate::analysis::notes::Measure;
use crate::analysis::table::Cell;

/// The paper's figures that belong to no cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// By dataset and method: the mean and its interval.
    #[serde(default)]
    pub netgain: BTreeMap<String, BTreeMap<String, PapersDifference>>,
    /// By dataset: against the baseline that the paper names.
    #[serde(default)]
    pub paired: BTreeMap<String, PaperPair>,
    /// By dataset and method: against the recipe's first.
    #[serde(default)]
    pub delta: BTreeMap<String, BTreeMap<String, PapersDifference>>,
}

/// A paired difference that the paper reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperPair {
    /// The method that was compared with.
    pub baseline: String,
    pub difference: PapersDifference,
}

/// A difference as a paper prints it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PapersDifference {
    Mean(f64),
    /// The mean and the ends of its interval.
    WithInterval([f64; 3]),
}

impl From<PapersDifference> for Cell {
    fn from(difference: PapersDifference) -> Cell {
        Cell::Estimate(match difference {
            PapersDifference::Mean(mean) => Estimate::of(mean, None),
            PapersDifference::WithInterval([mean, low, high]) => {
                Estimate::of(mean, Some([low, high]))
            }
        })
    }
}

/// A row of the paper that nothing here runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedEntry {
    pub label: String,
    pub group: String,
    /// On notes, by dataset and by one of [`COLUMNS`].
    pub figures: BTreeMap<String, BTreeMap<Measure, f64>>,
    /// The label of the row that it is set against.
    pub against: Option<String>,
    /// What is printed of the comparison, by dataset.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gain: BTreeMap<String, PrintedGain>,
}

/// A gain as a paper prints it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrintedGain {
    pub average: Option<f64>,
    pub delta_percent: Option<f64>,
    pub p_value: Option<f64>,
}

/// A table of the paper that has no rows in ours: as it is printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrintedTable {
    pub title: String,
    /// The name of our table of the same, which it follows.
    pub beside: String,
    /// The first is of the rows' labels.
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// What its own numbers contradict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The columns of MedGuards' tables, in the order of Table 2, the aggregate, which the shared task is ranked by, behind what it is made of.
pub const COLUMNS: [Measure; 7] = [
    Measure::Detection,
    Measure::Localisation,
    Measure::Rouge1,
    Measure::BertScore,
    Measure::Bleurt,
    Measure::Aggregate,
    Measure::Kpcs,
];
