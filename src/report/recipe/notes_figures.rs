//! The figures of a recipe on notes: the columns that need no weights, and who settled each stage (MedGuards, Figures 2 to 6).

use super::figures::{Figures, Key};
use super::notes::full;
use crate::metrics::over_runs::OverRuns;
use crate::notes::NoteFigures;
use crate::recipe::Recipe;
use crate::recipe::results::{CellResult, RecipeResults};
use crate::report::figure::{Drawing, Lane, Mark, Row, Rows};

fn key(series: usize, label: &str) -> Key {
    Key {
        swatch: format!("s{series}"),
        label: label.to_owned(),
    }
}

fn bar(series: usize, over: Option<&OverRuns>) -> Option<Lane> {
    let over = over?;
    let spread = over.std.map_or(String::new(), |std| format!(" ± {std:.4}"));
    let mark = Mark::Bar {
        value: over.mean,
        std: over.std,
    };
    Some(Lane {
        series,
        said: format!("{:.4}{spread}", over.mean),
        marks: vec![mark],
    })
}

/// A drawing for every dataset that has a row.
fn each_dataset(
    recipe: &Recipe,
    results: &RecipeResults,
    description: &str,
    rows: impl Fn(&CellResult, &NoteFigures) -> Vec<Row>,
) -> Vec<Drawing> {
    let drawing = |dataset: &crate::recipe::file::DatasetEntry| {
        let cells = results.cells.iter();
        let cells = cells.filter(|cell| cell.dataset == dataset.name);
        let rows: Vec<Row> = cells
            .filter_map(|cell| Some(rows(cell, cell.notes.as_ref()?)))
            .flatten()
            .collect();
        (!rows.is_empty()).then(|| {
            let drawing = Rows {
                title: dataset.label.clone(),
                description: description.to_owned(),
                reach: vec![0.0, 1.0],
                rows,
            };
            drawing.draw()
        })
    };
    recipe.dataset.iter().filter_map(drawing).collect()
}

/// Detection, localisation by likeness and to the letter: bars to the mean over the runs.
pub fn accuracy(recipe: &Recipe, results: &RecipeResults) -> Figures {
    let row = |cell: &CellResult, notes: &NoteFigures| {
        let localisation = notes.localisation.as_ref();
        let lanes = [
            bar(0, notes.detection.as_ref().map(|one| &one.accuracy)),
            bar(1, localisation.map(|one| &one.accuracy)),
            bar(2, localisation.map(|one| &one.accuracy_exact)),
        ];
        vec![Row {
            label: full(recipe, cell),
            lanes: lanes.into_iter().flatten().collect(),
        }]
    };
    let description = "Accuracy by method, over all notes: of detection, of localisation by likeness, of localisation to the letter.";
    Figures {
        drawings: each_dataset(recipe, results, description, row),
        key: vec![
            key(0, "detection"),
            key(1, "localisation by likeness"),
            key(2, "localisation to the letter"),
        ],
    }
}

/// The share of notes that each way of settling a stage took.
pub fn consensus(recipe: &Recipe, results: &RecipeResults) -> Figures {
    let rows = |cell: &CellResult, notes: &NoteFigures| {
        let stage = |stage: &crate::notes::Consensus| {
            let lane = |settled: &crate::notes::Settled| Lane {
                series: settled.source as usize,
                said: format!("{} {:.4}", settled.source.in_words(), settled.share),
                marks: vec![Mark::Bar {
                    value: settled.share,
                    std: None,
                }],
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
    use crate::run::records::Source::{Agreement, Arbitration, Single, Vote};
    let keys = [Single, Agreement, Arbitration, Vote];
    let used = |source: &crate::run::records::Source| {
        let cells = results.cells.iter().filter_map(|cell| cell.notes.as_ref());
        let mut stages = cells.flat_map(|notes| &notes.consensus);
        stages.any(|stage| stage.settled.iter().any(|one| one.source == *source))
    };
    Figures {
        drawings: each_dataset(recipe, results, description, rows),
        key: keys
            .into_iter()
            .filter(used)
            .map(|source| key(source as usize, source.in_words()))
            .collect(),
    }
}
