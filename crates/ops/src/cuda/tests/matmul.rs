//! Products of every format, epilogue and kernel: against sums in f64, and bit for bit in other company.

use std::collections::BTreeSet;

use super::*;
use crate::Activation;
use crate::cuda::Matrix;
use crate::cuda::kernels::{Epilogue, Product};
use crate::cuda::left_out::LeftOut;
use crate::cuda::matmul::Matmul;
use crate::cuda::units::{self, Units};
use crate::cuda::wave::{Room, WAVES};

/// Outputs and inputs. A gated layer has half as many features, not always whole groups of eight; inputs are from one
/// tile to more than a ring holds, and chunks begin inside of its stages too.
pub const SHAPES: [(usize, usize); 5] = [(24, 32), (48, 96), (272, 160), (24, 2144), (96, 2560)];
/// Around what each kernel takes at most.
pub const ROWS: [usize; 15] = [1, 2, 7, 8, 9, 16, 17, 31, 33, 64, 65, 70, 129, 200, 260];
/// Enough of them where there are many inputs, whose sums are what is tested then.
const FEW_ROWS: [usize; 7] = [1, 9, 17, 64, 70, 129, 260];
const MANY_INPUTS: usize = 1000;
const MOST_ROWS: usize = 260;
/// As many multiprocessors as an H200 has; so few that sizes are called large and no kernel is split; as many as give a wave's
/// CTAs several groups, in clusters and alone, with units for more rows and without; and units alone.
pub const ROOMS: [Room; 5] = [
    Room { multiprocessors: 132, units: false, clusters: None, attention: false },
    Room { multiprocessors: 1, units: false, clusters: None, attention: false },
    Room { multiprocessors: 16, units: true, clusters: Some(4), attention: false },
    Room { multiprocessors: 2, units: false, clusters: Some(0), attention: false },
    Room { multiprocessors: 2, units: true, clusters: None, attention: false },
];

pub const EPILOGUES: [Epilogue; 3] =
    [Epilogue::Plain, Epilogue::Gated(Activation::Silu), Epilogue::Gated(Activation::GeluTanh)];

/// A layer's weights packed for each epilogue, and inputs for it.
pub struct Layer {
    pub plain: Matrix,
    pub gated: Matrix,
    /// `[outputs][inputs]`, as they were rounded.
    weights: Vec<f32>,
    /// `[rows][inputs]`.
    x: Vec<f32>,
}

impl Layer {
    pub fn new(gpu: &Cuda, (outputs, inputs): (usize, usize), kept: Quantisation) -> Layer {
        let size = 1.0 / (inputs as f32).sqrt();
        let weights = noise(outputs * inputs, 1);
        let weights: Vec<f32> = weights.iter().map(|weight| weight * size).collect();
        let [gate, up] =
            [0, 1].map(|half| bytes(&weights[half * weights.len() / 2..][..weights.len() / 2]));
        let parts = [&gate, &up].map(|part| RawTensor::from_f32_bytes(part));
        let x = noise(MOST_ROWS * inputs, 2);
        Layer {
            plain: gpu.pack(&parts, inputs, kept_as(kept)).unwrap(),
            gated: gpu.pack_gated(&parts, inputs, kept_as(kept)).unwrap(),
            weights: rounded_weights(&weights, inputs, kept),
            x: x.into_iter().map(round).collect(),
        }
    }

    pub fn matrix(&self, epilogue: Epilogue) -> &Matrix {
        match epilogue {
            Epilogue::Plain => &self.plain,
            Epilogue::Gated(_) => &self.gated,
        }
    }

    /// The last `rows` rows of the inputs, and room for what becomes of them.
    pub fn buffers(
        &self,
        gpu: &Cuda,
        epilogue: Epilogue,
        rows: usize,
    ) -> (Buffer, Buffer, Numbers) {
        let inputs = self.plain.inputs;
        let x = &self.x[(MOST_ROWS - rows) * inputs..];
        let (width, kind) = match epilogue {
            Epilogue::Plain => (self.plain.outputs, Numbers::Wide),
            Epilogue::Gated(_) => (self.plain.outputs / 2, Numbers::Narrow),
        };
        let out = gpu.buffer(rows, width, kind).unwrap();
        (gpu.hold(x, inputs, Numbers::Narrow), out, kind)
    }

    /// All rows, as a decoder multiplies them.
    fn multiply(&self, gpu: &Cuda, epilogue: Epilogue) -> Vec<f32> {
        let (x, mut out, kind) = self.buffers(gpu, epilogue, MOST_ROWS);
        match epilogue {
            Epilogue::Plain => gpu.matmul(&x, &self.plain, &mut out),
            Epilogue::Gated(activation) => {
                let room = gpu.buffer(MOST_ROWS, self.plain.outputs, Numbers::Passing);
                gpu.matmul_gated(&x, &self.gated, activation, &mut room.unwrap(), &mut out);
            }
        }
        gpu.numbers(&out, MOST_ROWS, kind)
    }

    /// The last `rows` rows, by the kernel for such a GPU.
    pub fn multiply_last(
        &self,
        gpu: &Cuda,
        epilogue: Epilogue,
        (rows, room): (usize, Room),
    ) -> (Matmul, Vec<f32>) {
        let format = self.matrix(epilogue).format;
        let matmul = gpu.kernels.matmul(format, epilogue, self.size(epilogue, rows), room);
        (matmul, self.multiply_by(gpu, epilogue, rows, matmul))
    }

    /// The last `rows` rows, by units cut so.
    pub fn multiply_in_units(
        &self,
        gpu: &Cuda,
        epilogue: Epilogue,
        rows: usize,
        cut: Units,
    ) -> Vec<f32> {
        let form = (self.matrix(epilogue).format, epilogue);
        let matmul = gpu.kernels.by_units(form, self.size(epilogue, rows), cut);
        self.multiply_by(gpu, epilogue, rows, matmul)
    }

    /// The last `rows` rows by each wave that takes them: in clusters and alone, a few groups to a CTA or many.
    pub fn multiply_in_waves(
        &self,
        gpu: &Cuda,
        epilogue: Epilogue,
        rows: usize,
    ) -> Vec<(String, Vec<f32>)> {
        let matrix = self.matrix(epilogue);
        let waves = WAVES.into_iter().filter(|wave| rows <= wave.rows);
        let each = waves.flat_map(|wave| {
            let groups = [4, 8, 12].into_iter().filter(move |groups| *groups <= wave.groups);
            let cuts = groups.flat_map(|groups| [[1, groups], [4, groups]]);
            cuts.map(move |cut| (wave, cut))
        });
        let each = each.map(|(wave, cut)| {
            let form = (matrix.format, epilogue);
            let matmul = gpu.kernels.by_wave(form, matrix.outputs, wave, cut);
            (format!("{wave:?}, {cut:?}"), self.multiply_by(gpu, epilogue, rows, matmul))
        });
        each.collect()
    }

    fn size(&self, epilogue: Epilogue, rows: usize) -> Product {
        let matrix = self.matrix(epilogue);
        Product { rows, outputs: matrix.outputs, inputs: matrix.inputs }
    }

    fn multiply_by(&self, gpu: &Cuda, epilogue: Epilogue, rows: usize, matmul: Matmul) -> Vec<f32> {
        let (x, mut out, kind) = self.buffers(gpu, epilogue, rows);
        out.set_rows(x.rows);
        gpu.launch_matmul((matmul, epilogue), &x, self.matrix(epilogue), &out);
        gpu.numbers(&out, rows, kind)
    }

    /// `[rows][outputs]` products in f64, each with the most that a kernel's may differ by.
    ///
    /// A kernel's sum of K products is rounded to f32 after each sixteen, and where four chunks meet: by at most 2⁻²³ of
    /// what it has then, which the sum of the products' magnitudes bounds.
    fn exact(&self) -> Vec<(f64, f64)> {
        let inputs = self.plain.inputs;
        let roundings = (inputs / 16 + 4) as f64;
        let slack = roundings * f64::from(f32::EPSILON);
        let rows = self.x.chunks_exact(inputs);
        let products = rows.flat_map(|x| {
            let outputs = self.weights.chunks_exact(inputs);
            outputs.map(move |weights| {
                let pairs = x.iter().zip(weights);
                pairs.fold((0.0, 0.0), |(sum, off), (x, weight)| {
                    let product = f64::from(*x) * f64::from(*weight);
                    (sum + product, off + slack * product.abs())
                })
            })
        });
        products.collect()
    }
}

/// A CTA with many tiles, a few with whole tiles and chunks, and as many as there are chunks.
pub fn units(gpu: &Cuda) -> Vec<Units> {
    if !gpu.stream.has_warpgroups() {
        return vec![];
    }
    let each = |rows| {
        [(usize::MAX, 1), (1, 2), (0, 3), (0, 132)].map(|(whole, ctas)| Units { rows, whole, ctas })
    };
    units::ROWS.into_iter().flat_map(each).collect()
}

/// What an epilogue makes of a row's products, and the most that a kernel's may differ by.
fn finish(epilogue: Epilogue, products: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let Epilogue::Gated(activation) = epilogue else {
        return products.to_vec();
    };
    let (gates, ups) = products.split_at(products.len() / 2);
    let gated = gates.iter().zip(ups).map(|((gate, gate_off), (up, up_off))| {
        let inner = match activation {
            Activation::Silu => *gate,
            Activation::GeluTanh => {
                let root = (2.0 / std::f64::consts::PI).sqrt();
                2.0 * root * (gate + 0.044715 * gate.powi(3))
            }
        };
        let activated = gate / (1.0 + (-inner).exp());
        let value = activated * up;
        // Neither activation is steeper than 1.13. A few operations in f32 follow, and the rounding to bf16.
        let from_sums = 1.13 * gate_off * up.abs() + activated.abs() * up_off;
        let from_gate = 1e-6 * (1.0 + value.abs());
        let off = from_sums + from_gate + f64::from(HALF_STEP) * value.abs();
        (value, off)
    });
    gated.collect()
}

fn assert_near(found: &[f32], expected: &[(f64, f64)], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (index, (found, (value, off))) in found.iter().zip(expected).enumerate() {
        assert!((f64::from(*found) - value).abs() <= *off, "{what}, {index}: {found}, not {value}");
    }
}

fn check(kept: Quantisation) {
    let gpu = gpu();
    for shape in SHAPES {
        let layer = Layer::new(&gpu, shape, kept);
        let exact = layer.exact();
        for epilogue in EPILOGUES {
            let rows = exact.chunks_exact(shape.0);
            let expected: Vec<_> = rows.flat_map(|products| finish(epilogue, products)).collect();
            let what = format!("{kept} {shape:?} {epilogue:?}");
            assert_near(&layer.multiply(&gpu, epilogue), &expected, &what);
        }
    }
    let met = check_company(&gpu, kept, &SHAPES);
    let mut every = BTreeSet::from(["large", "medium", "medium, split", "small"]);
    if gpu.stream.has_warpgroups() {
        every.extend(["units of 128 rows", "units of 256 rows"]);
    }
    if gpu.stream.most_clustered() >= 4 {
        every.extend(["wave", "wave, clustered"]);
    }
    assert_eq!(met, every);
}

fn has(gpu: &Cuda, room: Room) -> bool {
    let can = [gpu.stream.has_warpgroups(), gpu.stream.most_clustered() >= 4];
    (can[0] || !room.units) && (can[1] || room.clusters.is_none())
}

/// That every kernel gives a row the same bits, whatever the rows beside it. Gives the kinds that were met.
fn check_company(
    gpu: &Cuda,
    kept: Quantisation,
    shapes: &[(usize, usize)],
) -> BTreeSet<&'static str> {
    let mut met = BTreeSet::new();
    for &shape in shapes {
        let layer = Layer::new(gpu, shape, kept);
        for epilogue in EPILOGUES {
            let all = layer.multiply(gpu, epilogue);
            let what = format!("{kept} {shape:?} {epilogue:?}");
            let width = all.len() / MOST_ROWS;
            let few = shape.1 > MANY_INPUTS || is_slow(kept);
            for rows in ROWS.into_iter().filter(|rows| !few || FEW_ROWS.contains(rows)) {
                for room in ROOMS.into_iter().filter(|room| has(gpu, *room)) {
                    let (matmul, found) = layer.multiply_last(gpu, epilogue, (rows, room));
                    met.insert(match matmul {
                        Matmul::Small(_) => "small",
                        Matmul::Medium(launch) if launch.grid[2] > 1 => "medium, split",
                        Matmul::Medium(_) => "medium",
                        Matmul::Wave { launch, .. } if launch.cluster > 1 => "wave, clustered",
                        Matmul::Wave { .. } => "wave",
                        Matmul::Large(_) => "large",
                        Matmul::Units { rows: 256, .. } => "units of 256 rows",
                        Matmul::Units { .. } => "units of 128 rows",
                    });
                    assert!(
                        bits(&found) == bits(&all[(MOST_ROWS - rows) * width..]),
                        "{what}, {rows} rows on {room:?}"
                    );
                }
                for cut in units(gpu).into_iter().filter(|_| rows > 64) {
                    let found = layer.multiply_in_units(gpu, epilogue, rows, cut);
                    assert!(
                        bits(&found) == bits(&all[(MOST_ROWS - rows) * width..]),
                        "{what}, {rows} rows, {cut:?}"
                    );
                }
            }
        }
    }
    met
}

/// A million sums of sixteen products, of numbers from 2⁻²⁰ to 2²⁰; and attention.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn wgmma_has_the_bits_of_mma_sync() {
    let gpu = gpu();
    let is_hopper = gpu.stream.has_warpgroups();
    let Room { units, clusters, attention, .. } = gpu.room;
    assert_eq!([units, clusters.is_some(), attention], [is_hopper; 3], "asked when it was opened");
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn what_is_left_out_is_not_taken() {
    let gpu = gpu();
    let is_hopper = gpu.stream.has_warpgroups();
    for (units, waves, attention) in
        [(true, false, false), (false, true, false), (false, false, true)]
    {
        let room = gpu.agreed_room(LeftOut { units, waves, attention }).unwrap();
        let taken = [room.units, room.clusters.is_some(), room.attention];
        assert_eq!(taken, [units, waves, attention].map(|left_out| is_hopper && !left_out));
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn bf16_products_are_those_of_f64_in_any_company() {
    check(Quantisation::None);
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn q8_0_products_are_those_of_f64_in_any_company() {
    check(Quantisation::Q8_0);
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn q4_k_products_are_those_of_f64_in_any_company() {
    check(Quantisation::Q4K);
}
