//! The whole page: records put in order, whatever order they lay in, and what the templates are given.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::accuracy::Accuracy;
use super::case::Case;
use super::flag::Flag;
use super::making::Making;
use super::panel::Panel;
use super::prompts::{Prompt, Prompts};
use crate::run::plan::Plan;
use crate::run::records::{CallRecord, ItemRecord};

#[derive(Serialize)]
pub struct Page<'a> {
    plan: &'a Plan,
    agents: Vec<&'a str>,
    accuracy: Accuracy,
    making: Making<'a>,
    runs: Vec<u32>,
    /// Items times runs that the plan asks for.
    planned: usize,
    filters: Vec<Filter>,
    cases: Vec<Case<'a>>,
    prompts: Vec<Prompt<'a>>,
}

/// A filter of the list, and how many cases it leaves.
#[derive(Serialize)]
struct Filter {
    flag: Flag,
    label: &'static str,
    count: usize,
}

impl<'a> Page<'a> {
    pub fn new(plan: &'a Plan, items: &'a [ItemRecord], calls: &'a [CallRecord]) -> Page<'a> {
        let panel = Panel::new(&plan.panel);
        let order = Order::new(plan);
        let items = order.items(items);
        let calls = order.calls(calls, panel);
        let mut calls_of: BTreeMap<_, Vec<&CallRecord>> = BTreeMap::new();
        for &call in &calls {
            let item = (&call.dataset, call.run, &call.item);
            calls_of.entry(item).or_default().push(call);
        }
        let mut prompts = Prompts::new(panel);
        let case = |item: &&'a ItemRecord| {
            let calls = calls_of.get(&(&item.dataset, item.run, &item.item));
            Case::new(item, calls.map_or(&[], Vec::as_slice), panel, &mut prompts)
        };
        let cases: Vec<Case> = items.iter().map(case).collect();
        let runs: BTreeSet<u32> = cases
            .iter()
            .map(|case| case.run)
            .chain(calls.iter().map(|call| call.run))
            .collect();
        let runs = Vec::from_iter(runs);
        Page {
            plan,
            agents: panel.agents().collect(),
            accuracy: Accuracy::new(&runs, &cases, &calls),
            making: Making::new(plan),
            runs,
            planned: plan.dataset.items.len() * plan.runs as usize,
            filters: filters(&cases),
            cases,
            prompts: prompts.into_vec(),
        }
    }
}

fn filters(cases: &[Case]) -> Vec<Filter> {
    let filter = |flag: Flag| Filter {
        flag,
        label: flag.label(),
        count: cases.iter().filter(|case| case.has(flag)).count(),
    };
    Flag::ALL.into_iter().map(filter).collect()
}

/// The plan's order of items; an item that the plan does not name comes last.
struct Order<'a> {
    places: BTreeMap<&'a str, usize>,
}

impl<'a> Order<'a> {
    fn new(plan: &'a Plan) -> Order<'a> {
        let items = plan.dataset.items.iter().enumerate();
        Order {
            places: items.map(|(place, id)| (id.as_str(), place)).collect(),
        }
    }

    fn place(&self, item: &str) -> usize {
        self.places.get(item).copied().unwrap_or(usize::MAX)
    }

    /// One record per item: the answered one of several, else the error that sorts first.
    fn items(&self, items: &'a [ItemRecord]) -> Vec<&'a ItemRecord> {
        let mut items: Vec<&ItemRecord> = items.iter().collect();
        items.sort_by_key(|item| {
            (
                &item.dataset,
                item.run,
                self.place(&item.item),
                &item.item,
                &item.error,
            )
        });
        items.dedup_by_key(|item| (&item.dataset, item.run, &item.item));
        items
    }

    /// Rounds in order, and within a round purposes, members in panel order, repeated draws.
    fn calls(&self, calls: &'a [CallRecord], panel: Panel) -> Vec<&'a CallRecord> {
        let mut calls: Vec<&CallRecord> = calls.iter().collect();
        calls.sort_by_cached_key(|call| {
            let item = (&call.dataset, call.run, self.place(&call.item), &call.item);
            (
                item,
                call.round,
                &call.purpose,
                panel.seat_of(call),
                &call.agent,
                call.sample,
                call.seq,
            )
        });
        calls
    }
}
