//! Many rows times int8's tiles: panels of eight rows by two tiles, in parts of the inputs that stay in the caches. Bit for bit
//! what [`super::kernel`] gives row by row.

use std::ops::Range;

use super::super::activation::gate_lanes;
use super::super::dots::{Dots, STEP_BYTES};
use super::super::lanes::{LANES, Lanes};
use super::kernel::{BYTES, Format, Product};
use super::rounded::Block;
use super::{BLOCK, Int8};
use crate::Activation;

/// Rows that a panel has room for.
pub const ROWS: usize = 8;

/// Blocks of inputs that are multiplied at a time: two tiles' weights of these, 16 KiB, stay in the first-level cache while
/// panels pass by.
pub const PART: usize = 16;

/// Panels whose activations stay in the second-level cache while tiles pass by.
const PANELS_AT_ONCE: usize = 64;

/// Blocks of each row; rows that are missing hold anything.
pub type Panel = Block<ROWS>;

/// Panels `[blocks / 16][panels][16]` times tiles.
pub struct PanelProduct<'a> {
    pub product: Product<'a, Panel, Int8>,
    /// Whether the first half of the tiles are gates of the other half: outputs are `activation(gate) · up`.
    pub gate: Option<Activation>,
}

/// Tiles that panels pass over together: how far apart, and how far on the next ones are.
#[derive(Clone, Copy)]
struct Walk {
    apart: usize,
    next: usize,
}

/// The columns of `tiles`, for all rows.
#[inline(always)]
pub fn multiply_panels_kernel<D: Dots>(product: &PanelProduct<'_>, tiles: Range<usize>) {
    let panels = product.product.rows.div_ceil(rows_of_panel::<D>());
    // All passes have about as many: the last one would read all weights for a few rows else.
    let each = panels.div_ceil(panels.div_ceil(PANELS_AT_ONCE));
    // Sums between two parts, `[panels][8][tiles][16]`.
    let mut sums = vec![0.0; each * ROWS * 2 * LANES];
    for first in (0..panels).step_by(each) {
        let panels = first..panels.min(first + each);
        let mut tile = tiles.start;
        while tile < tiles.end {
            let walk = match product.gate {
                Some(_) => Walk { apart: product.product.outputs / LANES, next: 1 },
                None if D::TILES_OF_PANEL == 2 && tiles.end - tile >= 2 => {
                    Walk { apart: 1, next: 2 }
                }
                None => Walk { apart: 0, next: 1 },
            };
            if walk.apart == 0 {
                product.multiply_tiles::<D, 1>(tile, walk, panels.clone(), &mut sums);
            } else {
                product.multiply_tiles::<D, 2>(tile, walk, panels.clone(), &mut sums);
            }
            tile += walk.next;
        }
    }
}

/// Rows that a panel has: whole passes of those that the registers hold.
pub const fn rows_of_panel<D: Dots>() -> usize {
    ROWS / D::ROWS_OF_PANEL * D::ROWS_OF_PANEL
}

impl PanelProduct<'_> {
    #[inline(always)]
    fn multiply_tiles<D: Dots, const TILES: usize>(
        &self,
        tile: usize,
        walk: Walk,
        panels: Range<usize>,
        all_sums: &mut [f32],
    ) {
        /// Cache lines of a part of a tile.
        const LINES: usize = PART * BYTES / 64;
        let Product { activations, weights, rows: all_rows, blocks, .. } = self.product;
        let (parts, all) = (blocks.div_ceil(PART), all_rows.div_ceil(rows_of_panel::<D>()));
        let stride = walk.apart * blocks * BYTES;
        // What comes next is asked for while these panels pass by: so many lines each.
        let ahead = (TILES * LINES).div_ceil(panels.len());
        for part in 0..parts {
            let start = part * PART;
            let count = PART.min(blocks - start);
            let values = &weights.values[(tile * blocks + start) * BYTES..];
            let is_last = part + 1 == parts;
            let next =
                if is_last { (tile + walk.next) * blocks } else { tile * blocks + start + PART };
            let next = weights.values.as_ptr().wrapping_add(next * BYTES);
            for panel in panels.clone() {
                let first = (panel - panels.start) * ahead;
                for line in first..(first + ahead).min(TILES * LINES) {
                    let from = line / LINES * stride + line % LINES * 64;
                    D::Floats::prefetch(next.wrapping_add(from));
                }
                let row = panel * rows_of_panel::<D>();
                let rows = row..all_rows.min(row + rows_of_panel::<D>());
                if is_last {
                    self.prefetch_outputs::<D::Floats, TILES>(rows.clone(), tile);
                }
                let sums = &mut all_sums[(panel - panels.start) * ROWS * TILES * LANES..];
                let sums = &mut sums[..ROWS * TILES * LANES];
                if part == 0 {
                    sums.fill(0.0);
                }
                let panel = &activations[(part * all + panel) * PART..][..count];
                // SAFETY: of each tile there are as many blocks, the tiles `stride` apart.
                unsafe { multiply::<D, TILES>(panel, rows.len(), values.as_ptr(), stride, sums) };
                if is_last {
                    self.store_rows::<D::Floats, TILES>(sums, rows, tile);
                }
            }
        }
    }

    /// Asks for the lines that [`PanelProduct::store_rows`] will write.
    #[inline(always)]
    fn prefetch_outputs<L: Lanes, const TILES: usize>(&self, rows: Range<usize>, tile: usize) {
        let tiles = if self.gate.is_some() { 1 } else { TILES };
        for row in rows {
            for tile in tile..tile + tiles {
                let to = self.product.to.at(row * self.product.outputs + tile * LANES);
                L::prefetch(to.cast());
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
            let sums = sums.as_chunks::<LANES>().0;
            match self.gate {
                Some(activation) => {
                    let up = tile + self.product.outputs / LANES;
                    let gate = self.product.weights.finish(tile, L::from_array(&sums[0]));
                    let up = self.product.weights.finish(up, L::from_array(&sums[TILES - 1]));
                    self.product.put(gate_lanes(activation, gate, up), row, tile);
                }
                None => {
                    for (n, sums) in sums.iter().enumerate() {
                        self.product.store(L::from_array(sums), row, tile + n);
                    }
                }
            }
        }
    }
}

/// Adds a panel's products with `TILES` tiles, whose values lie `stride` bytes apart, to `sums`, `[8][TILES][16]`: `rows`
/// of them and perhaps more, as many at a time as the registers hold.
///
/// # Safety
/// `values` holds `TILES` tiles of as many blocks as the panel.
#[inline(always)]
unsafe fn multiply<D: Dots, const TILES: usize>(
    panel: &[Panel],
    rows: usize,
    values: *const u8,
    stride: usize,
    sums: &mut [f32],
) {
    let mut row = 0;
    while row < rows {
        // SAFETY: as the caller says.
        row += unsafe {
            match D::ROWS_OF_PANEL {
                8 => multiply_rows::<D, TILES, 8>(panel, row, (values, stride), sums),
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
