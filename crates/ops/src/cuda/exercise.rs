//! Every kernel of this build, launched a few times on made-up numbers: what `doctor --shadow` compares, a family a process.
//!
//! Sizes are small, for an emulator runs them, and such that tiles, blocks and chunks are whole and not.

mod layers;
mod products;

use super::matrix::Matrix;
use super::{Buffer, Cuda, Vector};
use crate::checkpoint::RawTensor;
use crate::sampling::philox;
use crate::{Backend, Numbers, OpsError, Precision, Quantisation, StoredType};

/// Kernels that a process compares.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    pub name: &'static str,
    /// Beginnings of their names, comma by comma, as `WARDROUND_CUDA_SHADOW_ONLY` takes them.
    pub kernels: &'static str,
    launch: fn(&Cuda) -> Result<(), OpsError>,
}

pub const FAMILIES: [Family; 10] = [
    Family { name: "embeddings", kernels: "embed_,add_places", launch: Cuda::embed_all },
    Family { name: "norms", kernels: "rms_norm,add_norm,gather_norm", launch: Cuda::norm_all },
    Family { name: "encoders", kernels: "layer_norm,gelu,add_bias", launch: Cuda::encode_all },
    Family { name: "attention", kernels: "rotate_and_store,attend_", launch: Cuda::attend_all },
    Family { name: "small", kernels: "matmul_small", launch: Cuda::multiply_few },
    Family { name: "blocks", kernels: "matmul_medium,matmul_large", launch: Cuda::multiply_blocks },
    Family { name: "waves", kernels: "matmul_wave", launch: Cuda::multiply_in_waves },
    Family { name: "warpgroups", kernels: "matmul_warpgroup", launch: Cuda::multiply_by_cuts },
    Family { name: "f32", kernels: "matmul_f32", launch: Cuda::multiply_wide },
    Family { name: "sampling", kernels: "draw,score", launch: Cuda::sample_all },
];

const KEPT: [Quantisation; 3] = [Quantisation::None, Quantisation::Q8_0, Quantisation::Q4K];

impl Family {
    pub fn named(name: &str) -> Option<Family> {
        FAMILIES.into_iter().find(|family| family.name == name)
    }

    /// Launches its kernels on the first GPU.
    pub fn exercise(self) -> Result<(), OpsError> {
        let gpu = Cuda::open(0)?;
        (self.launch)(&gpu)?;
        gpu.stream.synchronise()
    }
}

/// Between −1 and 1.
fn noise(count: usize, seed: u64) -> Vec<f32> {
    let number = |index| (philox(seed, index) % 65_536) as f32 / 32_768.0 - 1.0;
    (0..count as u64).map(number).collect()
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn kept_as(quantisation: Quantisation) -> Precision {
    Precision { quantisation, ..StoredType::Bf16.into() }
}

impl Cuda {
    fn made_up(&self, rows: usize, width: usize, kind: Numbers) -> Result<Buffer, OpsError> {
        let mut buffer = self.buffer(rows, width, kind)?;
        self.put(rows, &noise(rows * width, 1), &mut buffer);
        Ok(buffer)
    }

    fn noisy(&self, count: usize, seed: u64) -> Result<Vector, OpsError> {
        self.vector(noise(count, seed))
    }

    fn table(
        &self,
        (outputs, inputs): (usize, usize),
        kept: Precision,
    ) -> Result<Matrix, OpsError> {
        let bytes = bytes(&noise(outputs * inputs, 2));
        self.pack(&[RawTensor::from_f32_bytes(&bytes)], inputs, kept)
    }
}
