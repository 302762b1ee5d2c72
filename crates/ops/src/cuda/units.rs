//! How a product of many rows is cut among CTAs that stay: tiles of which one takes all inputs, and the last ones chunk by chunk.

use super::kernels::Product;

/// See kernels/matmul_units.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// Of a tile: one of `ROWS`.
    pub rows: usize,
    /// Tiles, from the first on, of which a CTA takes all inputs.
    pub whole: usize,
    /// CTAs at most.
    pub ctas: usize,
}

/// Rows of a tile.
pub const ROWS: [usize; 2] = [128, 256];
/// Outputs of a tile.
const OUTPUTS: usize = 128;
pub const THREADS: usize = 512;
/// Of the chunks of a tile: four sums of 256 rows by 128 outputs, and a ticket for each quarter of them and warp.
pub const SUMS_BYTES: usize = 4 * 256 * OUTPUTS * 4;
pub const TICKETS_BYTES: usize = 4 * 8 * 4;

/// Dynamic shared memory of a CTA: stages of activations, totals and barriers.
pub fn shared_bytes(rows: usize) -> usize {
    let stages = if rows == 256 { 3 } else { 8 };
    rows * 128 * (stages + 4) + 256
}

impl Units {
    /// The fastest on a GPU of so many multiprocessors: all tiles whole, or only full rounds of them.
    pub fn of(size: Product, multiprocessors: usize) -> Units {
        let cuts = ROWS.into_iter().rev().flat_map(|rows| {
            let tiles = tiles(rows, size);
            [tiles, tiles / multiprocessors * multiprocessors].map(|whole| Units {
                rows,
                whole,
                ctas: multiprocessors,
            })
        });
        let first = Units { rows: ROWS[1], whole: usize::MAX, ctas: multiprocessors };
        cuts.min_by_key(|cut| cut.cost(size)).unwrap_or(first)
    }

    /// Tiles that are whole, and others. There is room for the chunks of no more than a round of these.
    pub fn tiles(self, size: Product) -> [usize; 2] {
        let all = tiles(self.rows, size);
        let whole = self.whole.clamp(all.saturating_sub(self.ctas), all);
        [whole, all - whole]
    }

    /// Blocks of rows.
    pub fn row_blocks(self, size: Product) -> usize {
        size.rows.div_ceil(self.rows)
    }

    /// What all rounds take, in hundredths of what a tile of 256 rows takes for 64 inputs: so much for each 64 inputs, and so much
    /// besides of a tile and of a chunk that others are added to.
    fn cost(self, size: Product) -> usize {
        let [each, of_tile, of_chunk] =
            if self.rows == 256 { [100, 300, 900] } else { [70, 200, 600] };
        let [whole, split] = self.tiles(size);
        let stages = size.inputs.div_ceil(64);
        whole.div_ceil(self.ctas) * (stages * each + of_tile)
            + (4 * split).div_ceil(self.ctas) * (stages.div_ceil(4) * each + of_chunk)
    }
}

fn tiles(rows: usize, size: Product) -> usize {
    size.rows.div_ceil(rows) * size.outputs.div_ceil(OUTPUTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Qwen3-4B's `qkv`, gates with ups, `down` and `o` on 132 multiprocessors.
    #[test]
    fn full_rounds_are_whole_and_what_is_left_is_split_where_that_is_faster() {
        let of = |rows| {
            [(6144, 2560), (19_456, 2560), (2560, 9728), (2560, 4096)].map(|(outputs, inputs)| {
                let size = Product { rows, outputs, inputs };
                let cut = Units::of(size, 132);
                (cut.rows, cut.tiles(size))
            })
        };
        assert_eq!(
            of(2048),
            [(256, [384, 0]), (256, [1188, 28]), (256, [132, 28]), (256, [132, 28])]
        );
        assert_eq!(of(256)[2], (256, [0, 20]));
    }
}
