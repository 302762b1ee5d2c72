//! Answers in words, and steps of a scale.

use crate::analysis::metrics::MetricsError;
use crate::analysis::open::OpenFigures;
use crate::analysis::scale::{self, ScaleFigures};
use crate::analysis::table::{Cell, Table};
use crate::experiment::contents::Contents;

/// Of a run on open questions.
pub fn table(figures: &OpenFigures) -> Table {
    let over_runs = |of: &Option<crate::analysis::metrics::over_runs::OverRuns>| {
        of.as_ref().map(ToString::to_string)
    };
    Table::of("open", "Answers in words", [figures])
        .number("questions times runs", |one| one.n)
        .number("answered", |one| one.answered)
        .number("with a reference", |one| one.with_reference)
        .spread("ROUGE-1", |one| over_runs(&one.rouge1))
        .spread("ROUGE-L", |one| over_runs(&one.rouge_l))
        .spread("BERTScore", |one| over_runs(&one.bertscore))
        .spread("yes, no, maybe", |one| over_runs(&one.decision))
        .number("own answers beside one another", |one| one.agreement.map_or(Cell::Nothing, |share| Cell::Number(share, 4)))
        .number("all the same", |one| one.unanimous.map_or(Cell::Nothing, |share| Cell::Number(share, 4)))
        .note("ROUGE and BERTScore are F of the answers beside their references; a question without an answer has 0. They count words, not meaning: «is not» is near to «is». `wardround export RUN --as judge` writes the answers for a judge. Yes, no, maybe: the share that begins with the reference's word. Own answers beside one another: ROUGE-L between two answers that agents gave by themselves; all the same: the share of questions for which they are.")
        .build()
}

/// Of a run on a scale.
///
/// # Errors
/// Never, of steps.
pub fn scale(contents: &Contents, figures: &ScaleFigures) -> Result<Table, MetricsError> {
    let interval = scale::interval(contents)?;
    let table = Table::of("scale", "Steps of the scale", [figures])
        .text("scale", |one| format!("{} to {}", one.reach[0], one.reach[1]))
        .spread("mean step", |one| one.mean.as_ref().map(ToString::to_string))
        .text("95 % interval", |_| interval.map(Cell::Ends))
        .spread("with the lowest for what has none", |one| one.mean_at_least.as_ref().map(ToString::to_string))
        .number("questions times runs", |one| one.n)
        .number("without a step", |one| one.without)
        .text("how often each", |one| {
            let given = one.given.iter().map(|(step, count)| format!("{step}: {count}"));
            given.collect::<Vec<_>>().join(", ")
        })
        .note("A reply that could not be read, or names no step, has none. A judge of a model's own answers favours them: take one that is not of the panel.");
    Ok(table.build())
}
