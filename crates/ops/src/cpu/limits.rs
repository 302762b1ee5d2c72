//! What the machine can do at most, with every thread at work: bytes read and multiply-adds a second.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::Cpu;
use super::lanes::{FAR_BYTES, LANES, Lanes, vectorised};
#[cfg(target_arch = "x86_64")]
use super::{Isa, amx};
use crate::Limits;

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
            bf16_multiply_adds_per_second: self.bf16_rate(),
            i8_multiply_adds_per_second: self.i8_rate(),
        })
    }

    /// Where the kernels leave an instruction aside it is no limit of theirs.
    #[cfg(target_arch = "x86_64")]
    fn bf16_rate(&self) -> Option<f64> {
        match Isa::detect() {
            Isa::Amx => Some(self.arithmetic_rate(4 * amx::SIDE * amx::SIDE * 32, |rounds| {
                // SAFETY: the machine has the instructions.
                unsafe {
                    let _configuration = amx::Configuration::load(amx::SIDE, amx::SIDE);
                    amx::saturate_bf16(rounds);
                }
            })),
            Isa::Avx512Bf16 => Some(self.arithmetic_rate(12 * 32, |rounds| {
                // SAFETY: as above.
                unsafe { x86::multiply_bf16(rounds) }
            })),
            _ => None,
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn i8_rate(&self) -> Option<f64> {
        match Isa::detect() {
            Isa::Portable => None,
            Isa::Avx2 | Isa::AvxVnni | Isa::Avx512 => {
                // SAFETY: as above.
                Some(self.arithmetic_rate(12 * 32, |rounds| unsafe { x86::multiply_avx2(rounds) }))
            }
            Isa::Avx512Vnni | Isa::Avx512Bf16 | Isa::Amx => {
                // SAFETY: as above.
                Some(self.arithmetic_rate(12 * 64, |rounds| unsafe { x86::multiply_vnni(rounds) }))
            }
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn bf16_rate(&self) -> Option<f64> {
        None
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn i8_rate(&self) -> Option<f64> {
        None
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
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::hint::black_box;

    #[target_feature(enable = "avx512f,avx512bf16")]
    pub fn multiply_bf16(rounds: usize) {
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
    pub fn multiply_vnni(rounds: usize) {
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
    pub fn multiply_avx2(rounds: usize) {
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
