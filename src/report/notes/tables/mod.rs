//! The tables of a run on notes: detection, localisation, error types, correction, consensus, confidence, cost.

mod agents;
mod correction;
mod detection;

pub use correction::{measured, missing_weights};

use crate::analysis::notes::{NoteFigures, Prices};
use crate::report::table::{Column, Row, Table};

/// Those that there are figures for.
pub fn all(figures: &NoteFigures, prices: &Prices) -> Vec<Table> {
    let detection = figures.detection.as_ref();
    let types = detection.filter(|detection| !detection.by_type.is_empty());
    let consensus = (!figures.consensus.is_empty()).then_some(&figures.consensus);
    let confidence = figures.confidence.as_ref();
    let stages = (!figures.stages.is_empty()).then_some(&figures.stages);
    let tables = [
        detection.map(detection::shares),
        detection.map(detection::confusion),
        figures
            .localisation
            .as_ref()
            .zip(detection)
            .map(detection::localisation),
        types.map(detection::types),
        figures
            .correction
            .as_ref()
            .map(|one| correction::table(one, figures.n_graded)),
        consensus.map(|stages| agents::consensus(stages)),
        confidence.map(agents::confidence),
        confidence.map(agents::low_confidence),
        stages.map(|stages| agents::cost(stages, prices)),
    ];
    tables.into_iter().flatten().collect()
}

fn table(
    name: &'static str,
    title: &str,
    columns: Vec<Column>,
    rows: Vec<Row>,
    notes: &[&str],
) -> Table {
    Table {
        name,
        title: title.to_owned(),
        columns,
        rows,
        notes: notes.iter().map(|note| (*note).to_owned()).collect(),
    }
}
