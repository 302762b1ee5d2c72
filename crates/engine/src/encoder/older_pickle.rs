//! Weights as PyTorch wrote them before version 1.6, which candle cannot read: DeBERTa's code pins PyTorch 1.3, and
//! deberta-xlarge-mnli is published as a pickle alone.
//!
//! Such a file is several pickles one after another, then the numbers of each storage.

use std::collections::HashMap;
use std::io::{BufReader, Read};
use std::path::Path;

use candle_core::pickle::{Object, Stack, TensorInfo};
use candle_core::{Device, Error, Result, Tensor};

use super::folder::unpickled;
use crate::outside;

/// The pickle of PyTorch's magic number, 0x1950a86a20f9469cfc6c, which every such file begins with.
const MAGIC: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";

/// Every tensor by its name; `None` where the file is of another form.
pub(super) fn read(path: &Path) -> Result<Option<HashMap<String, Tensor>>> {
    let mut reader = BufReader::new(outside::open(path)?);
    let mut magic = Vec::new();
    reader.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic)?;
    if magic != MAGIC {
        return Ok(None);
    }
    let (mut reader, mut tensors, keys) = unpickled(move || {
        let mut next = || {
            let mut stack = Stack::empty();
            stack.read_loop(&mut reader)?;
            stack.finalize()
        };
        let (_protocol, _system, state, keys) = (next()?, next()?, next()?, next()?);
        let (Object::Dict(state), Object::List(keys)) = (state, keys) else {
            return Err(Error::Msg("it holds no tensors by name".to_owned()));
        };
        // By the storage that holds them, whose key `into_tensor_info` puts a folder before.
        let mut tensors: HashMap<String, Vec<TensorInfo>> = HashMap::new();
        for (name, value) in state {
            if let Some(tensor) = value.into_tensor_info(name, Path::new(""))? {
                let key = tensor.path.rsplit('/').next().unwrap_or_default().to_owned();
                tensors.entry(key).or_default().push(tensor);
            }
        }
        Ok((reader, tensors, keys))
    })?;
    let mut read = HashMap::new();
    for key in keys {
        let key = key.unicode()?;
        let held = tensors.remove(&key).unwrap_or_default();
        let Some(first) = held.first() else {
            return Err(Error::Msg(format!("no tensor says what storage {key} holds")));
        };
        let mut count = [0; 8];
        reader.read_exact(&mut count)?;
        let length = u64::from_le_bytes(count).saturating_mul(first.dtype.size_in_bytes() as u64);
        let mut storage = Vec::new();
        reader.by_ref().take(length).read_to_end(&mut storage)?;
        for tensor in held {
            let numbers = numbers(&tensor, &storage)?;
            read.insert(tensor.name, numbers);
        }
    }
    match tensors.into_values().flatten().next() {
        Some(tensor) => Err(Error::Msg(format!("it does not hold the storage of {}", tensor.name))),
        None => Ok(Some(read)),
    }
}

fn numbers(TensorInfo { name, layout, dtype, .. }: &TensorInfo, storage: &[u8]) -> Result<Tensor> {
    if !layout.is_contiguous() {
        return Err(Error::Msg(format!("the numbers of {name} are not in a row")));
    }
    // candle counts the offset in bytes here.
    let start = layout.start_offset();
    let length = layout.shape().elem_count().checked_mul(dtype.size_in_bytes());
    let end = length.and_then(|length| start.checked_add(length));
    let bytes = end.and_then(|end| storage.get(start..end));
    let bytes = bytes.ok_or_else(|| Error::Msg(format!("it ends before {name} does")))?;
    Tensor::from_raw_buffer(bytes, *dtype, layout.shape().dims(), &Device::Cpu)
}
