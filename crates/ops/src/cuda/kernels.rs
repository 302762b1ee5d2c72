//! Every kernel by its place in the forward pass, looked up once, with the geometry it is launched in.
//!
//! The figures repeat what the heads of the `.cu` files say.

use super::Buffer;
use super::driver::{Function, Stream};
use super::launch::Launch;
use super::matmul::Matmul;
use super::matrix::Format;
use super::pack::INPUTS;
use super::units::{self, Units};
use super::wave::{Room, WAVES, Wave};
use crate::{Activation, OpsError};

/// The most rows that each of the small matmuls takes.
const SMALL_ROWS: [usize; 3] = [8, 16, 32];
/// Rows that one block of a medium matmul takes: up to here the weights are read once.
const MEDIUM_ROWS: usize = 64;
/// With fewer rows than these small CTAs are faster than a wave.
const FEWEST_WAVE_ROWS: usize = 9;
/// Padded head dimensions that attention is compiled for.
const DIMS: [usize; 5] = [32, 64, 128, 256, 512];
/// Those of attention by warpgroups.
pub const WARPGROUP_DIMS: [usize; 3] = [64, 128, 256];
/// Queries of a block of attention at most: rows of one sequence, times the heads that share keys.
pub const BLOCK_QUERIES: usize = 64;

/// What becomes of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epilogue {
    /// f32 as it is.
    Plain,
    /// The activated gate times up, for products.
    Gated(Activation),
}

impl Epilogue {
    /// Where its kernels stand.
    fn column(self) -> usize {
        usize::from(self != Epilogue::Plain)
    }

    /// As kernels are told it (`Gate` of kernels/common.cuh); of no meaning where nothing is activated.
    pub fn gate(self) -> usize {
        match self {
            Epilogue::Plain | Epilogue::Gated(Activation::Silu) => 0,
            Epilogue::Gated(Activation::GeluTanh) => u32::MAX as usize,
        }
    }
}

/// What a matmul is compiled for.
pub type MatmulForm = (Format, Epilogue);

/// A kernel that leaves what products read as bf16, and the same for products in f32.
#[derive(Clone, Copy, Debug)]
pub struct Kinds {
    bf16: Function,
    f32: Function,
}

impl Kinds {
    /// The one that writes to `out`.
    pub fn to(self, out: &Buffer) -> Function {
        if out.is_wide { self.f32 } else { self.bf16 }
    }
}

#[derive(Debug)]
pub struct Kernels {
    pub embed: [Function; 4],
    pub rms_norm: Function,
    pub add_norm: Function,
    pub rotate_and_store: Kinds,
    /// Of heads of more than 256 numbers.
    pub rotate_widest: Function,
    pub narrow: Function,
    pub gate_columns: Function,
    pub keep_rows: Function,
    pub cap: Function,
    pub layer_norm: Kinds,
    pub gelu: Kinds,
    pub add_places: Function,
    pub add_bias: Function,
    pub delta_activate: Function,
    pub delta_convolve: Function,
    pub delta_rule: Function,
    pub delta_norm: Kinds,
    pub gate_heads: Kinds,
    pub copy_states: Function,
    pub attend_f32: Function,
    matmul_f32: Function,
    /// By dimension of a head, like the next; see [`for_dim`].
    pub attend_chunks: [Function; 5],
    attend_rows: [Function; 5],
    attend_warpgroup: [Function; 3],
    /// By format, epilogue, rows.
    small: [[[Function; 3]; 2]; 3],
    /// By format, epilogue.
    medium: [[Function; 2]; 3],
    large: [[Function; 2]; 3],
    /// By format, epilogue, rows; like the next, machine code for compute capability 9.0 alone does anything.
    wave: [[[Function; 3]; 2]; 3],
    /// By format, epilogue, rows of a tile.
    units: [[[Function; 2]; 2]; 3],
    pub draw: Function,
    /// Clusters of four CTAs that run at once where each fills a multiprocessor; `None` where there are none.
    pub clusters_of_four: Option<usize>,
    /// Rows that are drawn at once by clusters of 8, 4 and 2 CTAs.
    drawn_at_once: [usize; 3],
    pub score: Function,
}

#[derive(Clone, Copy, Debug)]
pub struct Product {
    pub rows: usize,
    pub outputs: usize,
    pub inputs: usize,
}

impl Product {
    /// Blocks of so many rows, and of 128 outputs.
    fn blocks(self, most_rows: usize) -> [usize; 2] {
        [self.rows.div_ceil(most_rows), self.outputs.div_ceil(128)]
    }
}

impl Kernels {
    /// # Errors
    /// When the build lacks one of them for this GPU.
    pub fn load(stream: &Stream) -> Result<Kernels, OpsError> {
        let plain = |name: &str| stream.function(name, 0);
        let kinds = |bf16: &str, f32: &str| {
            Ok::<_, OpsError>(Kinds { bf16: plain(bf16)?, f32: plain(f32)? })
        };
        let blocked = |size: &str| {
            by_form(|form| stream.function(&format!("matmul_{size}_{form}"), BLOCK_SHARED_BYTES))
        };
        // Where they do nothing there may not be so much memory.
        let warpgroups_only = |bytes: usize| if stream.has_warpgroups() { bytes } else { 0 };
        let draw = stream.function("draw", DRAW_SHARED_BYTES)?;
        let drawn_at_once = DRAW_CLUSTERS.map(|cluster| {
            stream.clusters_at_once(Launch {
                cluster,
                shared_bytes: DRAW_SHARED_BYTES,
                ..Launch::new(draw, [cluster, 1, 1], stream.drawing_threads())
            })
        });
        let mut kernels = Kernels {
            embed: try_map(["embed_bf16", "embed_q8_0", "embed_q4_k", "embed_f32"], plain)?,
            rms_norm: plain("rms_norm")?,
            add_norm: plain("add_norm")?,
            rotate_and_store: kinds("rotate_and_store", "rotate_and_store_f32")?,
            rotate_widest: plain("rotate_and_store_512")?,
            narrow: plain("narrow")?,
            gate_columns: plain("gate_columns")?,
            keep_rows: plain("keep_rows")?,
            cap: plain("cap")?,
            layer_norm: kinds("layer_norm_bf16", "layer_norm_f32")?,
            gelu: kinds("gelu_bf16", "gelu_f32")?,
            add_places: plain("add_places")?,
            add_bias: plain("add_bias")?,
            delta_activate: plain("delta_activate")?,
            delta_convolve: plain("delta_convolve")?,
            delta_rule: plain("delta_rule")?,
            delta_norm: kinds("delta_norm_bf16", "delta_norm_f32")?,
            gate_heads: kinds("gate_heads_bf16", "gate_heads_f32")?,
            copy_states: plain("copy_states")?,
            attend_f32: plain("attend_f32")?,
            matmul_f32: plain("matmul_f32")?,
            attend_chunks: try_map(DIMS, |dim| plain(&format!("attend_chunks_{dim}")))?,
            attend_rows: try_map(DIMS, |dim| plain(&format!("attend_rows_{dim}")))?,
            attend_warpgroup: try_map(WARPGROUP_DIMS, |dim| {
                let bytes = warpgroups_only(attention_shared_bytes(dim));
                stream.function(&format!("attend_warpgroup_{dim}"), bytes)
            })?,
            small: by_form(|form| {
                try_map(SMALL_ROWS, |rows| {
                    let name = format!("matmul_small_{form}_{rows}");
                    stream.function(&name, small_shared_bytes(rows))
                })
            })?,
            medium: blocked("medium")?,
            large: blocked("large")?,
            wave: by_form(|form| {
                try_map(WAVES, |wave| {
                    let bytes = warpgroups_only(wave.shared_bytes(Format::Bf16, wave.groups));
                    stream.function(&format!("matmul_wave_{form}_{}", wave.rows), bytes)
                })
            })?,
            units: by_form(|form| {
                try_map(units::ROWS, |rows| {
                    let bytes = warpgroups_only(units::shared_bytes(rows));
                    stream.function(&format!("matmul_units_{form}_{rows}"), bytes)
                })
            })?,
            draw,
            clusters_of_four: None,
            drawn_at_once,
            score: stream.function("score", SCORE_SHARED_BYTES)?,
        };
        if stream.has_warpgroups() {
            let wave = WAVES[1];
            let form = (Format::Bf16, Epilogue::Plain);
            let fullest = kernels.by_wave(form, 16, wave, [4, wave.groups]);
            if let Matmul::Wave { launch, .. } = fullest {
                kernels.clusters_of_four = Some(stream.clusters_at_once(launch));
            }
        }
        Ok(kernels)
    }

    /// The launch over rows of logits: so many CTAs share a row as leave all rows' clusters room at once.
    pub fn by_clusters(
        &self,
        (function, shared_bytes): (Function, usize),
        rows: usize,
        stream: &Stream,
    ) -> Launch {
        let mut known = DRAW_CLUSTERS.into_iter().zip(self.drawn_at_once);
        let cluster = known.find(|(_, most)| rows <= *most).map_or(1, |(ctas, _)| ctas);
        let launch = Launch::new(function, [rows * cluster, 1, 1], stream.drawing_threads());
        Launch { cluster, shared_bytes, early: false, ..launch }
    }

    pub fn matmul_f32(&self, size: Product) -> Launch {
        let grid = [size.rows.div_ceil(64), size.outputs.div_ceil(64), 1];
        Launch::new(self.matmul_f32, grid, 256)
    }

    /// The attention of so many heads' keys, of `dim` numbers, padded, by so many blocks; `None` where it was not compiled for them.
    pub fn attend_blocks(&self, dim: usize, [x, y]: [usize; 2]) -> Option<Launch> {
        // Of the widest heads a CTA has room for fewer queries.
        let queries = if dim > 256 { 16 } else { 32 };
        let function = for_dim(&self.attend_rows, dim)?;
        Some(Launch::new(function, [x, y, BLOCK_QUERIES / queries], 128))
    }

    /// The same by warpgroups.
    pub fn attend_by_warpgroups(&self, dim: usize, [x, y]: [usize; 2]) -> Option<Launch> {
        let index = WARPGROUP_DIMS.iter().position(|known| *known == dim)?;
        let grid = [x, y, BLOCK_QUERIES / warpgroup_queries(dim)];
        let launch = Launch::new(self.attend_warpgroup[index], grid, 128);
        Some(Launch { shared_bytes: attention_shared_bytes(dim), ..launch })
    }

    /// The matmul of `rows` rows with weights of `outputs` outputs that are not kept as f32, on such a GPU.
    pub fn matmul(&self, format: Format, epilogue: Epilogue, size: Product, room: Room) -> Matmul {
        let Product { rows, outputs, .. } = size;
        let multiprocessors = room.multiprocessors;
        let column = epilogue.column();
        if let Some(matmul) = self.in_a_wave((format, epilogue), size, room) {
            return matmul;
        }
        let small = &self.small[format as usize][column];
        if let Some(index) = SMALL_ROWS.iter().position(|most| rows <= *most) {
            let most = SMALL_ROWS[index];
            let outputs_each = if most == 32 { 32 } else { 16 };
            let grid = [outputs.div_ceil(outputs_each), 1, 1];
            return Matmul::Small(Launch {
                shared_bytes: small_shared_bytes(most),
                ..Launch::new(small[index], grid, 128)
            });
        }
        if room.units && rows > MEDIUM_ROWS {
            return self.by_units((format, epilogue), size, Units::of(size, multiprocessors));
        }
        let launch = |function, [x, y]: [usize; 2], z| Launch {
            shared_bytes: BLOCK_SHARED_BYTES,
            ..Launch::new(function, [x, y, z], 256)
        };
        let large = size.blocks(128);
        if rows > MEDIUM_ROWS && 4 * large[0] * large[1] >= 3 * multiprocessors {
            return Matmul::Large(launch(self.large[format as usize][column], large, 1));
        }
        let medium = size.blocks(MEDIUM_ROWS);
        let is_split = medium[0] * medium[1] < split_blocks(multiprocessors);
        let chunks = if is_split { 4 } else { 1 };
        Matmul::Medium(launch(self.medium[format as usize][column], medium, chunks))
    }

    /// The matmul of few rows whose CTAs run all at once, where they have room.
    fn in_a_wave(&self, form: MatmulForm, size: Product, room: Room) -> Option<Matmul> {
        let fits = |wave: &Wave| (FEWEST_WAVE_ROWS..=wave.rows).contains(&size.rows);
        let wave = WAVES.into_iter().find(fits)?;
        let cut = room.wave(form.0, size.outputs, wave)?;
        Some(self.by_wave(form, size.outputs, wave, cut))
    }

    /// The matmul of one wave whose CTAs are cut as `Room::wave` says.
    pub fn by_wave(
        &self,
        (format, epilogue): MatmulForm,
        outputs: usize,
        wave: Wave,
        [chunks, groups]: [usize; 2],
    ) -> Matmul {
        let functions = &self.wave[format as usize][epilogue.column()];
        let index = WAVES.iter().position(|known| known.rows == wave.rows).unwrap_or(0);
        let grid = [chunks, outputs.div_ceil(16 * groups), 1];
        Matmul::Wave {
            launch: Launch {
                cluster: chunks,
                shared_bytes: wave.shared_bytes(format, groups),
                ..Launch::new(functions[index], grid, 32 * groups)
            },
            rows: wave.rows,
        }
    }

    pub fn by_units(&self, (format, epilogue): MatmulForm, size: Product, cut: Units) -> Matmul {
        let [whole, split] = cut.tiles(size);
        let k_tiles = size.inputs.div_ceil(INPUTS);
        let chunks = k_tiles.div_ceil(k_tiles.div_ceil(4));
        let pieces = whole + split * chunks;
        let functions = &self.units[format as usize][epilogue.column()];
        let function = functions[usize::from(cut.rows == units::ROWS[1])];
        Matmul::Units {
            launch: Launch {
                shared_bytes: units::shared_bytes(cut.rows),
                ..Launch::new(function, [pieces.min(cut.ctas), 1, 1], units::THREADS)
            },
            rows: cut.rows,
            pieces: [whole, cut.row_blocks(size), chunks, pieces],
        }
    }
}

/// Blocks of a medium matmul below which its chunks are split.
pub fn split_blocks(multiprocessors: usize) -> usize {
    2 * multiprocessors
}

/// Of a block of a medium matmul: four chunks' sums of 64 rows by 128 outputs.
pub const SUMS_BYTES: usize = 131_072;

/// See kernels/matmul_large.cuh.
const BLOCK_SHARED_BYTES: usize = 98_304;

/// Of a CTA.
fn warpgroup_queries(dim: usize) -> usize {
    if dim > 128 { 32 } else { 64 }
}

/// Queries, a chunk's weights, and what is known of each query; see kernels/attention_warpgroup.cuh.
fn attention_shared_bytes(dim: usize) -> usize {
    warpgroup_queries(dim) * (2 * dim + 600)
}

/// CTAs of a cluster that draws a row, where so many have room.
const DRAW_CLUSTERS: [usize; 3] = [8, 4, 2];
/// See kernels/sampler.cu.
pub const DRAW_SHARED_BYTES: usize = 51_200;
/// See kernels/score.cu.
pub const SCORE_SHARED_BYTES: usize = 18_432;

/// Rings of weights on their way; see kernels/matmul_small.cuh.
fn small_shared_bytes(rows: usize) -> usize {
    if rows == 32 { 98_304 } else { 65_536 }
}

/// Of an attention's kernels the one for heads of `dim` numbers, padded; `None` where it was not compiled for them.
pub fn for_dim(functions: &[Function], dim: usize) -> Option<Function> {
    functions.get(DIMS.iter().position(|known| *known == dim)?).copied()
}

/// By format and epilogue, as `bf16_gated`.
fn by_form<U: std::fmt::Debug>(
    load: impl Fn(&str) -> Result<U, OpsError>,
) -> Result<[[U; 2]; 3], OpsError> {
    try_map(["bf16", "q8_0", "q4_k"], |format| {
        try_map(["f32", "gated"], |epilogue| load(&format!("{format}_{epilogue}")))
    })
}

fn try_map<T: Copy, U: std::fmt::Debug, const N: usize>(
    items: [T; N],
    mut map: impl FnMut(T) -> Result<U, OpsError>,
) -> Result<[U; N], OpsError> {
    let mapped: Vec<U> = items.into_iter().map(&mut map).collect::<Result<_, _>>()?;
    mapped.try_into().map_err(|_| OpsError::memory("kernels", "a list of another length"))
}
