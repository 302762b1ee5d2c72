//! What the machine can do at most, with every thread at work: bytes read a second.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::Cpu;
use super::lanes::{FAR_BYTES, LANES, Lanes, vectorised};
use crate::Limits;

/// How often the rate is taken.
const GOES: usize = 7;

impl Cpu {
    /// Takes the rate, in a second or two. `buffer_bytes` should be many times what the caches hold.
    pub fn measure_limits(&self, buffer_bytes: usize) -> Limits {
        let bytes_per_second = self.take_turn(|| self.read_rate(buffer_bytes));
        Limits { bytes_per_second, multiply_adds_per_second: None }
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
        let go = |_| {
            let started = Instant::now();
            self.pool.broadcast(|thread| {
                let mut sums = [0.0; LANES];
                read_sum(self.isa, parts.get(thread.index()).unwrap_or(&[].as_slice()), &mut sums);
                black_box(sums);
            });
            started.elapsed()
        };
        let shortest = (0..GOES).map(go).min().unwrap_or_default();
        size_of_val(buffer.as_slice()) as f64 / shortest.max(Duration::from_nanos(1)).as_secs_f64()
    }
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
