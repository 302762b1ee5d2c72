//! Weights as PyTorch wrote them before version 1.6, which candle cannot read: DeBERTa's code pins PyTorch 1.3, and
//! deberta-xlarge-mnli is published as a pickle alone.
//!
//! Such a file is several pickles one after another, then the numbers of each storage.

use std::collections::HashMap;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use candle_core::pickle::{Object, Stack, TensorInfo};
use candle_core::{Device, Error, Result, Tensor};
use fs_err::File;

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
    let (mut reader, tensors, keys) = unpickled(move || {
        let mut next = || {
            let mut stack = Stack::empty();
            stack.read_loop(&mut reader)?;
            stack.finalize()
        };
        let (_protocol, _system, state, keys) = (next()?, next()?, next()?, next()?);
        let (Object::Dict(state), Object::List(keys)) = (state, keys) else {
            return Err(Error::Msg("it holds no tensors by name".to_owned()));
        };
        let mut tensors = Vec::new();
        for (name, value) in state {
            tensors.extend(value.into_tensor_info(name, Path::new(""))?);
        }
        Ok((reader, tensors, keys))
    })?;
    let storages = storages(&mut reader, keys, &tensors)?;
    let read = |tensor: TensorInfo| {
        let numbers = read_numbers(&mut reader, &tensor, &storages)?;
        Ok((tensor.name, numbers))
    };
    tensors.into_iter().map(read).collect::<Result<_>>().map(Some)
}

/// Where the numbers of each storage begin, in bytes.
fn storages(
    reader: &mut BufReader<File>,
    keys: Vec<Object>,
    tensors: &[TensorInfo],
) -> Result<HashMap<String, u64>> {
    let widths: HashMap<&str, u64> = tensors
        .iter()
        .map(|tensor| (key(&tensor.path), tensor.dtype.size_in_bytes() as u64))
        .collect();
    let end = reader.get_ref().metadata()?.len();
    let mut storages = HashMap::new();
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
    Ok(storages)
}

fn read_numbers(
    reader: &mut BufReader<File>,
    tensor: &TensorInfo,
    storages: &HashMap<String, u64>,
) -> Result<Tensor> {
    let (name, layout) = (&tensor.name, &tensor.layout);
    let Some(storage) = storages.get(key(&tensor.path)) else {
        return Err(Error::Msg(format!("it does not hold the storage of {name}")));
    };
    if !layout.is_contiguous() {
        let problem = format!("the numbers of {name} are not in a row");
        return Err(Error::Msg(problem));
    }
    // candle counts the offset in bytes here.
    let start = storage.checked_add(layout.start_offset() as u64);
    let shape = layout.shape();
    let length = shape.elem_count().checked_mul(tensor.dtype.size_in_bytes());
    let end = reader.get_ref().metadata()?.len();
    let fits = |(start, length): &(u64, usize)| start.checked_add(*length as u64) <= Some(end);
    let Some((start, length)) = start.zip(length).filter(fits) else {
        return Err(Error::Msg(format!("it ends before {name} does")));
    };
    reader.seek(SeekFrom::Start(start))?;
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    Tensor::from_raw_buffer(&bytes, tensor.dtype, shape.dims(), &Device::Cpu)
}

/// A storage's key; `into_tensor_info` puts a folder before it.
fn key(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
