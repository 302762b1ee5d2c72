//! All figures of a run on notes, and their tables, for one run or for each cell of a recipe.

use serde::{Deserialize, Serialize};

use super::agents::{self, Confidence, Consensus};
use super::correction::{self, Correction};
use super::detection::{self, Detection, Localisation};
use super::quality::CorrectionScorer;
use super::search::{self, SearchFigures};
use super::stages::{self, StageCost};
use crate::analysis::outcomes::Outcomes;
use crate::analysis::table::{Labelled, Table, TableBuilder};

/// The figures of a run on notes. Sections that need gold are `null` where no note has gold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoteFigures {
    /// Notes with gold.
    pub n_graded: usize,
    pub detection: Option<Detection>,
    pub localisation: Option<Localisation>,
    pub correction: Option<Correction>,
    pub consensus: Vec<Consensus>,
    pub confidence: Option<Confidence>,
    pub stages: Vec<StageCost>,
    /// Of a system that searches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchFigures>,
}

impl NoteFigures {
    /// BERTScore, BLEURT and the measures derived from them are there where the scorer has their scores.
    pub fn of(outcomes: &Outcomes<'_>, scorer: &CorrectionScorer) -> NoteFigures {
        NoteFigures {
            n_graded: outcomes.items.len(),
            detection: Detection::of(outcomes),
            localisation: Localisation::of(outcomes),
            correction: Correction::of(outcomes, scorer),
            consensus: agents::consensus(outcomes),
            confidence: agents::confidence(outcomes),
            stages: stages::stage_costs(outcomes),
            search: SearchFigures::of(outcomes),
        }
    }
}

/// Figures, each with what their rows stand under; nothing for a run alone.
pub type Rows<'a> = &'a [Labelled<'a, NoteFigures>];

/// The tables for which there are figures.
pub fn tables(entries: Rows<'_>) -> Vec<Table> {
    let tables = [
        detection::detection_table(entries),
        detection::confusion_table(entries),
        detection::localisation_table(entries),
        detection::types_table(entries),
        correction::correction_table(entries),
        agents::consensus_table(entries),
        agents::confidence_table(entries),
        agents::low_confidence_table(entries),
        stages::cost_table(entries),
    ];
    let mut tables: Vec<Table> = tables.into_iter().flatten().collect();
    tables.extend(search::tables(entries));
    tables
}

/// A table of all entries' rows, each under its entry's heading.
pub(super) fn table<'a, T: Copy, I: IntoIterator<Item = T>>(
    name: &'static str,
    title: &str,
    entries: Rows<'a>,
    rows: impl Fn(&'a NoteFigures) -> Option<I>,
) -> TableBuilder<T> {
    let of_entry = |entry: &'a Labelled<'a, NoteFigures>| {
        let rows = rows(entry.of).into_iter().flatten();
        rows.map(|row| (entry.group.clone(), row))
    };
    Table::grouped(name, title, entries.iter().flat_map(of_entry))
}
