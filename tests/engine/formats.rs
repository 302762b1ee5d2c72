//! What rounding does to a model: its logits in each format of weights, keys and values beside those of f32.

use std::path::Path;

use wardround::model::{Family, WantedPrecision, WantedType};
use wardround::ops::{Cpu, Quantisation, StoredType};

use crate::common;

/// As a user names them; `kv-bf16` has weights in f32 beside keys and values in bf16, all others keys and values in f32.
fn precision(format: &str) -> WantedPrecision {
    let (dtype, quantisation) = match format {
        "f32" | "kv-bf16" => (StoredType::F32, Quantisation::None),
        "bf16" => (StoredType::Bf16, Quantisation::None),
        "q8_0" => (StoredType::Bf16, Quantisation::Q8_0),
        "int8" => (StoredType::Bf16, Quantisation::Int8),
        "q4_k" => (StoredType::Bf16, Quantisation::Q4K),
        other => panic!("no format {other}"),
    };
    let kv = if format == "kv-bf16" { StoredType::Bf16 } else { StoredType::F32 };
    let (dtype, kv) = (WantedType::Exactly(dtype), WantedType::Exactly(kv));
    WantedPrecision { dtype, quantisation, kv }
}

/// The logits after each of the tokens.
pub fn read(cpu: &Cpu, directory: &Path, format: &str, tokens: &[u32]) -> Vec<Vec<f32>> {
    let decoder = common::load_on(cpu, directory, precision(format));
    common::logits_on(cpu, &decoder, tokens, 64)
}

/// Σ p ln (p ∕ q) in nats, the mean over positions.
pub fn divergence(exact: &[Vec<f32>], rounded: &[Vec<f32>]) -> f64 {
    let of_row = |(exact, rounded): (&Vec<f32>, &Vec<f32>)| -> f64 {
        let (p, q) = (logprobs(exact), logprobs(rounded));
        p.iter().zip(q).map(|(p, q)| p.exp() * (p - q)).sum()
    };
    exact.iter().zip(rounded).map(of_row).sum::<f64>() / exact.len() as f64
}

/// −ln of the next token's probability, the mean over positions.
pub fn surprise(rows: &[Vec<f32>], tokens: &[u32]) -> f64 {
    let following = &tokens[1..];
    let of_row = |(row, token): (&Vec<f32>, &u32)| -logprobs(row)[*token as usize];
    rows.iter().zip(following).map(of_row).sum::<f64>() / following.len() as f64
}

fn logprobs(row: &[f32]) -> Vec<f64> {
    let most = f64::from(row.iter().copied().fold(f32::MIN, f32::max));
    let sum: f64 = row.iter().map(|logit| (f64::from(*logit) - most).exp()).sum();
    row.iter().map(|logit| f64::from(*logit) - most - sum.ln()).collect()
}

#[test]
fn a_format_of_fewer_bits_diverges_more_from_f32() {
    let (directory, cpu) = (common::synthetic(Family::Gemma3), Cpu::new(2).unwrap());
    let tokens = common::tokens(1, 192);
    let exact = read(&cpu, &directory, "f32", &tokens);
    let of = |format: &str| divergence(&exact, &read(&cpu, &directory, format, &tokens));
    let (q8_0, q4_k, kv) = (of("q8_0"), of("q4_k"), of("kv-bf16"));
    assert_eq!(of("f32"), 0.0);
    assert!(q4_k > 3.0 * q8_0 && q8_0 > 0.0 && kv > 0.0, "{q8_0}, {q4_k}, {kv}");
}

/// Layers that add nothing leave the token table alone, which is also the head.
#[test]
fn under_q4_k_the_token_table_has_eight_bits() {
    let model = common::edited(Family::Llama, |name, _, values| {
        if name.contains("_proj") {
            values.fill(0.0);
        }
    });
    let (cpu, tokens) = (Cpu::new(2).unwrap(), common::tokens(1, 64));
    let read = |format| read(&cpu, model.path(), format, &tokens);
    assert_ne!(read("q8_0"), read("f32"));
    assert_eq!(read("q8_0"), read("q4_k"));
}
