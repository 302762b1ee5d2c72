//! Generates a run's calls again, and says where they differ.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use super::chain::by_key;
use super::compare::compare_all;
use super::contents::Contents;
use super::error::resume;
use super::link::Link;
use super::plan;
use super::spec::Spec;
use crate::data::Item;
use crate::diagnosis::Failure;
use crate::panel::PanelError;
use crate::panel::recorder::Telling;
use crate::record::{ItemLine, SearchLine};
use crate::systems::in_flight::run_all;

/// What came of a replay.
pub struct Replayed {
    pub items: usize,
    pub calls: usize,
    pub searches: usize,
    /// Sorted.
    pub differences: Vec<String>,
}

/// Works on items of `contents` again by `spec`, which [`Plan::again`](plan::Plan::again) gave; nothing is written. Without `items` it is every one that
/// has an answer. The engines are told what was logged, and compute many positions of a completion at once where they may draft: each token is
/// drawn again all the same.
///
/// # Errors
/// A run that cannot be generated again; an item that it does not have; models or items that are not those of the plan.
pub fn replay(
    contents: &Contents,
    spec: Spec,
    items: &[String],
    stop: Arc<AtomicBool>,
) -> Result<Replayed, Failure> {
    if let Some(reason) = contents.plan.unrepeatable() {
        return Err(Failure::usage(
            reason,
            "`wardround verify` checks the logs and what was made of them",
        ));
    }
    let wanted = wanted(contents, items)?;
    let (run, models) = spec.prepare()?;
    run.plan.keep_to(&contents.plan, &contents.path.join(plan::FILE), false)?;

    let (mut recorder, calls, searches) = Telling::new();
    let expected = contents.calls.records.iter();
    recorder.expected = expected.map(|call| (call.key(), call.tokens.clone())).collect();
    let panel = run.panel(&models.start()?.models, Box::new(recorder), stop.clone())?;
    let items: HashMap<&str, &Item> = run.items.iter().map(|item| (item.id(), item)).collect();
    let mut jobs = Vec::with_capacity(wanted.len());
    for record in &wanted {
        let missing = || Failure::mismatch(format!("{}: the plan has no such item", record.key()));
        jobs.push((*record, *items.get(record.item()).ok_or_else(missing)?));
    }
    let (answered, answers) = channel();
    let threads = run.plan.host.engine.max_in_flight;
    run_all(jobs, threads, &stop, |(record, item)| {
        // The receiver outlives the jobs.
        let _ = answered.send(run.answer(&panel, item, record.run())?);
        Ok::<_, Failure>(())
    })?;
    if stop.load(Ordering::Relaxed) {
        return Err(PanelError::Interrupted.into());
    }
    // The engines end, and with them the senders of what was found.
    drop(answered);
    drop(panel);
    let (made, now) = (Vec::from_iter(calls), Vec::<ItemLine>::from_iter(answers));
    let searched = Vec::<SearchLine>::from_iter(searches);
    let items: HashSet<_> = wanted.iter().map(|item| (item.run(), item.item())).collect();
    let mut logged = by_key(&contents.calls.records);
    logged.retain(|key, _| items.contains(&(key.run, &*key.item)));
    let mut found = by_key(&contents.searches.records);
    found.retain(|key, _| items.contains(&(key.run, &*key.item)));
    let was = wanted.iter().map(|item| (item.key(), *item)).collect();
    let words = ["in the log, but the replay did not make it", "not in the log"];
    let mut differences = compare_all(&logged, &by_key(&made), words)?;
    differences.extend(compare_all(&found, &by_key(&searched), words)?);
    differences.extend(compare_all(&was, &by_key(&now), words)?);
    differences.sort();
    Ok(Replayed { items: wanted.len(), calls: made.len(), searches: searched.len(), differences })
}

/// The outcomes to replay: those of the named items, or of all; without those that errored.
fn wanted<'a>(contents: &'a Contents, items: &[String]) -> Result<Vec<&'a ItemLine>, Failure> {
    let planned = &contents.plan.dataset.items;
    if let Some(item) = items.iter().find(|item| !planned.contains(item)) {
        let message = format!("the run has no item `{item}`");
        return Err(Failure::usage(message, "plan.toml lists the items"));
    }
    let is_named = |item: &str| items.is_empty() || items.iter().any(|one| one == item);
    let wanted: Vec<&ItemLine> = contents
        .outcomes()
        .into_values()
        .filter(|item| item.error().is_none() && is_named(item.item()))
        .collect();
    match wanted.is_empty() {
        false => Ok(wanted),
        true => Err(Failure::outcome(
            format!(
                "there is nothing to replay: {} has no answer to an item that was asked for",
                contents.path.display()
            ),
            Some(resume(&contents.path)),
        )),
    }
}
