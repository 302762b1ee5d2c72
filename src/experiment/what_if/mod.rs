//! What a run's answers would have been: its panel works again with something changed, every other draw being the same.
//!
//! A call's seed is a function of its key, so that a call that does not depend on the change is the run's own, byte for byte. It is taken
//! from the log by the sum of its request, and only the others are computed. Nothing is written.

mod change;
mod course;
mod diagnosis;
mod repeated;
mod shapley;
#[cfg(test)]
mod tests;
mod ward;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use self::change::check;
pub use self::change::{Change, Swap};
pub use self::course::{Course, Vote};
pub use self::diagnosis::Diagnoses;
pub use self::shapley::{Coalition, Shapley, Value};
use self::ward::Ward;
use super::auxiliary_models;
use super::contents::Contents;
use super::models::Models;
use super::replay::wanted;
use super::spec::Spec;
use crate::diagnosis::Failure;
use crate::experiment::plan;

/// What is asked of a run.
pub struct Asked<'a> {
    /// Empty: every item that has an answer.
    pub items: &'a [String],
    /// All of them at once.
    pub changes: &'a [Change],
    /// Whether every coalition of the panel answers.
    pub shapley: bool,
    /// Whether another version of wardround may have made the run.
    pub allow_version: bool,
    /// Told of each panel that is asked.
    pub tell: &'a dyn Fn(String),
}

/// What came of it.
#[derive(Debug, Serialize)]
pub struct WhatIf {
    pub schema: u32,
    pub version: String,
    pub system: String,
    pub dataset: String,
    /// The sum of the run's plan.toml, which anchors its logs.
    pub plan_sha256: String,
    /// Whether the members answer noise.
    pub synthetic: bool,
    pub changes: Vec<String>,
    pub calls: Calls,
    pub items: Vec<Course>,
}

/// Where the calls of the changed panels came from.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// The run's log, or a panel that was asked before with the same request.
    pub logged: usize,
    /// The store of calls.
    pub stored: usize,
    pub computed: usize,
}

/// Works on items of `contents` with what is changed; `spec` is that of the run, which [`Spec::from_plan`] gave.
///
/// # Errors
/// A run that cannot be generated again, or whose log does not give its answers; a change that its panel or its items cannot have.
pub fn what_if(
    contents: &Contents,
    spec: Spec,
    asked: &Asked<'_>,
    stop: Arc<AtomicBool>,
) -> Result<WhatIf, Failure> {
    if let Some(reason) = contents.plan.unrepeatable() {
        let hint =
            "only what can be generated again is changed in one place and equal in all others";
        return Err(Failure::usage(reason, hint));
    }
    let wanted = wanted(contents, asked.items)?;
    let inputs = spec.read()?;
    let swaps = asked.changes.iter().filter_map(Change::swap);
    let hardware = spec.roomy_hardware();
    let names = spec.slot_models()?.into_iter().chain(swaps.clone().map(|swap| &swap.model));
    let models = Models::describe(names, &hardware, &spec.hub, |devices| {
        auxiliary_models(&[&spec], &hardware, devices)
    })?;
    let mut run = spec.resolve(inputs, &models)?;
    // The kind of the run's own models, and not of one that comes in.
    let seated = run.models.iter().filter_map(|model| models.descriptions.get(*model));
    run.plan.engine.device_kind = models.devices[0].kind(seated.map(|model| model.precision));
    let path = contents.path.join(plan::FILE);
    run.plan.keep_to(&contents.plan, &path, asked.allow_version)?;
    let items = check(asked, contents, &run.items, &wanted)?;
    let mut swapped = Vec::new();
    for Swap { agent, model } in swaps {
        let index = models.index(model);
        let Some((index, thinks)) = index.and_then(|at| Some((at, models.lets_think(at)?))) else {
            let hint = "a model on this machine answers equal requests equally";
            return Err(Failure::usage(format!("--swap {agent}={model}: it is elsewhere"), hint));
        };
        run.config.decoding.check_local(agent, thinks)?;
        swapped.push((agent.clone(), index));
    }
    let sources = models.start()?;
    let swapped = swapped.into_iter().map(|(agent, index)| (agent, sources[index].clone()));
    let started = run.start(&sources, Box::new(|_: &_| ()), stop)?;
    Ward::new(contents, started, wanted, swapped.collect(), &sources).examine(items, asked)
}
