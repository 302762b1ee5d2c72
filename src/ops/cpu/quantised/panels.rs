//! Many rows times tiles of quantised weights: panels of six rows by two tiles, in parts of the inputs that stay in the
//! caches. Bit for bit what [`super::kernel`] gives row by row.

use std::ops::Range;

use super::super::Disjoint;
use super::super::dots::{Dots, STEP_BYTES};
use super::super::lanes::{LANES, Lanes};
use super::BLOCK;
use super::kernel::Format;
use super::rounded::Block;

/// Bytes of a block of sixteen columns.
const VALUES: usize = BLOCK * LANES;

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
    /// Negated.
    totals: [f32; ROWS],
}

impl Panel {
    pub fn set(&mut self, row: usize, block: &Block) {
        for (words, word) in self.words.iter_mut().zip(block.words) {
            words[row] = word;
        }
        self.scales[row] = block.scale;
        self.offsets[row] = block.offset;
        self.totals[row] = -block.total;
    }
}

/// One multiplication: `[blocks / 16][rows / 6][16]` panels times tiles of `blocks` blocks, to `[rows, outputs]`.
pub struct Product<'a, F> {
    pub panels: &'a [Panel],
    pub weights: &'a F,
    pub rows: usize,
    pub blocks: usize,
    pub outputs: usize,
    pub to: Disjoint<f32>,
}

/// Where the kernel finds a part's weights of one or two tiles.
#[derive(Clone, Copy)]
struct Weights {
    /// `[blocks][8 steps][16 columns][4 values]`, each with 128 added; the next tile's `stride` bytes on.
    bytes: *const u8,
    stride: usize,
    /// `[blocks][scales, minima][16 columns]`; the next tile's [`SCALES`] on.
    scales: *const f32,
}

/// Room for a tile's scales and minima.
const SCALES: usize = PART * 2 * LANES;

/// What a thread works in.
struct Room {
    bytes: Vec<u8>,
    scales: Vec<f32>,
    /// Sums between two parts, `[panels][6][tiles][16]`.
    sums: Vec<f32>,
}

/// The columns of `tiles`, for all rows.
#[inline(always)]
pub fn multiply_kernel<D: Dots, F: Format>(product: &Product<'_, F>, tiles: Range<usize>) {
    let panels = product.rows.div_ceil(ROWS);
    // All passes have about as many: the last one would read all weights for a few rows else.
    let each = panels.div_ceil(panels.div_ceil(PANELS_AT_ONCE));
    let mut room = Room {
        bytes: vec![0; F::unpacked_bytes(2 * PART * VALUES)],
        scales: vec![0.0; 2 * SCALES],
        sums: vec![0.0; each * ROWS * 2 * LANES],
    };
    for first in (0..panels).step_by(each) {
        let panels = first..panels.min(first + each);
        let mut tile = tiles.start;
        while tile < tiles.end {
            if D::TILES_OF_PANEL == 2 && tiles.end - tile >= 2 {
                product.multiply_tiles::<D, 2>(tile, panels.clone(), &mut room);
                tile += 2;
            } else {
                product.multiply_tiles::<D, 1>(tile, panels.clone(), &mut room);
                tile += 1;
            }
        }
    }
}

impl<F: Format> Product<'_, F> {
    #[inline(always)]
    fn multiply_tiles<D: Dots, const TILES: usize>(
        &self,
        tile: usize,
        panels: Range<usize>,
        room: &mut Room,
    ) {
        let stride = self.blocks.next_multiple_of(F::TOGETHER);
        let (parts, all) = (self.blocks.div_ceil(PART), self.rows.div_ceil(ROWS));
        // What comes next is asked for while these panels pass by: so many pairs of steps each.
        let ahead = (TILES * PART * BLOCK / 8).div_ceil(panels.len());
        for part in 0..parts {
            let start = part * PART;
            let blocks = start..self.blocks.min(start + PART);
            let at = tile * stride + start;
            let weights = self.unpack::<D, TILES>(at, stride, blocks.len(), room);
            let is_last = part + 1 == parts;
            let next = if is_last { (tile + TILES) * stride } else { at + PART };
            for n in 0..TILES {
                for block in 0..PART {
                    self.weights.prefetch_scales::<D>(next + n * stride + block);
                }
            }
            for panel in panels.clone() {
                let first = (panel - panels.start) * ahead;
                for pair in first..(first + ahead).min(TILES * PART * BLOCK / 8) {
                    let (n, pair) = (pair / (PART * BLOCK / 8), pair % (PART * BLOCK / 8));
                    self.weights.prefetch::<D>(next + n * stride + pair / 4, pair % 4);
                }
                let row = panel * ROWS;
                let rows = ROWS.min(self.rows - row);
                if is_last {
                    for m in 0..rows {
                        for n in 0..TILES {
                            let to = self.to.at((row + m) * self.outputs + (tile + n) * LANES);
                            D::prefetch(to.cast());
                        }
                    }
                }
                let sums = &mut room.sums[(panel - panels.start) * ROWS * TILES * LANES..];
                let sums = &mut sums[..ROWS * TILES * LANES];
                if part == 0 {
                    sums.fill(0.0);
                }
                let panel = (part * all + panel) * PART;
                let panel = &self.panels[panel..][..blocks.len()];
                // SAFETY: `weights` are those of the panel's blocks.
                unsafe { multiply::<D, F, TILES>(panel, weights, sums) };
                if is_last {
                    self.store::<D::Floats, TILES>(sums, row..row + rows, tile);
                }
            }
        }
    }

    /// The weights of `count` blocks from `at` on, and of as many `stride` blocks further for a second tile.
    #[inline(always)]
    fn unpack<D: Dots, const TILES: usize>(
        &self,
        at: usize,
        stride: usize,
        count: usize,
        room: &mut Room,
    ) -> Weights {
        for n in 0..TILES {
            for block in 0..count {
                let at = at + n * stride + block;
                let scales = &mut room.scales[n * SCALES + block * 2 * LANES..][..2 * LANES];
                // SAFETY: the tile has these blocks, and the slice two groups of lanes.
                unsafe { self.weights.store_scales::<D::Floats>(at, scales.as_mut_ptr()) };
                if F::unpacked_bytes(1) != 0 {
                    let to = &mut room.bytes[(n * PART + block) * VALUES..][..VALUES];
                    // SAFETY: as above; the slice has room for a block.
                    unsafe { self.weights.store_bytes(at, to.as_mut_ptr()) };
                }
            }
        }
        let scales = room.scales.as_ptr();
        match self.weights.bytes(at) {
            Some(bytes) => Weights { bytes, stride: stride * VALUES, scales },
            None => Weights { bytes: room.bytes.as_ptr(), stride: PART * VALUES, scales },
        }
    }

    #[inline(always)]
    fn store<L: Lanes, const TILES: usize>(&self, sums: &[f32], rows: Range<usize>, tile: usize) {
        for (row, sums) in rows.zip(sums.chunks_exact(TILES * LANES)) {
            for (n, sums) in sums.as_chunks::<LANES>().0.iter().enumerate() {
                let column = (tile + n) * LANES;
                let columns = LANES.min(self.outputs - column);
                let sums = self.weights.finish(tile + n, L::from_array(sums));
                // SAFETY: inside the output's row; each tile's columns are written by one thread alone.
                let to = unsafe { self.to.slice(row * self.outputs + column, columns) };
                if columns == LANES {
                    // SAFETY: `to` holds sixteen values.
                    unsafe { sums.store(to.as_mut_ptr()) };
                } else {
                    to.copy_from_slice(&sums.to_array()[..columns]);
                }
            }
        }
    }
}

/// Adds a panel's products with `TILES` tiles to `sums`, `[6][TILES][16]`: as many rows at a time as the registers hold.
///
/// # Safety
/// `weights` holds `TILES` tiles of as many blocks as the panel.
#[inline(always)]
unsafe fn multiply<D: Dots, F: Format, const TILES: usize>(
    panel: &[Panel],
    weights: Weights,
    sums: &mut [f32],
) {
    let mut row = 0;
    while row < ROWS {
        // SAFETY: as the caller says.
        row += unsafe {
            match D::ROWS_OF_PANEL {
                6 => multiply_rows::<D, F, TILES, 6>(panel, row, weights, sums),
                3 => multiply_rows::<D, F, TILES, 3>(panel, row, weights, sums),
                _ => multiply_rows::<D, F, TILES, 2>(panel, row, weights, sums),
            }
        };
    }
}

/// Rows `row..row + COUNT` of the panel. Gives `COUNT`.
///
/// # Safety
/// As [`multiply`].
#[inline(always)]
unsafe fn multiply_rows<D: Dots, F: Format, const TILES: usize, const COUNT: usize>(
    panel: &[Panel],
    row: usize,
    weights: Weights,
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
    for (group, panels) in panel.chunks(F::GROUP).enumerate() {
        let first = &panels[0];
        let mut dots = [[D::zero(); TILES]; COUNT];
        for (m, dots) in dots.iter_mut().enumerate() {
            *dots = [D::before_bytes(first.offsets[row + m]); TILES];
        }
        for (block, panel) in panels.iter().enumerate() {
            for (step, words) in panel.words.iter().enumerate() {
                let steps = (group * F::GROUP + block) * (BLOCK / 4) + step;
                // SAFETY: the first tile has as many blocks as the panel.
                let from = unsafe { weights.bytes.add(steps * STEP_BYTES) };
                // SAFETY: as above.
                let mut bytes = [unsafe { D::load_bytes(from) }; TILES];
                for (n, bytes) in bytes.iter_mut().enumerate().skip(1) {
                    // SAFETY: as above; the other tile lies a stride on.
                    *bytes = unsafe { D::load_bytes(from.add(n * weights.stride)) };
                }
                for (m, dots) in dots.iter_mut().enumerate() {
                    for (dots, bytes) in dots.iter_mut().zip(bytes) {
                        *dots = dots.add(bytes, words[row + m]);
                    }
                }
            }
        }
        for n in 0..TILES {
            // SAFETY: as above.
            let scales = unsafe { weights.scales.add(n * SCALES + group * 2 * LANES) };
            let mut of_weights = [<D::Floats as Lanes>::splat(0.0); 2];
            for (index, lanes) in of_weights.iter_mut().enumerate().take(F::SCALES) {
                // SAFETY: as above: so many groups of lanes.
                *lanes = unsafe { Lanes::load(scales.add(index * LANES)) };
            }
            for (m, sums) in sums.iter_mut().enumerate() {
                let mut scale = Lanes::splat(first.scales[row + m]);
                if F::SCALES > 0 {
                    scale = of_weights[0].mul(scale);
                }
                let mut sum = dots[m][n].to_floats().fma(scale, sums[n]);
                if F::SCALES > 1 {
                    sum = of_weights[1].fma(Lanes::splat(first.totals[row + m]), sum);
                }
                sums[n] = sum;
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
