//! What one of the compared runs came to, and how it was made.

use serde::Serialize;

use super::{ComparisonError, name};
use crate::analysis::metrics::bootstrap::{Estimate, mean, run_means};
use crate::analysis::metrics::calibration::{BINS, Calibration, calibration};
use crate::analysis::metrics::cost::Cost;
use crate::analysis::metrics::over_runs::OverRuns;
use crate::analysis::recipe::reading::Reading;
use crate::experiment::plan::{MemberPlan, Plan};

/// One run. An item that errored is wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The directory, as it was named.
    pub run: String,
    pub system: String,
    /// `null` where no question has gold.
    pub accuracy: Option<OverRuns>,
    /// Of the accuracy over the questions, by bootstrap.
    pub interval: Option<Estimate>,
    pub n_runs: u32,
    pub n_errors: usize,
    /// Of the team's confidence; `null` where no answer is graded.
    pub calibration: Option<Calibration>,
    pub cost: Option<Cost>,
    /// A line a fact.
    pub making: Vec<String>,
}

impl Row {
    /// # Errors
    /// A confidence outside 0 to 1.
    pub fn of(reading: &Reading<'_>) -> Result<Row, ComparisonError> {
        let contents = reading.contents;
        let verdicts = reading.verdicts();
        let accuracy = OverRuns::of_shares(&verdicts);
        let interval = match accuracy {
            Some(_) => Some(mean(&run_means(&verdicts)?, None)?),
            None => None,
        };
        let predictions = reading.predictions();
        let outcomes = contents.outcomes();
        Ok(Row {
            run: name(contents),
            system: contents.plan.system.clone(),
            accuracy,
            interval,
            n_runs: contents.plan.runs,
            n_errors: outcomes
                .values()
                .filter(|item| item.error().is_some())
                .count(),
            calibration: match predictions.is_empty() {
                true => None,
                false => Some(calibration(&predictions, BINS)?),
            },
            cost: reading.cost(),
            making: making(&contents.plan),
        })
    }
}

/// System, text, seed, machine; then a line a member.
fn making(plan: &Plan) -> Vec<String> {
    let settings = plan.settings.iter();
    let settings: Vec<String> = settings
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let mut lines = vec![
        format!("{} {}", plan.system, settings.join(" ")),
        format!(
            "{} text, {} runs, seed {}, wardround {} on {}",
            if plan.free { "free" } else { "constrained" },
            plan.runs,
            plan.seed,
            plan.version,
            plan.engine.device_kind
        ),
    ];
    lines.extend(plan.panel.iter().map(member));
    lines
}

fn member(member: &MemberPlan) -> String {
    let (agent, backbone) = (&member.agent, &member.backbone);
    let thinking = if member.thinking { "on" } else { "off" };
    if member.is_remote() {
        return format!("{agent}: {backbone}, an endpoint elsewhere, thinking {thinking}");
    }
    format!(
        "{agent}: {backbone} ({}, weights sha256 {}…), {}, quantisation {}, thinking {thinking}",
        member.revision.as_deref().unwrap_or("no revision"),
        member.weights_sha256.get(..12).unwrap_or_default(),
        member.dtype,
        member.quantisation,
    )
}
