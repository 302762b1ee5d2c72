//! What a server tells of itself: health, version, and metrics in Prometheus' text format, with vLLM's names behind a prefix.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
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
use crate::engine::{Completion, EngineSnapshot, EngineStats};
use crate::record::FinishReason;

/// Labels of a metric and their values.
type Labels<const N: usize> = [(&'static str, String); N];

/// Metrics by model.
type Gauges = Family<Labels<2>, Gauge<f64, AtomicU64>>;
type Counters = Family<Labels<2>, Counter>;
type Histograms = Family<Labels<2>, Histogram>;

/// A metric's name, its help text, and its value in `T`.
type Definition<T, V> = (&'static str, &'static str, fn(&T) -> V);

/// The state of an engine.
const GAUGES: [Definition<EngineSnapshot, f64>; 3] = [
    ("num_requests_running", "Sequences in the running batch", |now| now.running as f64),
    ("num_requests_waiting", "Sequences that wait for the batch", |now| now.waiting as f64),
    ("kv_cache_usage_perc", "Share of the KV cache's pages in use, from 0 to 1", |now| {
        now.pages_in_use as f64 / now.stats.pages.max(1) as f64
    }),
];
/// The counters of an engine since its start. The encoder appends `_total`.
const COUNTERS: [Definition<EngineStats, u64>; 7] = [
    ("prompt_tokens", "Tokens of prompts", |stats| stats.counts.prompt_tokens),
    ("generation_tokens", "Tokens generated", |stats| stats.sampled_tokens + stats.forced_tokens),
    ("forced_tokens", "Generated tokens that a grammar dictated", |stats| stats.forced_tokens),
    ("prefix_cache_queries", "Tokens looked up in the prefix index", |stats| {
        stats.counts.prompt_tokens
    }),
    ("prefix_cache_hits", "Tokens found in the prefix index", |stats| stats.counts.cached_tokens),
    ("num_preemptions", "Sequences that gave their pages back", |stats| stats.counts.preemptions),
    ("requests_cancelled", "Sequences whose client went away", |stats| stats.counts.cancelled),
];

/// A name, what it counts, and its buckets.
type Observed = (&'static str, &'static str, fn() -> Histogram);

/// What is observed of requests.
const HISTOGRAMS: [Observed; 10] = [
    ("time_to_first_token_seconds", "From a request to its first token", seconds),
    ("inter_token_latency_seconds", "From a token to the next", seconds),
    ("e2e_request_latency_seconds", "From a request to its end", seconds),
    ("request_queue_time_seconds", "Until the batch took a sequence", seconds),
    ("request_prefill_time_seconds", "From there to the first token", seconds),
    ("request_decode_time_seconds", "From there to the end", seconds),
    ("request_prompt_tokens", "Tokens of a prompt", numbers),
    ("request_generation_tokens", "Tokens of a completion", numbers),
    ("request_params_n", "Choices that a request asks for", numbers),
    ("request_params_max_tokens", "Tokens that a request allows", numbers),
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
    families: Arc<Families>,
    pub connections: Gauge,
    pub cases: Gauge,
    rejections: Family<Labels<1>, Counter>,
}

/// The metrics by model.
struct Families {
    /// In the order of [`GAUGES`] and [`COUNTERS`].
    gauges: [Gauges; 3],
    counters: [Counters; 7],
    succeeded: Family<Labels<3>, Counter>,
    histograms: BTreeMap<&'static str, Histograms>,
}

pub struct ModelMetrics {
    labels: Labels<2>,
    families: Arc<Families>,
}

impl Metrics {
    /// `prefix`, such as `wardround:`, comes before every name.
    pub fn new(prefix: &str) -> Metrics {
        let families = Families {
            gauges: Default::default(),
            counters: Default::default(),
            succeeded: Family::default(),
            histograms: HISTOGRAMS
                .map(|(name, _, made)| (name, Histograms::new_with_constructor(made)))
                .into(),
        };
        let mut registry = Registry::default();
        let f = &families;
        let named = |name: &str| format!("{prefix}{name}");
        for ((name, help, _), family) in GAUGES.iter().zip(&f.gauges) {
            registry.register(named(name), *help, family.clone());
        }
        for ((name, help, _), family) in COUNTERS.iter().zip(&f.counters) {
            registry.register(named(name), *help, family.clone());
        }
        registry.register(named("request_success"), "Sequences that ended", f.succeeded.clone());
        for (name, help, _) in HISTOGRAMS {
            registry.register(named(name), help, f.histograms[name].clone());
        }
        let (connections, cases) = (Gauge::default(), Gauge::default());
        registry.register(named("connections"), "Open connections", connections.clone());
        registry.register(named("cases_running"), "Cases of systems at work", cases.clone());
        let rejections = Family::default();
        let help = "Requests that were refused or failed";
        registry.register(named("requests_rejected"), help, Family::clone(&rejections));
        let families = Arc::new(families);
        Metrics { registry, families, connections, cases, rejections }
    }

    pub fn of_model(&self, name: &str) -> ModelMetrics {
        let labels = [("model_name", name.to_owned()), ("engine", "0".to_owned())];
        ModelMetrics { labels, families: self.families.clone() }
    }

    /// Counts an error response.
    pub fn rejected(&self, code: Code) {
        self.rejections.get_or_create(&[("code", code.name().to_owned())]).inc();
    }
}

impl ModelMetrics {
    pub fn first_token(&self, after: Duration) {
        self.observe("time_to_first_token_seconds", after.as_secs_f64());
    }

    /// Records the time between the previous tokens and these.
    pub fn inter_token(&self, after: Duration, tokens: usize) {
        let each = after.as_secs_f64() / tokens.max(1) as f64;
        (0..tokens.max(1)).for_each(|_| self.observe("inter_token_latency_seconds", each));
    }

    /// Records the parameters of a request.
    pub fn asked(&self, choices: usize, max_tokens: usize) {
        self.observe("request_params_n", choices as f64);
        self.observe("request_params_max_tokens", max_tokens as f64);
    }

    fn observe(&self, what: &str, value: f64) {
        self.families.histograms[what].get_or_create(&self.labels).observe(value);
    }

    /// Counts a completion that ended.
    pub fn finished(&self, completion: &Completion, after: Duration) {
        let timings = &completion.timings;
        let [model, engine] = self.labels.clone();
        let finished_reason = match completion.finish_reason {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            _ => "abort",
        };
        self.families
            .succeeded
            .get_or_create(&[model, engine, ("finished_reason", finished_reason.to_owned())])
            .inc();
        self.observe("e2e_request_latency_seconds", after.as_secs_f64());
        self.observe("request_queue_time_seconds", timings.queued.as_secs_f64());
        self.observe("request_prefill_time_seconds", timings.prefill.as_secs_f64());
        self.observe("request_decode_time_seconds", timings.decode.as_secs_f64());
        self.observe("request_prompt_tokens", completion.usage.prompt_tokens as f64);
        self.observe("request_generation_tokens", completion.usage.completion_tokens as f64);
    }

    /// Counts a request whose texts were encoded.
    pub fn encoded(&self, tokens: usize, after: Duration) {
        let [model, engine] = self.labels.clone();
        let labels = [model, engine, ("finished_reason", "stop".to_owned())];
        self.families.succeeded.get_or_create(&labels).inc();
        self.families.counters[0].get_or_create(&self.labels).inc_by(tokens as u64);
        self.observe("e2e_request_latency_seconds", after.as_secs_f64());
        self.observe("request_prompt_tokens", tokens as f64);
    }

    /// Copies the state of the engine.
    pub fn engine(&self, snapshot: &EngineSnapshot) {
        let (families, labels, stats) = (&self.families, &self.labels, &snapshot.stats);
        for ((_, _, of), family) in GAUGES.iter().zip(&families.gauges) {
            family.get_or_create(labels).set(of(snapshot));
        }
        for ((_, _, of), family) in COUNTERS.iter().zip(&families.counters) {
            family.get_or_create(labels).inner().store(of(stats), Relaxed);
        }
    }
}

/// How long to wait for an engine's state between two steps; after that its last figures are used.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(1);

pub async fn health(State(app): State<Arc<App>>) -> Result<Json<Value>, ApiError> {
    app.served()?;
    Ok(Json(json!({"status": "ok"})))
}

pub async fn live() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

pub async fn version() -> Json<Value> {
    Json(json!({"version": env!("CARGO_PKG_VERSION")}))
}

pub async fn metrics(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    for model in app.loaded().iter().flat_map(|served| &served.models) {
        refresh(&app, model).await;
    }
    let mut text = String::new();
    encode(&mut text, &app.metrics.registry)
        .map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// Updates the metrics of a model, if its engine reports its state in time.
async fn refresh(app: &App, model: &ServedModel) {
    let (sender, receiver) = oneshot::channel();
    let tell = Box::new(move |snapshot| {
        // The receiver may have timed out.
        let _ = sender.send(snapshot);
    });
    if model.backbone.engine.request_snapshot(tell).is_err() {
        return;
    }
    if let Ok(Ok(snapshot)) = timeout(SNAPSHOT_PATIENCE, receiver).await {
        app.metrics.of_model(&model.id).engine(&snapshot);
    }
}
