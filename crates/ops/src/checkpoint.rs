//! The tensors of a checkpoint's safetensors files, memory-mapped; nothing is read before it is asked for.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use safetensors::tensor::TensorInfo;
use thiserror::Error;

use crate::diagnosis::{Blame, Diagnosis};
use crate::mapped::MappedFile;

pub struct Checkpoint {
    files: Vec<PathBuf>,
    maps: Vec<MappedFile>,
    tensors: HashMap<String, Location>,
}

/// Where a tensor lies: in which file, and behind how many bytes of header.
struct Location {
    file: usize,
    data_start: usize,
    info: TensorInfo,
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
#[error("{problem}")]
pub struct CheckpointError {
    problem: String,
    hint: Option<&'static str>,
}

const DAMAGED: &str = "the file is damaged or cut short: copy or fetch it again";
const NOT_OF_ONE: &str =
    "config.json and the weights are not of one model: copy or fetch both again";

impl CheckpointError {
    fn of(problem: String, hint: &'static str) -> CheckpointError {
        CheckpointError { problem, hint: Some(hint) }
    }
}

impl Diagnosis for CheckpointError {
    fn blame(&self) -> Blame {
        Blame::Artefact
    }

    fn hint(&self) -> Option<String> {
        self.hint.map(str::to_owned)
    }
}

impl Checkpoint {
    /// Maps `files` and checks their headers: a truncated file is found here.
    ///
    /// # Errors
    /// A file that cannot be read or is not whole; a tensor that stands in two of them.
    pub fn open(files: &[PathBuf]) -> Result<Checkpoint, CheckpointError> {
        let mut checkpoint =
            Checkpoint { files: files.to_vec(), maps: Vec::new(), tensors: HashMap::new() };
        for path in files {
            checkpoint.add(path)?;
        }
        Ok(checkpoint)
    }

    fn add(&mut self, path: &Path) -> Result<(), CheckpointError> {
        let unreadable = |error: io::Error| CheckpointError {
            problem: error.to_string(),
            hint: (error.kind() == io::ErrorKind::UnexpectedEof).then_some(DAMAGED),
        };
        let map = MappedFile::open(path).map_err(unreadable)?;
        let (header_bytes, header) = SafeTensors::read_metadata(&map).map_err(|error| {
            let path = path.display();
            let problem = format!("{path} is not a sound safetensors file: {error}");
            CheckpointError::of(problem, DAMAGED)
        })?;
        let (file, data_start) = (self.maps.len(), size_of::<u64>() + header_bytes);
        for (name, info) in header.tensors() {
            let place = Location { file, data_start, info: info.clone() };
            if let Some(other) = self.tensors.insert(name.clone(), place) {
                let (first, second) = (self.files[other.file].display(), path.display());
                let problem = format!("tensor `{name}` stands in {first} and in {second}");
                return Err(CheckpointError::of(
                    problem,
                    "remove the file that is not of this model",
                ));
            }
        }
        self.maps.push(map);
        Ok(())
    }

    pub fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Names, shapes and types of all tensors, in no order.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &[usize], Option<RawType>)> {
        self.tensors.iter().map(|(name, Location { info, .. })| {
            (name.as_str(), info.shape.as_slice(), RawType::of(info.dtype))
        })
    }

    /// The tensor `name`, if it has `shape`.
    pub fn get(&self, name: &str, shape: &[usize]) -> Result<RawTensor<'_>, CheckpointError> {
        let files = || {
            self.files.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
        };
        let Some(Location { file, data_start, info }) = self.tensors.get(name) else {
            let problem = format!("no tensor `{name}` in {}", files());
            return Err(CheckpointError::of(problem, NOT_OF_ONE));
        };
        let about = || format!("tensor `{name}` in {}", files());
        if info.shape != shape {
            let found = &info.shape;
            let problem =
                format!("{} has shape {found:?}, but config.json asks for {shape:?}", about());
            return Err(CheckpointError::of(problem, NOT_OF_ONE));
        }
        let Some(kind) = RawType::of(info.dtype) else {
            let problem =
                format!("{} is stored as {:?}; known: F32, F16, BF16", about(), info.dtype);
            return Err(CheckpointError { problem, hint: None });
        };
        let (start, end) = info.data_offsets;
        Ok(RawTensor { kind, bytes: &self.maps[*file][data_start + start..data_start + end] })
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

    /// Some of its rows, of `width` numbers each.
    pub fn part(&self, rows: std::ops::Range<usize>, width: usize) -> RawTensor<'a> {
        let row = width * self.kind.size_bytes();
        RawTensor { kind: self.kind, bytes: &self.bytes[rows.start * row..rows.end * row] }
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
    /// `None`: no type of weights.
    fn of(kind: safetensors::Dtype) -> Option<RawType> {
        match kind {
            safetensors::Dtype::F32 => Some(RawType::F32),
            safetensors::Dtype::F16 => Some(RawType::F16),
            safetensors::Dtype::BF16 => Some(RawType::Bf16),
            _ => None,
        }
    }

    pub fn size_bytes(self) -> usize {
        match self {
            RawType::F32 => 4,
            RawType::F16 | RawType::Bf16 => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use safetensors::tensor::{Dtype, TensorView, serialize_to_file};

    use super::*;

    fn write(path: &Path, name: &str) {
        let bytes = vec![1; 1 << 16];
        let view = TensorView::new(Dtype::F32, vec![1 << 14], &bytes).unwrap();
        serialize_to_file([(name, view)], None, path).unwrap();
    }

    #[test]
    fn a_tensor_in_two_files_is_refused_and_both_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["one", "two"].map(|name| folder.path().join(name));
        files.iter().for_each(|path| write(path, "norm"));
        let said = Checkpoint::open(&files).err().unwrap().to_string();
        assert!(
            said.contains("`norm`") && said.contains("/one") && said.contains("/two"),
            "{said}"
        );
    }
}
