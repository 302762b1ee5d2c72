//! One GPU: its context, and the kernels of this build loaded there.

use cudarc::driver::sys::{self, CUresult};

use crate::OpsError;

/// Every `.cu` file, compiled for each architecture that this build knows.
static FATBINS: &[&Aligned<[u8]>] = include!(concat!(env!("OUT_DIR"), "/fatbins.rs"));

/// An image, which the driver reads in words.
#[repr(align(64))]
struct Aligned<T: ?Sized>(T);

#[derive(Debug)]
pub struct Gpu {
    pub ordinal: usize,
    pub name: String,
    /// Of the compute capability: 9.0 is (9, 0).
    pub capability: (i32, i32),
    pub multiprocessors: usize,
    context: sys::CUcontext,
    pub modules: Vec<sys::CUmodule>,
}

// SAFETY: the driver's handles may be used by any thread; whoever does makes the context current first.
unsafe impl Send for Gpu {}
// SAFETY: as above.
unsafe impl Sync for Gpu {}

impl Gpu {
    pub fn open(ordinal: usize) -> Result<Gpu, String> {
        let (mut device, mut context) = (0, std::ptr::null_mut());
        let mut name = [0; 128];
        // SAFETY: places for a number, a handle and a text of so many bytes.
        unsafe {
            check(sys::cuInit(0))?;
            check(sys::cuDeviceGet(&raw mut device, ordinal as i32))?;
            check(sys::cuDevicePrimaryCtxRetain(&raw mut context, device))?;
            check(sys::cuCtxSetCurrent(context))?;
            check(sys::cuDeviceGetName(name.as_mut_ptr(), name.len() as i32, device))?;
        }
        let attribute = |attribute| {
            let mut value = 0;
            // SAFETY: a place for a number.
            let asked = unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, device) };
            check(asked).map(|()| value)
        };
        use sys::CUdevice_attribute as Attribute;
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let load = |image: &&Aligned<[u8]>| {
            let mut module = std::ptr::null_mut();
            // SAFETY: a fat binary that nvcc wrote.
            let loaded = unsafe { sys::cuModuleLoadData(&raw mut module, image.0.as_ptr().cast()) };
            check(loaded).map(|()| module).map_err(|reason| {
                let version = driver_version();
                format!(
                    "compute capability {major}.{minor}, a driver for CUDA {version}: {reason}; \
                     kernels are for 8.0 and later, and want a driver for CUDA 13; take such a GPU, or \
                     --device candle-cuda (`cargo build --features candle-cuda`), or --device cpu"
                )
            })
        };
        Ok(Gpu {
            ordinal,
            // SAFETY: the driver ends the name with a zero.
            name: unsafe { std::ffi::CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned(),
            capability: (major, minor),
            multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?
                as usize,
            context,
            modules: FATBINS.iter().map(load).collect::<Result<_, _>>()?,
        })
    }

    pub fn enter(&self) {
        // SAFETY: the primary context is kept for the life of the process.
        unsafe { sys::cuCtxSetCurrent(self.context) };
    }

    /// Why `what` got no memory. Only one answer means that there is none: an earlier launch's failure may be told here.
    pub fn refused(&self, what: &'static str, result: CUresult) -> OpsError {
        match result {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => OpsError::memory(what, reason(result)),
            other => self.failed(format!("{what}: {}", reason(other))),
        }
    }

    pub fn failed(&self, reason: String) -> OpsError {
        OpsError::Device { device: format!("cuda:{}", self.ordinal), reason }
    }
}

/// Of the newest CUDA that the driver knows: `13.0`.
fn driver_version() -> String {
    let mut version = 0;
    // SAFETY: a place for a number.
    match check(unsafe { sys::cuDriverGetVersion(&raw mut version) }) {
        Ok(()) => format!("{}.{}", version / 1000, version % 1000 / 10),
        Err(reason) => reason,
    }
}

fn reason(result: CUresult) -> String {
    let mut text = std::ptr::null();
    // SAFETY: `text` is a place for a pointer to a constant string.
    let told = unsafe { sys::cuGetErrorString(result, &raw mut text) };
    if told != CUresult::CUDA_SUCCESS || text.is_null() {
        return format!("{result:?}");
    }
    // SAFETY: the driver gave a constant C string.
    let text = unsafe { std::ffi::CStr::from_ptr(text) };
    format!("{} ({result:?})", text.to_string_lossy())
}

pub fn check(result: CUresult) -> Result<(), String> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        other => Err(reason(other)),
    }
}
