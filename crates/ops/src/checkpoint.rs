//! The tensors of a checkpoint's safetensors files, memory-mapped; nothing is read before it is asked for.

use std::path::{Path, PathBuf};

use candle_core::safetensors::MmapedSafetensors;
use thiserror::Error;

use crate::diagnosis::{Blame, Diagnosis};
/// The files of one checkpoint.
pub struct Checkpoint {
    tensors: MmapedSafetensors,
    files: Vec<PathBuf>,
}

/// How a file keeps its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawType {
    F32,
    F16,
    Bf16,
}

/// A tensor in its file: row-major bytes, little-endian.
#[derive(Clone, Copy)]
pub struct RawTensor<'a> {
    pub kind: RawType,
    pub bytes: &'a [u8],
}

#[derive(Debug, Error)]
pub enum CheckpointError {
    #[error("{path} is not a sound safetensors file: {problem}")]
    Corrupt { path: PathBuf, problem: String },
    #[error("no tensor `{name}` in {}", list(files))]
    Missing { name: String, files: Vec<PathBuf> },
    #[error(
        "tensor `{name}` in {} has shape {found:?}, but config.json asks for {expected:?}",
        list(files)
    )]
    Shape { name: String, files: Vec<PathBuf>, found: Vec<usize>, expected: Vec<usize> },
    #[error("tensor `{name}` in {} is stored as {found}; known: F32, F16, BF16", list(files))]
    StoredType { name: String, files: Vec<PathBuf>, found: String },
}

impl Diagnosis for CheckpointError {
    fn blame(&self) -> Blame {
        Blame::Artefact
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            CheckpointError::Corrupt { .. } => {
                "the file is damaged or cut short: copy or fetch it again"
            }
            CheckpointError::Missing { .. } | CheckpointError::Shape { .. } => {
                "config.json and the weights are not of one model: copy or fetch both again"
            }
            CheckpointError::StoredType { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

fn list(files: &[PathBuf]) -> String {
    files.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

impl Checkpoint {
    /// Maps `files` and checks their headers: a truncated file is found here.
    pub fn open(files: &[PathBuf]) -> Result<Checkpoint, CheckpointError> {
        for path in files {
            check(path)?;
        }
        // SAFETY: the mapping is read-only, and the checkpoint is not to be changed while a run reads it.
        let tensors = unsafe { MmapedSafetensors::multi(files) }.map_err(|error| {
            CheckpointError::Corrupt {
                path: files.first().cloned().unwrap_or_default(),
                problem: error.to_string(),
            }
        })?;
        Ok(Checkpoint { tensors, files: files.to_vec() })
    }

    pub fn contains(&self, name: &str) -> bool {
        self.tensors.get(name).is_ok()
    }

    /// The tensor `name`, if it has `shape`.
    pub fn get(&self, name: &str, shape: &[usize]) -> Result<RawTensor<'_>, CheckpointError> {
        let missing =
            |_| CheckpointError::Missing { name: name.to_owned(), files: self.files.clone() };
        let view = self.tensors.get(name).map_err(missing)?;
        if view.shape() != shape {
            return Err(CheckpointError::Shape {
                name: name.to_owned(),
                files: self.files.clone(),
                found: view.shape().to_vec(),
                expected: shape.to_vec(),
            });
        }
        let kind = match view.dtype() {
            safetensors::Dtype::F32 => RawType::F32,
            safetensors::Dtype::F16 => RawType::F16,
            safetensors::Dtype::BF16 => RawType::Bf16,
            other => {
                return Err(CheckpointError::StoredType {
                    name: name.to_owned(),
                    files: self.files.clone(),
                    found: format!("{other:?}"),
                });
            }
        };
        Ok(RawTensor { kind, bytes: view.data() })
    }
}

/// candle's error for several files does not say which of them is broken; this one does.
fn check(path: &Path) -> Result<(), CheckpointError> {
    // SAFETY: as in `open`.
    match unsafe { MmapedSafetensors::new(path) } {
        Ok(_) => Ok(()),
        Err(error) => {
            let problem = error.to_string().replace(&format!("path: {path:?} "), "");
            Err(CheckpointError::Corrupt { path: path.to_owned(), problem })
        }
    }
}

impl<'a> RawTensor<'a> {
    /// A tensor of f32 that lies in memory, little-endian.
    pub fn from_f32_bytes(bytes: &'a [u8]) -> RawTensor<'a> {
        RawTensor { kind: RawType::F32, bytes }
    }

    /// Numbers of a tensor that lie in memory.
    #[cfg(target_endian = "little")]
    pub fn from_f32s(values: &'a [f32]) -> RawTensor<'a> {
        // SAFETY: every f32 is four bytes, which have no invariants.
        let bytes = unsafe {
            std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values))
        };
        RawTensor::from_f32_bytes(bytes)
    }

    /// How many rows of `width` numbers there are.
    pub fn rows(&self, width: usize) -> usize {
        self.bytes.len() / (width * self.kind.size_bytes())
    }

    /// Row `row` of a matrix `[_, out.len()]`, widened exactly.
    pub fn read_row(&self, row: usize, out: &mut [f32]) {
        let size = self.kind.size_bytes();
        let bytes = &self.bytes[row * out.len() * size..][..out.len() * size];
        match self.kind {
            RawType::F32 => read(bytes, out, f32::from_le_bytes),
            RawType::F16 => read(bytes, out, |bytes| half::f16::from_le_bytes(bytes).to_f32()),
            RawType::Bf16 => read(bytes, out, |bytes| half::bf16::from_le_bytes(bytes).to_f32()),
        }
    }
}

fn read<const SIZE: usize>(bytes: &[u8], out: &mut [f32], number: impl Fn([u8; SIZE]) -> f32) {
    for (value, bytes) in out.iter_mut().zip(bytes.as_chunks::<SIZE>().0) {
        *value = number(*bytes);
    }
}

/// A row of a matrix, where it still lies in its file.
#[derive(Clone, Copy)]
pub struct RawRow<'a> {
    pub part: &'a RawTensor<'a>,
    pub row: usize,
}

impl<'a> RawRow<'a> {
    /// The rows of `parts` one after another, `width` numbers each.
    pub fn all(parts: &'a [RawTensor<'a>], width: usize) -> Vec<RawRow<'a>> {
        let of =
            |part: &'a RawTensor<'a>| (0..part.rows(width)).map(move |row| RawRow { part, row });
        parts.iter().flat_map(of).collect()
    }

    pub fn read(self, out: &mut [f32]) {
        self.part.read_row(self.row, out);
    }
}

impl RawType {
    pub fn size_bytes(self) -> usize {
        match self {
            RawType::F32 => 4,
            RawType::F16 | RawType::Bf16 => 2,
        }
    }
}
