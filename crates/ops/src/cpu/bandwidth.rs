//! What the machine reads of its memory at most, with every thread at work.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::Cpu;
use super::lanes::{FAR_BYTES, LANES, Lanes, vectorised};

/// How often the rate is taken: the best counts, for a limit is what could be.
const GOES: usize = 7;

impl Cpu {
    /// Bytes read a second, in order, from a buffer of so many, which should be many times what the caches hold.
    pub fn bytes_per_second(&self, buffer_bytes: usize) -> f64 {
        self.take_turn(|| {
            let mut buffer = vec![0.0f32; buffer_bytes.div_ceil(size_of::<f32>())];
            let share = buffer.len().div_ceil(self.threads()).max(1);
            // Untouched pages would all be one and the same page of zeros.
            self.pool.scope(|scope| {
                for part in buffer.chunks_mut(share) {
                    scope.spawn(|_| part.fill(1.0));
                }
            });
            let parts: Vec<&[f32]> = buffer.chunks(share).collect();
            let read = |_| {
                let started = Instant::now();
                self.pool.broadcast(|thread| {
                    let mut sums = [0.0; LANES];
                    let part = parts.get(thread.index()).copied().unwrap_or_default();
                    read_sum(self.isa, part, &mut sums);
                    black_box(sums);
                });
                started.elapsed()
            };
            let shortest = (0..GOES).map(read).min().unwrap_or_default();
            let shortest = shortest.max(Duration::from_nanos(1));
            size_of_val(buffer.as_slice()) as f64 / shortest.as_secs_f64()
        })
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
