//! The figures of one of the compared runs, and how it was made.

use serde::Serialize;

use crate::analysis::figures::RunFigures;
use crate::analysis::making;
use crate::analysis::outcomes::Outcomes;
use crate::diagnosis::Failure;
use crate::experiment::plan::Plan;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRun {
    /// The directory, as it was named.
    pub run: String,
    pub system: String,
    #[serde(flatten)]
    pub figures: RunFigures,
    /// One line per fact.
    pub making: Vec<String>,
}

impl ComparedRun {
    /// # Errors
    /// A confidence outside 0 to 1.
    pub fn of(run: &Outcomes<'_>) -> Result<ComparedRun, Failure> {
        let plan = &run.contents.plan;
        Ok(ComparedRun {
            run: run.name(),
            system: plan.system.clone(),
            figures: RunFigures::of(run)?,
            making: making(plan),
        })
    }
}

/// System, decoding, seed, machine; then one line per member.
fn making(plan: &Plan) -> Vec<String> {
    let settings = plan.settings.iter();
    let settings: Vec<String> = settings.map(|(key, value)| format!("{key}={value}")).collect();
    let mut lines = vec![
        format!("{} {}", plan.system, settings.join(" ")),
        format!(
            "{} text, {} runs, seed {}, wardround {} on {}",
            plan.decoding.adjective(),
            plan.runs,
            plan.seed,
            plan.version,
            plan.engine.device_kind
        ),
    ];
    let members = plan.panel.iter();
    lines.extend(members.map(|member| format!("{}: {}", member.agent, making::member(member))));
    lines
}
