//! What a server tells of itself: health, and metrics in Prometheus' text format, with vLLM's names behind a prefix of our own.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::app::App;
use super::error::{ApiError, Code};
use super::models::ServedModel;
use crate::engine::{Completion, EngineSnapshot, Timings};
use crate::record::FinishReason;

/// What comes before every name.
const PREFIX: &str = "wardround:";

/// Labels of a metric and their values.
type Labels<const N: usize> = [(&'static str, String); N];

/// A metric of engines: its name, its kind, and its value.
type OfEngine = (&'static str, &'static str, fn(&EngineSnapshot) -> f64);

/// What an engine tells of itself; counters count since its start.
const OF_ENGINES: [OfEngine; 8] = [
    ("num_requests_running", "gauge", |now| now.running as f64),
    ("num_requests_waiting", "gauge", |now| now.waiting as f64),
    ("kv_cache_usage_perc", "gauge", |now| now.pages_in_use as f64 / now.stats.pages.max(1) as f64),
    ("prompt_tokens", "counter", |now| now.stats.counts.prompt_tokens as f64),
    ("generation_tokens", "counter", |now| {
        (now.stats.sampled_tokens + now.stats.forced_tokens) as f64
    }),
    ("prefix_cache_queries", "counter", |now| now.stats.counts.prompt_tokens as f64),
    ("prefix_cache_hits", "counter", |now| now.stats.counts.cached_tokens as f64),
    ("num_preemptions", "counter", |now| now.stats.counts.preemptions as f64),
];

/// A name, what it counts, and its buckets.
type Observed = (&'static str, &'static str, fn() -> Histogram);

/// What is observed of requests.
const HISTOGRAMS: [Observed; 8] = [
    ("time_to_first_token_seconds", "From a request to its first token", seconds),
    ("inter_token_latency_seconds", "From a token to the next, on average of a sequence", seconds),
    ("e2e_request_latency_seconds", "From a request to its end", seconds),
    ("request_queue_time_seconds", "Until the batch took a sequence", seconds),
    ("request_prefill_time_seconds", "From there to the first token", seconds),
    ("request_decode_time_seconds", "From there to the end", seconds),
    ("request_prompt_tokens", "Tokens of a prompt", numbers),
    ("request_generation_tokens", "Tokens of a completion", numbers),
];

/// Buckets from a millisecond to half an hour.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 22))
}

/// Buckets from 1 to 131,072.
fn numbers() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 2.0, 18))
}

pub struct Metrics {
    registry: Registry,
    histograms: BTreeMap<&'static str, Family<Labels<2>, Histogram>>,
    succeeded: Family<Labels<3>, Counter>,
    rejections: Family<Labels<1>, Counter>,
    pub connections: Gauge,
}

impl Metrics {
    pub fn new() -> Metrics {
        let mut metrics = Metrics {
            registry: Registry::default(),
            histograms: HISTOGRAMS
                .map(|(name, _, made)| (name, Family::new_with_constructor(made)))
                .into(),
            succeeded: Family::default(),
            rejections: Family::default(),
            connections: Gauge::default(),
        };
        let registry = &mut metrics.registry;
        let named = |name: &str| format!("{PREFIX}{name}");
        for (name, help, _) in HISTOGRAMS {
            registry.register(named(name), help, metrics.histograms[name].clone());
        }
        let (succeeded, rejections) = (metrics.succeeded.clone(), metrics.rejections.clone());
        registry.register(named("request_success"), "Sequences that ended", succeeded);
        registry.register(named("requests_rejected"), "Requests refused or failed", rejections);
        registry.register(named("connections"), "Open connections", metrics.connections.clone());
        metrics
    }

    /// Counts an error response.
    pub fn rejected(&self, code: Code) {
        self.rejections.get_or_create(&[("code", code.name.to_owned())]).inc();
    }

    /// Counts a completion that ended.
    pub fn finished(&self, model: &str, completion: &Completion) {
        let Timings { queued, prefill, decode } = completion.timings;
        let usage = completion.usage;
        let reason = match completion.finish_reason {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            _ => "abort",
        };
        self.ended(model, reason, usage.prompt_tokens, queued + prefill + decode);
        let observe = |what: &str, value: f64| self.observe(model, what, value);
        observe("time_to_first_token_seconds", (queued + prefill).as_secs_f64());
        observe("request_queue_time_seconds", queued.as_secs_f64());
        observe("request_prefill_time_seconds", prefill.as_secs_f64());
        observe("request_decode_time_seconds", decode.as_secs_f64());
        observe("request_generation_tokens", usage.completion_tokens as f64);
        let later = usage.completion_tokens.saturating_sub(1);
        let each = decode.as_secs_f64() / later.max(1) as f64;
        (0..later).for_each(|_| observe("inter_token_latency_seconds", each));
    }

    /// Counts a sequence, or the texts of a request to an encoder.
    pub fn ended(&self, model: &str, reason: &str, prompt_tokens: usize, after: Duration) {
        let [name, engine] = labels(model);
        let labels = [name, engine, ("finished_reason", reason.to_owned())];
        self.succeeded.get_or_create(&labels).inc();
        self.observe(model, "e2e_request_latency_seconds", after.as_secs_f64());
        self.observe(model, "request_prompt_tokens", prompt_tokens as f64);
    }

    fn observe(&self, model: &str, what: &str, value: f64) {
        self.histograms[what].get_or_create(&labels(model)).observe(value);
    }

    /// Everything, in OpenMetrics' text format.
    fn text(&self, engines: &[(&str, EngineSnapshot)]) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        for (name, kind, of) in OF_ENGINES {
            let name = format!("{PREFIX}{name}");
            let end = if kind == "counter" { "_total" } else { "" };
            writeln!(text, "# TYPE {name} {kind}")?;
            for (model, now) in engines {
                let model = json!(model);
                writeln!(text, "{name}{end}{{model_name={model},engine=\"0\"}} {}", of(now))?;
            }
        }
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

fn labels(model: &str) -> Labels<2> {
    [("model_name", model.to_owned()), ("engine", "0".to_owned())]
}

/// How long to wait for an engine's state between two steps; after that it is left out.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(1);

pub async fn health(State(app): State<Arc<App>>) -> Result<Json<Value>, ApiError> {
    app.served()?;
    Ok(Json(json!({"status": "ok"})))
}

pub async fn metrics(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let mut engines = Vec::new();
    for model in app.loaded().iter().flat_map(|served| &served.models) {
        engines.extend(snapshot(model).await.map(|now| (&*model.entry.id, now)));
    }
    let text = app.metrics.text(&engines);
    let text = text.map_err(|error| ApiError::new(Code::INTERNAL, error.to_string()))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// The state of a model's engine, if it reports it in time.
async fn snapshot(model: &ServedModel) -> Option<EngineSnapshot> {
    let (sender, receiver) = oneshot::channel();
    // The receiver may have timed out.
    let tell = Box::new(move |now| drop(sender.send(now)));
    model.backbone.engine.request_snapshot(tell).ok()?;
    timeout(SNAPSHOT_PATIENCE, receiver).await.ok()?.ok()
}
