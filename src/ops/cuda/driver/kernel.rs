//! Kernels of the loaded modules, and their launches.

use std::ffi::CString;
use std::sync::atomic::Ordering;

use cudarc::driver::sys::{self, CUresult};

use super::super::arguments::Arguments;
use super::super::launch::Launch;
use super::Stream;
use super::gpu::check;
use crate::ops::OpsError;

/// What every function may take of dynamic shared memory unasked.
const SHARED_BYTES: usize = 48 << 10;

/// A kernel of a loaded module.
#[derive(Clone, Copy, Debug)]
pub struct Function(sys::CUfunction);

// SAFETY: a function lives as long as the process's modules, and is only read.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// What the driver knows it by.
    #[cfg(feature = "cuda-emulated")]
    pub(super) fn handle(self) -> usize {
        self.0 as usize
    }
}

impl Stream {
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
        #[cfg(feature = "cuda-emulated")]
        self.tell_shadow(|shadow| shadow.names.add(function as usize, &c_name));
        Ok(Function(function))
    }

    pub fn launch(&self, launch: Launch, arguments: Arguments) {
        if launch.grid.contains(&0) {
            return;
        }
        #[cfg(feature = "cuda-emulated")]
        if self.0.shadow.is_some() {
            return self.launch_shadowed(&launch, &arguments);
        }
        // A step's first kernel waits for the upload as a whole: some read positions before their wait.
        let after_copy = self.0.after_copy.swap(false, Ordering::Relaxed);
        let may_be_early = !after_copy && !self.0.without.early_launches;
        let early = launch.early && may_be_early;
        self.note(self.start(Launch { early, ..launch }, arguments));
    }

    /// The launch alone, early or not as it says.
    pub(super) fn start(&self, launch: Launch, mut arguments: Arguments) -> CUresult {
        let Launch { function, grid: [x, y, z], threads, cluster, shared_bytes, early } = launch;
        self.0.gpu.enter();
        // SAFETY: all zeros is a value of this plain structure.
        let mut attributes: [sys::CUlaunchAttribute; 2] = unsafe { std::mem::zeroed() };
        let mut count = 0;
        use sys::CUlaunchAttributeID as Id;
        // Before Hopper there is no such thing.
        if early && self.0.gpu.capability.0 >= 9 {
            attributes[count].id = Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            attributes[count].value.programmaticStreamSerializationAllowed = 1;
            count += 1;
        }
        if cluster > 1 {
            attributes[count].id = Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            attributes[count].value.clusterDim.x = cluster as u32;
            attributes[count].value.clusterDim.y = 1;
            attributes[count].value.clusterDim.z = 1;
            count += 1;
        }
        let config = sys::CUlaunchConfig {
            gridDimX: x as u32,
            gridDimY: y as u32,
            gridDimZ: z as u32,
            blockDimX: threads as u32,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shared_bytes as u32,
            hStream: self.0.stream,
            attrs: attributes.as_mut_ptr(),
            numAttrs: count as u32,
        };
        let mut pointers = arguments.pointers();
        // SAFETY: whoever launches gives the kernel the arguments that its declaration in kernels/ names.
        unsafe {
            let pointers = pointers.as_mut_ptr();
            sys::cuLaunchKernelEx(&raw const config, function.0, pointers, std::ptr::null_mut())
        }
    }
}
