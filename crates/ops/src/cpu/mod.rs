//! The CPU backend: f32 arithmetic over sixteen lanes, on one pool of threads that all engines take turns on.

mod activation;
#[cfg(target_arch = "x86_64")]
mod amx;
mod attention;
mod backend;
mod bandwidth;
#[cfg(target_arch = "x86_64")]
mod bf16;
mod blocks;
mod delta_rule;
#[cfg(test)]
mod delta_rule_tests;
mod dots;
mod floats;
mod kept;
#[cfg(test)]
mod matmul_tests;
mod matrix;
mod norm;
mod pages;
mod quantised;
mod rotary;
mod scan;
mod slab;
mod team;
mod text;

use std::ops::Range;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

pub use delta_rule::States;
pub use matrix::Matrix;
pub use pages::KvPages;
pub use rotary::Rope;
use team::Team;

use crate::shared::{Disjoint, Isa, lanes};
use crate::{Precision, Quantisation, StoredType};

/// Multiply-adds below which a loop is not worth handing to other threads.
const PARALLEL_WORK: usize = 1 << 16;
/// Multiply-adds of which a thread does not notice that it took a piece. The smaller pieces are, the less the last one is
/// waited for.
const LONG_WORK: usize = 1 << 22;

/// A row-major block of f32 activations, `rows × width`.
#[derive(Debug, Default)]
pub struct Buffer {
    data: Vec<f32>,
    width: usize,
}

impl Buffer {
    /// Gives the buffer a new shape. What it held is not kept, nor is it cleared.
    pub fn reshape(&mut self, rows: usize, width: usize) {
        self.width = width;
        self.data.resize(rows * width, 0.0);
    }

    pub fn rows(&self) -> usize {
        self.data.len().checked_div(self.width).unwrap_or(0)
    }

    pub fn row(&self, row: usize) -> &[f32] {
        &self.data[row * self.width..][..self.width]
    }

    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut [f32]> {
        self.data.chunks_exact_mut(self.width.max(1))
    }
}

/// A norm's weight, `[width]`.
#[derive(Debug)]
pub struct Vector(pub Vec<f32>);

/// The machine's threads. Clones share them.
#[derive(Clone, Debug)]
pub struct Cpu {
    pool: Arc<rayon::ThreadPool>,
    team: Arc<Team>,
    isa: Isa,
    /// One token in a channel: whoever holds it runs. Waiting receivers are served first come, first served.
    gate: (Sender<()>, Receiver<()>),
}

impl Cpu {
    /// A pool of `threads` threads (at least one).
    pub fn new(threads: usize) -> Result<Cpu, rayon::ThreadPoolBuildError> {
        Cpu::with(threads, Isa::detect())
    }

    /// The same by this instruction set, one of [`Isa::available`].
    pub fn with(threads: usize, isa: Isa) -> Result<Cpu, rayon::ThreadPoolBuildError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .thread_name(|index| format!("cpu-{index}"))
            .build()?;
        let gate = crossbeam_channel::bounded(1);
        let _ = gate.0.send(());
        Ok(Cpu { pool: Arc::new(pool), team: Arc::default(), isa, gate })
    }

    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// What the bits of a completion depend on: for weights, or keys and values, kept as bf16 the instructions that multiply
    /// those, where the machine has some; else the architecture alone.
    pub fn kind(&self, precision: Precision) -> String {
        let is_bf16 =
            (precision.stored, precision.quantisation) == (StoredType::Bf16, Quantisation::None);
        let is_paired = precision.kv == StoredType::Bf16 && self.isa.pairs_keys();
        match is_bf16 && self.isa.multiplies_bf16() || is_paired {
            true => self.describe(),
            false => std::env::consts::ARCH.to_owned(),
        }
    }

    /// The architecture and the instructions in use.
    pub fn describe(&self) -> String {
        format!("{} {}", std::env::consts::ARCH, self.isa.name())
    }

    /// Runs one engine's step on the pool, after those that came before it.
    pub fn run<T: Send>(&self, step: impl FnOnce() -> T + Send) -> T {
        self.take_turn(|| self.team.run_leader(step))
    }

    /// Runs `work` on the pool, after what came before it, with the pool's other threads at its disposal: unlike a step's,
    /// they wait for jobs.
    pub fn take_turn<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let _ = self.gate.1.recv();
        let _turn = Turn(&self.gate.0);
        self.pool.install(work)
    }

    /// Calls `body` with ranges that cover `0..count` once, on several threads where `work` (multiply-adds in
    /// all) is worth it and a step runs. Where the cuts fall is no part of the result.
    pub fn split(&self, count: usize, work: usize, body: impl Fn(Range<usize>) + Sync) {
        let pieces = (work / PARALLEL_WORK).min(4 * self.threads());
        let pieces = pieces.max((work / LONG_WORK).min(8 * self.threads())).min(count);
        if pieces < 2 || self.threads() < 2 {
            body(0..count);
            return;
        }
        self.team.split(count, pieces, &body);
    }

    /// Calls `body` with each row of `out` and its number; `work` as in [`Cpu::split`].
    fn each_row(&self, out: &mut Buffer, work: usize, body: impl Fn(usize, &mut [f32]) + Sync) {
        let (rows, width) = (out.rows(), out.width);
        let to = Disjoint::new(&mut out.data);
        self.split(rows, work, |range| {
            for row in range {
                // SAFETY: each row is written by one thread alone.
                body(row, unsafe { to.slice(row * width, width) });
            }
        });
    }
}

/// Gives the gate's token back, also when a step panics: the other engines go on.
struct Turn<'a>(&'a Sender<()>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // There is room: the token that this turn took is out.
        let _ = self.0.send(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instruction_set_is_part_of_the_kind_only_where_it_decides_bits() {
        let mut cpu = Cpu::new(1).unwrap();
        let bf16_cache = Precision { quantisation: Quantisation::Q8_0, ..StoredType::Bf16.into() };
        let quantised = Precision { kv: StoredType::F32, ..bf16_cache };
        let mut kinds = |isa: Isa, precision: Precision| {
            cpu.isa = isa;
            cpu.kind(precision)
        };
        let all = [Isa::Portable, Isa::Avx2, Isa::Avx512, Isa::Avx512Bf16, Isa::Amx];
        for isa in all {
            assert_eq!(kinds(isa, StoredType::F32.into()), std::env::consts::ARCH);
            assert_eq!(kinds(isa, quantised), std::env::consts::ARCH);
            let names_it = kinds(isa, bf16_cache) != std::env::consts::ARCH;
            assert_eq!(names_it, isa == Isa::Avx512Bf16, "{isa:?}");
        }
        // See `rows_do_not_depend_on_the_batch_the_threads_or_the_instruction_set` for the bits themselves.
        let [portable, avx2, avx512, bf16, amx] =
            all.map(|isa| kinds(isa, StoredType::Bf16.into()));
        assert!(portable == avx2 && avx2 == avx512);
        assert!(bf16 != avx512 && amx != avx512 && amx != bf16);
    }

    #[test]
    fn a_step_that_panics_does_not_hold_up_the_next() {
        let cpu = Cpu::new(1).unwrap();
        let other = cpu.clone();
        let panicked =
            std::thread::spawn(move || other.run(|| panic!("a step's own trouble"))).join();
        assert!(panicked.is_err());
        assert_eq!(cpu.run(|| 7), 7);
    }

    /// Loops in pieces and items in turn, in steps as short as the threads' waking.
    #[test]
    fn every_step_ends_with_all_its_loops_and_items_done() {
        use crate::Backend;
        use std::sync::atomic::{AtomicUsize, Ordering};
        for threads in [2, 3, 8] {
            let cpu = Cpu::new(threads).unwrap();
            for step in 0..1000 {
                cpu.run(|| {
                    for width in 0..step % 20 {
                        let sum = AtomicUsize::new(0);
                        cpu.split(64, usize::MAX, |range| {
                            sum.fetch_add(range.sum(), Ordering::Relaxed);
                        });
                        assert_eq!(sum.into_inner(), 64 * 63 / 2);
                        let doubled = cpu.map_each((0..width).collect(), |number| 2 * number);
                        assert!(doubled.into_iter().eq((0..width).map(|number| 2 * number)));
                    }
                });
            }
        }
    }
}
