//! The panel of a run at work again: as it was, changed, and in every coalition.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};

use super::change::{Change, Put, absent};
use super::course::Course;
use super::shapley::{Coalition, shapley};
use super::{Asked, Calls, WhatIf};
use crate::data::Item;
use crate::diagnosis::Failure;
use crate::experiment::compare::compare_records;
use crate::experiment::contents::Contents;
use crate::experiment::link::Link;
use crate::experiment::run::Started;
use crate::experiment::versions;
use crate::panel::recorder::Recorder;
use crate::panel::stand_in::{Forced, LeftOut, Made};
use crate::panel::{PanelError, SharedResponder};
use crate::record::{CallLine, ItemLine, SCHEMA, Says};
use crate::systems::Task;
use crate::systems::in_flight::run_all;

pub struct Ward<'a> {
    contents: &'a Contents,
    started: Started,
    wanted: Vec<&'a ItemLine>,
    /// Of every member, as the run had it.
    own: Vec<SharedResponder>,
    /// By agent.
    swapped: HashMap<String, SharedResponder>,
    /// All that are loaded.
    sources: &'a [SharedResponder],
    /// Calls that need not be computed, by the sums of their requests.
    known: Arc<HashMap<String, CallLine>>,
    calls: Calls,
}

/// What a panel made of an item.
pub struct Outcome {
    pub line: ItemLine,
    pub calls: Vec<CallLine>,
    /// How many of them were not known.
    pub new: usize,
}

impl<'a> Ward<'a> {
    pub fn new(
        contents: &'a Contents,
        started: Started,
        wanted: Vec<&'a ItemLine>,
        swapped: HashMap<String, SharedResponder>,
        sources: &'a [SharedResponder],
    ) -> Ward<'a> {
        let items: HashSet<(u32, &str)> =
            wanted.iter().map(|line| (line.run(), line.item())).collect();
        let own = started.panel.members.iter().map(|member| member.source.clone()).collect();
        let calls = contents.calls.records.iter();
        let calls = calls
            .filter(|call| items.contains(&(call.run, &*call.item)) && !call.request.is_empty());
        let known = calls.map(|call| (call.request.clone(), call.clone())).collect();
        let known = Arc::new(known);
        Ward { contents, started, wanted, own, swapped, sources, known, calls: Calls::default() }
    }

    /// Has the panel answer as it did, with what is changed, and in its coalitions.
    ///
    /// # Errors
    /// A log that does not give the run's answers; a system that cannot go on; an answer that no reply could be made to give.
    pub fn examine(mut self, put: Vec<Put>, asked: &Asked<'_>) -> Result<WhatIf, Failure> {
        let own: Vec<Item> = put.iter().map(|one| one.own.clone()).collect();
        let before = self.before(&own)?;
        let taken =
            |sources: &[SharedResponder]| sources.iter().map(|one| one.taken()).max().unwrap_or(0);
        let taken_before = taken(self.sources);
        let (items, dropped): (Vec<Item>, Vec<_>) =
            put.into_iter().map(|one| (one.item, one.dropped)).unzip();
        let changes = asked.changes;
        let forced: Vec<Forced> = changes.iter().filter_map(Change::forced).cloned().collect();
        let absent: HashSet<&str> = absent(changes).collect();
        let panel: Vec<String> =
            self.started.panel.members.iter().map(|member| member.agent.clone()).collect();
        let players = (0..panel.len()).filter(|member| !absent.contains(&*panel[*member]));
        let players: Vec<usize> = players.collect();
        let after = self.ask(&players, &forced, &items)?;
        refuse_unused(&forced, &after)?;
        let mut coalitions: Vec<Vec<Coalition>> = items.iter().map(|_| Vec::new()).collect();
        let all = if asked.shapley { (1_usize << players.len()) - 1 } else { 0 };
        for members in 1..=all {
            let there =
                (0..players.len()).filter(|at| members >> at & 1 == 1).map(|at| players[at]);
            let there: Vec<usize> = there.collect();
            let agents: Vec<String> = there.iter().map(|member| panel[*member].clone()).collect();
            (asked.tell)(format!("coalition {members} of {all}: {}", agents.join(", ")));
            let answered = match members == all {
                true => None,
                false => Some(self.ask(&there, &forced, &items)?),
            };
            for (at, coalitions) in coalitions.iter_mut().enumerate() {
                let line = &answered.as_ref().unwrap_or(&after)[at].line;
                let (agents, answer) = (agents.clone(), line.says().to_owned());
                coalitions.push(Coalition { agents, answer });
            }
        }
        let stored = taken(self.sources) - taken_before;
        self.calls.stored = (stored as usize).min(self.calls.computed);
        self.calls.computed -= self.calls.stored;
        let agents: Vec<String> = players.iter().map(|member| panel[*member].clone()).collect();
        let outcomes = before.iter().zip(&after).zip(dropped).zip(coalitions);
        let items = outcomes.map(|(((before, after), dropped), coalitions)| {
            let shapley = asked.shapley.then(|| shapley(&agents, coalitions));
            Course::new((before, after), dropped, (changes, shapley), &panel)
        });
        let items = items.collect();
        let plan = &self.contents.plan;
        Ok(WhatIf {
            schema: SCHEMA,
            version: versions::THIS.to_owned(),
            system: plan.system.clone(),
            dataset: plan.dataset.name.clone(),
            plan_sha256: self.contents.plan_sha256.clone(),
            synthetic: plan.synthetic,
            changes: changes.iter().map(ToString::to_string).collect(),
            calls: self.calls,
            items,
        })
    }

    /// The run as it was, all of it from its log: what is different later is so because of what was changed.
    fn before(&mut self, items: &[Item]) -> Result<Vec<Outcome>, Failure> {
        let everybody: Vec<usize> = (0..self.own.len()).collect();
        let swapped = std::mem::take(&mut self.swapped);
        let before = self.ask(&everybody, &[], items)?;
        (self.swapped, self.calls) = (swapped, Calls::default());
        for (line, outcome) in self.wanted.iter().zip(&before) {
            let differences = compare_records(*line, &outcome.line)?;
            let found = match (differences.first(), outcome.new) {
                (Some(difference), _) => difference.to_string(),
                (None, 0) => continue,
                (None, new) => format!("{new} of its calls are not in it"),
            };
            let message = format!("{}: the log does not give it again: {found}", line.key());
            return Err(Failure::mismatch(message));
        }
        Ok(before)
    }

    /// What the members who are there make of every item.
    fn ask(
        &mut self,
        there: &[usize],
        forced: &[Forced],
        items: &[Item],
    ) -> Result<Vec<Outcome>, Failure> {
        let (sender, calls) = channel();
        let recorder = Logged { known: self.known.clone(), calls: sender, forced: forced.to_vec() };
        let panel = &mut self.started.panel;
        panel.recorder = Box::new(recorder);
        for (place, (member, own)) in panel.members.iter_mut().zip(&self.own).enumerate() {
            let source = self.swapped.get(&member.agent).unwrap_or(own).clone();
            member.source = match (there.contains(&place), forced) {
                (false, _) => Arc::new(LeftOut),
                (true, []) => source,
                (true, answers) => Arc::new(Made { source, answers: answers.into() }),
            };
        }
        let Started { plan, system, panel, .. } = &self.started;
        let (lines, answered) = channel();
        let jobs = self.wanted.iter().zip(items).enumerate().collect();
        run_all(jobs, plan.engine.max_in_flight, &panel.stop, |(place, (line, item))| {
            let task = Task { panel, dataset: &plan.dataset.name, item, run: line.run() };
            let answered = match system.answer(&task) {
                Err(error) if error.concerns_item() => task.failure(&error),
                answered => answered?,
            };
            // The receiver outlives the jobs.
            let _ = lines.send((place, answered));
            Ok::<_, Failure>(())
        })?;
        if panel.stop.load(Ordering::Relaxed) {
            return Err(PanelError::Interrupted.into());
        }
        drop(lines);
        // With the recorder goes the sender of its calls.
        self.started.panel.recorder = Box::new(|_: &CallLine| ());
        let mut calls_of: HashMap<(u32, String), Vec<CallLine>> = HashMap::new();
        for call in calls {
            calls_of.entry((call.run, call.item.clone())).or_default().push(call);
        }
        let answered: BTreeMap<usize, ItemLine> = answered.into_iter().collect();
        let outcomes = answered.into_values().map(|line| {
            let key = (line.run(), line.item().to_owned());
            let calls = calls_of.remove(&key).unwrap_or_default();
            let new = calls.iter().filter(|call| !self.known.contains_key(&call.request)).count();
            self.calls.logged += calls.len() - new;
            self.calls.computed += new;
            Outcome { line, calls, new }
        });
        let outcomes: Vec<Outcome> = outcomes.collect();
        let all = outcomes.iter().flat_map(|outcome| &outcome.calls);
        let known = Arc::make_mut(&mut self.known);
        for call in all.filter(|call| !is_forced(forced, call)) {
            known.entry(call.request.clone()).or_insert_with(|| call.clone());
        }
        Ok(outcomes)
    }
}

fn is_forced(forced: &[Forced], call: &CallLine) -> bool {
    forced.iter().any(|one| one.is_of(&call.agent, call.round, call.stage))
}

/// Knows the log's calls, and hands on those that are made.
struct Logged {
    known: Arc<HashMap<String, CallLine>>,
    calls: Sender<CallLine>,
    forced: Vec<Forced>,
}

impl Recorder for Logged {
    fn find_equal(&self, request: &str) -> Option<&CallLine> {
        self.known.get(request)
    }

    fn record(&self, call: &CallLine) -> Result<(), Failure> {
        let mut forced = self.forced.iter();
        let forced = forced.find(|one| one.is_of(&call.agent, call.round, call.stage));
        let answer = forced.map(|forced| forced.answer.to_string());
        if let Some(answer) = answer
            && call.record.says() != Says::Answer(&answer)
        {
            let message = format!("{}: its reply cannot be made to answer {answer}", call.key());
            return Err(Failure::outcome(message, None));
        }
        self.calls.record(call)
    }
}

/// # Errors
/// An answer that nobody was asked for in its round.
fn refuse_unused(forced: &[Forced], after: &[Outcome]) -> Result<(), Failure> {
    let calls = || after.iter().flat_map(|outcome| &outcome.calls);
    let is_unused = |one: &&Forced| !calls().any(|call| is_forced(&[(*one).clone()], call));
    match forced.iter().find(is_unused) {
        None => Ok(()),
        Some(forced) => Err(Failure::usage(
            format!(
                "--answer {forced}: {} answers none of the items in round {}",
                forced.agent, forced.round
            ),
            "rounds count from 0, the first answers; a panel that agrees has no more",
        )),
    }
}
