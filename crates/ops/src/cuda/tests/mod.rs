//! Kernel by kernel on this build's GPU, which without a driver is emulated: against the CPU, against sums in
//! f64, and against themselves in other company. `cargo test -p wardround-ops --features cuda-emulated --lib cuda`.

mod attention;
mod delta_rule;
mod elements;
#[cfg(not(feature = "cuda"))]
mod graphs;
#[cfg(not(feature = "cuda"))]
mod kernels;
mod matmul;
mod misuse;
mod norm;
mod pack;
mod rotary;
mod sampler;
mod sequences;
#[cfg(not(feature = "cuda"))]
mod shuffle;
mod speed;
#[cfg(not(feature = "cuda"))]
mod sums;
mod text;
mod wave;

use half::bf16;

use super::{Buffer, Cuda};
use crate::checkpoint::RawTensor;
use crate::sampling::philox;
use crate::{
    Backend, BranchNorms, Cpu, HostStep, LayerPages, Machine, Numbers, PageShape, Precision,
    Quantisation, Rotation, Rows, StepLimits, StoredType, cpu,
};

/// Every way to keep weights on a GPU.
const KEPT: [Quantisation; 3] = [Quantisation::None, Quantisation::Q8_0, Quantisation::Q4K];

/// What is emulated takes its time: there every cut of rows is tried with bf16, and with other weights some are.
fn is_slow(kept: Quantisation) -> bool {
    cfg!(not(feature = "cuda")) && kept != Quantisation::None
}

/// The most that rounding to bf16 moves a number by, of itself: half of the last of eight bits.
const HALF_STEP: f32 = 1.0 / 256.0;

/// Of stages whose steps attend to nothing.
const SMALL_PAGES: PageShape = PageShape { layers: 1, kv_heads: 1, head_dim: 32 };

/// How keys and values are kept here: on the CPU as they are.
fn kept<B: Backend>() -> StoredType {
    match B::MACHINE {
        Machine::Cpu => StoredType::F32,
        Machine::Cuda | Machine::Candle => StoredType::Bf16,
    }
}

fn limits(rows: usize, logit_rows: usize, positions: usize) -> StepLimits {
    StepLimits { rows, logit_rows, positions }
}

/// What tests do with activations beside a decoder's operations.
trait Host: Backend {
    /// Rows of `width` numbers; narrow ones are rounded on every machine.
    fn hold(&self, numbers: &[f32], width: usize, kind: Numbers) -> Self::Buffer;
    /// Such rows in a buffer that is there.
    fn fill(&self, buffer: &mut Self::Buffer, numbers: &[f32], width: usize);
    /// The first `rows` rows.
    fn numbers(&self, buffer: &Self::Buffer, rows: usize, kind: Numbers) -> Vec<f32>;
}

impl Host for Cpu {
    fn hold(&self, numbers: &[f32], width: usize, kind: Numbers) -> cpu::Buffer {
        let mut buffer = cpu::Buffer::default();
        buffer.reshape(numbers.len() / width, width);
        let rows = buffer.rows_mut().zip(numbers.chunks_exact(width));
        rows.for_each(|(to, from)| to.copy_from_slice(from));
        if kind == Numbers::Narrow {
            buffer.rows_mut().flatten().for_each(|to| *to = round(*to));
        }
        buffer
    }

    fn fill(&self, buffer: &mut cpu::Buffer, numbers: &[f32], width: usize) {
        *buffer = self.hold(numbers, width, Numbers::Wide);
    }

    fn numbers(&self, buffer: &cpu::Buffer, rows: usize, _kind: Numbers) -> Vec<f32> {
        self.read(buffer, rows).unwrap()
    }
}

impl Host for Cuda {
    fn hold(&self, numbers: &[f32], width: usize, kind: Numbers) -> Buffer {
        let rows = numbers.len() / width;
        let mut buffer = self.buffer(rows, width, kind).unwrap();
        buffer.set_rows(rows);
        let bytes = match buffer.is_wide {
            true => bytes(numbers),
            false => {
                let padding = vec![0.0; buffer.stride - width];
                let padded = numbers.chunks_exact(width).flat_map(|row| row.iter().chain(&padding));
                padded.flat_map(|number| bf16::from_f32(*number).to_le_bytes()).collect()
            }
        };
        self.stream.write(&buffer.region, 0, &bytes);
        buffer
    }

    fn fill(&self, buffer: &mut Buffer, numbers: &[f32], width: usize) {
        assert!(width == buffer.width && buffer.is_wide);
        // A graph finds it where it was, and reads rows that only fill a bucket.
        buffer.set_rows(buffer.room());
        self.stream.write(&buffer.region, 0, &bytes(numbers));
    }

    fn numbers(&self, buffer: &Buffer, rows: usize, kind: Numbers) -> Vec<f32> {
        if buffer.is_wide {
            return self.read(buffer, rows).unwrap();
        }
        let bytes = Machine::Cuda.buffer_bytes(rows, buffer.width, kind);
        let halves = halves(self, &buffer.region, 0, bytes / 2);
        let rows = halves.chunks_exact(buffer.stride);
        let numbers = rows.flat_map(|row| {
            let (row, padding) = row.split_at(buffer.width);
            assert!(padding.iter().all(|number| number.to_bits() == 0), "padding is written");
            row.iter().copied()
        });
        numbers.collect()
    }
}

/// `count` numbers of bf16 from `first` on.
fn halves(gpu: &Cuda, region: &super::Region, first: usize, count: usize) -> Vec<f32> {
    let bytes = 2 * (first + count);
    let mut back = gpu.stream.pin(bytes).unwrap();
    gpu.stream.download(region, &mut back, bytes).unwrap();
    let halves = back.bytes()[2 * first..bytes].as_chunks::<2>().0.iter();
    halves.map(|half| bf16::from_le_bytes(*half).to_f32()).collect()
}

/// The GPU of this build, or the emulated one.
fn gpu() -> Cuda {
    Cuda::open(0).unwrap()
}

/// The same with products in f32.
fn gpu_in_f32() -> Cuda {
    gpu().for_encoder(StoredType::F32.into()).unwrap()
}

/// Nearly normal numbers of deviation 1.
fn noise(count: usize, seed: u64) -> Vec<f32> {
    let number = |index| {
        let bits = philox(seed, index);
        let quarters = [0, 16, 32, 48].map(|shift| (bits >> shift & 0xFFFF) as f32);
        (quarters.iter().sum::<f32>() / 65536.0 - 2.0) * 1.732
    };
    (0..count as u64).map(number).collect()
}

/// One of `0..count`.
fn pick(count: usize, seed: u64, index: u64) -> usize {
    (philox(seed, index) % count as u64) as usize
}

fn round(number: f32) -> f32 {
    bf16::from_f32(number).to_f32()
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

fn largest(numbers: &[f32]) -> f32 {
    numbers.iter().fold(0.0, |largest, number| largest.max(number.abs()))
}

fn kept_as(quantisation: Quantisation) -> Precision {
    Precision { quantisation, ..StoredType::Bf16.into() }
}

/// Weights `[outputs][inputs]` as products see them: rounded as the format does, by the CPU's own packing, and then
/// to bf16.
fn rounded_weights(weights: &[f32], inputs: usize, quantisation: Quantisation) -> Vec<f32> {
    let cpu = Cpu::new(1).unwrap();
    let bytes = bytes(weights);
    let part = RawTensor::from_f32_bytes(&bytes);
    let table = cpu.pack(&[part], inputs, kept_as(quantisation)).unwrap();
    let tokens: Vec<u32> = (0..part.rows(inputs) as u32).collect();
    let mut rows = cpu::Buffer::default();
    let step = Rows {
        tokens: &tokens,
        positions: &[],
        sequences: &[],
        segments: &[],
        tables: &[],
        states: &[],
    };
    cpu.embed(&table, HostStep { rows: step, logit_rows: &[] }, 1.0, &mut rows);
    let all = cpu.read(&rows, rows.rows()).unwrap();
    all.into_iter().map(round).collect()
}

/// `found` is bf16 of what was computed in f32 as `exact` was, but for the order of a sum. That moves a number by a few
/// units of 2⁻²⁴, and over the middle between two neighbours only now and then.
fn assert_rounded(found: &[f32], exact: &[f32], what: &str) {
    assert_eq!(found.len(), exact.len(), "{what}");
    let reordering = 1e-6 * largest(exact);
    let mut neighbours = 0;
    for (index, (found, exact)) in found.iter().zip(exact).enumerate() {
        let distance = (found - exact).abs();
        assert!(
            distance <= HALF_STEP * exact.abs() + reordering,
            "{what}, {index}: {found}, not {exact}"
        );
        neighbours += usize::from(*found != round(*exact));
    }
    assert!(
        100 * neighbours <= found.len(),
        "{what}: {neighbours} of {} are not the nearest",
        found.len()
    );
}
