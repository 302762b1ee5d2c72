//! What a run on notes came to: its figures, its tables, and how it was made.

use super::{Results, Scoring, method, read};
use crate::analysis::Outcomes;
use crate::analysis::health::ParseHealth;
use crate::analysis::metrics::MetricsError;
use crate::analysis::metrics::calibration::{BINS, calibration};
use crate::analysis::metrics::over_runs::{OverRuns, Spread};
use crate::analysis::notes::{ByType, Consensus, Detection, Localisation, NoteFigures, Settled};
use crate::analysis::tables::correction::missing_weights;
use crate::analysis::tables::notes::{self, Entry};
use crate::analysis::tables::{self, Labelled};
use crate::experiment::contents::Contents;
use crate::record::{NoteLine, SettledBy};
use crate::report::figure::{Key, Lane, Mark, Row, Rows, Subplot};
use crate::report::risk;

/// # Errors
/// A confidence outside 0 to 1.
pub fn results(contents: &Contents, scoring: &Scoring) -> Result<Results, MetricsError> {
    let outcomes = Outcomes::of(contents);
    let figures = NoteFigures::of(&outcomes, &scoring.scorer);
    let notes: Vec<&NoteLine> = contents.notes().into_values().collect();
    let (headline, about) = headline(&figures);
    let consensus = (!figures.consensus.is_empty()).then(|| consensus(&figures.consensus));
    let panels = [
        consensus,
        figures.localisation.as_ref().map(localisation),
        figures.detection.as_ref().map(types),
        risk::panel(contents),
    ];
    let health = ParseHealth::of(&contents.calls.records);
    let warning = health.and_then(|health| health.warning(&contents.plan.system));
    let entry = Entry { heading: String::new(), notes: &figures, health };
    let mut tables = notes::all(&[entry], &scoring.prices);
    let predictions = outcomes.predictions();
    if !predictions.is_empty() {
        let calibration = calibration(&predictions, BINS)?;
        tables.push(tables::calibration::table(&[Labelled {
            group: "",
            label: "all runs",
            of: &calibration,
            health,
        }]));
    }
    Ok(Results {
        headline,
        about: about + &read(health),
        warning,
        method: method::method(&contents.plan, &notes),
        missing: missing_weights(&figures),
        panels: panels.into_iter().flatten().collect(),
        tables,
    })
}

fn headline(figures: &NoteFigures) -> (Option<(String, Option<String>)>, String) {
    let (Some(detection), Some(localisation)) = (&figures.detection, &figures.localisation) else {
        let about = "no note has gold in every run, so nothing is graded".to_owned();
        return (None, about);
    };
    let digits = |value: f64| format!("{value:.4}");
    let accuracy = &detection.accuracy;
    let spread = Spread::from(accuracy);
    let about = format!(
        "detection accuracy, {}; localisation accuracy {} by similarity, {} word for word",
        spread.in_words(),
        digits(localisation.accuracy.mean),
        digits(localisation.accuracy_exact.mean)
    );
    (Some((digits(accuracy.mean), spread.deviation().map(digits))), about)
}

fn panel(title: &str, description: &str, rows: Vec<Row>, key: &[(usize, &str)]) -> Subplot {
    let key = key.iter().map(|(series, label)| Key::series(*series, label));
    Subplot::of(
        Rows {
            title: title.to_owned(),
            description: description.to_owned(),
            reach: vec![0.0, 1.0],
            rows,
        },
        key.collect(),
    )
}

/// A source's colour.
fn series(source: SettledBy) -> usize {
    match source {
        SettledBy::Agreement => 0,
        SettledBy::Arbitration => 1,
        SettledBy::Vote => 3,
        SettledBy::Single => 5,
    }
}

/// Figure 2: the share of notes that each way of settling settled, one after another on one bar.
fn consensus(stages: &[Consensus]) -> Subplot {
    let row = |stage: &Consensus| {
        let shares = stage.settled.iter().map(|one| (series(one.source), one.share));
        let said = |one: &Settled| format!("{} {:.4}", one.source.in_words(), one.share);
        let said: Vec<String> = stage.settled.iter().map(said).collect();
        Row {
            label: stage.stage.to_string(),
            lanes: vec![Lane {
                series: 0,
                said: said.join(" · "),
                marks: vec![Mark::Stack(shares.collect())],
            }],
        }
    };
    let settled = stages.iter().flat_map(|stage| &stage.settled);
    let mut used: Vec<SettledBy> = settled.map(|one| one.source).collect();
    used.sort_unstable();
    used.dedup();
    let key = used.into_iter().map(|source| (series(source), source.in_words()));
    panel(
        "Agreement and arbitration (MedGuards, Figure 2)",
        "Of the notes that each stage saw, the shares settled by agreement and otherwise.",
        stages.iter().map(row).collect(),
        &Vec::from_iter(key),
    )
}

/// Figure 3: the sentence by similarity beside the sentence word for word.
fn localisation(localisation: &Localisation) -> Subplot {
    let rows = [
        ("soft, by similarity", Some(&localisation.accuracy)),
        ("exact, word for word", Some(&localisation.accuracy_exact)),
        ("soft, notes with an error only", localisation.of_errors.as_ref()),
    ];
    let rows = rows.into_iter().enumerate();
    let rows = rows.filter_map(|(series, (label, figure))| {
        let lanes = vec![Lane::over_runs(series, figure?)];
        Some(Row { label: label.to_owned(), lanes })
    });
    panel(
        "Localisation, soft and exact (MedGuards, Figure 3)",
        "Localisation accuracy: the sentence most similar to the quoted words, and the quoted words exactly.",
        rows.collect(),
        &[],
    )
}

/// By type, how many errors were detected and located; last the notes without an error.
fn types(detection: &Detection) -> Subplot {
    let share = |series: usize, label: &str, figure: &OverRuns| {
        let mut lane = Lane::over_runs(series, figure);
        lane.said = format!("{label} {:.4}", figure.mean);
        lane
    };
    let of_type = |one: &ByType| Row {
        label: format!("{} ({})", one.kind, one.n),
        lanes: vec![share(0, "detected", &one.detected), share(1, "located", &one.located)],
    };
    let confusion = &detection.confusion;
    let sound = confusion.sound();
    let mut rows: Vec<Row> = detection.by_type.iter().map(of_type).collect();
    if sound > 0 {
        let passed = confusion.true_negatives as f64 / sound as f64;
        let mut lane = Lane::bar(2, passed);
        lane.said = format!("recognised {passed:.4}");
        rows.push(Row { label: "no error".to_owned(), lanes: vec![lane] });
    }
    panel(
        "Detection and localisation by error type",
        "For each error type the shares detected and located; of the notes without an error, the share recognised as such.",
        rows,
        &[(0, "detected"), (1, "located"), (2, "recognised as having no error")],
    )
}
