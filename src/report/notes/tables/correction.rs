//! The table of corrections, by every measure; and what is said of measures without weights.

use crate::analysis::notes::{Correction, Measure, Measured, NoteFigures};
use crate::report::table::{Cell, Column, Kind, Row, Table};

/// What stands where a measure has no weights.
const NOT_COMPUTED: &str = "not computed: give --scorers DIR";

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

/// Over the corrected pairs, and over all notes.
pub fn measured(measured: Option<&Measured>) -> [Cell; 2] {
    let subset = measured.and_then(|one| one.subset.as_ref());
    let composite = measured.map(|one| &one.composite);
    [subset, composite].map(Cell::over_runs)
}

pub fn table(correction: &Correction, n_graded: usize) -> Table {
    let sum = |counts: &[usize]| counts.iter().sum::<usize>();
    let (pairs, nothing) = (sum(&correction.n_pairs), sum(&correction.n_correct_na));
    let row = |label: String, measured: Option<&Measured>, remark: &str| {
        let [subset, composite] = self::measured(measured);
        Row::new(vec![
            Cell::Text(label),
            subset,
            composite,
            Cell::text(remark),
        ])
    };
    let remark = |measure: Measure| match (correction.measure(measure), measure) {
        (Some(_), _) => "",
        (None, Measure::BertScore | Measure::Bleurt | Measure::Aggregate) => NOT_COMPUTED,
        (None, _) => "English alone has its stems",
    };
    let measures = Measure::OF_TEXTS.into_iter().chain([Measure::Aggregate]);
    let mut rows: Vec<Row> = measures
        .map(|one| row(one.label().to_owned(), correction.measure(one), remark(one)))
        .collect();
    for kpcs in &correction.kpcs {
        let alpha = kpcs.alpha;
        rows.push(row(
            format!("KPCS, α = {alpha}, Eq. 9"),
            Some(&kpcs.eq9),
            "",
        ));
        rows.push(row(
            format!("KPCS, α = {alpha}, gated"),
            Some(&kpcs.gated),
            "",
        ));
    }
    if correction.kpcs.is_empty() {
        rows.push(row("KPCS, Eq. 9".to_owned(), None, NOT_COMPUTED));
        rows.push(row("KPCS, gated".to_owned(), None, NOT_COMPUTED));
    }
    let keywords = match correction.keywords_are_changed_words {
        true => "KPCS' keywords are the words that the gold correction changes.",
        false => {
            "KPCS' keywords are those given with --keywords, else those that the notes' file names, matched to the letter; where there are none, the words that the gold correction changes."
        }
    };
    let counts = format!(
        "Subset: mean over the {pairs} pairs in which both sides correct. Composite: mean over all {} notes × runs, 1 for each of the {nothing} that neither side corrects, 0 where one does.",
        n_graded * correction.n_pairs.len(),
    );
    super::table(
        "correction",
        "Correction: how like the gold one?",
        vec![
            Column::new("measure", Kind::Text),
            Column::new("subset", Kind::Spread),
            Column::new("composite", Kind::Spread),
            Column::new("remark", Kind::Text),
        ],
        rows,
        &[
            &counts,
            "AggregateScore is the mean of ROUGE-1, BERTScore and BLEURT. Gated, as the published code does: all keywords as one string, or nothing.",
            keywords,
        ],
    )
}
