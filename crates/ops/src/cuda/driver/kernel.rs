//! Kernels of the loaded modules, and their launches.

#![allow(clippy::print_stderr, reason = "WARDROUND_CUDA_CHECK names each launch before it is made")]

use std::ffi::CString;
use std::sync::atomic::Ordering;

use cudarc::driver::sys::{self, CUresult};

use super::super::arguments::Arguments;
use super::super::launch::Launch;
use super::Stream;
use super::gpu::check;
use crate::OpsError;

/// What every function may take of dynamic shared memory unasked.
const SHARED_BYTES: usize = 48 << 10;

/// A kernel of a loaded module, and its name, which lives as long as the process; there are not many.
#[derive(Clone, Copy, Debug)]
pub struct Function(sys::CUfunction, &'static str);

// SAFETY: a function lives as long as the process's modules, and is only read.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Stream {
    /// The kernel `name`, which may take up to `shared_bytes` of dynamic shared memory.
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
        use sys::CUfunction_attribute as Attribute;
        let set = |attribute, value| {
            // SAFETY: a function that was just found.
            let set = unsafe { sys::cuFuncSetAttribute(function, attribute, value) };
            check(set).map_err(|reason| gpu.failed(format!("kernel `{name}`: {reason}")))
        };
        if shared_bytes > SHARED_BYTES {
            let most = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            set(most, shared_bytes as i32)?;
        }
        // The same split of the first cache for all kernels: to change it, a multiprocessor has to run empty.
        let share = Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        set(share, 100)?;
        Ok(Function(function, name.to_owned().leak()))
    }

    pub fn launch(&self, launch: Launch, arguments: Arguments) {
        if launch.grid.contains(&0) {
            return;
        }
        // A step's first kernel waits for the upload as a whole: some read positions before their wait.
        let after_copy = self.0.after_copy.swap(false, Ordering::Relaxed);
        let early = launch.early && !after_copy;
        let Function(_, name) = launch.function;
        if self.0.checks {
            eprintln!("{name} {:?} of {}", launch.grid, launch.threads);
        }
        let mut launched = check(self.start(Launch { early, ..launch }, arguments));
        if self.0.checks && launched.is_ok() {
            // SAFETY: a live stream.
            launched = check(unsafe { sys::cuStreamSynchronize(self.0.stream) });
        }
        self.keep(launched.map_err(|reason| format!("kernel `{name}`: {reason}")));
    }

    /// The launch alone, early or not as it says.
    fn start(&self, launch: Launch, mut arguments: Arguments) -> CUresult {
        self.0.gpu.enter();
        // Before Hopper there is no such thing.
        let is_early = launch.early && self.0.gpu.capability.0 >= 9;
        let mut attributes = Attributes::new(launch, is_early);
        let config = attributes.config(launch, self.0.stream);
        let mut pointers = arguments.pointers();
        // SAFETY: whoever launches gives the kernel the arguments that its declaration in kernels/ names.
        unsafe {
            let (function, pointers) = (launch.function.0, pointers.as_mut_ptr());
            sys::cuLaunchKernelEx(&raw const config, function, pointers, std::ptr::null_mut())
        }
    }

    /// How many clusters of that launch run at once; 0 where the GPU cannot say, or has none.
    pub fn clusters_at_once(&self, launch: Launch) -> usize {
        if launch.cluster > self.most_clustered() {
            return 0;
        }
        self.0.gpu.enter();
        let mut attributes = Attributes::new(launch, false);
        let config = attributes.config(launch, self.0.stream);
        let mut count = 0;
        // SAFETY: a place for a number, a kernel of a loaded module, and a configuration that lives so long.
        let asked = unsafe {
            sys::cuOccupancyMaxActiveClusters(&raw mut count, launch.function.0, &raw const config)
        };
        check(asked).map_or(0, |()| count.max(0) as usize)
    }
}

/// What a launch is beside its grid.
struct Attributes {
    list: [sys::CUlaunchAttribute; 2],
    count: usize,
}

impl Attributes {
    fn new(launch: Launch, is_early: bool) -> Attributes {
        use sys::CUlaunchAttributeID as Id;
        // SAFETY: all zeros is a value of this plain structure.
        let mut list: [sys::CUlaunchAttribute; 2] = unsafe { std::mem::zeroed() };
        let mut count = 0;
        if is_early {
            list[count].id = Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            list[count].value.programmaticStreamSerializationAllowed = 1;
            count += 1;
        }
        if launch.cluster > 1 {
            list[count].id = Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            list[count].value.clusterDim.x = launch.cluster as u32;
            list[count].value.clusterDim.y = 1;
            list[count].value.clusterDim.z = 1;
            count += 1;
        }
        Attributes { list, count }
    }

    /// Valid while `self` is, and stays where it is.
    fn config(&mut self, launch: Launch, stream: sys::CUstream) -> sys::CUlaunchConfig {
        let [x, y, z] = launch.grid;
        sys::CUlaunchConfig {
            gridDimX: x as u32,
            gridDimY: y as u32,
            gridDimZ: z as u32,
            blockDimX: launch.threads as u32,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: launch.shared_bytes as u32,
            hStream: stream,
            attrs: self.list.as_mut_ptr(),
            numAttrs: self.count as u32,
        }
    }
}
