//! Every Eval Ever's schema 0.3.0: the figures of a run in one file, its samples in another, where its store of evaluations has them
//! (<https://github.com/evaleval/every_eval_ever>).

mod instance;

use serde_json::{Value, json};

use super::facts::{self, Facts, facts, without_nulls};
use super::identity::{Identity, PROGRAM, path_component};
use super::sample::{Lack, Sample};
use super::{ExportError, ExportedFile, pretty};
use crate::analysis::figures::RunFigures;
use crate::analysis::metrics::bootstrap::RESAMPLES;
use crate::analysis::outcomes::Outcomes;
use crate::digest::sha256;
use crate::experiment::contents::Contents;
use crate::experiment::plan::{MemberPlan, Plan};
use crate::experiment::results::Results;

const SCHEMA_VERSION: &str = "0.3.0";
/// The one metric: of answers, or of flags on notes.
const ACCURACY: &str = "accuracy";
const DESCRIPTION: &str = "The share of items whose answer, or of notes whose flag, is the gold one, averaged over the runs; an item without an answer is wrong";
/// What stands where the schema wants something that the run does not know.
const UNKNOWN: &str = "unknown";

/// The two files of a run.
///
/// # Errors
/// A run without gold: a sample has a score there.
pub fn files(contents: &Contents, results: &Results) -> Result<Vec<ExportedFile>, ExportError> {
    let plan = &contents.plan;
    let (identity, outcomes) = (Identity::of(contents), Outcomes::of(contents));
    let figures = RunFigures::of(&outcomes)?;
    let Some(accuracy) = &figures.accuracy else {
        return Err(ExportError::NoGold { run: outcomes.name() });
    };
    let [began, finished] = [&plan.created_at, &results.finished_at].map(|time| seconds(time));
    let (began, finished) = (began?, finished?);
    let evaluation_id =
        format!("{}/{}/{finished}", plan.dataset.name, identity.id.replace('/', "_"));
    let samples = Sample::all(contents)?;
    let rows: Vec<Value> = samples
        .iter()
        .filter_map(|sample| instance::of(sample, plan, &evaluation_id, &identity))
        .collect();
    let lines: String = rows.iter().map(|row| one_line(&row.to_string()) + "\n").collect();
    let [developer, model] = identity.folders();
    let name = uuid(&results.head);
    let folder = format!("data/{}/{developer}/{model}", path_component(&plan.dataset.name));
    let samples_path = format!("{folder}/{name}_samples.jsonl");
    let uncertainty = figures.interval.map(|interval| {
        let method = match interval.exact {
            true => "Clopper-Pearson over the items",
            false => "percentile bootstrap over the items",
        };
        let ends = interval.low.zip(interval.high).map(|(lower, upper)| {
            json!({"lower": lower, "upper": upper, "confidence_level": 0.95, "method": method})
        });
        let is_bootstrap = ends.is_some() && !interval.exact;
        without_nulls(json!({
            "confidence_interval": ends,
            // Items that ask nearly the same are one, and repetitions of an item are no further ones.
            "num_samples": interval.n_units,
            "num_bootstrap_samples": is_bootstrap.then_some(RESAMPLES),
        }))
    });
    let log = json!({
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id,
        // When the run began and when it was finished, in seconds since 1970.
        "evaluation_timestamp": began,
        "retrieved_timestamp": finished,
        // Who evaluated, and what the evaluator has to do with the model, no run knows.
        "source_metadata": {
            "source_name": PROGRAM,
            "source_type": "evaluation_run",
            "source_organization_name": UNKNOWN,
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": PROGRAM, "version": results.version},
        "model_info": model_info(plan, &identity),
        "evaluation_results": [{
            "evaluation_result_id": ACCURACY,
            "evaluation_name": plan.dataset.name,
            "source_data": {
                "dataset_name": plan.dataset.name,
                "source_type": "other",
                "additional_details": facts([
                    ("format", plan.dataset.format.clone()),
                    ("sha256", plan.dataset.sha256.clone()),
                    ("items", plan.dataset.items.len().to_string()),
                ]),
            },
            "metric_config": {
                "evaluation_description": DESCRIPTION,
                "metric_id": ACCURACY,
                "metric_name": "Accuracy",
                "metric_kind": ACCURACY,
                "metric_unit": "proportion",
                "lower_is_better": false,
                "score_type": "continuous",
                "min_score": 0.0,
                "max_score": 1.0,
            },
            "score_details": {
                "score": accuracy.mean,
                "details": score_details(&samples, results, &accuracy.per_run, accuracy.std),
                "uncertainty": uncertainty,
            },
            "generation_config": {
                "generation_args": generation_args(plan),
                "additional_details": facts::of_run(contents, results),
            },
        }],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": samples_path,
            "hash_algorithm": "sha256",
            "checksum": sha256(&lines),
            "total_rows": rows.len(),
        },
    });
    Ok(vec![
        ExportedFile { path: format!("{folder}/{name}.json"), bytes: pretty(&log)? },
        ExportedFile { path: samples_path, bytes: lines.into_bytes() },
    ])
}

fn model_info(plan: &Plan, identity: &Identity) -> Value {
    // Where an endpoint runs, and what it runs, the run does not know.
    let is_local = plan.panel.iter().all(|member| !member.is_remote());
    let is_published =
        !plan.synthetic && plan.panel.iter().all(|member| member.repository.is_some());
    let deployment = if is_local { "self_deployed" } else { UNKNOWN };
    let mut more = facts([
        ("deployment_type", deployment.to_owned()),
        ("model_availability", if is_published { "open_weights" } else { UNKNOWN }.to_owned()),
        ("synthetic_weights", plan.synthetic.to_string()),
    ]);
    more.extend(facts::of_panel(&plan.panel));
    without_nulls(json!({
        "name": identity.name,
        "id": identity.id,
        "developer": identity.developer,
        "inference_engine": is_local.then(|| json!({"name": PROGRAM, "version": plan.version})),
        "additional_details": more,
    }))
}

fn score_details(
    samples: &[Sample<'_>],
    results: &Results,
    per_run: &[f64],
    std: Option<f64>,
) -> Facts {
    let per_run: Vec<String> = per_run.iter().map(f64::to_string).collect();
    let lacks = samples.iter().filter_map(Sample::lack);
    let (failed, unread): (Vec<_>, Vec<_>) =
        lacks.partition(|lack| matches!(lack, Lack::Failed(_)));
    let mut more = facts([
        ("runs", results.n_runs.to_string()),
        ("accuracy_per_run", per_run.join(", ")),
        ("items_without_gold", results.n_without_gold.to_string()),
        ("samples_failed_and_counted_wrong", failed.len().to_string()),
        ("samples_unread_and_counted_wrong", unread.len().to_string()),
    ]);
    more.extend(std.map(|std| ("sample_standard_deviation_over_runs".to_owned(), std.to_string())));
    more
}

/// How the one model was asked; of several, or of parameters that differ, the details of the model say more.
fn generation_args(plan: &Plan) -> Value {
    let setting = |(name, value): (&String, &toml::Value)| (name.clone(), value.to_string());
    without_nulls(json!({
        "temperature": of_all(plan, |member| member.temperature).and_then(digits),
        "top_p": of_all(plan, |member| member.top_p).and_then(digits),
        "top_k": of_all(plan, |member| member.top_k),
        "eval_plan": {
            "name": plan.system,
            "config": plan.settings.iter().map(setting).collect::<Facts>(),
        },
    }))
}

/// The number as it is written: in eight bytes, 0.7 of four would be another.
fn digits(number: f32) -> Option<f64> {
    number.to_string().parse().ok()
}

/// What all members have alike.
fn of_all<T: PartialEq>(plan: &Plan, value: impl Fn(&MemberPlan) -> Option<T>) -> Option<T> {
    let first = value(plan.panel.first()?);
    first.filter(|first| plan.panel.iter().all(|member| value(member).as_ref() == Some(first)))
}

/// JSON without what some readers, the published validator among them, take for the end of a line: within texts alone it may stand.
fn one_line(json: &str) -> String {
    let escaped = json.replace('\u{85}', "\\u0085").replace('\u{2028}', "\\u2028");
    escaped.replace('\u{2029}', "\\u2029")
}

/// Of a time of the run (RFC 3339), since 1970.
fn seconds(time: &str) -> Result<String, ExportError> {
    let wrong = |reason: String| ExportError::Time { text: time.to_owned(), reason };
    let time = humantime::parse_rfc3339(time).map_err(|error| wrong(error.to_string()))?;
    let since = time.duration_since(std::time::UNIX_EPOCH);
    Ok(since.map_err(|error| wrong(error.to_string()))?.as_secs().to_string())
}

/// A name of the form that the store has, always the same for a run: a UUID (version 4) of its head's digits.
fn uuid(head: &str) -> String {
    let sum = sha256(format!("every-eval-ever {head}"));
    format!("{}-{}-4{}-8{}-{}", &sum[..8], &sum[8..12], &sum[13..16], &sum[17..20], &sum[20..32])
}
