//! The CUDA backend: the same operations as kernels (`kernels/*.cu`) on a stream of a GPU.
//!
//! Activations that only products read are bf16, keys and values too, unless products are in f32; the rest is f32. A row's bits depend on its
//! own inputs alone, as on the CPU: every sum's tree follows from the shape of the weights or the position of a key.
//! What decides them is the compute capability.

mod arguments;
mod attention;
mod backend;
mod bandwidth;
mod delta_rule;
#[cfg_attr(not(feature = "cuda"), path = "emulated.rs")]
mod driver;
mod elements;
#[cfg(any(feature = "cuda", test))]
mod failures;
mod ferry;
mod kernels;
mod launch;
mod left_out;
mod matmul;
mod matrix;
mod pack;
mod region;
mod rotary;
mod sampler;
mod scores;
mod stage;
#[cfg(test)]
mod tests;
mod text;
mod units;
mod warpgroups;
mod wave;

use std::sync::{Arc, Mutex};

use driver::{Pinned, Stream};
use kernels::Kernels;
pub use matrix::Matrix;
pub use stage::Stage;

use crate::OpsError;
use ferry::Ferry;
use region::Region;
use wave::Room;

/// A GPU, through one stream. Clones share the stream.
#[derive(Clone, Debug)]
pub struct Cuda {
    stream: Stream,
    kernels: Arc<Kernels>,
    pool: Arc<rayon::ThreadPool>,
    /// Where the chunks of a matmul that is split among CTAs meet, and zeros to count them by.
    sums: Arc<Region>,
    tickets: Arc<Region>,
    /// What weights are packed into; made with the first.
    ferry: Arc<Mutex<Option<Ferry>>>,
    /// What is read of the GPU lands here; pinning is slow, so it is kept, as large as was asked for so far.
    back: Arc<Mutex<Option<Pinned>>>,
    /// What products may take of it.
    room: Room,
    /// Whether products are in f32: weights, what they multiply, keys and values are kept so.
    in_f32: bool,
}

impl Cuda {
    /// The GPU of that number, with a first stream.
    ///
    /// # Errors
    /// When there is no driver, no such GPU, or none of this build's kernels runs on it.
    pub fn open(ordinal: usize) -> Result<Cuda, OpsError> {
        let left_out = left_out::left_out()?;
        let stream = Stream::open(ordinal)?;
        let kernels = Arc::new(Kernels::load(&stream)?);
        let mut gpu = Cuda::on(stream, kernels)?;
        gpu.room = gpu.agreed_room(left_out)?;
        Ok(gpu)
    }

    /// With threads for masks, and where chunks meet.
    fn on(stream: Stream, kernels: Arc<Kernels>) -> Result<Cuda, OpsError> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("masks-{index}"))
            .build();
        let blocks = kernels::split_blocks(stream.multiprocessors());
        let tiles = if stream.has_warpgroups() { stream.multiprocessors() } else { 0 };
        let sums_bytes = (blocks * kernels::SUMS_BYTES).max(tiles * units::SUMS_BYTES);
        let tickets_bytes = (blocks * 4).max(tiles * units::TICKETS_BYTES);
        let sums = |bytes| stream.allocate(bytes, "partial sums").map(Arc::new);
        let multiprocessors = stream.multiprocessors();
        Ok(Cuda {
            kernels,
            sums: sums(sums_bytes)?,
            tickets: sums(tickets_bytes)?,
            pool: pool.map(Arc::new).map_err(|error| OpsError::memory("threads", error))?,
            ferry: Arc::default(),
            back: Arc::default(),
            room: Room::without_wgmma(multiprocessors),
            in_f32: false,
            stream,
        })
    }

    fn region_of(&self, numbers: &[f32], what: &'static str) -> Result<Region, OpsError> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let region = self.stream.allocate(bytes.len(), what)?;
        self.stream.write(&region, 0, &bytes);
        Ok(region)
    }

    /// What the bits of results depend on: the compute capability.
    pub fn kind(&self) -> String {
        self.stream.kind()
    }

    /// The same GPU through a stream of its own, and with threads of its own, so that engines do not wait for one
    /// another: a thread that waits for masks may take up whatever else its pool has to do, another engine's step.
    pub fn for_engine(&self) -> Result<Cuda, OpsError> {
        let own = Cuda::on(self.stream.sibling()?, self.kernels.clone())?;
        Ok(Cuda { room: self.room, in_f32: self.in_f32, ..own })
    }

    /// A line for each GPU that this process sees.
    pub fn describe_all() -> Vec<String> {
        let describe = |ordinal| match Cuda::open(ordinal) {
            Ok(gpu) => format!("{}, {}", gpu.stream.describe(), gpu.describe_products()),
            Err(error) => error.to_string(),
        };
        (0..Stream::count()).map(describe).collect()
    }

    /// Threads that grammars are asked on while the GPU works.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Bytes of the GPU's memory that are free.
    pub fn available_memory(&self) -> usize {
        self.stream.free_bytes()
    }
}

/// Activations, `[rows][stride]`; numbers beyond `width` are zeros and stay so.
#[derive(Debug)]
pub struct Buffer {
    region: Region,
    /// Of the last operation that wrote it.
    rows: usize,
    width: usize,
    /// Numbers from row to row: `width` for f32, for bf16 the next multiple of 32 of the widest.
    stride: usize,
    /// Whether the numbers are f32, not bf16.
    is_wide: bool,
}

impl Buffer {
    /// For an operation that is about to write so many.
    fn set_rows(&mut self, rows: usize) {
        self.set_shape(rows, self.width);
    }

    /// For one that writes rows of so many numbers; beyond its room lies what is not its own.
    fn set_shape(&mut self, rows: usize, width: usize) {
        if self.is_wide {
            self.stride = width;
        }
        let room = self.room();
        assert!(rows <= room && width <= self.stride, "{rows} rows for a buffer of {room}");
        (self.rows, self.width) = (rows, width);
    }

    /// Rows that it holds at most.
    fn room(&self) -> usize {
        let number = if self.is_wide { 4 } else { 2 };
        self.region.bytes() / (number * self.stride.max(1))
    }

    /// Where the rows lie.
    fn address(&self) -> u64 {
        self.region.address()
    }
}

/// A norm's weight, a bias, or a table of embeddings, f32.
#[derive(Debug)]
pub struct Vector(Region);

/// f32 `[positions][turned]` each, of so many pairs of components, and what queries are multiplied by, `[positions]`.
#[derive(Debug)]
pub struct Rope {
    cosines: Region,
    sines: Region,
    growth: Option<Region>,
    turned: usize,
}

/// Keys `[layer][page][kv_head][dim / 32][32 positions][32]` and values `[layer][page][kv_head][dim][32 positions]`,
/// bf16, or f32 where products are in f32; `dim` is head_dim up to a multiple of 32.
#[derive(Debug)]
pub struct Pages {
    keys: Region,
    values: Region,
    kv_heads: usize,
    head_dim: usize,
    /// Bytes of a layer's keys, and of its values.
    layer_bytes: usize,
}

impl Pages {
    fn dim(&self) -> usize {
        self.head_dim.next_multiple_of(32)
    }

    /// Addresses of a layer's keys and values.
    fn layer(&self, layer: usize) -> [u64; 2] {
        let offset = (layer * self.layer_bytes) as u64;
        [self.keys.address() + offset, self.values.address() + offset]
    }
}
