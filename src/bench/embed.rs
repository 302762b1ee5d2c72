//! Texts a second through an encoder of BERT-base's sizes with random weights, beside the matrix rate.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::environment::Environment;
use crate::analysis::metrics::over_runs::mean_and_std;
use crate::model::{Bert, BertConfig, BertScratch, Tensors};
use crate::ops::{EncoderBackend, OpsError, PAGE, Precision, Rows};
use crate::random::mix;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbedWorkload {
    /// Tokens of a text, and texts of a repetition.
    pub tokens: usize,
    pub texts: usize,
    pub repetitions: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct EmbedReport {
    pub results: Vec<EmbedMeasurement>,
    pub model: &'static str,
    pub dtype: String,
    pub quantisation: String,
    pub environment: Environment,
}

/// One length of text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EmbedMeasurement {
    pub tokens: usize,
    pub texts: usize,
    /// The mean over the repetitions.
    pub texts_per_second: f64,
    pub texts_per_second_std: Option<f64>,
    pub texts_per_second_max: f64,
    /// The time that the device's matrix rate needs for the multiply-adds of the linear layers, over the mean time.
    pub share_of_matrix_rate: f64,
    /// The same over the shortest time: the rate is the best of several goes too.
    pub share_of_matrix_rate_max: f64,
}

/// Weights around zero, small enough that no state leaves its range.
struct Random;

impl Tensors for Random {
    type Error = OpsError;

    fn read(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, OpsError> {
        let count: usize = shape.iter().product();
        let seed = name.bytes().fold(1, |seed, byte| mix(seed ^ u64::from(byte)));
        let number = |index| (mix(seed ^ index) >> 40) as f32 / (1 << 24) as f32 - 0.5;
        Ok((0..count as u64).map(|index| 0.1 * number(index)).collect())
    }

    fn has(&self, _name: &str) -> bool {
        true
    }
}

/// How long each repetition took, after one that is not counted.
///
/// # Errors
/// A machine without room, or that fails.
pub fn time<B: EncoderBackend>(
    ops: &B,
    config: &BertConfig,
    precision: Precision,
    workload: EmbedWorkload,
) -> Result<Vec<Duration>, OpsError> {
    let EmbedWorkload { tokens, texts, repetitions } = workload;
    let bert = Bert::load(ops, config.clone(), &Random, precision)?;
    let together = (B::MACHINE.prefill_rows() / tokens).clamp(1, texts);
    let (rows, pages) = (together * tokens, tokens.div_ceil(PAGE));
    let mut scratch = BertScratch::new(ops, config, rows, together * pages)?;
    let vocabulary = config.vocab_size as u64;
    let ids: Vec<u32> = (0..rows as u64).map(|row| (mix(row) % vocabulary) as u32).collect();
    let positions: Vec<u32> = (0..rows).map(|row| (row % tokens) as u32).collect();
    let sequences: Vec<u32> = (0..rows).map(|row| (row / tokens) as u32).collect();
    let segments = vec![0; rows];
    let all_pages: Vec<u32> = (0..(together * pages) as u32).collect();
    let tables: Vec<&[u32]> = all_pages.chunks(pages).collect();
    let mut step = |texts: usize| {
        let rows = Rows {
            tokens: &ids[..texts * tokens],
            positions: &positions[..texts * tokens],
            sequences: &sequences[..texts * tokens],
            segments: &segments[..texts * tokens],
            tables: &tables[..texts],
        };
        ops.run(|| bert.forward(ops, rows, &mut scratch)).map(drop)
    };
    let mut repeat = || {
        let started = Instant::now();
        for first in (0..texts).step_by(together) {
            step(together.min(texts - first))?;
        }
        Ok::<_, OpsError>(started.elapsed())
    };
    repeat()?;
    (0..repetitions).map(|_| repeat()).collect()
}

impl EmbedMeasurement {
    /// From what each repetition took; `None` if there was none. `matrix_rate` in multiply-adds a second.
    pub fn new(
        config: &BertConfig,
        workload: EmbedWorkload,
        durations: &[Duration],
        matrix_rate: f64,
    ) -> Option<EmbedMeasurement> {
        let EmbedWorkload { tokens, texts, .. } = workload;
        let rates: Vec<f64> =
            durations.iter().map(|time| texts as f64 / time.as_secs_f64()).collect();
        let seconds: Vec<f64> = durations.iter().map(Duration::as_secs_f64).collect();
        let (texts_per_second, texts_per_second_std) = mean_and_std(&rates)?;
        let (mean, _) = mean_and_std(&seconds)?;
        let multiply_adds = config.multiply_adds() as f64 * (tokens * texts) as f64;
        Some(EmbedMeasurement {
            tokens,
            texts,
            texts_per_second,
            texts_per_second_std,
            texts_per_second_max: rates.into_iter().fold(0.0, f64::max),
            share_of_matrix_rate: multiply_adds / matrix_rate / mean,
            share_of_matrix_rate_max: multiply_adds
                / matrix_rate
                / seconds.iter().copied().fold(f64::INFINITY, f64::min),
        })
    }
}

impl EmbedReport {
    /// A table, and above it what it was measured on.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "{}, random weights, {}, quantisation {}\n{}\n\n",
            self.model,
            self.dtype,
            self.quantisation,
            self.environment.describe()
        );
        text +=
            "| tokens per text | texts | texts/s | fastest | share of matrix rate | fastest |\n";
        text += "| ---: | ---: | ---: | ---: | ---: | ---: |\n";
        for result in &self.results {
            let spread =
                result.texts_per_second_std.map_or(String::new(), |std| format!(" ± {std:.2}"));
            text += &format!(
                "| {} | {} | {:.2}{spread} | {:.2} | {:.1} % | {:.1} % |\n",
                result.tokens,
                result.texts,
                result.texts_per_second,
                result.texts_per_second_max,
                100.0 * result.share_of_matrix_rate,
                100.0 * result.share_of_matrix_rate_max,
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::BERT_BASE;
    use crate::ops::{Cpu, StoredType};

    #[test]
    fn shares_follow_from_times_and_limits() {
        let config = BertConfig { hidden_size: 8, intermediate_size: 16, ..BERT_BASE };
        // Twelve layers of four products of 8 by 8 and two of 8 by 16.
        assert_eq!(config.multiply_adds(), 12 * (4 * 64 + 2 * 128));
        let workload = EmbedWorkload { tokens: 10, texts: 4, repetitions: 2 };
        let times = [Duration::from_secs(1), Duration::from_secs(3)];
        let rate = 40.0 * config.multiply_adds() as f64;
        let measured = EmbedMeasurement::new(&config, workload, &times, rate).unwrap();
        assert!((measured.share_of_matrix_rate - 0.5).abs() < 1e-12);
        assert!((measured.share_of_matrix_rate_max - 1.0).abs() < 1e-12);
        assert_eq!(measured.texts_per_second_max, 4.0);
        assert!(EmbedMeasurement::new(&config, workload, &[], rate).is_none());
    }

    #[test]
    fn every_repetition_is_timed() {
        let config = BertConfig {
            vocab_size: 50,
            hidden_size: 8,
            num_hidden_layers: 1,
            num_attention_heads: 2,
            intermediate_size: 16,
            ..BERT_BASE
        };
        let cpu = Cpu::new(2).unwrap();
        let workload = EmbedWorkload { tokens: 100, texts: 7, repetitions: 3 };
        let times = time(&cpu, &config, StoredType::F32.into(), workload).unwrap();
        assert_eq!(times.len(), 3);
    }
}
