//! The summary of a finished run, and the preview of a dry run.

use std::path::Path;

use serde_json::Value;

use super::report;
use crate::analysis::figures::{self, DIGEST, Figures};
use crate::analysis::health;
use crate::analysis::metrics::over_runs::OverRuns;
use crate::analysis::notes::{Measure, NoteFigures};
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::contents::Contents;
use crate::experiment::driver::{Executed, refuse_failed};
use crate::experiment::models::Models;
use crate::experiment::plan::Plan;
use crate::experiment::results::{ParseCounts, Results};
use crate::experiment::run::Run;
use crate::model::available_memory;
use crate::ops::PAGE;
use crate::panel::memory::{describe, gibibytes};
use crate::record::SettledBy;

/// Writes the results and the page of a finished run.
pub fn write(executed: &Executed) -> Result<(Results, Figures), Failure> {
    let contents = &executed.contents;
    let written = figures::write(contents, executed.elapsed_ms)?;
    report::write(contents, &contents.path)?;
    Ok(written)
}

/// Writes the results and the page of a finished run, and prints its summary.
pub fn finish(executed: &Executed) -> Result<(), Failure> {
    let (results, figures) = write(executed)?;
    let contents = &executed.contents;
    tell(&results, &figures, &contents.plan, &contents.path)?;
    refuse_failed(contents)
}

/// Ends a run that was complete as the run itself would have: with its page, which a full disk or a kill may have kept from it, and its verdict.
pub fn conclude(contents: &Contents) -> Result<(), Failure> {
    write_missing_page(contents)?;
    refuse_failed(contents)
}

/// Writes the page of a run that has none.
pub fn write_missing_page(contents: &Contents) -> Result<(), Failure> {
    match fs_err::exists(contents.path.join(report::FILE))? {
        true => Ok(()),
        false => report::write(contents, &contents.path),
    }
}

fn tell(results: &Results, figures: &Figures, plan: &Plan, out: &Path) -> std::io::Result<()> {
    let accuracy =
        figures.accuracy.as_ref().map_or_else(|| "no gold answers".to_owned(), ToString::to_string);
    let (items, runs) = (plan.dataset.items.len(), results.n_runs as usize);
    let (items, runs) = (count(items, "item"), count(runs, "run"));
    console::say(format!("{} on {}: {items}, {runs}", plan.system_name(), plan.dataset.name))?;
    let row = |name: &str, text: String| console::say(format!("{name:10} {text}"));
    row("accuracy", accuracy)?;
    let mut notes = figures.notes.iter().flat_map(of_notes);
    notes.try_for_each(|(name, text)| row(name, text))?;
    if let Some(health) = &figures.parse_health {
        row("replies", format!("{health} % {}", health::SHARES))?;
    }
    let ParseCounts { ok, repaired, fallback, refused, unread, not_an_option, contradictions } =
        results.parse;
    let parse = format!(
        "{ok} ok, {repaired} repaired, {fallback} fallback, {refused} refused, {unread} unread"
    );
    row("calls", format!("{} ({parse})", results.calls))?;
    if contradictions > 0 {
        row("replies", format!("{contradictions} contradicted themselves"))?;
    }
    if not_an_option > 0 {
        row("answers", format!("{not_an_option} named a letter that is no option"))?;
    }
    let tokens = &results.tokens;
    let prompt = format!("{} prompt ({} cached)", tokens.prompt, tokens.cached);
    let completion = format!("{} completion ({} forced)", tokens.completion, tokens.forced);
    row("tokens", format!("{prompt}, {completion}"))?;
    figures.warnings.iter().try_for_each(console::say)?;
    if plan.synthetic {
        let noise = "synthetic weights answer noise: these figures mean nothing";
        row("note", noise.to_owned())?;
    }
    if let Some(digest) = results.figures.get(DIGEST).and_then(Value::as_str) {
        row("digest", digest.to_owned())?;
    }
    row("head", results.head.clone())?;
    row("report", out.join(report::FILE).display().to_string())
}

/// The figures of a run on notes.
fn of_notes(figures: &NoteFigures) -> Vec<(&'static str, String)> {
    let shown = |figure: Option<&OverRuns>| figure.map_or("none".to_owned(), OverRuns::to_string);
    let mut rows = Vec::new();
    if let Some(detection) = &figures.detection {
        let (of_read, f1) =
            (shown(detection.accuracy_of_read.as_ref()), shown(detection.f1.as_ref()));
        let accuracy = &detection.accuracy;
        rows.push(("detection", format!("{accuracy}; {of_read} of what could be read; F1 {f1}")));
    }
    if let Some(found) = &figures.localisation {
        let (alike, exact) = (&found.accuracy, &found.accuracy_exact);
        rows.push(("sentences", format!("{alike} by similarity; {exact} word for word")));
    }
    let rouge = figures.correction.as_ref().and_then(|one| one.measure(Measure::Rouge1));
    if let Some(rouge) = rouge {
        let (pairs, composite) = (shown(rouge.subset.as_ref()), &rouge.composite);
        rows.push(("ROUGE-1", format!("{pairs} over the pairs; composite {composite}")));
    }
    for stage in &figures.consensus {
        let agreed = stage.settled.iter().find(|one| one.source == SettledBy::Agreement);
        rows.extend(agreed.map(|agreed| {
            let (share, notes) = (agreed.share, count(stage.n, "note"));
            ("agreement", format!("{}: {share:.4} of {notes}", stage.stage.name()))
        }));
    }
    rows
}

/// `1 item`, `2 items`.
pub fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Prints what is known of a run that could begin.
pub fn announce(run: &Run, models: &Models) -> std::io::Result<()> {
    for notice in &run.notices {
        console::say(format!("note       {notice}"))?;
    }
    for member in &run.plan.panel {
        console::say(format!(
            "{:10} {} ({}, {})",
            member.agent, member.backbone, member.family, member.dtype
        ))?;
    }
    tell_memory(models)
}

/// Prints the memory that the models need, and how much is free.
pub fn tell_memory(models: &Models) -> std::io::Result<()> {
    let mut total = 0;
    for (description, memory) in models.descriptions.iter().zip(&models.memory) {
        total += memory.footprint.total();
        console::say(format!(
            "memory     {}: {}; context {} tokens, pool {} tokens",
            description.checkpoint.name,
            describe(&memory.footprint),
            description.context,
            memory.options.pages * PAGE
        ))?;
    }
    for model in &models.beside {
        total += model.footprint.total();
        console::say(format!("memory     {}: {}", model.name, describe(&model.footprint)))?;
    }
    console::say(format!(
        "memory     {} in all, {} free",
        gibibytes(total),
        gibibytes(available_memory())
    ))
}
