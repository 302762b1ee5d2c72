//! What one of the compared runs came to, and how it was made.

use serde::Serialize;

use super::ComparisonError;
use crate::analysis::figures::RunFigures;
use crate::analysis::outcomes::Outcomes;
use crate::experiment::plan::{MemberPlan, Plan};

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The directory, as it was named.
    pub run: String,
    pub system: String,
    #[serde(flatten)]
    pub figures: RunFigures,
    /// A line a fact.
    pub making: Vec<String>,
}

impl Row {
    /// # Errors
    /// A confidence outside 0 to 1.
    pub fn of(run: &Outcomes<'_>) -> Result<Row, ComparisonError> {
        let plan = &run.contents().plan;
        Ok(Row {
            run: run.name(),
            system: plan.system.clone(),
            figures: RunFigures::of(run)?,
            making: making(plan),
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
