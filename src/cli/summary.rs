//! The summary of a finished run, and the preview of a dry run.

use std::path::Path;

use itertools::Itertools;
use serde_json::Value;

use super::progress::duration;
use super::report;
use crate::analysis::figures::{self, DIGEST, Figures};
use crate::analysis::health::{ParseHealth, SYNTHETIC, UNREAD_LIMIT, VOID_LIMIT};
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
use crate::panel::DecodingMode;
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
    let mut rows = vec![("accuracy", accuracy)];
    rows.extend(figures.notes.iter().flat_map(of_notes));
    rows.extend(health(figures.parse_health, plan).map(|line| ("replies", line)));
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
    rows.push(("calls", format!("{} ({read})", results.calls)));
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

/// What is wrong with the replies of a run, with the setting that may help; `None` where nothing is.
pub fn health(found: Option<ParseHealth>, plan: &Plan) -> Option<String> {
    let ParseHealth { refused, unread, void, cut, .. } = found?;
    let is = |setting: &str, value: &str| {
        plan.settings.get(setting).and_then(toml::Value::as_str) == Some(value)
    };
    let told = |share: f64, limit: f64, what: &str, remedy: Option<&str>| {
        let remedy = remedy.map_or(String::new(), |remedy| format!(": try {remedy}"));
        (share > limit).then(|| format!("{:.0} % {what}{remedy}", 100.0 * share))
    };
    let short = is("record", "full").then_some("--set record=short");
    let grammar = (plan.decoding == DecodingMode::Text).then_some("--decoding grammar");
    let told = [
        told(void, VOID_LIMIT, "of replies say nothing usable", short),
        told(cut, VOID_LIMIT, "were cut off", Some("a larger --set max_tokens")),
        told(unread + refused, UNREAD_LIMIT, "could not be read, or declined to answer", grammar),
    ];
    let told = told.into_iter().flatten().join("; ");
    (!told.is_empty()).then_some(told)
}

/// What a cell of a recipe came to.
pub fn of_cell(title: &str, results: &Results, figures: &Figures, run: &Executed) -> String {
    let accuracy =
        figures.accuracy.as_ref().map_or_else(|| "no gold answers".to_owned(), ToString::to_string);
    let (calls, seconds) = (count(results.calls, "call"), run.elapsed_ms / 1000);
    let health = health(figures.parse_health, &run.contents.plan);
    let health = health.map_or(String::new(), |line| format!("; {line}"));
    format!("{title}: {accuracy}, {calls}, {}{health}", duration(seconds))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::experiment::fixtures::plan;

    #[test]
    fn replies_of_no_use_are_told_in_a_line_with_the_setting_that_may_help() {
        let mut plan = plan();
        let found = |unread: f64, void: f64| {
            let ok = 1.0 - unread;
            let shares = json!({"ok": ok, "repaired": 0.0, "fallback": 0.0, "refused": 0.0, "unread": unread, "void": void});
            Some(serde_json::from_value::<ParseHealth>(shares).unwrap())
        };
        assert_eq!(health(None, &plan), None);
        assert_eq!(health(found(0.05, 0.1), &plan), None);
        for (record, remedy) in [("full", ": try --set record=short"), ("short", "")] {
            plan.settings.insert("record".to_owned(), record.into());
            let told = format!("86 % of replies say nothing usable{remedy}");
            assert_eq!(health(found(0.0, 0.86), &plan), Some(told));
        }
        for (decoding, remedy) in
            [(DecodingMode::Text, ": try --decoding grammar"), (DecodingMode::Grammar, "")]
        {
            plan.decoding = decoding;
            let told = format!("31 % could not be read, or declined to answer{remedy}");
            assert_eq!(health(found(0.31, 0.0), &plan), Some(told));
        }
    }
}
