//! The figures of a recipe: charts of its tables, and a diagram of each cell's confidence.

use crate::analysis::table::Table;
use crate::recipe::Recipe;
use crate::recipe::results::RecipeResults;
use crate::recipe::tables;
use crate::report::confidence;
use crate::report::figure::{Chart, Drawing, Drawn, Subplot};

const CHARTS: [Chart; 11] = [
    Chart {
        table: "accuracy",
        title: "",
        description: "Accuracy by method: a bar to the mean over the runs, a line of one standard deviation to either side.",
        reach: &[0.0, 1.0],
        lanes: &[Drawn(0, "ours", "ours: mean ± standard deviation over runs")],
    },
    Chart {
        table: "notes",
        title: "",
        description: "Accuracy by method, over all notes: of detection, and of localisation by similarity.",
        reach: &[0.0, 1.0],
        lanes: &[
            Drawn(0, "detection", "detection"),
            Drawn(1, "localisation", "localisation by similarity"),
        ],
    },
    Chart {
        table: "notes",
        title: "Correction, over all notes",
        description: "How similar corrections are to the gold ones, over all notes, with one standard deviation over the runs.",
        reach: &[0.0, 1.0],
        lanes: &[
            Drawn(0, "ROUGE-1: all notes", "ROUGE-1"),
            Drawn(1, "BERTScore: all notes", "BERTScore"),
            Drawn(2, "BLEURT: all notes", "BLEURT"),
            Drawn(3, "AggregateScore: all notes", "AggregateScore"),
        ],
    },
    Chart {
        table: "search-effort",
        title: "Turns and steps a note",
        description: "Turns and steps that a note took, with one standard deviation over the notes.",
        reach: &[0.0],
        lanes: &[
            Drawn(0, "turns a note", "MedReFlex turns"),
            Drawn(1, "MedReAct steps a note", "MedReAct steps"),
        ],
    },
    Chart {
        table: "search-effort",
        title: "Time of a step",
        description: "Seconds that a step took, with one standard deviation over the steps.",
        reach: &[0.0],
        lanes: &[
            Drawn(0, "seconds a step: all steps", "all steps"),
            Drawn(1, "seconds a step: those that search", "steps that search"),
        ],
    },
    Chart {
        table: "consensus",
        title: "",
        description: "The share of the notes that a stage saw, by who settled it: agreement, or a third agent.",
        reach: &[0.0, 1.0],
        lanes: &[Drawn(0, "share", "")],
    },
    Chart {
        table: "netgain",
        title: "",
        description: "NetGain by method: a dot at the mean, a line over its 95 % interval.",
        reach: &[0.0],
        lanes: &[
            Drawn(
                0,
                "of those that could turn: ours",
                "of the questions that could turn, with its 95 % interval",
            ),
            Drawn(1, "of all questions: ours", "of all questions"),
        ],
    },
    Chart {
        table: "paired",
        title: "",
        description: "Differences of accuracy, paired by question: a dot at the mean, a line over its 95 % interval.",
        reach: &[0.0],
        lanes: &[Drawn(0, "ours", "ours, with its 95 % interval")],
    },
    Chart {
        table: "collapse",
        title: "Similarity",
        description: "Similarity of texts before any interaction, in the first round of it and in the last, with one standard deviation over the runs.",
        reach: &[0.0, 1.0],
        lanes: &[
            Drawn(2, "similarity: initial", "before any interaction"),
            Drawn(1, "similarity: first round", "first round of interaction"),
            Drawn(0, "similarity: last round", "last round"),
        ],
    },
    Chart {
        table: "collapse",
        title: "Correlated errors",
        description: "Shares of questions on which all first answers agree, agree and are wrong, and on which all last answers agree and are wrong, with one standard deviation over the runs.",
        reach: &[0.0, 1.0],
        lanes: &[
            Drawn(2, "correlated errors: Agreement@0", "Agreement@0"),
            Drawn(1, "correlated errors: Same-wrong@0", "Same-wrong@0"),
            Drawn(4, "correlated errors: Same-wrong@final", "Same-wrong@final"),
        ],
    },
    Chart {
        table: "cost",
        title: "",
        description: "Completion tokens that an item takes, and that a right answer takes.",
        reach: &[0.0],
        lanes: &[
            Drawn(0, "per item: completion tokens", "completion tokens per item"),
            Drawn(1, "per right answer: completion tokens", "completion tokens per right answer"),
        ],
    },
];

/// The figures that stand with a table.
pub fn panels(table: &Table, recipe: &Recipe, results: &RecipeResults) -> Vec<Subplot> {
    let mut panels = match table.name {
        "calibration" => calibration(recipe, results),
        _ => Vec::new(),
    };
    let charts = CHARTS.iter().filter(|chart| chart.table == table.name);
    panels.extend(charts.filter_map(|chart| chart.of(table)));
    panels
}

/// A reliability diagram for each cell, by dataset.
fn calibration(recipe: &Recipe, results: &RecipeResults) -> Vec<Subplot> {
    let panels = recipe.dataset.iter().map(|dataset| {
        let cells = results.cells.iter().filter(|cell| cell.dataset == dataset.name);
        let drawings: Vec<Drawing> = cells
            .filter_map(|cell| {
                let label = tables::method(recipe, &cell.method);
                Some(confidence::calibration(label, cell.calibration.as_ref()?))
            })
            .collect();
        Subplot { title: dataset.label.clone(), drawings, key: Vec::new() }
    });
    panels.filter(|panel| !panel.drawings.is_empty()).collect()
}
