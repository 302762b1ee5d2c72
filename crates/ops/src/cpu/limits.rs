//! What the machine can do at most, with every thread at work: bytes read and multiply-adds a second.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::Cpu;
use super::lanes::{FAR_BYTES, LANES, Lanes, vectorised};
use crate::{Precision, Quantisation, StoredType};

/// Rates that no kernel can exceed. Each is the best of several goes, for a limit is what could be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// Bytes read a second, in order, from a buffer beyond the caches.
    pub bytes_per_second: f64,
    /// f32 multiply-adds a second, on registers alone.
    pub f32_multiply_adds_per_second: f64,
    /// Multiply-adds a second of bf16 pairs, added in f32; `None` where no kernel multiplies them.
    pub bf16_multiply_adds_per_second: Option<f64>,
    /// Multiply-adds a second of 8-bit integers, added in 32 bits; `None` where no kernel multiplies them.
    pub i8_multiply_adds_per_second: Option<f64>,
}

impl Limits {
    /// Multiply-adds a second of the arithmetic that weights of `precision` are multiplied in.
    pub fn matrix_rate(&self, precision: Precision) -> f64 {
        let narrow = match (precision.quantisation, precision.stored) {
            // Where bytes have no products of their own, blocks are widened to meet bf16.
            (Quantisation::Q8_0 | Quantisation::Int8 | Quantisation::Q4K, _) => {
                self.i8_multiply_adds_per_second.or(self.bf16_multiply_adds_per_second)
            }
            (Quantisation::None, StoredType::Bf16) => self.bf16_multiply_adds_per_second,
            (Quantisation::None, StoredType::F32) => None,
        };
        narrow.unwrap_or(self.f32_multiply_adds_per_second)
    }
}

/// How often each rate is taken.
const GOES: usize = 7;
/// Shorter measurements would be dominated by the clock's resolution.
const SHORTEST: Duration = Duration::from_millis(20);

impl Cpu {
    /// Takes every rate, in a second or two. `buffer_bytes` should be many times what the caches hold.
    pub fn measure_limits(&self, buffer_bytes: usize) -> Limits {
        self.take_turn(|| Limits {
            bytes_per_second: self.read_rate(buffer_bytes),
            f32_multiply_adds_per_second: self
                .arithmetic_rate(12 * LANES, |rounds| multiply_wide(self.isa, rounds))
                .max(self.arithmetic_rate(6 * LANES, |rounds| multiply_narrow(self.isa, rounds))),
            bf16_multiply_adds_per_second: self.narrow_rate(narrow::KERNELS.bf16),
            i8_multiply_adds_per_second: self.narrow_rate(narrow::KERNELS.i8),
        })
    }

    fn narrow_rate(&self, kernels: &[narrow::Kernel]) -> Option<f64> {
        let kernel = kernels.iter().find(|kernel| (kernel.is_available)())?;
        Some(self.arithmetic_rate(kernel.per_round, kernel.multiply))
    }

    fn read_rate(&self, bytes: usize) -> f64 {
        let mut buffer = vec![0.0f32; bytes.div_ceil(size_of::<f32>())];
        let share = buffer.len().div_ceil(self.threads()).max(1);
        // Untouched pages would all be one and the same page of zeros.
        self.pool.scope(|scope| {
            for part in buffer.chunks_mut(share) {
                scope.spawn(|_| part.fill(1.0));
            }
        });
        let parts: Vec<&[f32]> = buffer.chunks(share).collect();
        let read = || {
            self.everywhere(|thread| {
                let mut sums = [0.0; LANES];
                read_sum(self.isa, parts.get(thread).unwrap_or(&[].as_slice()), &mut sums);
                black_box(sums);
            })
        };
        best_rate(size_of_val(buffer.as_slice()) as f64, read)
    }

    /// Each of `rounds` does `per_round` multiply-adds.
    fn arithmetic_rate(&self, per_round: usize, multiply: impl Fn(usize) + Sync) -> f64 {
        let work = |rounds| self.everywhere(|_| multiply(rounds));
        let mut rounds = 1 << 10;
        while work(rounds) < SHORTEST {
            rounds *= 2;
        }
        let amount = (rounds * per_round * self.threads()) as f64;
        best_rate(amount, || work(rounds))
    }

    /// How long every thread takes for `work`, which gets the thread's index.
    fn everywhere(&self, work: impl Fn(usize) + Sync) -> Duration {
        let started = Instant::now();
        self.pool.broadcast(|thread| work(thread.index()));
        started.elapsed()
    }
}

/// `amount` of work, over the shortest time that it took.
fn best_rate(amount: f64, work: impl Fn() -> Duration) -> f64 {
    let shortest = (0..GOES).map(|_| work()).min().unwrap_or_default();
    amount / shortest.max(Duration::from_nanos(1)).as_secs_f64()
}

vectorised! { fn read_sum(values: &[f32], sums: &mut [f32; LANES]) = read_sum_kernel }

#[inline(always)]
fn read_sum_kernel<L: Lanes>(values: &[f32], sums: &mut [f32; LANES]) {
    let mut running = [L::splat(0.0); 4];
    for block in values.as_chunks::<{ 4 * LANES }>().0 {
        for (sum, lanes) in running.iter_mut().zip(block.as_chunks::<LANES>().0) {
            L::prefetch_far(lanes.as_ptr().cast::<u8>().wrapping_add(FAR_BYTES));
            *sum = sum.add(L::from_array(lanes));
        }
    }
    for sum in running {
        for (total, value) in sums.iter_mut().zip(sum.to_array()) {
            *total += value;
        }
    }
}

// As many sums at once as hide the latency of a multiply-add without leaving the registers: twelve of a register
// each, or six of two each.
vectorised! { fn multiply_wide(rounds: usize) = multiply_kernel<12> }
vectorised! { fn multiply_narrow(rounds: usize) = multiply_kernel<6> }

#[inline(always)]
fn multiply_kernel<L: Lanes, const SUMS: usize>(rounds: usize) {
    // The sums tend to 2: they never leave the range where every operation costs the same.
    let (factor, addend) = (L::splat(black_box(0.5)), L::splat(black_box(1.0)));
    let mut sums = [addend; SUMS];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = sum.fma(factor, addend);
        }
    }
    for sum in sums {
        black_box(sum.to_array());
    }
}

/// Instructions that multiply numbers narrower than f32 and add the products in 32 bits.
mod narrow {
    /// A loop over registers.
    pub struct Kernel {
        pub is_available: fn() -> bool,
        pub per_round: usize,
        pub multiply: fn(usize),
    }

    /// Fastest first.
    pub struct Kernels {
        pub bf16: &'static [Kernel],
        pub i8: &'static [Kernel],
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub const KERNELS: Kernels = Kernels { bf16: &[], i8: &[] };

    #[cfg(target_arch = "x86_64")]
    pub use x86::KERNELS;

    #[cfg(target_arch = "x86_64")]
    mod x86 {
        use std::arch::x86_64::*;
        use std::hint::black_box;

        use super::super::super::Isa;
        use super::super::super::amx::{self, Configuration};
        use super::{Kernel, Kernels};

        pub const KERNELS: Kernels = Kernels {
            bf16: &[
                Kernel {
                    is_available: || Isa::detect() == Isa::Amx,
                    per_round: 4 * amx::SIDE * amx::SIDE * 32,
                    // SAFETY: called only where `is_available` found the instructions.
                    multiply: |rounds| unsafe {
                        let _configuration = Configuration::load(amx::SIDE, amx::SIDE);
                        amx::saturate_bf16(rounds);
                    },
                },
                Kernel {
                    // Where the kernels leave it aside it is no limit of theirs.
                    is_available: || Isa::detect() == Isa::Avx512Bf16,
                    per_round: 12 * 32,
                    // SAFETY: as above.
                    multiply: |rounds| unsafe { multiply_bf16(rounds) },
                },
            ],
            i8: &[
                Kernel {
                    is_available: || {
                        is_x86_feature_detected!("avx512f")
                            && is_x86_feature_detected!("avx512vnni")
                    },
                    per_round: 12 * 64,
                    // SAFETY: as above.
                    multiply: |rounds| unsafe { multiply_vnni(rounds) },
                },
                Kernel {
                    is_available: || is_x86_feature_detected!("avx2"),
                    per_round: 12 * 32,
                    // SAFETY: as above.
                    multiply: |rounds| unsafe { multiply_avx2(rounds) },
                },
            ],
        };

        #[target_feature(enable = "avx512f,avx512bf16")]
        fn multiply_bf16(rounds: usize) {
            // Two numbers of about 10⁻⁶: their products vanish in the sums, and no step is slower than another.
            let pair = _mm512_set1_epi32(black_box(0x3586_3586));
            // SAFETY: both are sixteen times 32 bits, for which any bits are a value.
            let pair: __m512bh = unsafe { std::mem::transmute(pair) };
            let mut sums = [_mm512_set1_ps(1.0); 12];
            for _ in 0..rounds {
                for sum in &mut sums {
                    *sum = _mm512_dpbf16_ps(*sum, pair, pair);
                }
            }
            for sum in sums {
                black_box(_mm512_reduce_add_ps(sum));
            }
        }

        #[target_feature(enable = "avx512f,avx512vnni")]
        fn multiply_vnni(rounds: usize) {
            let bytes = _mm512_set1_epi32(black_box(0x0102_0304));
            let mut sums = [_mm512_setzero_si512(); 12];
            for _ in 0..rounds {
                for sum in &mut sums {
                    *sum = _mm512_dpbusd_epi32(*sum, bytes, bytes);
                }
            }
            for sum in sums {
                black_box(_mm512_reduce_add_epi32(sum));
            }
        }

        #[target_feature(enable = "avx2")]
        fn multiply_avx2(rounds: usize) {
            let bytes = _mm256_set1_epi32(black_box(0x0102_0304));
            let ones = _mm256_set1_epi16(black_box(1));
            let mut sums = [bytes; 12];
            for _ in 0..rounds {
                for sum in &mut sums {
                    // The sums are factors too, or the products would be worked out once, before the loop.
                    let products = _mm256_maddubs_epi16(*sum, bytes);
                    *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(products, ones));
                }
            }
            for sum in sums {
                black_box(_mm256_extract_epi32::<0>(sum));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_sums_every_value_whatever_the_instruction_set() {
        use super::super::Isa;
        let values: Vec<f32> = (0..6 * 4 * LANES).map(|index| (index % 7) as f32).collect();
        let expected: f32 = values.iter().sum();
        for isa in [Isa::Portable, Isa::detect()] {
            let mut sums = [0.0; LANES];
            read_sum(isa, &values, &mut sums);
            assert_eq!(sums.iter().sum::<f32>(), expected, "{}", isa.name());
        }
    }
}
