//! The summary of a finished run, and the preview of a dry run.

use std::path::Path;

use serde_json::Value;

use super::report;
use crate::analysis::health;
use crate::analysis::metrics::over_runs::OverRuns;
use crate::analysis::notes::{Measure, NoteFigures};
use crate::analysis::results::{self, DIGEST, Figures};
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
    let written = results::write(contents, executed.elapsed_ms)?;
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
    console::say(format!(
        "{} on {}: {}, {}",
        plan.system,
        plan.dataset.name,
        count(plan.dataset.items.len(), "item"),
        count(results.n_runs as usize, "run")
    ))?;
    console::say(format!("accuracy   {accuracy}"))?;
    if let Some(figures) = &figures.notes {
        tell_notes(figures)?;
    }
    let tokens = &results.tokens;
    if let Some(health) = &figures.parse_health {
        console::say(format!("replies    {health} % {}", health::SHARES))?;
    }
    let ParseCounts { ok, repaired, fallback, refused, unread, not_an_option, contradictions } =
        results.parse;
    console::say(format!(
        "calls      {} ({ok} ok, {repaired} repaired, {fallback} fallback, {refused} refused, {unread} unread)",
        results.calls
    ))?;
    if contradictions > 0 {
        console::say(format!("replies    {contradictions} contradicted themselves"))?;
    }
    if not_an_option > 0 {
        console::say(format!("answers    {not_an_option} named a letter that is no option"))?;
    }
    console::say(format!(
        "tokens     {} prompt ({} cached), {} completion ({} forced)",
        tokens.prompt, tokens.cached, tokens.completion, tokens.forced
    ))?;
    for warning in &figures.warnings {
        console::say(warning)?;
    }
    if plan.synthetic {
        console::say("note       synthetic weights answer noise: these figures mean nothing")?;
    }
    if let Some(digest) = results.figures.get(DIGEST).and_then(Value::as_str) {
        console::say(format!("digest     {digest}"))?;
    }
    console::say(format!("head       {}", results.head))?;
    console::say(format!("report     {}", out.join(report::FILE).display()))
}

/// Prints the figures of a run on notes.
fn tell_notes(figures: &NoteFigures) -> std::io::Result<()> {
    let shown = |figure: Option<&OverRuns>| figure.map_or("none".to_owned(), OverRuns::to_string);
    if let Some(detection) = &figures.detection {
        let of_read = shown(detection.accuracy_of_read.as_ref());
        console::say(format!(
            "detection  {}; {of_read} of what could be read; F1 {}",
            detection.accuracy,
            shown(detection.f1.as_ref())
        ))?;
    }
    if let Some(localisation) = &figures.localisation {
        console::say(format!(
            "sentences  {} by similarity; {} word for word",
            localisation.accuracy, localisation.accuracy_exact
        ))?;
    }
    let rouge = figures.correction.as_ref().and_then(|one| one.measure(Measure::Rouge1));
    if let Some(rouge) = rouge {
        console::say(format!(
            "ROUGE-1    {} over the pairs; composite {}",
            shown(rouge.subset.as_ref()),
            rouge.composite
        ))?;
    }
    for stage in &figures.consensus {
        let agreed = stage.settled.iter().find(|one| one.source == SettledBy::Agreement);
        if let Some(agreed) = agreed {
            console::say(format!(
                "agreement  {}: {:.4} of {}",
                stage.stage,
                agreed.share,
                count(stage.n, "note")
            ))?;
        }
    }
    Ok(())
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
    for model in &models.beside.models {
        total += model.footprint.total();
        console::say(format!("memory     {}: {}", model.name, describe(&model.footprint)))?;
    }
    if models.beside.mapped > 0 {
        console::say(format!(
            "memory     {} of corpora are memory-mapped: they use free memory as a cache, and are not counted",
            gibibytes(models.beside.mapped as usize)
        ))?;
    }
    console::say(format!(
        "memory     {} in all, {} free",
        gibibytes(total),
        gibibytes(available_memory())
    ))
}
