//! Metrics in Prometheus' text format, with vLLM's names behind a prefix.

use std::fmt::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;

use super::error::Code;
use crate::engine::{Completion, EngineSnapshot, EngineStats};
use crate::record::FinishReason;

/// vLLM's histogram buckets, in seconds and in numbers.
const FIRST_TOKEN_S: [f64; 22] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
];
const INTER_TOKEN_S: [f64; 19] = [
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
];
const REQUEST_S: [f64; 21] = [
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
];
const TOKENS: [f64; 16] = [
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0, 20000.0,
    50000.0, 100000.0,
];
const CHOICES: [f64; 5] = [1.0, 2.0, 5.0, 10.0, 20.0];

/// Labels of a metric and their values.
type Labels<const N: usize> = [(&'static str, String); N];

/// Metrics by model.
type Gauges = Family<Labels<2>, Gauge<f64, AtomicU64>>;
type Counters = Family<Labels<2>, Counter>;
type Histograms = Family<Labels<2>, Histogram, Buckets>;

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

/// The upper bounds of a histogram's buckets.
#[derive(Clone)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// What is observed of requests, in the order of [`Observed`].
const HISTOGRAMS: [(&str, &str, &[f64]); 10] = [
    ("time_to_first_token_seconds", "From a request to its first token", &FIRST_TOKEN_S),
    ("inter_token_latency_seconds", "From a token to the next", &INTER_TOKEN_S),
    ("e2e_request_latency_seconds", "From a request to its end", &REQUEST_S),
    ("request_queue_time_seconds", "Until the batch took a sequence", &REQUEST_S),
    ("request_prefill_time_seconds", "From there to the first token", &REQUEST_S),
    ("request_decode_time_seconds", "From there to the end", &REQUEST_S),
    ("request_prompt_tokens", "Tokens of a prompt", &TOKENS),
    ("request_generation_tokens", "Tokens of a completion", &TOKENS),
    ("request_params_n", "Choices that a request asks for", &CHOICES),
    ("request_params_max_tokens", "Tokens that a request allows", &TOKENS),
];

/// The index of each of [`HISTOGRAMS`].
#[derive(Clone, Copy)]
enum Observed {
    FirstToken,
    InterToken,
    Request,
    Queue,
    Prefill,
    Decode,
    PromptTokens,
    GeneratedTokens,
    Choices,
    MaxTokens,
}

pub struct Metrics {
    registry: Registry,
    families: Arc<Families>,
    pub connections: Gauge,
    pub cases: Gauge,
    rejections: Family<Labels<1>, Counter>,
    parameters: Family<Labels<1>, Counter>,
    builds: Family<Labels<2>, Gauge>,
}

/// The metrics by model.
struct Families {
    /// In the order of [`GAUGES`], [`COUNTERS`] and [`HISTOGRAMS`].
    gauges: [Gauges; 3],
    counters: [Counters; 7],
    succeeded: Family<Labels<3>, Counter>,
    histograms: [Histograms; 10],
    step_tokens: Family<Labels<2>, StepTokens>,
}

/// The tokens per step, which the engine counts in buckets of powers of two.
#[derive(Clone, Debug, Default)]
struct StepTokens {
    sum: Arc<AtomicU64>,
    buckets: Arc<[AtomicU64; 16]>,
}

impl TypedMetric for StepTokens {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for StepTokens {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), Error> {
        let counts = self.buckets.iter().map(|count| count.load(Relaxed));
        let mut buckets: Vec<(f64, u64)> =
            (0..).map(|power| 2_f64.powi(power)).zip(counts).collect();
        if let Some((bound, _)) = buckets.last_mut() {
            *bound = f64::INFINITY;
        }
        let count = buckets.iter().map(|(_, count)| count).sum();
        encoder.encode_histogram::<NoLabelSet>(self.sum.load(Relaxed) as f64, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
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
                .map(|(_, _, bounds)| Histograms::new_with_constructor(Buckets(bounds))),
            step_tokens: Family::default(),
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
        let help = "Tokens of prompts and completions that a step computes";
        registry.register(named("iteration_tokens_total"), help, f.step_tokens.clone());
        registry.register(named("request_success"), "Sequences that ended", f.succeeded.clone());
        for ((name, help, _), family) in HISTOGRAMS.iter().zip(&f.histograms) {
            registry.register(named(name), *help, family.clone());
        }
        let (connections, cases) = (Gauge::default(), Gauge::default());
        registry.register(named("connections"), "Open connections", connections.clone());
        registry.register(named("cases_running"), "Cases of systems at work", cases.clone());
        let (rejections, parameters, builds) =
            (Family::default(), Family::default(), Family::default());
        let help = "Requests that were refused or failed";
        registry.register(named("requests_rejected"), help, Family::clone(&rejections));
        let help = "Known parameters without effect that requests named";
        registry.register(named("ignored_parameters"), help, Family::clone(&parameters));
        let help = "The program, and what its models compute on";
        registry.register(named("build_info"), help, Family::clone(&builds));
        let families = Arc::new(families);
        Metrics { registry, families, connections, cases, rejections, parameters, builds }
    }

    pub fn of_model(&self, name: &str) -> ModelMetrics {
        let labels = [("model_name", name.to_owned()), ("engine", "0".to_owned())];
        ModelMetrics { labels, families: self.families.clone() }
    }

    /// Records the kind of device that a model runs on.
    pub fn computes_on(&self, device_kind: &str) {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let build = [("version", version), ("device_kind", device_kind.to_owned())];
        self.builds.get_or_create(&build).set(1);
    }

    /// Counts an error response.
    pub fn rejected(&self, code: Code) {
        self.rejections.get_or_create(&[("code", code.name().to_owned())]).inc();
    }

    /// Counts a known parameter that had no effect.
    pub fn ignored(&self, name: &'static str) {
        self.parameters.get_or_create(&[("name", name.to_owned())]).inc();
    }

    pub fn text(&self) -> Result<String, Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

impl ModelMetrics {
    pub fn first_token(&self, after: Duration) {
        self.observe(Observed::FirstToken, after.as_secs_f64());
    }

    /// Records the time between the previous tokens and these.
    pub fn inter_token(&self, after: Duration, tokens: usize) {
        let each = after.as_secs_f64() / tokens.max(1) as f64;
        (0..tokens.max(1)).for_each(|_| self.observe(Observed::InterToken, each));
    }

    /// Records the parameters of a request.
    pub fn asked(&self, choices: usize, max_tokens: usize) {
        self.observe(Observed::Choices, choices as f64);
        self.observe(Observed::MaxTokens, max_tokens as f64);
    }

    fn observe(&self, what: Observed, value: f64) {
        self.families.histograms[what as usize].get_or_create(&self.labels).observe(value);
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
        self.observe(Observed::Request, after.as_secs_f64());
        self.observe(Observed::Queue, timings.queued.as_secs_f64());
        self.observe(Observed::Prefill, timings.prefill.as_secs_f64());
        self.observe(Observed::Decode, timings.decode.as_secs_f64());
        self.observe(Observed::PromptTokens, completion.usage.prompt_tokens as f64);
        self.observe(Observed::GeneratedTokens, completion.usage.completion_tokens as f64);
    }

    /// Counts a request whose texts were encoded.
    pub fn encoded(&self, tokens: usize, after: Duration) {
        let [model, engine] = self.labels.clone();
        let labels = [model, engine, ("finished_reason", "stop".to_owned())];
        self.families.succeeded.get_or_create(&labels).inc();
        self.families.counters[0].get_or_create(&self.labels).inc_by(tokens as u64);
        self.observe(Observed::Request, after.as_secs_f64());
        self.observe(Observed::PromptTokens, tokens as f64);
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
        let step_tokens = families.step_tokens.get_or_create(labels);
        step_tokens.sum.store(stats.prefill.rows + stats.decode.rows, Relaxed);
        for (bucket, count) in step_tokens.buckets.iter().zip(stats.steps_by_rows) {
            bucket.store(count, Relaxed);
        }
    }
}
