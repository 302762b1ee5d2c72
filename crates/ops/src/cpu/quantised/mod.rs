//! Matrices in blocks of 32 weights, times activations rounded to bytes.

pub(super) mod int8;
mod kernel;
mod panels;
mod q4_k;
mod q8_0;
mod rounded;

use std::cell::Cell;
use std::ops::Range;

use super::dots::{Dots, dotted};
use super::lanes::LANES;
use super::{Buffer, Cpu};
use crate::Activation;
pub use crate::shared::rounding::BLOCK;
pub use int8::Int8;
pub use kernel::Format;
use kernel::{Product, multiply_kernel, rows_together};
use panels::{Panel, PanelProduct, multiply_panels_kernel, rows_of_panel};
pub use q4_k::Q4K;
pub use q8_0::Q8_0;

impl Cpu {
    /// Products with int8's tiles.
    pub(super) fn multiply_int8(&self, x: &Buffer, weights: &Int8, out: &mut Buffer) {
        if x.rows() <= FEW {
            self.multiply_blocks(x, weights, out);
        } else {
            self.multiply_panels(x, weights, None, out);
        }
    }

    /// Whether [`Cpu::multiply_panels`] can gate products before they are written, `width` of so many rows: by whole tiles, of
    /// which the registers hold two.
    pub(super) fn gates_panels(&self, rows: usize, width: usize) -> bool {
        rows > FEW && width.is_multiple_of(LANES) && self.passes(rows).tiles_of_panel == 2
    }

    /// Products of many rows with int8's tiles. With a `gate` the first half of the weights' outputs are gates of the other
    /// half, and `out` is half as wide.
    pub(super) fn multiply_panels(
        &self,
        x: &Buffer,
        weights: &Int8,
        gate: Option<Activation>,
        out: &mut Buffer,
    ) {
        let (tiles, work) = (out.width.div_ceil(LANES), x.data.len() * out.width);
        let mut panels = SPARE.take();
        self.round_to_panels(x, self.passes(x.rows()).rows_of_panel, &mut panels);
        let product = PanelProduct { product: Product::new(&panels, x, weights, out), gate };
        // Whole pairs of tiles; a gate's has its other half with it.
        let together = if gate.is_some() { 1 } else { 2 };
        self.split(tiles.div_ceil(together), work, |range| {
            let tiles = together * range.start..tiles.min(together * range.end);
            multiply_panels(self.isa, &product, tiles);
        });
        SPARE.set(panels);
    }

    /// Products with tiles of blocks.
    pub(super) fn multiply_blocks<F: Format>(&self, x: &Buffer, weights: &F, out: &mut Buffer) {
        let (tiles, work) = (out.width.div_ceil(LANES), x.data.len() * out.width);
        let mut activations = SPARE_ROWS.take();
        self.round(x, F::GROUP, self.passes(x.rows()).rows, &mut activations);
        let product = Product::new(&activations, x, weights, out);
        self.split(tiles, work, |tiles| multiply_tiles(self.isa, &product, tiles));
        SPARE_ROWS.set(activations);
    }
}

/// Rows that are multiplied with int8 as they are; more become panels.
const FEW: usize = 12;

thread_local! {
    /// What the last product's panels were in: fresh memory would be cleared page by page each time.
    static SPARE: Cell<Vec<Panel>> = const { Cell::new(Vec::new()) };
    /// Likewise its groups of rows.
    static SPARE_ROWS: Cell<Vec<u32>> = const { Cell::new(Vec::new()) };
}

/// What an instruction set's registers hold, so how activations are laid out for it.
#[derive(Clone, Copy, Default)]
struct Passes {
    /// Rows that share a pass over tiles.
    rows: usize,
    rows_of_panel: usize,
    tiles_of_panel: usize,
}

impl Cpu {
    /// Of products of so many rows.
    fn passes(&self, rows: usize) -> Passes {
        let mut passes = Passes::default();
        choose_passes(self.isa, rows, &mut passes);
        passes
    }
}

dotted! {
    fn choose_passes(rows: usize, passes: &mut Passes) = choose_passes_kernel
}

fn choose_passes_kernel<D: Dots>(rows: usize, passes: &mut Passes) {
    *passes = Passes {
        rows: rows_together::<D>(rows),
        rows_of_panel: rows_of_panel::<D>(),
        tiles_of_panel: D::TILES_OF_PANEL,
    };
}

dotted! {
    fn multiply_tiles<F: Format>(product: &Product<'_, u32, F>, tiles: Range<usize>) = multiply_kernel<F>
}

dotted! {
    fn multiply_panels(product: &PanelProduct<'_>, tiles: Range<usize>) = multiply_panels_kernel
}

#[cfg(test)]
mod tests {
    use super::super::Isa;
    use super::super::matmul_tests::{buffer, check_rows, noise, pack};
    use super::super::matrix::{Matrix, Tiles};
    use super::rounded::{Block, group_of};
    use super::*;
    use crate::shared::rounding::{q4_k, q8_0};
    use crate::{Backend, Precision, Quantisation, StoredType};
    use candle_core::quantized::{GgmlDType, QTensor};
    use candle_core::{Device, Tensor};

    const Q8: Precision = Precision {
        stored: StoredType::F32,
        quantisation: Quantisation::Q8_0,
        kv: StoredType::F32,
    };
    const INT8: Precision = Precision { quantisation: Quantisation::Int8, ..Q8 };
    const Q4: Precision = Precision { quantisation: Quantisation::Q4K, ..Q8 };

    /// Weight `k` of a block's column, before any scale.
    fn value(tiles: &Tiles, at: usize, lane: usize, k: usize) -> i32 {
        match tiles {
            Tiles::Q8_0(Q8_0 { values, .. }) | Tiles::Int8(Int8 { values, .. }) => {
                i32::from(values[at * 512 + k / 4 * 64 + lane * 4 + k % 4]) - 128
            }
            Tiles::Q4K(tiles) => {
                let byte = tiles.values[at * 256 + k % 16 / 4 * 64 + lane * 4 + k % 4];
                i32::from(byte >> (k / 16 * 4) & 15)
            }
            _ => unreachable!(),
        }
    }

    /// A block's scale and minimum for one column.
    fn scales(tiles: &Tiles, (tile, block): (usize, usize), at: usize, lane: usize) -> (f32, f32) {
        let unit = |bits: u16| half::f16::from_bits(bits).to_f32();
        match tiles {
            Tiles::Q8_0(tiles) => (unit(tiles.scales[at * 16 + lane]), 0.0),
            Tiles::Q4K(tiles) => {
                let units = tiles.units_of(tile, block);
                let part = |part: usize| {
                    unit(tiles.units[units + part + lane])
                        * f32::from(tiles.scales[at * 32 + part + lane])
                };
                (part(0), part(16))
            }
            _ => unreachable!(),
        }
    }

    /// One output by the definition: per block an exact dot of integers, its scale, one fused multiply-add; another
    /// one for the minimum where the format has it.
    fn expected(tiles: &Tiles, tile: usize, lane: usize, activations: &[Block<1>]) -> f32 {
        let (mut sum, blocks) = (0.0f32, activations.len());
        for (block, activations) in activations.iter().enumerate() {
            let at = tile * blocks + block;
            let (scale, minimum) = scales(tiles, (tile, block), at, lane);
            let dot: i32 = (0..BLOCK)
                .map(|k| {
                    let byte = activations.words[k / 4][0].to_le_bytes()[k % 4].cast_signed();
                    value(tiles, at, lane, k) * i32::from(byte)
                })
                .sum();
            sum = (dot as f32).mul_add(scale * activations.scales[0], sum);
            if matches!(tiles, Tiles::Q4K(_)) {
                sum = minimum.mul_add(-activations.totals[0], sum);
            }
        }
        sum
    }

    /// The same for int8: four blocks' dots are one integer, and the row's scale comes at the end.
    fn expected_of_int8(tiles: &Int8, tile: usize, lane: usize, activations: &[Block<1>]) -> f32 {
        let mut sum = 0.0f32;
        for (group, blocks) in activations.chunks(4).enumerate() {
            let dot: i32 = (0..blocks.len() * BLOCK)
                .map(|k| {
                    let byte = blocks[k / BLOCK].words[k % BLOCK / 4][0].to_le_bytes()[k % 4];
                    let block = tile * activations.len() + group * 4 + k / BLOCK;
                    let place = block * 512 + k % BLOCK / 4 * 64 + lane * 4 + k % 4;
                    (i32::from(tiles.values[place]) - 128) * i32::from(byte.cast_signed())
                })
                .sum();
            sum = (dot as f32).mul_add(blocks[0].scales[0], sum);
        }
        sum * tiles.scales[tile * LANES + lane]
    }

    #[test]
    fn rows_do_not_depend_on_the_batch_the_threads_or_the_instruction_set() {
        for precision in [Q8, INT8, Q4] {
            for (inputs, outputs) in [(1, 1), (32, 5), (70, 33), (256, 48), (320, 500)] {
                let matrix = pack(&noise(inputs * outputs, 3), inputs, precision);
                let x = buffer(27, inputs);
                let blocks = inputs.div_ceil(BLOCK);
                let group = if precision == INT8 { 4 } else { 1 };
                let mut rounded = Vec::new();
                Cpu::new(1).unwrap().round(&x, group, 1, &mut rounded);
                let expected: Vec<f32> = (0..x.rows() * outputs)
                    .map(|index| {
                        let (row, n) = (index / outputs, index % outputs);
                        // SAFETY: each row is a group of its own.
                        let row = unsafe { group_of::<1>(&rounded, row, blocks) };
                        if let Tiles::Int8(tiles) = &matrix.tiles {
                            return expected_of_int8(tiles, n / LANES, n % LANES, row);
                        }
                        expected(&matrix.tiles, n / LANES, n % LANES, row)
                    })
                    .collect();
                for isa in Isa::available() {
                    check_rows(isa, &x, &matrix, &expected);
                }
            }
        }
    }

    #[test]
    fn gated_as_they_come_products_are_what_they_are_gated_after() {
        for (inputs, width) in [(70, 16), (256, 48), (320, 5)] {
            let matrix = pack(&noise(2 * width * inputs, 5), inputs, INT8);
            let x = buffer(27, inputs);
            for isa in Isa::available() {
                let cpu = Cpu::with(2, isa).unwrap();
                let (mut products, mut expected, mut gated) = Default::default();
                for activation in [Activation::Silu, Activation::GeluTanh] {
                    cpu.run(|| {
                        cpu.matmul(&x, &matrix, &mut products);
                        let up = (&products, width..2 * width);
                        cpu.gate_columns(&products, activation, up, &mut expected);
                        cpu.matmul_gated(&x, &matrix, activation, &mut products, &mut gated);
                    });
                    assert_eq!(gated.width, width);
                    assert!(gated.data == expected.data, "{isa:?}, {inputs} × {width}");
                }
            }
        }
    }

    /// The weights of one output as they come back.
    fn read_back(matrix: &Matrix, output: usize) -> Vec<f32> {
        (0..matrix.inputs).map(|k| matrix.weight(output, k)).collect()
    }

    fn square_error(exact: &[f32], rounded: &[f32]) -> f64 {
        let pairs = exact.iter().zip(rounded);
        pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum()
    }

    /// What candle makes of the same weights in the same format.
    fn by_candle(values: &[f32], kind: GgmlDType) -> Vec<f32> {
        let tensor = Tensor::from_slice(values, values.len(), &Device::Cpu).unwrap();
        let rounded = QTensor::quantize(&tensor, kind).unwrap();
        let rounded = rounded.dequantize(&Device::Cpu).unwrap();
        rounded.to_vec1().unwrap()
    }

    #[test]
    fn q8_0_equals_candle_and_q4_k_is_no_worse() {
        let inputs = 1024;
        let mut values = noise(40 * inputs, 11);
        // Outliers, a block of one sign, one of one value, one of zeros.
        values[5] = 9.0;
        values[700] = -30.0;
        values[1024..1056].iter_mut().for_each(|x| *x = x.abs() + 1.0);
        values[1056..1088].fill(-0.7);
        values[1088..1120].fill(0.0);
        let (q8, q4) = (pack(&values, inputs, Q8), pack(&values, inputs, Q4));
        let (mut ours, mut theirs) = (0.0, 0.0);
        for (output, exact) in values.chunks_exact(inputs).enumerate() {
            assert_eq!(read_back(&q8, output), by_candle(exact, GgmlDType::Q8_0));
            ours += square_error(exact, &read_back(&q4, output));
            theirs += square_error(exact, &by_candle(exact, GgmlDType::Q4K));
        }
        assert!(ours <= theirs, "{ours} against candle's {theirs}");
        // Sixteen levels over the six deviations of a block of 32: a step of about 0.28, an error of step²/12.
        let mean = ours / values.len() as f64;
        assert!(mean < 0.28f64.powi(2) / 12.0 * 1.2, "{mean}");
    }

    #[test]
    fn int8_rounds_to_the_nearest_of_its_rows_levels() {
        let inputs = 300;
        let mut values = noise(20 * inputs, 11);
        values[7] = -30.0;
        values[inputs..2 * inputs].fill(0.0);
        let matrix = pack(&values, inputs, INT8);
        for (output, exact) in values.chunks_exact(inputs).enumerate() {
            let largest = exact.iter().fold(0.0f32, |most, value| most.max(value.abs()));
            for (exact, kept) in exact.iter().zip(read_back(&matrix, output)) {
                assert!((exact - kept).abs() <= largest / 127.0 * 0.5001, "{exact}: {kept}");
            }
        }
    }

    #[test]
    fn every_instruction_set_rounds_weights_alike() {
        let tile: Vec<[f32; LANES]> = noise(512 * LANES, 13).as_chunks().0.to_vec();
        let round = |isa: Isa| {
            let (mut bytes, mut byte_scales) = (vec![0; 512 * LANES], vec![0; LANES * 16]);
            q8_0::quantise(isa, &tile, &mut bytes, &mut byte_scales);
            let (mut halves, mut scales, mut units) =
                (vec![0; 256 * LANES], vec![0; 32 * 16], vec![0; 32 * 2]);
            q4_k::quantise(isa, &tile, &mut halves, &mut scales, &mut units);
            let (mut rows, mut row_scales) = (vec![0; 512 * LANES], [0.0; LANES]);
            int8::quantise(isa, &tile, &mut rows, &mut row_scales);
            (bytes, byte_scales, halves, scales, units, rows, row_scales)
        };
        let portable = round(Isa::Portable);
        for isa in Isa::available() {
            assert!(round(isa) == portable, "{isa:?}");
        }
    }
}
