//! Weights as PyTorch wrote them before version 1.6, which candle cannot read: DeBERTa's code pins PyTorch 1.3, and
//! deberta-xlarge-mnli is published as a pickle alone.
//!
//! Such a file is several pickles one after another, then the numbers of each storage.

use std::collections::HashMap;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use candle_core::pickle::{Object, Stack, TensorInfo};
use candle_core::{DType, Device, Error, Result, Shape, Tensor};
use candle_nn::Init;
use candle_nn::var_builder::SimpleBackend;
use fs_err::File;

/// The pickle of PyTorch's magic number, 0x1950a86a20f9469cfc6c, which every such file begins with.
const MAGIC: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";

/// Reads one tensor at a time.
pub(super) struct OlderPickle {
    path: PathBuf,
    tensors: HashMap<String, TensorInfo>,
    /// Where the numbers of a storage begin, in bytes.
    storages: HashMap<String, u64>,
}

impl OlderPickle {
    /// `None` where the file is of another form.
    pub(super) fn open(path: &Path) -> Result<Option<Self>> {
        let mut reader = BufReader::new(File::open(path)?);
        let mut magic = Vec::new();
        reader
            .by_ref()
            .take(MAGIC.len() as u64)
            .read_to_end(&mut magic)?;
        if magic != MAGIC {
            return Ok(None);
        }
        let mut next = || {
            let mut stack = Stack::empty();
            stack.read_loop(&mut reader)?;
            stack.finalize()
        };
        let (_protocol, _system, state, keys) = (next()?, next()?, next()?, next()?);
        let Object::Dict(state) = state else {
            return Err(Error::Msg("it holds no tensors by name".to_owned()));
        };
        let mut tensors = HashMap::new();
        for (name, value) in state {
            if let Some(tensor) = value.into_tensor_info(name, Path::new(""))? {
                tensors.insert(tensor.name.clone(), tensor);
            }
        }
        let mut storages = HashMap::new();
        let Object::List(keys) = keys else {
            return Err(Error::Msg("it lists no storages".to_owned()));
        };
        // `into_tensor_info` puts the folder before the storage's key.
        let widths: HashMap<&str, u64> = tensors
            .values()
            .map(|tensor| (key(&tensor.path), tensor.dtype.size_in_bytes() as u64))
            .collect();
        let end = reader.get_ref().metadata()?.len();
        for name in keys {
            let name = name.unicode()?;
            let mut count = [0; 8];
            reader.read_exact(&mut count)?;
            let start = reader.stream_position()?;
            let width = widths
                .get(name.as_str())
                .ok_or_else(|| Error::Msg(format!("no tensor says what storage {name} holds")))?;
            let length = u64::from_le_bytes(count).checked_mul(*width);
            let stop = length.and_then(|length| start.checked_add(length));
            let stop = stop
                .filter(|stop| *stop <= end)
                .ok_or_else(|| Error::Msg(format!("it ends before storage {name} does")))?;
            reader.seek(SeekFrom::Start(stop))?;
            storages.insert(name, start);
        }
        Ok(Some(Self {
            path: path.to_owned(),
            tensors,
            storages,
        }))
    }

    fn read(&self, name: &str) -> Result<Tensor> {
        let absent = || Error::CannotFindTensor {
            path: name.to_owned(),
        };
        let tensor = self.tensors.get(name).ok_or_else(absent)?;
        let start = self.storages.get(key(&tensor.path)).ok_or_else(absent)?;
        if !tensor.layout.is_contiguous() {
            return Err(Error::Msg(format!(
                "the numbers of {name} are not in a row"
            )));
        }
        let mut file = File::open(&self.path)?;
        // candle counts the offset in bytes here.
        file.seek(SeekFrom::Start(start + tensor.layout.start_offset() as u64))?;
        let shape = tensor.layout.shape().clone();
        let mut bytes = vec![0; shape.elem_count() * tensor.dtype.size_in_bytes()];
        file.read_exact(&mut bytes)?;
        Tensor::from_raw_buffer(&bytes, tensor.dtype, shape.dims(), &Device::Cpu)
    }
}

fn key(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl SimpleBackend for OlderPickle {
    fn get(
        &self,
        shape: Shape,
        name: &str,
        _: Init,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        let tensor = self.get_unchecked(name, dtype, device)?;
        match *tensor.shape() == shape {
            true => Ok(tensor),
            false => Err(Error::UnexpectedShape {
                msg: format!("shape mismatch for {name}"),
                expected: shape,
                got: tensor.shape().clone(),
            }),
        }
    }

    fn get_unchecked(&self, name: &str, dtype: DType, device: &Device) -> Result<Tensor> {
        self.read(name)?.to_device(device)?.to_dtype(dtype)
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }
}
