//! The report of a model's tests.

use std::time::Duration;

use serde::Serialize;

use super::environment::Environment;
use super::workload::Workload;
use crate::analysis::metrics::over_runs::mean_and_std;
use crate::analysis::table::{Cell, Table};
use crate::experiment::plan::MemberPlan;
use crate::model::CostModel;
use crate::panel::SamplingChoice;
use crate::panel::backbone::Description;

#[derive(Clone, Debug, Serialize)]
pub struct ModelReport {
    pub results: Vec<Measurement>,
    pub model: Subject,
    /// Fixes the tokens.
    pub seed: u64,
    pub repetitions: usize,
    pub environment: Environment,
}

/// One test. Tokens are summed over the batch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    pub test: String,
    pub batch: usize,
    pub depth: usize,
    /// Of one repetition.
    pub tokens: usize,
    pub steps: usize,
    /// The mean over the repetitions.
    pub tokens_per_second: f64,
    pub tokens_per_second_std: Option<f64>,
    pub tokens_per_second_min: f64,
    /// Of each repetition.
    pub seconds: Vec<f64>,
    /// The time that the device's memory bandwidth needs for the bytes that must be read, over the time that the test
    /// took.
    pub share_of_bandwidth: Option<f64>,
}

/// The model that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Subject {
    pub name: String,
    pub path: String,
    pub synthetic: bool,
    pub family: String,
    pub parameters: usize,
    pub dtype: String,
    pub quantisation: String,
    pub weights_bytes: usize,
    pub weights_sha256: String,
}

impl Subject {
    pub fn new(description: &Description) -> Subject {
        let plan = MemberPlan::local("", description, None, SamplingChoice::default());
        let (config, precision) = (&description.config, description.precision);
        Subject {
            name: plan.backbone,
            path: description.checkpoint.directory.display().to_string(),
            synthetic: description.is_synthetic,
            family: plan.family,
            parameters: config.parameters(),
            dtype: plan.dtype,
            quantisation: plan.quantisation,
            weights_bytes: config.weight_bytes(precision),
            weights_sha256: plan.weights_sha256,
        }
    }
}

impl Measurement {
    /// From what each repetition of `workload` took; `None` if there was none.
    pub fn new(
        workload: &Workload,
        costs: &CostModel,
        durations: &[Duration],
        bytes_per_second: Option<f64>,
    ) -> Option<Measurement> {
        let tokens = workload.tokens();
        let seconds: Vec<f64> = durations.iter().map(Duration::as_secs_f64).collect();
        let rates: Vec<f64> = seconds.iter().map(|time| tokens as f64 / time).collect();
        let (rate, rate_std) = mean_and_std(&rates)?;
        let (mean, _) = mean_and_std(&seconds)?;
        let mut bytes_read = 0;
        for step in &workload.steps {
            let spans = step.iter().map(|rows| rows.positions.clone());
            let logit_rows = step.iter().filter(|rows| rows.gives_logits).count();
            bytes_read += costs.step(spans, logit_rows);
        }
        Some(Measurement {
            test: workload.name.clone(),
            batch: workload.batch,
            depth: workload.depth,
            tokens,
            steps: workload.steps.len(),
            tokens_per_second: rate,
            tokens_per_second_std: rate_std,
            tokens_per_second_min: rates.into_iter().fold(f64::INFINITY, f64::min),
            seconds,
            share_of_bandwidth: bytes_per_second.map(|rate| bytes_read as f64 / rate / mean),
        })
    }
}

impl ModelReport {
    /// A table as llama-bench prints it, and below it what it was measured on.
    pub fn table(&self) -> Table {
        let Subject { name, family, parameters, dtype, quantisation, .. } = &self.model;
        let title = format!(
            "{name} ({family}, {:.2} billion parameters, {dtype}, quantisation {quantisation}), seed {}",
            *parameters as f64 / 1e9,
            self.seed,
        );
        let rate = |rate: f64| Cell::Number(rate, 2);
        let percent = |share: f64| Cell::Number(100.0 * share, 1);
        Table::of("tests", title, &self.results)
            .text("test", |one| &one.test)
            .number("batch", |one| one.batch)
            .number("depth", |one| one.depth)
            .number("tokens/s", |one| rate(one.tokens_per_second))
            .number("±", |one| one.tokens_per_second_std.map(rate))
            .number("slowest", |one| rate(one.tokens_per_second_min))
            .number("share of bandwidth, %", |one| one.share_of_bandwidth.map(percent))
            .note(self.environment.describe())
            .build()
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::{Machine, StoredType};
    use std::path::Path;

    use super::*;
    use crate::model::Config;

    #[test]
    fn rates_and_shares_follow_from_times_and_the_bandwidth() {
        let json = serde_json::json!({
            "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
            "num_attention_heads": 4, "vocab_size": 100, "rms_norm_eps": 1e-6, "hidden_act": "silu",
            "tie_word_embeddings": true, "eos_token_id": 0,
        });
        let config = Config::from_json(json, Path::new("config.json")).unwrap();
        let costs = CostModel::new(&config, StoredType::F32.into(), Machine::Cpu);
        let times = [1, 3].map(Duration::from_secs);
        let workload = Workload::prefill(600, 1, 0, 512);
        let result = Measurement::new(&workload, &costs, &times, Some(1e9)).unwrap();
        assert_eq!((result.tokens_per_second, result.tokens_per_second_min), (400.0, 200.0));
        assert_eq!(result.tokens_per_second_std, Some(80_000f64.sqrt()));
        let matrices = 2 * (4 * 64 * 64 + 3 * 64 * 128);
        // Two steps read the layers twice, the head once, and 512 and 600 positions.
        let kv = config.kv_bytes_per_token(Machine::Cpu, StoredType::F32) * 1112;
        let expected = (4 * (2 * matrices + 6400) + kv) as f64 / 1e9 / 2.0;
        assert!((result.share_of_bandwidth.unwrap() - expected).abs() < 1e-12);
        assert_eq!(Measurement::new(&workload, &costs, &[], Some(1e9)), None);
    }
}
