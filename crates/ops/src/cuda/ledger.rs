//! In place of running them, a list of launches and copies: what steps of a full-size model would ask of a GPU, without one
//! and without its memory. In emulated builds, where `WARDROUND_CUDA_LAUNCHES` names a file; `benches/gpu_model.py` reads it.
//!
//! A line of JSON each: a launch with its kernel, grid and arguments, word by word, or a copy with its bytes. No number that
//! comes back means anything: as a token it ends no text.

use fs_err::File;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::launch::Launch;
use crate::{OpsError, regular_file};

const VARIABLE: &str = "WARDROUND_CUDA_LAUNCHES";

/// What is read of a GPU that computes nothing.
pub fn answer(bytes: usize) -> Vec<u8> {
    300u32.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

#[derive(Debug)]
pub struct Ledger {
    file: Mutex<File>,
    /// Where the next region would lie.
    address: AtomicU64,
}

impl Ledger {
    /// # Errors
    /// A file that cannot be made.
    pub fn asked() -> Result<Option<Ledger>, OpsError> {
        let Some(path) = std::env::var_os(VARIABLE) else {
            return Ok(None);
        };
        let file = regular_file::create(&path).map_err(|error| OpsError::Device {
            device: "cuda emulated".to_owned(),
            reason: format!("{VARIABLE}={}: {error}", path.display()),
        })?;
        Ok(Some(Ledger { file: Mutex::new(file), address: AtomicU64::new(1 << 40) }))
    }

    /// Of a region that is never there.
    pub fn address(&self, bytes: usize) -> u64 {
        let bytes = bytes.max(16).next_multiple_of(256) as u64;
        self.address.fetch_add(bytes, Ordering::Relaxed)
    }

    pub fn launch(&self, kernel: &str, launch: &Launch, arguments: &[u64]) {
        self.write(&json!({
            "kernel": kernel,
            "grid": launch.grid,
            "threads": launch.threads,
            "cluster": launch.cluster,
            "shared_bytes": launch.shared_bytes,
            "arguments": arguments,
        }));
    }

    /// `what` is `upload` or `download`.
    pub fn copy(&self, what: &str, bytes: usize) {
        self.write(&json!({ what: bytes }));
    }

    fn write(&self, line: &Value) {
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // A list that is cut short has too few steps, which its reader says.
        let _ = writeln!(file, "{line}");
    }
}
