//! Names of kernels that the driver knows by a handle.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub struct Names(Mutex<HashMap<usize, Arc<CStr>>>);

impl Names {
    fn all(&self) -> MutexGuard<'_, HashMap<usize, Arc<CStr>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, handle: usize, name: &CStr) {
        self.all().entry(handle).or_insert_with(|| name.into());
    }

    /// `?` of a handle that nobody named.
    pub fn of(&self, handle: usize) -> Arc<CStr> {
        self.all().get(&handle).cloned().unwrap_or_else(|| c"?".into())
    }
}
