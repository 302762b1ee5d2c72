//! Many rows times int8's tiles: panels of six rows by two tiles, in parts of the inputs that stay in the caches. Bit for bit
//! what [`super::kernel`] gives row by row.

use std::ops::Range;

use super::super::dots::{Dots, STEP_BYTES};
use super::super::lanes::{LANES, Lanes};
use super::kernel::{BYTES, Format, Product};
use super::rounded::Block;
use super::{BLOCK, Int8};

/// Rows of a panel.
pub const ROWS: usize = 6;

/// Blocks of inputs that are multiplied at a time: two tiles' weights of these, 16 KiB, stay in the first-level cache while
/// panels pass by.
pub const PART: usize = 16;

/// Panels whose activations stay in the second-level cache while tiles pass by.
const PANELS_AT_ONCE: usize = 86;

/// A [`Block`] of each row, side by side as the kernel reads them; rows that are missing are zeros.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Panel {
    words: [[i32; ROWS]; BLOCK / 4],
    scales: [f32; ROWS],
    offsets: [i32; ROWS],
}

impl Panel {
    pub fn set(&mut self, row: usize, block: &Block) {
        for (words, word) in self.words.iter_mut().zip(block.words) {
            words[row] = word;
        }
        self.scales[row] = block.scale;
        self.offsets[row] = block.offset;
    }
}

/// Panels `[blocks / 16][rows / 6][16]` as the activations of a product.
pub type PanelProduct<'a> = Product<'a, Panel, Int8>;

/// The columns of `tiles`, for all rows.
#[inline(always)]
pub fn multiply_panels_kernel<D: Dots>(product: &PanelProduct<'_>, tiles: Range<usize>) {
    let panels = product.rows.div_ceil(ROWS);
    // All passes have about as many: the last one would read all weights for a few rows else.
    let each = panels.div_ceil(panels.div_ceil(PANELS_AT_ONCE));
    // Sums between two parts, `[panels][6][tiles][16]`.
    let mut sums = vec![0.0; each * ROWS * 2 * LANES];
    for first in (0..panels).step_by(each) {
        let panels = first..panels.min(first + each);
        let mut tile = tiles.start;
        while tile < tiles.end {
            if D::TILES_OF_PANEL == 2 && tiles.end - tile >= 2 {
                product.multiply_tiles::<D, 2>(tile, panels.clone(), &mut sums);
                tile += 2;
            } else {
                product.multiply_tiles::<D, 1>(tile, panels.clone(), &mut sums);
                tile += 1;
            }
        }
    }
}

impl PanelProduct<'_> {
    #[inline(always)]
    fn multiply_tiles<D: Dots, const TILES: usize>(
        &self,
        tile: usize,
        panels: Range<usize>,
        all_sums: &mut [f32],
    ) {
        /// Cache lines of a part of a tile.
        const LINES: usize = PART * BYTES / 64;
        let (parts, all) = (self.blocks.div_ceil(PART), self.rows.div_ceil(ROWS));
        // What comes next is asked for while these panels pass by: so many lines each.
        let ahead = (TILES * LINES).div_ceil(panels.len());
        for part in 0..parts {
            let start = part * PART;
            let count = PART.min(self.blocks - start);
            let values = &self.weights.values[(tile * self.blocks + start) * BYTES..];
            let is_last = part + 1 == parts;
            let next = if is_last {
                (tile + TILES) * self.blocks
            } else {
                tile * self.blocks + start + PART
            };
            let next = self.weights.values.as_ptr().wrapping_add(next * BYTES);
            for panel in panels.clone() {
                let first = (panel - panels.start) * ahead;
                for line in first..(first + ahead).min(TILES * LINES) {
                    let tile = line / LINES * self.blocks * BYTES;
                    D::Floats::prefetch(next.wrapping_add(tile + line % LINES * 64));
                }
                let row = panel * ROWS;
                let rows = ROWS.min(self.rows - row);
                if is_last {
                    for m in 0..rows {
                        for n in 0..TILES {
                            let to = self.to.at((row + m) * self.outputs + (tile + n) * LANES);
                            D::Floats::prefetch(to.cast());
                        }
                    }
                }
                let sums = &mut all_sums[(panel - panels.start) * ROWS * TILES * LANES..];
                let sums = &mut sums[..ROWS * TILES * LANES];
                if part == 0 {
                    sums.fill(0.0);
                }
                let blocks = &self.activations[(part * all + panel) * PART..][..count];
                // SAFETY: of each tile there are as many blocks, the tiles `self.blocks` apart.
                unsafe {
                    multiply::<D, TILES>(blocks, values.as_ptr(), self.blocks * BYTES, sums);
                }
                if is_last {
                    self.store_rows::<D::Floats, TILES>(sums, row..row + rows, tile);
                }
            }
        }
    }

    #[inline(always)]
    fn store_rows<L: Lanes, const TILES: usize>(
        &self,
        sums: &[f32],
        rows: Range<usize>,
        tile: usize,
    ) {
        for (row, sums) in rows.zip(sums.chunks_exact(TILES * LANES)) {
            for (n, sums) in sums.as_chunks::<LANES>().0.iter().enumerate() {
                self.store(L::from_array(sums), row, tile + n);
            }
        }
    }
}

/// Adds a panel's products with `TILES` tiles, whose values lie `stride` bytes apart, to `sums`, `[6][TILES][16]`: as many rows
/// at a time as the registers hold.
///
/// # Safety
/// `values` holds `TILES` tiles of as many blocks as the panel.
#[inline(always)]
unsafe fn multiply<D: Dots, const TILES: usize>(
    panel: &[Panel],
    values: *const u8,
    stride: usize,
    sums: &mut [f32],
) {
    let mut row = 0;
    while row < ROWS {
        // SAFETY: as the caller says.
        row += unsafe {
            match D::ROWS_OF_PANEL {
                6 => multiply_rows::<D, TILES, 6>(panel, row, (values, stride), sums),
                _ => multiply_rows::<D, TILES, 2>(panel, row, (values, stride), sums),
            }
        };
    }
}

/// Rows `row..row + COUNT` of the panel. Gives `COUNT`.
///
/// # Safety
/// As [`multiply`].
#[inline(always)]
unsafe fn multiply_rows<D: Dots, const TILES: usize, const COUNT: usize>(
    panel: &[Panel],
    row: usize,
    (values, stride): (*const u8, usize),
    kept: &mut [f32],
) -> usize {
    let kept = &mut kept[row * TILES * LANES..][..COUNT * TILES * LANES];
    let mut sums = [[<D::Floats as Lanes>::splat(0.0); TILES]; COUNT];
    for (m, sums) in sums.iter_mut().enumerate() {
        for (n, sum) in sums.iter_mut().enumerate() {
            // SAFETY: `kept` has lanes for each.
            *sum = unsafe { Lanes::load(kept.as_ptr().add((m * TILES + n) * LANES)) };
        }
    }
    for (group, panels) in panel.chunks(Int8::GROUP).enumerate() {
        let first = &panels[0];
        let mut dots = [[D::zero(); TILES]; COUNT];
        for (m, dots) in dots.iter_mut().enumerate() {
            *dots = [D::before_bytes(first.offsets[row + m]); TILES];
        }
        for (block, panel) in panels.iter().enumerate() {
            for (step, words) in panel.words.iter().enumerate() {
                let steps = (group * Int8::GROUP + block) * (BLOCK / 4) + step;
                // SAFETY: the first tile has as many blocks as the panel.
                let from = unsafe { values.add(steps * STEP_BYTES) };
                // SAFETY: as above.
                let mut bytes = [unsafe { D::load_bytes(from) }; TILES];
                for (n, bytes) in bytes.iter_mut().enumerate().skip(1) {
                    // SAFETY: as above; the other tile lies a stride on.
                    *bytes = unsafe { D::load_bytes(from.add(n * stride)) };
                }
                for (m, dots) in dots.iter_mut().enumerate() {
                    for (dots, bytes) in dots.iter_mut().zip(bytes) {
                        *dots = dots.add(bytes, words[row + m]);
                    }
                }
            }
        }
        for (m, (sums, dots)) in sums.iter_mut().zip(dots).enumerate() {
            let scale = Lanes::splat(first.scales[row + m]);
            for (sum, dots) in sums.iter_mut().zip(dots) {
                *sum = dots.to_floats().fma(scale, *sum);
            }
        }
    }
    for (m, sums) in sums.into_iter().enumerate() {
        for (n, sum) in sums.into_iter().enumerate() {
            // SAFETY: as at the beginning.
            unsafe { sum.store(kept.as_mut_ptr().add((m * TILES + n) * LANES)) };
        }
    }
    COUNT
}
