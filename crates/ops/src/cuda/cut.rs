//! How a product of many rows is cut among warpgroups' CTAs: by what the rounds of them take that follow one another.

use super::kernels::Product;
use super::matmul::BLOCK_OUTPUTS;
use super::wave::Room;

/// See kernels/matmul_warpgroup.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Of a CTA: one of `ROWS`.
    pub rows: usize,
    /// Blocks of outputs, from the first on, of which a CTA takes all inputs. Of the others the four CTAs of a cluster take
    /// a chunk each.
    pub whole: usize,
}

/// Rows of a CTA of each of the warpgroups' matmuls.
pub const ROWS: [usize; 2] = [128, 256];

/// What one launch more takes, in the unit of `cost`.
const LAUNCH: usize = 300;

impl Cut {
    /// The fastest on such a GPU: all whole, whole rounds and a rest that is split, or all split.
    pub fn of(size: Product, room: Room) -> Cut {
        let cuts = ROWS.into_iter().rev().flat_map(|rows| {
            let [x, y] = blocks(rows, size);
            let rounds = x * y / room.multiprocessors;
            let some = [y, rounds * room.multiprocessors / x, 0];
            let some = if room.clusters > Some(0) { &some[..] } else { &some[..1] };
            some.iter().map(move |whole| Cut { rows, whole: *whole }).collect::<Vec<_>>()
        });
        let first = Cut { rows: ROWS[1], whole: usize::MAX };
        cuts.min_by_key(|cut| cut.cost(size, room)).unwrap_or(first)
    }

    /// Blocks of rows, of outputs that are whole, and of those that are split.
    pub fn blocks(self, size: Product) -> [usize; 3] {
        let [x, y] = blocks(self.rows, size);
        let whole = self.whole.min(y);
        [x, whole, y - whole]
    }

    /// What all rounds take, in hundredths of what a CTA of 256 rows takes for 64 inputs (0.66 µs on an H100): so much for each
    /// 64 inputs, and so much besides, as measured of Qwen3-4B's products of 2,048 rows (benches/LOG.md).
    fn cost(self, size: Product, room: Room) -> usize {
        let [whole, split] = match self.rows {
            256 => [[100, 2010], [25, 2250]],
            _ => [[79, 770], [20, 1130]],
        };
        let [x, whole_blocks, split_blocks] = self.blocks(size);
        let take = |[each, besides]: [usize; 2], blocks: usize, at_once: usize| {
            (x * blocks).div_ceil(at_once.max(1)) * (size.inputs.div_ceil(64) * each + besides)
        };
        let launch = if whole_blocks > 0 && split_blocks > 0 { LAUNCH } else { 0 };
        take(whole, whole_blocks, room.multiprocessors)
            + take(split, split_blocks, room.clusters.unwrap_or(0))
            + launch
    }
}

/// Of so many rows and of 128 outputs.
fn blocks(rows: usize, size: Product) -> [usize; 2] {
    [size.rows.div_ceil(rows), size.outputs.div_ceil(BLOCK_OUTPUTS)]
}
