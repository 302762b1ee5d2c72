//! How a GGUF file's rope is stretched, as `config.json` says it.

use serde_json::{Value, json};

use super::weights::Source;
use super::{Gguf, GgufError};
use crate::model::config::{RopeConfig, RopeScaling};

/// Of the tensor that divides the frequencies of a Llama 3.1.
pub const FREQUENCIES: &str = "rope_freqs.weight";

/// What Llama 3.1, 3.2 and 3.3 were published with; the file says neither, nor the positions of the training.
const LOW_FREQUENCY: f64 = 1.0;
const HIGH_FREQUENCY: f64 = 4.0;
const POSITIONS: f64 = 8192.0;

/// Sixteen times Gemma's.
const WIDEST_HEAD: usize = 4096;

/// `rope_scaling`: by the metadata, or found from the divisors of the frequencies.
pub fn scaling(gguf: &Gguf, arch: &str, theta: f64, head_dim: usize) -> Result<Value, GgufError> {
    let key = |name: &str| format!("{arch}.rope.scaling.{name}");
    let factor = gguf.float(&key("factor"))?;
    // llama.cpp takes a factor alone for a linear one.
    let kind = gguf.text(&key("type"))?.unwrap_or(if factor.is_some() { "linear" } else { "none" });
    match (kind, gguf.tensors.get(FREQUENCIES)) {
        ("none", Some(_)) => llama3(gguf, theta, head_dim),
        ("none", None) => Ok(Value::Null),
        ("linear", None) => {
            Ok(json!({"rope_type": "linear", "factor": gguf.need(&key("factor"), Ok(factor))?}))
        }
        (kind, _) => Err(gguf.refused(
            format!(
                "`{}` is {}, which wardround cannot run",
                key("type"),
                super::metadata::shown(kind)
            ),
            "known: none, linear, and Llama 3.1's frequencies",
        )),
    }
}

fn llama3(gguf: &Gguf, theta: f64, head_dim: usize) -> Result<Value, GgufError> {
    let unknown = || {
        gguf.refused(
            format!("`{FREQUENCIES}` are not the divisors of a Llama 3.1"),
            "take the model's safetensors: their config.json says how the rope is stretched",
        )
    };
    if head_dim > WIDEST_HEAD || gguf.tensor(FREQUENCIES)?.shape != [head_dim / 2] {
        return Err(unknown());
    }
    let divisors = Source::open(gguf)?.all(FREQUENCIES)?;
    if divisors.iter().all(|divisor| *divisor == 1.0) {
        return Ok(Value::Null);
    }
    let factor = f64::from(divisors.iter().copied().fold(1.0, f32::max));
    let rope = |scaling| RopeConfig { theta, scaling }.inverse_frequencies(head_dim);
    let plain = rope(RopeScaling::None);
    // Of a wave that is neither long nor short, how much it is divided by says how long it was beside the training.
    let mut mixed =
        plain.iter().zip(&divisors).map(|(plain, divisor)| (*plain, f64::from(*divisor)));
    let mixed = mixed.find(|(_, divisor)| *divisor > 1.0 && *divisor < factor);
    let positions = mixed.map_or(POSITIONS, |(plain, divisor)| {
        let share = (1.0 / divisor - 1.0 / factor) / (1.0 - 1.0 / factor);
        let waves = share * (HIGH_FREQUENCY - LOW_FREQUENCY) + LOW_FREQUENCY;
        (waves * std::f64::consts::TAU / f64::from(plain)).round()
    });
    let stretched = rope(RopeScaling::Llama3 {
        factor,
        low_frequency: LOW_FREQUENCY,
        high_frequency: HIGH_FREQUENCY,
        original_positions: positions,
    });
    let expected = plain.iter().zip(&stretched).map(|(plain, stretched)| plain / stretched);
    let is_near = |(found, expected): (&f32, f32)| (found / expected - 1.0).abs() < 1e-4;
    match divisors.iter().zip(expected).all(is_near) {
        true => Ok(json!({
            "rope_type": "llama3", "factor": factor, "low_freq_factor": LOW_FREQUENCY,
            "high_freq_factor": HIGH_FREQUENCY, "original_max_position_embeddings": positions as u64,
        })),
        false => Err(unknown()),
    }
}
