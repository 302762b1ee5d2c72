//! The table of corrections by every measure, and what is said of measures without weights.

use super::notes::{Entry, Rows, row, rows, table};
use crate::analysis::notes::{Correction, Measure, Measured, NoteFigures};
use crate::report::table::{Cell, Column, Kind, Table};

/// What stands where a measure has no weights.
const NOT_COMPUTED: &str = "not computed: give --scorers DIR";

/// Over the corrected pairs, and over all notes.
pub fn measured(measured: Option<&Measured>) -> [Cell; 2] {
    let subset = measured.and_then(|one| one.subset.as_ref());
    let composite = measured.map(|one| &one.composite);
    [subset, composite].map(Cell::over_runs)
}

pub fn correction(entries: &[Entry<'_>]) -> Table {
    let columns = vec![
        Column::new("measure", Kind::Text),
        Column::new("subset", Kind::Spread),
        Column::new("composite", Kind::Spread),
        Column::new("remark", Kind::Text),
    ];
    let of = |notes: &NoteFigures| notes.correction.as_ref().map(measures);
    let mut table = table(
        "correction",
        "Correction: how similar to the gold correction?",
        columns,
        rows(entries, of),
        "AggregateScore is the mean of ROUGE-1, BERTScore and BLEURT. Gated, as in the published code: all keywords as one string, or nothing.",
    );
    for entry in entries {
        let Some(correction) = &entry.notes.correction else {
            continue;
        };
        let sum = |counts: &[usize]| counts.iter().sum::<usize>();
        let heading = match entry.heading.as_str() {
            "" => String::new(),
            heading => format!("{heading}. "),
        };
        table.notes.push(format!(
            "{heading}Subset: mean over the {} pairs in which both sides correct. Composite: mean over all {} notes × runs, 1 for each of the {} that neither side corrects, 0 where only one does. KPCS takes as keywords {}.",
            sum(&correction.n_pairs),
            entry.notes.n_graded * correction.n_pairs.len(),
            sum(&correction.n_correct_na),
            match correction.keywords_are_changed_words {
                true => "the words that the gold correction changes",
                false => {
                    "those given with --keywords, else those in the notes' file, matched exactly; where there are none, the words that the gold correction changes"
                }
            },
        ));
    }
    table
}

fn measures(correction: &Correction) -> Rows {
    let row = |label: &str, found: Option<&Measured>, remark: &str| {
        row(label, measured(found).into_iter().chain([Cell::text(remark)]))
    };
    let measures = Measure::OF_TEXTS.into_iter().chain([Measure::Aggregate]);
    let mut rows: Rows = measures
        .map(|measure| {
            let found = correction.measure(measure);
            let remark = match (found, measure) {
                (Some(_), _) => "",
                (None, Measure::BertScore | Measure::Bleurt | Measure::Aggregate) => NOT_COMPUTED,
                (None, _) => "defined for English only, which has a stemmer",
            };
            row(measure.label(), found, remark)
        })
        .collect();
    for kpcs in &correction.kpcs {
        let label = |form: &str| format!("KPCS, α = {}, {form}", kpcs.alpha);
        rows.push(row(&label("Eq. 9"), Some(&kpcs.eq9), ""));
        rows.push(row(&label("gated"), Some(&kpcs.gated), ""));
    }
    if correction.kpcs.is_empty() {
        rows.push(row("KPCS, Eq. 9", None, NOT_COMPUTED));
        rows.push(row("KPCS, gated", None, NOT_COMPUTED));
    }
    rows
}

/// What is said where BERTScore, BLEURT or both have no weights.
pub fn missing_weights(figures: &NoteFigures) -> Option<String> {
    let correction = figures.correction.as_ref()?;
    let missing = [Measure::BertScore, Measure::Bleurt]
        .into_iter()
        .filter(|measure| correction.measure(*measure).is_none());
    let names: Vec<&str> = missing.map(Measure::label).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{}, and with {} AggregateScore and KPCS: {NOT_COMPUTED}",
            names.join(" and "),
            if names.len() == 1 { "it" } else { "them" },
        )
    })
}
