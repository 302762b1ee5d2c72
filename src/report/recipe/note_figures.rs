//! The figures of a recipe on notes: the columns that need no weights, and who settled each stage (MedGuards, Figures 2 to 6).

use crate::analysis::metrics::over_runs::OverRuns;
use crate::analysis::notes::{Consensus, NoteFigures, Settled};
use crate::analysis::recipe::notes::full;
use crate::analysis::recipe::results::{CellResult, RecipeResults};
use crate::experiment::recipe::Recipe;
use crate::record::Source;
use crate::report::figure::{Drawing, Key, Lane, Panel, Row};
use crate::report::recipe::figures::{cells, each_dataset};

fn bar(series: usize, over: Option<&OverRuns>) -> Option<Lane> {
    over.map(|over| Lane::bar(series, over.mean, over.std))
}

/// A drawing for every dataset that has a row.
fn of_notes(
    recipe: &Recipe,
    results: &RecipeResults,
    description: &str,
    rows: impl Fn(&CellResult, &NoteFigures) -> Vec<Row>,
) -> Vec<Drawing> {
    let rows_of = |cell: &CellResult| Some(rows(cell, cell.notes.as_ref()?));
    each_dataset(recipe, description, &[0.0, 1.0], |dataset| {
        let rows = cells(results, dataset).filter_map(rows_of);
        rows.flatten().collect()
    })
}

/// Detection, localisation by similarity and word for word: bars to the mean over the runs.
pub fn accuracy(recipe: &Recipe, results: &RecipeResults) -> Panel {
    let row = |cell: &CellResult, notes: &NoteFigures| {
        let localisation = notes.localisation.as_ref();
        let lanes = [
            bar(0, notes.detection.as_ref().map(|one| &one.accuracy)),
            bar(1, localisation.map(|one| &one.accuracy)),
            bar(2, localisation.map(|one| &one.accuracy_exact)),
        ];
        vec![Row { label: full(recipe, cell), lanes: lanes.into_iter().flatten().collect() }]
    };
    let description = "Accuracy by method, over all notes: of detection, of localisation by similarity, of localisation word for word.";
    Panel {
        title: String::new(),
        drawings: of_notes(recipe, results, description, row),
        key: vec![
            Key::series(0, "detection"),
            Key::series(1, "localisation by similarity"),
            Key::series(2, "localisation word for word"),
        ],
    }
}

/// The share of notes that each way of settling a stage took.
pub fn consensus(recipe: &Recipe, results: &RecipeResults) -> Panel {
    let rows = |cell: &CellResult, notes: &NoteFigures| {
        let stage = |stage: &Consensus| {
            let lane = |settled: &Settled| {
                let mut lane = Lane::bar(settled.source as usize, settled.share, None);
                lane.said = format!("{} {:.4}", settled.source.in_words(), settled.share);
                lane
            };
            Row {
                label: format!("{}, {}", full(recipe, cell), stage.stage),
                lanes: stage.settled.iter().map(lane).collect(),
            }
        };
        notes.consensus.iter().map(stage).collect()
    };
    let description =
        "The share of the notes that a stage saw, by who settled it: agreement, or a third agent.";
    let used = |source: &Source| {
        let cells = results.cells.iter().filter_map(|cell| cell.notes.as_ref());
        let mut stages = cells.flat_map(|notes| &notes.consensus);
        stages.any(|stage| stage.settled.iter().any(|one| one.source == *source))
    };
    let sources = [Source::Single, Source::Agreement, Source::Arbitration, Source::Vote];
    Panel {
        title: String::new(),
        drawings: of_notes(recipe, results, description, rows),
        key: sources
            .into_iter()
            .filter(used)
            .map(|source| Key::series(source as usize, source.in_words()))
            .collect(),
    }
}
