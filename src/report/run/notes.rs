//! What a run on notes came to: its figures, its tables, and how it was made.

use super::{Results, confidence, method, read};
use crate::analysis::Outcomes;
use crate::analysis::health::ParseHealth;
use crate::analysis::metrics::over_runs::Spread;
use crate::analysis::notes::{CorrectionScorer, NoteFigures};
use crate::analysis::tables::correction::missing_weights;
use crate::analysis::tables::notes::{self, Entry};
use crate::experiment::contents::Contents;
use crate::record::NoteLine;
use crate::report::figure::{Chart, Drawn};
use crate::report::risk;

const CHARTS: [Chart; 3] = [
    Chart {
        table: "consensus",
        title: "Agreement and arbitration (MedGuards, Figure 2)",
        description: "Of the notes that the stage saw, the shares settled by agreement and otherwise.",
        reach: &[0.0, 1.0],
        lanes: &[Drawn(0, "share", "")],
    },
    Chart {
        table: "localisation",
        title: "Localisation, soft and exact (MedGuards, Figure 3)",
        description: "Localisation accuracy: the sentence most similar to the quoted words, and the quoted words exactly.",
        reach: &[0.0, 1.0],
        lanes: &[Drawn(0, "share", "")],
    },
    Chart {
        table: "types",
        title: "Detection and localisation by error type",
        description: "For each error type the shares detected and located.",
        reach: &[0.0, 1.0],
        lanes: &[Drawn(0, "detected", "detected"), Drawn(1, "located", "located")],
    },
];

pub fn results(contents: &Contents, scorer: &CorrectionScorer) -> Results {
    let outcomes = Outcomes::of(contents);
    let figures = NoteFigures::of(&outcomes, scorer);
    let notes: Vec<&NoteLine> = contents.notes().into_values().collect();
    let (headline, about) = headline(&figures);
    let health = ParseHealth::of(&contents.calls.records);
    let warning = health.and_then(|health| health.warning(&contents.plan.system));
    let entry = Entry { heading: String::new(), notes: &figures, health };
    let mut tables = notes::all(&[entry]);
    tables.extend(confidence(&outcomes.predictions(), health).map(|(table, _)| table));
    let charts = CHARTS.iter().filter_map(|chart| {
        let table = tables.iter().find(|table| table.name == chart.table)?;
        chart.of(table)
    });
    let panels = charts.chain(risk::panel(contents)).collect();
    Results {
        headline,
        about: about + &read(health),
        warning,
        method: method::method(&contents.plan, &notes),
        missing: missing_weights(&figures),
        panels,
        tables,
        ..Results::default()
    }
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
