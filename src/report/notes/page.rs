//! The whole page of a run on notes: what the template is given.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::Scoring;
use super::case::Case;
use super::flag::Flag;
use super::method::method;
use super::passage::Instructions;
use super::tables::missing_weights;
use crate::analysis::Outcomes;
use crate::analysis::metrics::over_runs::OverRuns;
use crate::analysis::notes::NoteFigures;
use crate::experiment::contents::Contents;
use crate::experiment::plan::Plan;
use crate::record::{CallLine, NoteLine};
use crate::report::making::Making;
use crate::report::page::{Filter, Order};
use crate::report::prompts::{Prompt, Prompts};

#[derive(Serialize)]
pub struct Page<'a> {
    plan: &'a Plan,
    method: Vec<String>,
    headline: Option<Headline>,
    /// What is said where a neural measure has no weights.
    missing: Option<String>,
    #[serde(skip)]
    pub figures: NoteFigures,
    making: Making<'a>,
    runs: Vec<u32>,
    /// Notes times runs that the plan asks for.
    planned: usize,
    filters: Vec<Filter<Flag>>,
    cases: Vec<Case<'a>>,
    prompts: Vec<Prompt<'a>>,
}

/// The figures that stand first.
#[derive(Serialize)]
struct Headline {
    detection: String,
    deviation: Option<String>,
    graded_runs: usize,
    localisation: String,
    localisation_exact: String,
}

impl<'a> Page<'a> {
    pub fn new(contents: &'a Contents, scoring: &Scoring) -> Page<'a> {
        let plan = &contents.plan;
        let figures = NoteFigures::of(&Outcomes::of(contents), &scoring.scorer);
        let order = Order::new(plan);
        let mut notes: Vec<&NoteLine> = contents.notes().into_values().collect();
        notes.sort_by_key(|note| (&note.dataset, note.run, order.place(&note.item), &note.item));
        let calls = order.calls(&contents.calls.records);
        let mut calls_of: BTreeMap<_, Vec<&CallLine>> = BTreeMap::new();
        for &call in &calls {
            let item = (&call.dataset, call.run, &call.item);
            calls_of.entry(item).or_default().push(call);
        }
        let mut runs_of: BTreeMap<_, Vec<&NoteLine>> = BTreeMap::new();
        for &note in &notes {
            runs_of
                .entry((&note.dataset, &note.item))
                .or_default()
                .push(note);
        }
        let instructions = Instructions::of(&plan.system);
        let mut prompts = Prompts::default();
        let case = |&note: &&'a NoteLine| {
            let calls = calls_of.get(&(&note.dataset, note.run, &note.item));
            let calls = calls.map_or(&[][..], Vec::as_slice);
            let mut case = Case::new(
                note,
                calls,
                &scoring.scorer.neural,
                &instructions,
                &mut prompts,
            );
            if let Some(others) = runs_of.get(&(&note.dataset, &note.item)) {
                case.compare(others);
            }
            case
        };
        let cases: Vec<Case> = notes.iter().map(case).collect();
        let runs: BTreeSet<u32> = cases.iter().map(|case| case.run).collect();
        Page {
            plan,
            method: method(plan, &notes),
            headline: headline(&figures),
            missing: missing_weights(&figures),
            figures,
            making: Making::new(plan),
            runs: runs.into_iter().collect(),
            planned: plan.dataset.items.len() * plan.runs as usize,
            filters: filters(&cases),
            cases,
            prompts: prompts.into_vec(),
        }
    }
}

fn headline(figures: &NoteFigures) -> Option<Headline> {
    let (detection, localisation) = (figures.detection.as_ref()?, figures.localisation.as_ref()?);
    let shown = |figure: &OverRuns| format!("{:.4}", figure.mean);
    let accuracy = &detection.accuracy;
    Some(Headline {
        detection: shown(accuracy),
        deviation: accuracy.std.map(|std| format!("{std:.4}")),
        graded_runs: accuracy.per_run.len(),
        localisation: shown(&localisation.accuracy),
        localisation_exact: shown(&localisation.accuracy_exact),
    })
}

fn filters(cases: &[Case]) -> Vec<Filter<Flag>> {
    let filter = |flag: Flag| Filter {
        flag,
        label: flag.label(),
        count: cases.iter().filter(|case| case.has(flag)).count(),
    };
    Flag::ALL.into_iter().map(filter).collect()
}
