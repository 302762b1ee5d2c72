//! A log of inspect_ai (version 2), as its JSON recorder writes it: what its viewer and `inspect_ai.log.read_eval_log` open
//! (<https://inspect.aisi.org.uk/eval-logs.html>).

mod sample;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::facts::{self, without_nulls};
use super::identity::{Identity, PROGRAM, path_component};
use super::sample::Sample;
use super::{ExportError, ExportedFile, pretty};
use crate::analysis::results::Figures;
use crate::digest::sha256;
use crate::experiment::contents::Contents;
use crate::experiment::results::{Results, Tokens};
use crate::record::CallLine;

const VERSION: u32 = 2;
/// The scorer: whether the answer, or a note's flag, is the gold one.
const SCORER: &str = "gold";

/// The log of a run. Its runs are the epochs.
///
/// # Errors
/// What has no JSON.
pub fn file(contents: &Contents, results: &Results) -> Result<ExportedFile, ExportError> {
    let plan = &contents.plan;
    let identity = Identity::of(contents);
    let figures = Figures::of(contents);
    let samples = Sample::all(contents)?;
    let task = format!("{}-{}", plan.dataset.name, plan.system);
    let id = sha256(format!("inspect {}", results.head));
    let task_id = sha256(format!("{} {}", plan.dataset.items_sha256, plan.system));
    let path = format!(
        "{}_{}_{}.json",
        plan.created_at.replace([':', '+'], "-"),
        path_component(&task.replace('_', "-")),
        &id[..22]
    );
    let mut metadata = facts::of_run(contents, results);
    metadata.insert("model_name".to_owned(), identity.name.clone());
    metadata.insert("warnings".to_owned(), figures.warnings.join("\n"));
    let log = json!({
        "version": VERSION,
        "status": "success",
        "eval": {
            "eval_id": id[..22],
            "run_id": results.head,
            "created": plan.created_at,
            "task": task,
            "task_id": task_id[..22],
            "task_version": 0,
            "tags": if plan.synthetic { vec!["synthetic-weights"] } else { Vec::new() },
            "dataset": {
                "name": plan.dataset.name,
                "samples": plan.dataset.items.len(),
                "sample_ids": plan.dataset.items,
                "shuffled": false,
            },
            "model": identity.id,
            // A line of each agent.
            "model_args": facts::of_panel(&plan.panel),
            "config": {
                "epochs": plan.runs,
                "epochs_reducer": ["mean"],
                "continue_on_fail": true,
                "score_on_error": true,
            },
            "packages": {PROGRAM: results.version},
            "metadata": metadata,
        },
        "plan": {
            "name": plan.system,
            "steps": [{"solver": plan.system, "params": plan.settings}],
        },
        "results": {
            "total_samples": samples.len(),
            "completed_samples": samples.len() - results.n_errors,
            "scores": Vec::from_iter(score(&samples, &figures)),
        },
        "stats": {
            "started_at": plan.created_at,
            "completed_at": results.finished_at,
            "model_usage": usage(&contents.calls.records),
        },
        "samples": samples.iter().map(|one| sample::of(one, &identity)).collect::<Vec<_>>(),
    });
    Ok(ExportedFile { path, bytes: pretty(&log)? })
}

/// The accuracy; `None` where nothing has gold.
fn score(samples: &[Sample<'_>], figures: &Figures) -> Option<Value> {
    let accuracy = figures.accuracy.as_ref()?;
    let scored = samples.iter().filter(|sample| sample.line.correct().is_some()).count();
    let metric = |name: &str, value: f64| json!({"name": name, "value": value});
    Some(json!({
        "name": SCORER,
        "scorer": SCORER,
        "reducer": "mean",
        "scored_samples": scored,
        "unscored_samples": samples.len() - scored,
        "metrics": without_nulls(json!({
            "accuracy": metric("accuracy", accuracy.mean),
            "std_over_epochs": accuracy.std.map(|std| metric("std_over_epochs", std)),
        })),
    }))
}

/// By the model that was asked. Prompt tokens that were found in the prefix cache are counted apart there.
fn usage<'a>(calls: impl IntoIterator<Item = &'a CallLine>) -> Value {
    let mut of_model: BTreeMap<&str, Vec<&CallLine>> = BTreeMap::new();
    for call in calls {
        of_model.entry(&call.backbone).or_default().push(call);
    }
    let counted = |(model, calls): (&'a str, Vec<&CallLine>)| {
        let Tokens { prompt, cached, completion, .. } = Tokens::of(calls);
        let usage = json!({
            "input_tokens": prompt.saturating_sub(cached),
            "output_tokens": completion,
            "total_tokens": prompt + completion,
            "input_tokens_cache_read": cached,
        });
        (model, usage)
    };
    of_model.into_iter().map(counted).collect()
}
