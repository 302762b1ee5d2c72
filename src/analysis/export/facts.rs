//! What a run says of itself in pairs of texts, for the fields where formats take anything.

use std::collections::BTreeMap;

use serde_json::Value;

use super::sample::{Lack, Sample};
use crate::experiment::contents::Contents;
use crate::experiment::plan::MemberPlan;
use crate::experiment::results::Results;
use crate::record::Parse;

pub type Facts = BTreeMap<String, String>;

pub fn facts<const N: usize>(pairs: [(&str, String); N]) -> Facts {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// An object without the fields that have no value.
pub fn without_nulls(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

/// How a run was made.
pub fn of_run(contents: &Contents, results: &Results) -> Facts {
    let plan = &contents.plan;
    facts([
        ("run_head", results.head.clone()),
        ("plan_sha256", contents.plan_sha256.clone()),
        ("prompts_sha256", plan.prompts_sha256.clone()),
        ("dataset_sha256", plan.dataset.sha256.clone()),
        ("items_sha256", plan.dataset.items_sha256.clone()),
        ("items_without_gold", results.n_without_gold.to_string()),
        ("synthetic_weights", plan.synthetic.to_string()),
        ("decoding", plan.decoding.adjective().to_owned()),
        ("seed", plan.seed.to_string()),
        ("device_kind", plan.engine.device_kind.clone()),
    ])
}

/// Each member of the panel by its agent, in one line.
pub fn of_panel(panel: &[MemberPlan]) -> Facts {
    panel.iter().map(|member| (format!("agent.{}", member.agent), of_member(member))).collect()
}

fn of_member(member: &MemberPlan) -> String {
    let mut told = vec![member.backbone.clone()];
    if let (Some(repository), Some(revision)) = (&member.repository, &member.revision) {
        told.push(format!("{repository} at {revision}"));
    }
    if !member.is_remote() {
        let MemberPlan { weights_sha256, dtype, quantisation, kv_dtype, .. } = member;
        told.push(format!("weights {weights_sha256}, stored as {dtype}, quantised {quantisation}"));
        told.push(format!("keys and values {kv_dtype}"));
    }
    told.extend(member.temperature.map(|value| format!("temperature {value}")));
    told.extend(member.top_k.map(|value| format!("top-k {value}")));
    told.extend(member.top_p.map(|value| format!("top-p {value}")));
    told.join("; ")
}

/// How a sample came out.
pub fn of_sample(sample: &Sample<'_>) -> Facts {
    let read = |parse: Parse| sample.calls.iter().filter(|call| call.line.parse == parse).count();
    let outcome = match sample.lack() {
        None => "answered",
        Some(Lack::Failed(_)) => "failed",
        Some(Lack::Unread) => "unread",
    };
    let mut told = facts([
        ("run", sample.line.run().to_string()),
        ("outcome", outcome.to_owned()),
        ("calls", sample.calls.len().to_string()),
        ("calls_unread", read(Parse::Unread).to_string()),
        ("calls_refused", read(Parse::Refused).to_string()),
    ]);
    told.extend(sample.answer().map(|answer| ("answer".to_owned(), answer.to_owned())));
    told
}
