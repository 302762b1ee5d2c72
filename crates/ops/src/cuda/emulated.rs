//! In place of the GPU's driver, in builds that test its kernels without one: CUDA emulated on the CPU, on this thread.
//!
//! The same calls, done when they return; a region's address is one of the host's. One launch at a time: the
//! CTAs are fibers of the thread that launches. A graph keeps launches with the arguments they had, as the driver's do.

#[path = "emulated/graph.rs"]
mod graph;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{CStr, CString};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::arguments::{Arguments, RowsMap};
use super::failures::Failures;
use super::launch::Launch;
use super::ledger::{self, Ledger};
use super::region::Region;
use super::replaced::Replaced;
use super::shadow::emulator::{self, Sums};
use super::shadow::itself::Itself;
use super::shadow::{Shadow, Subject};
use super::without::Without;
use crate::{EMULATED, OpsError};
pub use graph::Graph;
use graph::Recorded;

/// The GPU that is emulated. Clones are the same stream.
#[derive(Clone, Debug)]
pub struct Stream {
    multiprocessors: usize,
    /// What a CTA may have of dynamic shared memory.
    shared_bytes: usize,
    has_warpgroups: bool,
    has_clusters: bool,
    without_graphs: bool,
    /// How products are summed: as Hopper does where a GPU's results are computed again.
    sums: Sums,
    /// Threads and CTAs take turns at random, from this seed; in order where it is 0.
    #[cfg(feature = "symbolic")]
    turns: u64,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: Failures,
    /// Launches that are kept for a graph, while they are.
    recorded: Mutex<Option<Vec<Recorded>>>,
    /// Whether a launch that is recorded is refused, as a driver may.
    refuses: AtomicBool,
    replays: AtomicUsize,
    /// Where launches are listed instead of run; then memory is an address alone.
    ledger: Option<Arc<Ledger>>,
    /// What launches are compared on.
    shadow: Option<(Arc<Shadow>, Arc<dyn Subject>)>,
}

impl Stream {
    /// As an H200 has.
    fn hopper(without: Without) -> Stream {
        Stream {
            multiprocessors: 132,
            shared_bytes: 232_448,
            has_warpgroups: true,
            has_clusters: !without.clusters,
            without_graphs: without.graphs,
            sums: Sums::Usual,
            #[cfg(feature = "symbolic")]
            turns: 0,
            state: Arc::default(),
        }
    }
}

/// Names live as long as the process; there are not many.
#[derive(Clone, Copy, Debug)]
pub struct Function(&'static CStr);

impl Function {
    pub fn of(name: &'static CStr) -> Function {
        Function(name)
    }

    pub fn name(self) -> &'static CStr {
        self.0
    }
}

#[derive(Debug)]
pub struct Pinned(Vec<u8>);

impl Stream {
    /// # Errors
    /// For any but the first.
    pub fn open(ordinal: usize, without: Without) -> Result<Stream, OpsError> {
        match ordinal {
            0 => {
                Replaced::refuse()?;
                let ledger = Ledger::asked()?.map(Arc::new);
                let shadow = Shadow::asked()?.filter(|_| ledger.is_none());
                let shadow = shadow.map(|shadow| (shadow, Arc::new(Itself) as Arc<dyn Subject>));
                let without = Without { graphs: without.graphs || shadow.is_some(), ..without };
                let state = Arc::new(State { ledger, shadow, ..State::default() });
                Ok(Stream { state, ..Stream::hopper(without) })
            }
            _ => Err(OpsError::NoDevice {
                device: format!("cuda:{ordinal}"),
                reason: "there is one emulated GPU".to_owned(),
            }),
        }
    }

    /// What gives the bits of a GPU of compute capability 9.0, far slower.
    pub fn emulating_hopper(without: Without) -> Result<Stream, OpsError> {
        Ok(Stream { sums: Sums::Hopper, ..Stream::open(0, without)? })
    }

    /// Whose launches are compared on `subject`.
    #[cfg(test)]
    pub fn shadowed(shadow: Arc<Shadow>, subject: Arc<dyn Subject>) -> Stream {
        let state = State { shadow: Some((shadow, subject)), ..State::default() };
        let without = Without { graphs: true, ..Without::default() };
        Stream { state: Arc::new(state), ..Stream::hopper(without) }
    }

    /// As GPUs of compute capability 8.9 are, which have the least shared memory of those that kernels are built for.
    #[cfg(test)]
    pub fn ada() -> Stream {
        Stream {
            shared_bytes: 101_376,
            has_warpgroups: false,
            has_clusters: false,
            ..Stream::hopper(Without::default())
        }
    }

    /// Whose numbers are hashes of how they were made. Each launch is one: a step's operations can be looked at.
    #[cfg(feature = "symbolic")]
    pub fn symbolic(like: super::Like) -> Stream {
        Stream {
            multiprocessors: like.multiprocessors,
            has_warpgroups: like.warpgroups,
            has_clusters: like.clusters,
            without_graphs: true,
            sums: Sums::Hashes,
            turns: like.turns,
            ..Stream::hopper(Without::default())
        }
    }

    pub fn count() -> usize {
        1
    }

    /// # Errors
    /// None.
    pub fn sibling(&self) -> Result<Stream, OpsError> {
        let (ledger, shadow) = (self.state.ledger.clone(), self.state.shadow.clone());
        let state = State { ledger, shadow, ..State::default() };
        Ok(Stream { state: Arc::new(state), ..self.clone() })
    }

    /// What the bits of results depend on.
    pub fn kind(&self) -> String {
        match self.sums {
            Sums::Usual => "cuda emulated".to_owned(),
            Sums::Hopper => format!("cuda sm_90{EMULATED}"),
            #[cfg(feature = "symbolic")]
            Sums::Hashes => "cuda symbolic".to_owned(),
        }
    }

    pub fn describe(&self) -> String {
        "cuda:0: emulated on the CPU, for tests".to_owned()
    }

    /// As an H200 has, so that the same kernels are chosen.
    pub fn multiprocessors(&self) -> usize {
        self.multiprocessors
    }

    pub fn has_warpgroups(&self) -> bool {
        self.has_warpgroups
    }

    /// Threads of a CTA that draws; the result does not depend on them, and fewer are faster here.
    pub fn drawing_threads(&self) -> usize {
        if self.has_memory() { 64 } else { 1024 }
    }

    /// CTAs of a cluster at most.
    pub fn most_clustered(&self) -> usize {
        if self.has_clusters { 8 } else { 1 }
    }

    /// Nothing: the emulator's copies go by addresses and sizes.
    pub fn rows_map(
        &self,
        region: &Region,
        [rows, stride]: [usize; 2],
        _box_rows: usize,
    ) -> RowsMap {
        assert!(2 * rows * stride <= region.bytes(), "a map beyond its region");
        RowsMap::default()
    }

    /// How many clusters of that launch run at once: as if each CTA filled a multiprocessor.
    pub fn clusters_at_once(&self, launch: Launch) -> usize {
        let fits = launch.cluster <= self.most_clustered();
        if fits { self.multiprocessors() / 16 * 16 / launch.cluster } else { 0 }
    }

    pub fn free_bytes(&self) -> usize {
        match self.state.ledger {
            // As an H200 has, beside its driver.
            Some(_) => 140 << 30,
            None => 1 << 32,
        }
    }

    /// # Errors
    /// More shared memory than there is, as the driver refuses it; a name with a zero byte.
    pub fn function(&self, name: &str, shared_bytes: usize) -> Result<Function, OpsError> {
        if shared_bytes > self.shared_bytes {
            return Err(OpsError::Device {
                device: self.kind(),
                reason: format!("kernel `{name}`: {shared_bytes} bytes of shared memory"),
            });
        }
        let name = CString::new(name).map_err(|error| OpsError::memory("a name", error))?;
        Ok(Function(Box::leak(name.into_boxed_c_str())))
    }

    /// # Errors
    /// When the system has no room.
    pub fn allocate(&self, bytes: usize, what: &'static str) -> Result<Region, OpsError> {
        if let Some(ledger) = &self.state.ledger {
            return Ok(Region::new(ledger.address(bytes), bytes, self.clone()));
        }
        // SAFETY: the size is not zero.
        let pointer = unsafe { alloc_zeroed(layout(bytes)) };
        if pointer.is_null() {
            return Err(OpsError::memory(what, "the system has none"));
        }
        if let Some((shadow, _)) = &self.state.shadow {
            shadow.allocated(pointer as u64, bytes, what);
        }
        Ok(Region::new(pointer as u64, bytes, self.clone()))
    }

    pub fn free(&self, address: u64, bytes: usize) {
        if !self.has_memory() {
            return;
        }
        if let Some((shadow, _)) = &self.state.shadow {
            shadow.freed(address);
        }
        // SAFETY: what `allocate` gave, with its layout, once.
        unsafe { dealloc(address as *mut u8, layout(bytes)) };
    }

    /// # Errors
    /// None.
    pub fn pin(&self, bytes: usize) -> Result<Pinned, OpsError> {
        Ok(Pinned(vec![0; bytes.max(16)]))
    }

    pub fn write(&self, region: &Region, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= region.bytes(), "a copy beyond its region");
        if !self.has_memory() {
            return;
        }
        let to = (region.address() as usize + offset) as *mut u8;
        // SAFETY: the region has so many bytes from there.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    pub fn upload(&self, pinned: &Pinned, region: &Region, bytes: usize) {
        if let Some(ledger) = &self.state.ledger {
            ledger.copy("upload", bytes);
        }
        self.write(region, 0, &pinned.0[..bytes]);
    }

    pub fn upload_part(&self, pinned: &Pinned, part: Range<usize>, region: &Region, offset: usize) {
        self.write(region, offset, &pinned.0[part]);
    }

    /// # Errors
    /// What went wrong before.
    pub fn download(&self, from: &Region, to: &mut Pinned, bytes: usize) -> Result<(), OpsError> {
        assert!(bytes <= from.bytes(), "a copy beyond its region");
        if let Some(ledger) = &self.state.ledger {
            ledger.copy("download", bytes);
            to.0[..bytes].copy_from_slice(&ledger::answer(bytes));
            return self.told();
        }
        let from = from.address() as *const u8;
        // SAFETY: the region has so many bytes.
        let source = unsafe { std::slice::from_raw_parts(from, bytes) };
        to.0[..bytes].copy_from_slice(source);
        self.told()
    }

    pub fn copy(&self, from: &Region, to: &Region, bytes: usize) {
        assert!(bytes <= from.bytes() && bytes <= to.bytes(), "a copy beyond its region");
        if !self.has_memory() {
            return;
        }
        let (from, to) = (from.address() as *const u8, to.address() as *mut u8);
        // SAFETY: both have so many bytes, and regions do not overlap.
        unsafe { to.copy_from_nonoverlapping(from, bytes) };
    }

    /// # Errors
    /// What went wrong before.
    pub fn synchronise(&self) -> Result<(), OpsError> {
        self.told()
    }

    pub fn launch(&self, launch: Launch, arguments: Arguments) {
        if launch.grid.contains(&0) {
            return;
        }
        let mut recorded = self.state.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        match recorded.as_mut() {
            Some(_) if self.state.refuses.load(Ordering::Relaxed) => {
                self.state.failures.keep(Err("a launch is refused".to_owned()));
            }
            Some(recorded) => recorded.push((launch, arguments)),
            None => self.run(launch, arguments),
        }
    }

    fn run(&self, launch: Launch, mut arguments: Arguments) {
        let name = launch.function.0;
        match (&self.state.ledger, &self.state.shadow) {
            (Some(ledger), _) => {
                ledger.launch(&name.to_string_lossy(), &launch, arguments.slots());
            }
            (None, Some((shadow, subject))) => {
                let tried = shadow.launch(subject.as_ref(), name, &launch, &arguments);
                self.state.failures.keep(tried);
            }
            #[cfg(feature = "symbolic")]
            (None, None) if self.sums == Sums::Hashes => {
                // What follows logits decides by numbers.
                let decides = name == c"draw" || name == c"score";
                emulator::shuffle(self.turns);
                let sums = if decides { Sums::Usual } else { Sums::Hashes };
                emulator::run(name, &launch, &mut arguments, sums);
                emulator::shuffle(0);
            }
            (None, None) => emulator::run(name, &launch, &mut arguments, self.sums),
        }
    }

    /// Whether regions are memory, and what is written there is read again.
    pub fn has_memory(&self) -> bool {
        self.state.ledger.is_none()
    }

    /// From here on the threads of each CTA that this thread launches take turns at random; in order again with 0.
    #[cfg(test)]
    pub fn shuffle(&self, seed: u64) {
        emulator::shuffle(seed);
    }

    fn told(&self) -> Result<(), OpsError> {
        match self.state.failures.told() {
            Some(reason) => {
                Err(OpsError::Device { device: self.kind(), reason: reason.to_owned() })
            }
            None => Ok(()),
        }
    }
}

/// As aligned as what the driver gives.
fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes.max(16), 256).unwrap_or_else(|_| Layout::new::<[u64; 32]>())
}

impl Pinned {
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    pub fn await_upload(&self) {}
}
