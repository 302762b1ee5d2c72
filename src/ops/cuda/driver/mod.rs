//! The GPU's driver: memory, copies, launches and graphs on one stream.
//!
//! Launches do not fail one by one. The first error is kept, and told at the next [`Stream::download`].

mod gpu;
mod pinned;

use std::ffi::CString;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::sys::{self, CUresult};

use gpu::{Gpu, check};
pub use pinned::Pinned;

use super::arguments::Arguments;
use super::region::Region;
use crate::ops::OpsError;

/// Capturing streams must not meet allocations or loads of other engines' threads: one at a time.
static CAPTURING: Mutex<()> = Mutex::new(());

/// A stream of one GPU. Clones are the same stream.
#[derive(Clone, Debug)]
pub struct Stream(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    gpu: Arc<Gpu>,
    stream: sys::CUstream,
    /// After the last copy from pinned memory.
    copied: sys::CUevent,
    failure: OnceLock<String>,
}

/// A kernel of a loaded module.
#[derive(Clone, Copy, Debug)]
pub struct Function(sys::CUfunction);

/// A step's launches, kept.
#[derive(Debug)]
pub struct Graph(sys::CUgraphExec);

/// How a kernel is launched.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    pub function: Function,
    pub grid: [usize; 3],
    pub threads: usize,
    /// Dynamic shared memory.
    pub shared_bytes: usize,
    /// Whether its CTAs may start while the kernel before still runs, as every kernel here allows.
    pub early: bool,
}

// SAFETY: the driver's handles may be used by any thread; each call here makes the context current first.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}
// SAFETY: a function lives as long as the process's modules, and is only read.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}
// SAFETY: a graph is launched by the engine's thread that owns it, whichever that is.
unsafe impl Send for Graph {}
// SAFETY: `replay` takes the stream that orders its launches.
unsafe impl Sync for Graph {}
impl Stream {
    /// # Errors
    /// When there is no driver, no GPU of that number, or none of this build's kernels runs on it.
    pub fn open(ordinal: usize) -> Result<Stream, OpsError> {
        let missing = |reason: String| OpsError::NoDevice {
            device: format!("cuda:{ordinal}"),
            reason,
        };
        // SAFETY: only looks for the library.
        if !unsafe { sys::is_culib_present() } {
            return Err(missing(
                "no NVIDIA driver (libcuda) is installed".to_owned(),
            ));
        }
        let gpu = Arc::new(Gpu::open(ordinal).map_err(missing)?);
        Stream::on(gpu)
    }

    /// Another stream of the same GPU.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn sibling(&self) -> Result<Stream, OpsError> {
        Stream::on(self.0.gpu.clone())
    }

    fn on(gpu: Arc<Gpu>) -> Result<Stream, OpsError> {
        let (mut stream, mut copied) = (std::ptr::null_mut(), std::ptr::null_mut());
        gpu.enter();
        let non_blocking = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        let no_timing = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: both are places for handles.
        let made = unsafe {
            check(sys::cuStreamCreate(&raw mut stream, non_blocking))
                .and_then(|()| check(sys::cuEventCreate(&raw mut copied, no_timing)))
        };
        made.map_err(|reason| gpu.failed(reason))?;
        Ok(Stream(Arc::new(Inner {
            gpu,
            stream,
            copied,
            failure: OnceLock::new(),
        })))
    }

    /// `cuda sm_90`: what decides the bits.
    pub fn kind(&self) -> String {
        let (major, minor) = self.0.gpu.capability;
        format!("cuda sm_{major}{minor}")
    }

    /// For people: number, name, capability, free memory.
    pub fn describe(&self) -> String {
        let gpu = &self.0.gpu;
        let gibibytes = self.free_bytes() as f64 / f64::from(1 << 30);
        format!(
            "cuda:{}: {}, {}, {gibibytes:.1} GiB free",
            gpu.ordinal,
            gpu.name,
            self.kind()
        )
    }

    pub fn multiprocessors(&self) -> usize {
        self.0.gpu.multiprocessors
    }

    /// Whether this build's machine code for this GPU has products by warpgroups.
    pub fn has_warpgroups(&self) -> bool {
        self.0.gpu.capability == (9, 0)
    }

    /// Threads of a CTA that draws; the result does not depend on them.
    pub fn drawing_threads(&self) -> usize {
        1024
    }

    pub fn free_bytes(&self) -> usize {
        let (mut free, mut total) = (0, 0);
        self.0.gpu.enter();
        // SAFETY: both are places for numbers.
        let asked = unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) };
        if check(asked).is_ok() { free } else { 0 }
    }

    /// The kernel `name`, which may take up to `shared_bytes` of dynamic shared memory.
    ///
    /// # Errors
    /// When this build has no such kernel for this GPU.
    pub fn function(&self, name: &str, shared_bytes: usize) -> Result<Function, OpsError> {
        let gpu = &self.0.gpu;
        gpu.enter();
        let unknown = || gpu.failed(format!("it has no kernel `{name}`"));
        let c_name = CString::new(name).map_err(|_| unknown())?;
        let mut function = std::ptr::null_mut();
        let found = gpu.modules.iter().any(|&module| {
            // SAFETY: a place for a handle, a loaded module, a C string.
            let got =
                unsafe { sys::cuModuleGetFunction(&raw mut function, module, c_name.as_ptr()) };
            check(got).is_ok()
        });
        if !found {
            return Err(unknown());
        }
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: a function that was just found.
        let set = unsafe { sys::cuFuncSetAttribute(function, attribute, shared_bytes as i32) };
        check(set).map_err(|reason| gpu.failed(format!("kernel `{name}`: {reason}")))?;
        Ok(Function(function))
    }

    /// # Errors
    /// When the GPU has no room.
    pub fn allocate(&self, bytes: usize, what: &'static str) -> Result<Region, OpsError> {
        let mut address = 0;
        self.0.gpu.enter();
        // SAFETY: a place for an address; what it becomes is written only within its bounds.
        let made = unsafe {
            check(sys::cuMemAlloc_v2(&raw mut address, bytes.max(16))).and_then(|()| {
                let stream = self.0.stream;
                check(sys::cuMemsetD8Async(address, 0, bytes.max(16), stream))
            })
        };
        made.map_err(|reason| OpsError::memory(what, reason))?;
        Ok(Region::new(address, bytes, self.clone()))
    }

    pub fn free(&self, address: u64, _bytes: usize) {
        self.0.gpu.enter();
        // SAFETY: what `allocate` gave, once. The driver waits for work that uses it.
        unsafe { sys::cuMemFree_v2(address) };
    }

    /// # Errors
    /// When the system cannot pin so much memory.
    pub fn pin(&self, bytes: usize) -> Result<Pinned, OpsError> {
        let mut pointer = std::ptr::null_mut();
        self.0.gpu.enter();
        // SAFETY: a place for a pointer. Flags 0: cached, for what comes back is read.
        let made = unsafe { check(sys::cuMemHostAlloc(&raw mut pointer, bytes.max(16), 0)) };
        made.map_err(|reason| OpsError::memory("pinned buffers", reason))?;
        // SAFETY: the driver gave so many bytes.
        unsafe { pointer.cast::<u8>().write_bytes(0, bytes) };
        Ok(Pinned {
            pointer: pointer.cast(),
            bytes,
            stream: self.clone(),
        })
    }

    /// Copies `bytes` to `offset` of `region`, and waits.
    pub fn write(&self, region: &Region, offset: usize, bytes: &[u8]) {
        assert!(
            offset + bytes.len() <= region.bytes(),
            "a copy beyond its region"
        );
        self.0.gpu.enter();
        let to = region.address() + offset as u64;
        // SAFETY: both ends have so many bytes, and the source is read when the stream has come so far. On this
        // stream, for no other waits for what it does.
        let done = unsafe {
            let from = bytes.as_ptr().cast();
            check(sys::cuMemcpyHtoDAsync_v2(
                to,
                from,
                bytes.len(),
                self.0.stream,
            ))
            .and_then(|()| check(sys::cuStreamSynchronize(self.0.stream)))
        };
        self.keep(done);
    }

    /// Starts to copy the first `bytes` of `pinned` to `region`; [`Stream::await_upload`] before they change.
    pub fn upload(&self, pinned: &Pinned, region: &Region, bytes: usize) {
        assert!(
            bytes <= pinned.bytes && bytes <= region.bytes(),
            "a copy beyond its region"
        );
        self.0.gpu.enter();
        // SAFETY: both ends have so many bytes, and outlive the copy: whoever drops them synchronises first.
        let started = unsafe {
            let from = pinned.pointer.cast_const().cast();
            check(sys::cuMemcpyHtoDAsync_v2(
                region.address(),
                from,
                bytes,
                self.0.stream,
            ))
            .and_then(|()| check(sys::cuEventRecord(self.0.copied, self.0.stream)))
        };
        self.keep(started);
    }

    /// Waits until the last upload has read its source.
    pub fn await_upload(&self) {
        self.0.gpu.enter();
        // SAFETY: an event of this stream.
        self.note(unsafe { sys::cuEventSynchronize(self.0.copied) });
    }

    /// Brings the first `bytes` of `region` back, once all before is done.
    ///
    /// # Errors
    /// What went wrong since the last call.
    pub fn download(
        &self,
        region: &Region,
        pinned: &mut Pinned,
        bytes: usize,
    ) -> Result<(), OpsError> {
        assert!(
            bytes <= pinned.bytes && bytes <= region.bytes(),
            "a copy beyond its region"
        );
        self.0.gpu.enter();
        // SAFETY: both ends have so many bytes, and the call ends after the copy.
        let done = unsafe {
            let to = pinned.pointer.cast();
            check(sys::cuMemcpyDtoHAsync_v2(
                to,
                region.address(),
                bytes,
                self.0.stream,
            ))
            .and_then(|()| check(sys::cuStreamSynchronize(self.0.stream)))
        };
        self.keep(done);
        self.told()
    }

    /// Copies inside the GPU.
    pub fn copy(&self, from: &Region, to: &Region, bytes: usize) {
        assert!(
            bytes <= from.bytes() && bytes <= to.bytes(),
            "a copy beyond its region"
        );
        self.0.gpu.enter();
        // SAFETY: both ends have so many bytes.
        let started = unsafe {
            sys::cuMemcpyDtoDAsync_v2(to.address(), from.address(), bytes, self.0.stream)
        };
        self.note(started);
    }

    /// Waits for everything.
    ///
    /// # Errors
    /// What went wrong since the last call.
    pub fn synchronise(&self) -> Result<(), OpsError> {
        self.0.gpu.enter();
        // SAFETY: a live stream.
        self.note(unsafe { sys::cuStreamSynchronize(self.0.stream) });
        self.told()
    }

    pub fn launch(&self, launch: Launch, mut arguments: Arguments) {
        let Launch {
            function,
            grid: [x, y, z],
            threads,
            shared_bytes,
            early,
        } = launch;
        self.0.gpu.enter();
        // SAFETY: all zeros is a value of this plain structure.
        let mut attribute: sys::CUlaunchAttribute = unsafe { std::mem::zeroed() };
        attribute.id =
            sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute.value.programmaticStreamSerializationAllowed = 1;
        // Before Hopper there is no such thing.
        let attributes = u32::from(early && self.0.gpu.capability.0 >= 9);
        let config = sys::CUlaunchConfig {
            gridDimX: x as u32,
            gridDimY: y as u32,
            gridDimZ: z as u32,
            blockDimX: threads as u32,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shared_bytes as u32,
            hStream: self.0.stream,
            attrs: &raw mut attribute,
            numAttrs: attributes,
        };
        let mut pointers = arguments.pointers();
        // SAFETY: whoever launches gives the kernel the arguments that its declaration in kernels/ names.
        let launched = unsafe {
            let pointers = pointers.as_mut_ptr();
            sys::cuLaunchKernelEx(
                &raw const config,
                function.0,
                pointers,
                std::ptr::null_mut(),
            )
        };
        self.note(launched);
    }

    /// Runs the launches of `body`, and keeps them where the driver can.
    pub fn capture(&self, body: impl FnOnce()) -> Option<Graph> {
        let _turn = CAPTURING.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.gpu.enter();
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: a live stream.
        let begun = unsafe { sys::cuStreamBeginCapture_v2(self.0.stream, mode) };
        body();
        if check(begun).is_err() {
            return None;
        }
        let (mut graph, mut instance) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: places for handles; the template is destroyed once its instance is made.
        let made = unsafe {
            check(sys::cuStreamEndCapture(self.0.stream, &raw mut graph)).and_then(|()| {
                let made = sys::cuGraphInstantiateWithFlags(&raw mut instance, graph, 0);
                sys::cuGraphDestroy(graph);
                check(made)
            })
        };
        let is_made = made.is_ok();
        self.keep(made);
        let graph = is_made.then_some(Graph(instance))?;
        self.replay(&graph);
        Some(graph)
    }

    pub fn replay(&self, graph: &Graph) {
        self.0.gpu.enter();
        // SAFETY: what it launches was captured on this stream, and what it uses lives as long as the scratch
        // that keeps the graph.
        self.note(unsafe { sys::cuGraphLaunch(graph.0, self.0.stream) });
    }

    fn note(&self, result: CUresult) {
        self.keep(check(result));
    }

    fn keep(&self, result: Result<(), String>) {
        if let Err(reason) = result {
            let _ = self.0.failure.set(reason);
        }
    }

    fn told(&self) -> Result<(), OpsError> {
        match self.0.failure.get() {
            Some(reason) => Err(self.0.gpu.failed(reason.clone())),
            None => Ok(()),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.gpu.enter();
        // SAFETY: nobody else has the handles any more.
        unsafe {
            sys::cuStreamSynchronize(self.stream);
            sys::cuEventDestroy_v2(self.copied);
            sys::cuStreamDestroy_v2(self.stream);
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made by `capture`, launched no more.
        unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}
