//! Seeded random tensors under their published names, written one at a time.

use std::borrow::Cow;
use std::path::Path;

use rayon::prelude::*;
use safetensors::{Dtype, View};

use super::SynthError;
use crate::model::Config;
use crate::model::config::stored_name;
use crate::random::mix;

/// A tensor whose numbers are drawn when it is written.
struct Tensor {
    shape: Vec<usize>,
    kind: Kind,
    seed: u64,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Numbers of this standard deviation.
    Matrix { deviation: f32 },
    /// A norm's weights: numbers of this mean and a standard deviation of 0.1.
    Norm { centre: f32 },
}

/// Writes a decoder's weights, a function of its description and the seed.
pub fn write(config: &Config, seed: u64, path: &Path) -> Result<(), SynthError> {
    let tensors = list(config).into_iter().enumerate().map(|(index, (name, shape, kind))| {
        let seed = mix(seed ^ mix(index as u64));
        (name, Tensor { shape, kind, seed })
    });
    Ok(safetensors::serialize_to_file(tensors, None, path)?)
}

fn list(config: &Config) -> Vec<(String, Vec<usize>, Kind)> {
    let traits = config.family.traits();
    let tensor = |(name, shape): (String, Vec<usize>)| {
        let kind = match shape[..] {
            // Logits of a unit hidden state come out with a deviation of two: neither flat nor one-sided.
            [_, inputs] if name == "embed_tokens" => {
                Kind::Matrix { deviation: 2.0 / (inputs as f32).sqrt() }
            }
            [_, inputs] | [_, 1, inputs] => {
                Kind::Matrix { deviation: 1.0 / (inputs as f32).sqrt() }
            }
            // Some tokens back.
            _ if name.ends_with("A_log") => Kind::Norm { centre: -2.0 },
            _ if name.ends_with("dt_bias") => Kind::Norm { centre: 0.0 },
            _ if name.ends_with("linear_attn.norm") => Kind::Norm { centre: 1.0 },
            _ => Kind::Norm { centre: 1.0 - traits.norm_offset },
        };
        (stored_name(&format!("{}{name}", traits.synthetic.prefix)), shape, kind)
    };
    config.tensors().into_iter().map(tensor).collect()
}

impl View for Tensor {
    fn dtype(&self) -> Dtype {
        Dtype::BF16
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let mut bytes = vec![0; self.data_len()];
        bytes.par_chunks_mut(1 << 16).enumerate().for_each(|(block, bytes)| {
            for (index, bytes) in bytes.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                let index = ((block << 15) + index) as u64;
                let normal = normal(mix(self.seed.wrapping_add(index)));
                let value = match self.kind {
                    Kind::Matrix { deviation } => deviation * normal,
                    Kind::Norm { centre } => centre + 0.1 * normal,
                };
                *bytes = half::bf16::from_f32(value).to_le_bytes();
            }
        });
        Cow::Owned(bytes)
    }

    fn data_len(&self) -> usize {
        2 * self.shape.iter().product::<usize>()
    }
}

/// Nearly normal, of mean 0 and deviation 1: the sum of four uniform numbers, exact on every machine.
fn normal(bits: u64) -> f32 {
    let sum: u64 = (0..4).map(|part| bits >> (16 * part) & 0xffff).sum();
    const ROOT_OF_THREE: f32 = 1.732_050_8;
    (sum as f32 - 131_070.0) * (ROOT_OF_THREE / 65_536.0)
}
