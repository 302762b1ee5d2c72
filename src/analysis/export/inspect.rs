//! A log of inspect_ai (version 2), as its JSON recorder writes it: what its viewer and `inspect_ai.log.read_eval_log` open
//! (<https://inspect.aisi.org.uk/eval-logs.html>).

mod sample;

use std::collections::BTreeMap;

use serde::Serialize;

use self::sample::EvalSample;
use super::facts::{self, Facts};
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
const ACCURACY: &str = "accuracy";

#[derive(Serialize)]
struct EvalLog<'a> {
    version: u32,
    status: &'static str,
    eval: EvalSpec<'a>,
    plan: EvalPlan<'a>,
    results: EvalResults,
    stats: EvalStats<'a>,
    samples: Vec<EvalSample<'a>>,
}

#[derive(Serialize)]
struct EvalSpec<'a> {
    eval_id: String,
    run_id: &'a str,
    created: &'a str,
    task: String,
    task_id: String,
    task_version: u32,
    tags: Vec<&'static str>,
    dataset: EvalDataset<'a>,
    model: &'a str,
    /// A line of each agent.
    model_args: Facts,
    config: EvalConfig,
    packages: BTreeMap<&'static str, &'a str>,
    metadata: Facts,
}

#[derive(Serialize)]
struct EvalDataset<'a> {
    name: &'a str,
    samples: usize,
    sample_ids: &'a [String],
    shuffled: bool,
}

#[derive(Serialize)]
struct EvalConfig {
    epochs: u32,
    epochs_reducer: [&'static str; 1],
    continue_on_fail: bool,
    score_on_error: bool,
}

#[derive(Serialize)]
struct EvalPlan<'a> {
    name: &'a str,
    steps: [EvalPlanStep<'a>; 1],
}

#[derive(Serialize)]
struct EvalPlanStep<'a> {
    solver: &'a str,
    params: &'a toml::Table,
}

#[derive(Serialize)]
struct EvalResults {
    total_samples: usize,
    completed_samples: usize,
    scores: Vec<EvalScore>,
}

#[derive(Serialize)]
struct EvalScore {
    name: &'static str,
    scorer: &'static str,
    reducer: &'static str,
    scored_samples: usize,
    unscored_samples: usize,
    metrics: BTreeMap<&'static str, EvalMetric>,
}

#[derive(Serialize)]
struct EvalMetric {
    name: &'static str,
    value: f64,
}

#[derive(Serialize)]
struct EvalStats<'a> {
    started_at: &'a str,
    completed_at: &'a str,
    model_usage: BTreeMap<&'a str, ModelUsage>,
}

/// Prompt tokens that were found in the prefix cache are counted apart there.
#[derive(Clone, Copy, Debug, Serialize)]
struct ModelUsage {
    input_tokens: usize,
    output_tokens: usize,
    total_tokens: usize,
    input_tokens_cache_read: usize,
}

impl From<Tokens> for ModelUsage {
    fn from(tokens: Tokens) -> ModelUsage {
        let Tokens { prompt, cached, completion, .. } = tokens;
        ModelUsage {
            input_tokens: prompt.saturating_sub(cached),
            output_tokens: completion,
            total_tokens: prompt + completion,
            input_tokens_cache_read: cached,
        }
    }
}

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
    let model_usage = usage(&contents.calls.records);
    let mut metadata = facts::of_run(contents, results);
    metadata.insert("model_name".to_owned(), identity.name.clone());
    metadata.insert("warnings".to_owned(), figures.warnings.join("\n"));
    let log = EvalLog {
        version: VERSION,
        status: "success",
        eval: EvalSpec {
            eval_id: id[..22].to_owned(),
            run_id: &results.head,
            created: &plan.created_at,
            task,
            task_id: task_id[..22].to_owned(),
            task_version: 0,
            tags: if plan.synthetic { vec!["synthetic-weights"] } else { Vec::new() },
            dataset: EvalDataset {
                name: &plan.dataset.name,
                samples: plan.dataset.items.len(),
                sample_ids: &plan.dataset.items,
                shuffled: false,
            },
            model: &identity.id,
            model_args: facts::of_panel(&plan.panel),
            config: EvalConfig {
                epochs: plan.runs,
                epochs_reducer: ["mean"],
                continue_on_fail: true,
                score_on_error: true,
            },
            packages: BTreeMap::from([(PROGRAM, results.version.as_str())]),
            metadata,
        },
        plan: EvalPlan {
            name: &plan.system,
            steps: [EvalPlanStep { solver: &plan.system, params: &plan.settings }],
        },
        results: EvalResults {
            total_samples: samples.len(),
            completed_samples: samples.len() - results.n_errors,
            scores: score(&samples, &figures).into_iter().collect(),
        },
        stats: EvalStats {
            started_at: &plan.created_at,
            completed_at: &results.finished_at,
            model_usage,
        },
        samples: samples.iter().map(|sample| EvalSample::of(sample, &identity)).collect(),
    };
    Ok(ExportedFile { path, bytes: pretty(&log)? })
}

/// The accuracy; `None` where nothing has gold.
fn score(samples: &[Sample<'_>], figures: &Figures) -> Option<EvalScore> {
    let accuracy = figures.accuracy.as_ref()?;
    let scored = samples.iter().filter(|sample| sample.line.correct().is_some()).count();
    let metric = |name, value| (name, EvalMetric { name, value });
    let std = accuracy.std.map(|std| metric("std_over_epochs", std));
    Some(EvalScore {
        name: SCORER,
        scorer: SCORER,
        reducer: "mean",
        scored_samples: scored,
        unscored_samples: samples.len() - scored,
        metrics: [metric(ACCURACY, accuracy.mean)].into_iter().chain(std).collect(),
    })
}

/// By the model that was asked.
fn usage<'a>(calls: impl IntoIterator<Item = &'a CallLine>) -> BTreeMap<&'a str, ModelUsage> {
    let mut of_model: BTreeMap<&str, Vec<&CallLine>> = BTreeMap::new();
    for call in calls {
        of_model.entry(&call.backbone).or_default().push(call);
    }
    of_model.into_iter().map(|(model, calls)| (model, Tokens::of(calls).into())).collect()
}
