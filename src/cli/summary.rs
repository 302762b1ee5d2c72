//! The summary of a finished run, and the preview of a dry run.

use std::path::Path;

use itertools::Itertools;
use serde_json::Value;

use super::progress::duration;
use super::report;
use crate::analysis::figures::{self, DIGEST, Figures};
use crate::analysis::health::SYNTHETIC;
use crate::analysis::notes::CorrectionScorer;
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
use crate::record::count;

/// Writes the results and the page of a finished run.
pub fn write(executed: &Executed) -> Result<(Results, Figures), Failure> {
    let contents = &executed.contents;
    let written = figures::write(contents, executed.elapsed_ms)?;
    report::write(contents, &CorrectionScorer::default())?;
    Ok(written)
}

/// Writes the results and the page of a finished run, and prints its summary.
pub fn finish(executed: &Executed) -> Result<(), Failure> {
    let (results, figures) = write(executed)?;
    let contents = &executed.contents;
    tell(&results, &figures, &contents.plan, &contents.path)?;
    refuse_failed(contents)
}

/// Writes the page of a finished run that has none: a full disk or a kill may have kept it from one.
pub fn write_missing_page(contents: &Contents) -> Result<(), Failure> {
    match fs_err::exists(contents.path.join(report::FILE))? {
        true => Ok(()),
        false => report::write(contents, &CorrectionScorer::default()),
    }
}

fn tell(results: &Results, figures: &Figures, plan: &Plan, out: &Path) -> std::io::Result<()> {
    let accuracy =
        figures.accuracy.as_ref().map_or_else(|| "no gold answers".to_owned(), ToString::to_string);
    let (items, runs) = (plan.dataset.items.len(), results.n_runs as usize);
    let (items, runs) = (count(items, "item"), count(runs, "run"));
    console::say(format!("{} on {}: {items}, {runs}", plan.system_name(), plan.dataset.name))?;
    let mut rows = vec![("accuracy", accuracy)];
    let detection = figures.notes.as_ref().and_then(|notes| notes.detection.as_ref());
    rows.extend(detection.map(|found| {
        let f1 = found.f1.as_ref().map_or("none".to_owned(), ToString::to_string);
        ("detection", format!("{}; F1 {f1}", found.accuracy))
    }));
    rows.extend(figures.warnings.iter().map(|line| ("replies", line.clone())));
    let ParseCounts { ok, repaired, fallback, refused, unread, not_an_option, contradictions } =
        results.parse;
    let read = [
        (ok, "ok"),
        (repaired, "repaired"),
        (fallback, "fallback"),
        (refused, "refused"),
        (unread, "unread"),
        (contradictions, "contradicted themselves"),
        (not_an_option, "named a letter that is no option"),
    ];
    let read = read.iter().filter(|(number, _)| *number > 0);
    let read = read.map(|(number, what)| format!("{number} {what}")).join(", ");
    let read = if read.is_empty() { read } else { format!(" ({read})") };
    rows.push(("calls", format!("{}{read}", results.calls)));
    let tokens = &results.tokens;
    let prompt = format!("{} prompt ({} cached)", tokens.prompt, tokens.cached);
    let completion = format!("{} completion ({} forced)", tokens.completion, tokens.forced);
    rows.push(("tokens", format!("{prompt}, {completion}")));
    if plan.synthetic {
        rows.push(("note", SYNTHETIC.to_owned()));
    }
    let digest = results.figures.get(DIGEST).and_then(Value::as_str);
    rows.extend(digest.map(|digest| ("digest", digest.to_owned())));
    rows.push(("head", results.head.clone()));
    rows.push(("report", out.join(report::FILE).display().to_string()));
    rows.iter().try_for_each(|(name, text)| console::say(format!("{name:10} {text}")))
}

/// What a cell of a recipe came to.
pub fn of_cell(title: &str, results: &Results, figures: &Figures, run: &Executed) -> String {
    let accuracy =
        figures.accuracy.as_ref().map_or_else(|| "no gold answers".to_owned(), ToString::to_string);
    let (calls, seconds) = (count(results.calls, "call"), run.elapsed_ms / 1000);
    let line = format!("{title}: {accuracy}, {calls}, {}", duration(seconds));
    std::iter::once(&line).chain(&figures.warnings).join("\n  ")
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
            "memory     {}: {}; context {} tokens, KV cache {} tokens",
            description.checkpoint.name,
            describe(&memory.footprint),
            description.context,
            memory.options.pages * PAGE
        ))?;
    }
    for (name, footprint) in &models.beside {
        total += footprint.total();
        console::say(format!("memory     {name}: {}", describe(footprint)))?;
    }
    console::say(format!(
        "memory     {} in all, {} free",
        gibibytes(total),
        gibibytes(available_memory())
    ))
}
