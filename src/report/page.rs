//! The whole page: records put in order, whatever order they lay in, and what the templates are given.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::accuracy::Accuracy;
use super::case::Case;
use super::flag::Flag;
use super::making::Making;
use super::panel::Panel;
use super::prompts::{Prompt, Prompts};
use crate::analysis::metrics::MetricsError;
use crate::analysis::metrics::calibration::{BINS, Calibration, Prediction, calibration};
use crate::analysis::metrics::cost::{Call, Cost};
use crate::experiment::plan::Plan;
use crate::record::{AnswerLine, CallLine};

#[derive(Serialize)]
pub struct Page<'a> {
    plan: &'a Plan,
    /// Over the answers of a row.
    answering: String,
    pub accuracy: Accuracy,
    #[serde(skip)]
    pub cost: Option<Cost>,
    /// `None` without an answer that is graded.
    #[serde(skip)]
    pub calibration: Option<Calibration>,
    making: Making<'a>,
    runs: Vec<u32>,
    /// Items times runs that the plan asks for.
    planned: usize,
    filters: Vec<Filter<Flag>>,
    cases: Vec<Case<'a>>,
    prompts: Vec<Prompt<'a>>,
}

/// A filter of the list, and how many cases it leaves.
#[derive(Serialize)]
pub struct Filter<F> {
    pub flag: F,
    pub label: &'static str,
    pub count: usize,
}

impl<'a> Page<'a> {
    /// # Errors
    /// A confidence that is none.
    pub fn new(
        plan: &'a Plan,
        items: impl IntoIterator<Item = &'a AnswerLine>,
        calls: &'a [CallLine],
    ) -> Result<Page<'a>, MetricsError> {
        let panel = Panel::new(&plan.panel);
        let order = Order::new(plan);
        let items = order.items(items);
        let calls = order.calls(calls);
        let mut calls_of: BTreeMap<_, Vec<&CallLine>> = BTreeMap::new();
        for &call in &calls {
            let item = (&call.dataset, call.run, &call.item);
            calls_of.entry(item).or_default().push(call);
        }
        let mut runs_of: BTreeMap<_, Vec<&AnswerLine>> = BTreeMap::new();
        for &item in &items {
            let question = (&item.dataset, &item.item);
            runs_of.entry(question).or_default().push(item);
        }
        let mut prompts = Prompts::default();
        let case = |item: &&'a AnswerLine| {
            let calls = calls_of.get(&(&item.dataset, item.run, &item.item));
            let mut case = Case::new(item, calls.map_or(&[], Vec::as_slice), panel, &mut prompts);
            if let Some(others) = runs_of.get(&(&item.dataset, &item.item)) {
                case.compare(others);
            }
            case
        };
        let cases: Vec<Case> = items.iter().map(case).collect();
        let runs: BTreeSet<u32> = cases
            .iter()
            .map(|case| case.run)
            .chain(calls.iter().map(|call| call.run))
            .collect();
        let runs = Vec::from_iter(runs);
        Ok(Page {
            plan,
            cost: cost(&calls, &cases),
            calibration: reliability(&items)?,
            answering: answering(&cases),
            accuracy: Accuracy::new(&runs, &cases, &calls),
            making: Making::new(plan),
            runs,
            planned: plan.dataset.items.len() * plan.runs as usize,
            filters: filters(&cases),
            cases,
            prompts: prompts.into_vec(),
        })
    }
}

fn cost(calls: &[&CallLine], cases: &[Case]) -> Option<Cost> {
    let calls = calls.iter().map(|call| Call {
        prompt_tokens: call.usage.prompt_tokens,
        cached_tokens: call.usage.cached_tokens,
        completion_tokens: call.usage.completion_tokens,
        elapsed_ms: call.elapsed_ms,
    });
    let right = cases.iter().filter(|case| case.has(Flag::Right)).count();
    Cost::of(calls, cases.len(), right)
}

fn reliability(items: &[&AnswerLine]) -> Result<Option<Calibration>, MetricsError> {
    let graded = items
        .iter()
        .filter(|item| item.error.is_none() && item.gold.is_some());
    let predictions: Vec<Prediction> = graded
        .map(|item| (item.team_confidence, item.correct == Some(true)))
        .collect();
    match predictions.is_empty() {
        true => Ok(None),
        false => calibration(&predictions, BINS).map(Some),
    }
}

/// The names of those who answer, where they are few and the same in all cases.
fn answering(cases: &[Case]) -> String {
    let agents = cases.first().and_then(Case::agents);
    let same = cases.iter().all(|case| case.agents() == agents);
    match agents {
        Some(agents) if same && agents.len() <= 3 => format!("{}, by round", agents.join(" ")),
        _ => "answers, by round".to_owned(),
    }
}

fn filters(cases: &[Case]) -> Vec<Filter<Flag>> {
    let filter = |flag: Flag| Filter {
        flag,
        label: flag.label(),
        count: cases.iter().filter(|case| case.has(flag)).count(),
    };
    Flag::ALL.into_iter().map(filter).collect()
}

/// The plan's order of items; an item that the plan does not name comes last.
pub struct Order<'a> {
    places: BTreeMap<&'a str, usize>,
}

impl<'a> Order<'a> {
    pub fn new(plan: &'a Plan) -> Order<'a> {
        let items = plan.dataset.items.iter().enumerate();
        Order {
            places: items.map(|(place, id)| (id.as_str(), place)).collect(),
        }
    }

    pub fn place(&self, item: &str) -> usize {
        self.places.get(item).copied().unwrap_or(usize::MAX)
    }

    /// One record per item: the answered one of several, else the error that sorts first.
    fn items(&self, items: impl IntoIterator<Item = &'a AnswerLine>) -> Vec<&'a AnswerLine> {
        let mut items: Vec<&AnswerLine> = items.into_iter().collect();
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

    /// Item by item, as the calls were made.
    pub fn calls(&self, calls: &'a [CallLine]) -> Vec<&'a CallLine> {
        let mut calls: Vec<&CallLine> = calls.iter().collect();
        calls.sort_by_cached_key(|call| {
            let item = (&call.dataset, call.run, self.place(&call.item), &call.item);
            (item, call.round, call.seq)
        });
        calls
    }
}
