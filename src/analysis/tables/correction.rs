//! The table of corrections by every measure, and what is said of measures without weights.

use itertools::Itertools;

use super::notes::Entry;
use crate::analysis::notes::{Correction, Measure, Measured, NoteFigures};
use crate::analysis::table::Table;

/// What stands where a measure has no weights.
const NOT_COMPUTED: &str = "not computed: needs its model in --scorers DIR";

struct Line<'a> {
    label: String,
    found: Option<&'a Measured>,
    remark: &'static str,
}

pub fn correction(entries: &[Entry<'_>]) -> Option<Table> {
    let title = "Correction: how similar to the gold correction?";
    let corrections = entries.iter().filter_map(|entry| {
        let correction = entry.notes.correction.as_ref()?;
        Some((entry, correction, lines(correction)))
    });
    let corrections: Vec<_> = corrections.collect();
    let rows = corrections
        .iter()
        .flat_map(|(entry, _, lines)| lines.iter().map(move |line| (*entry, line)));
    let notes = corrections.iter().map(|(entry, correction, _)| counts(entry, correction));
    Table::of("correction", title, rows)
        .grouped_by(|(entry, _)| entry.heading.clone())
        .text("measure", |(_, line)| &line.label)
        .spread("subset", |(_, line)| line.found.and_then(|one| one.subset.as_ref()))
        .spread("composite", |(_, line)| line.found.map(|one| &one.composite))
        .text("remark", |(_, line)| line.remark)
        .note("AggregateScore is the mean of ROUGE-1, BERTScore and BLEURT. KPCS, Eq. 9, is 0 where none of the keywords is there; without the zero, it is Eq. 9 as printed. Gated, as in the published code: all keywords as one string, or nothing.")
        .notes(notes)
        .unless_empty()
}

fn counts(entry: &Entry<'_>, correction: &Correction) -> String {
    let sum = |counts: &[usize]| counts.iter().sum::<usize>();
    let heading = match entry.heading.as_str() {
        "" => String::new(),
        heading => format!("{heading}. "),
    };
    format!(
        "{heading}Subset: mean over the {} pairs in which both sides correct. Composite: mean over all {} notes × runs, 1 for each of the {} that neither side corrects, 0 where only one does. KPCS takes as keywords {}.",
        sum(&correction.n_pairs),
        entry.notes.n_graded * correction.n_pairs.len(),
        sum(&correction.n_correct_na),
        match correction.keywords_are_changed_words {
            true => "the words that the gold correction changes",
            false => {
                "those given by the recipe or with --keywords, else those in the notes' file, matched exactly; where there are none, the words that the gold correction changes"
            }
        },
    )
}

fn lines(correction: &Correction) -> Vec<Line<'_>> {
    let line = |label: &str, found, remark| Line { label: label.to_owned(), found, remark };
    let measures = Measure::of_texts().chain([Measure::Aggregate]);
    let mut lines: Vec<Line<'_>> = measures
        .map(|measure| {
            let found = correction.measure(measure);
            let remark = match (found, measure) {
                (None, Measure::BertScoreMultilingual) => "of Arabic alone, with --scorers DIR",
                (None, _) if measure.is_neural() => NOT_COMPUTED,
                (None, _) => "defined for English only, which has a stemmer",
                (_, Measure::Rouge1 | Measure::Rouge1Stemmed) => "F1, as the published code has it",
                (_, Measure::Rouge1Recall | Measure::Rouge1StemmedRecall) => "as A.1 says",
                (_, Measure::BertScore) => "the published code's model of the language",
                (_, Measure::BertScoreMultilingual) => "bert-score's own model of Arabic",
                (Some(_), _) => "",
            };
            line(measure.label(), found, remark)
        })
        .collect();
    for kpcs in &correction.kpcs {
        let label = |form: &str| format!("KPCS, α = {}, {form}", kpcs.alpha);
        lines.push(line(&label("Eq. 9"), Some(&kpcs.eq9), ""));
        lines.push(line(&label("without the zero"), Some(&kpcs.ungated), ""));
        lines.push(line(&label("gated"), Some(&kpcs.gated), ""));
    }
    if correction.kpcs.is_empty() {
        lines.push(line("KPCS, Eq. 9", None, NOT_COMPUTED));
        lines.push(line("KPCS, gated", None, NOT_COMPUTED));
    }
    lines
}

/// What is said where BERTScore, BLEURT or both have no weights.
pub fn missing_weights(figures: &NoteFigures) -> Option<String> {
    let correction = figures.correction.as_ref()?;
    let mut names = vec![Measure::BertScore, Measure::Bleurt];
    names.retain(|measure| correction.measure(*measure).is_none());
    (!names.is_empty()).then(|| {
        format!(
            "{}, and with {} AggregateScore and KPCS: {NOT_COMPUTED}",
            names.iter().map(|measure| measure.label()).join(" and "),
            if names.len() == 1 { "it" } else { "them" },
        )
    })
}
