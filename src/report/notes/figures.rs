//! The figures of a run on notes, with their keys.

use serde::Serialize;

use crate::analysis::metrics::over_runs::OverRuns;
use crate::analysis::notes::{ByType, Consensus, Detection, Localisation, NoteFigures};
use crate::record::Source;
use crate::report::figure::{Lane, Mark, Row, Rows};

#[derive(Serialize)]
pub struct Figure {
    title: &'static str,
    /// SVG, whose words are escaped.
    svg: String,
    /// A class of the page's style, and what it stands for.
    key: Vec<(String, &'static str)>,
}

/// Those that there are figures for.
pub fn all(figures: &NoteFigures) -> Vec<Figure> {
    let consensus = (!figures.consensus.is_empty()).then(|| consensus(&figures.consensus));
    let drawn = [
        consensus,
        figures.localisation.as_ref().map(localisation),
        figures.detection.as_ref().map(types),
    ];
    drawn.into_iter().flatten().collect()
}

fn figure(
    title: &'static str,
    description: &str,
    rows: Vec<Row>,
    key: &[(usize, &'static str)],
) -> Figure {
    let rows = Rows {
        title: title.to_owned(),
        description: description.to_owned(),
        reach: vec![0.0, 1.0],
        rows,
    };
    let key = key
        .iter()
        .map(|&(series, label)| (format!("s{series}"), label));
    Figure {
        title,
        svg: rows.draw().svg(),
        key: key.collect(),
    }
}

/// A source's colour.
fn series(source: Source) -> (usize, &'static str) {
    match source {
        Source::Agreement => (0, "agreement"),
        Source::Arbitration => (1, "arbitration"),
        Source::Vote => (3, "vote"),
        Source::Single => (5, "one agent alone"),
    }
}

/// Figure 2: how many notes each way of settling settled, one after another on one bar.
fn consensus(stages: &[Consensus]) -> Figure {
    let row = |stage: &Consensus| {
        let shares = stage
            .settled
            .iter()
            .map(|one| (series(one.source).0, one.share));
        let said = stage
            .settled
            .iter()
            .map(|one| format!("{} {:.4}", series(one.source).1, one.share));
        Row {
            label: stage.stage.to_string(),
            lanes: vec![Lane {
                series: 0,
                said: said.collect::<Vec<_>>().join(" · "),
                marks: vec![Mark::Stack(shares.collect())],
            }],
        }
    };
    let mut there: Vec<Source> = stages
        .iter()
        .flat_map(|stage| &stage.settled)
        .map(|one| one.source)
        .collect();
    there.sort_unstable();
    there.dedup();
    let key: Vec<(usize, &str)> = there.into_iter().map(series).collect();
    figure(
        "Agreement against arbitration (Figure 2)",
        "Of the notes that each stage saw, the shares settled by agreement and otherwise.",
        stages.iter().map(row).collect(),
        &key,
    )
}

fn bar(series: usize, figure: &OverRuns) -> Lane {
    Lane::bar(series, figure.mean, figure.std)
}

/// Figure 3: sentences by likeness beside the very words.
fn localisation(localisation: &Localisation) -> Figure {
    let row = |label: &str, lane: Lane| Row {
        label: label.to_owned(),
        lanes: vec![lane],
    };
    let mut rows = vec![
        row("soft, by likeness", bar(0, &localisation.accuracy)),
        row(
            "exact, the very words",
            bar(1, &localisation.accuracy_exact),
        ),
    ];
    if let Some(of_errors) = &localisation.of_errors {
        rows.push(row("soft, of errors alone", bar(2, of_errors)));
    }
    figure(
        "Localisation, soft against exact (Figure 3)",
        "Accuracy of the sentence: the one most like what was said, beside exactly what was said.",
        rows,
        &[],
    )
}

/// By type, how many errors were flagged and how many placed; last the notes without an error.
fn types(detection: &Detection) -> Figure {
    let share = |series: usize, label: &str, figure: &OverRuns| {
        let mut lane = bar(series, figure);
        lane.said = format!("{label} {:.4}", figure.mean);
        lane
    };
    let of_type = |one: &ByType| Row {
        label: format!("{} ({})", one.kind, one.n),
        lanes: vec![
            share(0, "detected", &one.detected),
            share(1, "located", &one.located),
        ],
    };
    let confusion = &detection.confusion;
    let sound = confusion.sound();
    let mut rows: Vec<Row> = detection.by_type.iter().map(of_type).collect();
    if sound > 0 {
        let passed = confusion.true_negatives as f64 / sound as f64;
        rows.push(Row {
            label: "no error".to_owned(),
            lanes: vec![Lane {
                series: 2,
                said: format!("passed {passed:.4}"),
                marks: vec![Mark::Bar {
                    value: passed,
                    std: None,
                }],
            }],
        });
    }
    figure(
        "What was found, by type of error",
        "For each type of error the shares detected and located; of the notes without an error, the share that was passed.",
        rows,
        &[
            (0, "detected"),
            (1, "located"),
            (2, "passed as having no error"),
        ],
    )
}
