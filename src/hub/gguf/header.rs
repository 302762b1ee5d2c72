//! A GGUF file's header: its metadata, and where each tensor lies. Every length and place is checked against the file before it is used.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::GgufError;
use super::metadata::{Value, shown};
use crate::ops::ggml::BlockFormat;
use crate::outside;

/// Nine times what Gemma 3's takes, with its 262,144 tokens.
const MOST_HEADER: u64 = 64 << 20;
/// Entries of metadata, and tensors: a thousand layers have sixteen each.
const MOST_ENTRIES: u64 = 1 << 16;
const LONGEST_NAME: u64 = 256;
const MOST_ALIGNMENT: u64 = 1 << 16;
const MOST_DIMENSIONS: u32 = 4;

/// A GGUF file whose header was read and found sound.
#[derive(Debug)]
pub struct Gguf {
    pub path: PathBuf,
    pub metadata: BTreeMap<String, Value>,
    pub tensors: BTreeMap<String, Tensor>,
}

/// A tensor, where it lies in its file.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub format: &'static BlockFormat,
    /// Rows first.
    pub shape: Vec<usize>,
    pub start: u64,
    pub bytes: u64,
}

impl Gguf {
    /// Reads the header of a file; of the tensors nothing but their places.
    ///
    /// # Errors
    /// What is no GGUF file of version 2 or 3, is damaged, or is a part of a split one; a type of tensor that is not known.
    pub fn open(path: &Path) -> Result<Gguf, GgufError> {
        let file = outside::open(path)?;
        let length = file.metadata()?.len();
        let mut reader =
            Reader { path, bytes: BufReader::new(file), at: 0, end: length.min(MOST_HEADER) };
        reader.version()?;
        let tensors = reader.count("tensors")?;
        let entries = reader.count("entries of metadata")?;
        let mut gguf =
            Gguf { path: path.to_owned(), metadata: BTreeMap::new(), tensors: BTreeMap::new() };
        for _ in 0..entries {
            let key = reader.text(LONGEST_NAME)?;
            let value = reader.value()?;
            if gguf.metadata.insert(key.clone(), value).is_some() {
                return Err(reader.broken(format!("`{}` is there twice", shown(&key))));
            }
        }
        gguf.refuse_parts()?;
        for _ in 0..tensors {
            let (name, tensor) = reader.tensor()?;
            if gguf.tensors.insert(name.clone(), tensor).is_some() {
                return Err(reader.broken(format!("tensor `{}` is there twice", shown(&name))));
            }
        }
        let alignment = gguf.integer("general.alignment")?.unwrap_or(32);
        if !alignment.is_power_of_two() || !(8..=MOST_ALIGNMENT).contains(&alignment) {
            return Err(reader.broken(format!("`general.alignment` is {alignment}")));
        }
        gguf.place(&reader, alignment, length)?;
        Ok(gguf)
    }

    fn refuse_parts(&self) -> Result<(), GgufError> {
        match self.integer("split.count")? {
            Some(count) if count > 1 => Err(self.refused(
                format!("it is one of {count} parts (`split.count`)"),
                "put them together first: `llama-gguf-split --merge FIRST WHOLE`",
            )),
            _ => Ok(()),
        }
    }

    /// Adds where the data begin to each tensor's place, and finds those that end behind the file or lie in one another.
    fn place(&mut self, reader: &Reader<'_>, alignment: u64, length: u64) -> Result<(), GgufError> {
        let data = reader.at.next_multiple_of(alignment);
        let mut places = Vec::new();
        for (name, tensor) in &mut self.tensors {
            let says = |problem: &str| reader.broken(format!("tensor `{}` {problem}", shown(name)));
            if !tensor.start.is_multiple_of(alignment) {
                return Err(says("is not aligned"));
            }
            let start = tensor.start.checked_add(data);
            let end = start.and_then(|start| start.checked_add(tensor.bytes));
            let (Some(start), Some(end)) = (start, end.filter(|end| *end <= length)) else {
                return Err(says("ends behind the file"));
            };
            tensor.start = start;
            places.push((start, end, name));
        }
        places.sort_unstable();
        for pair in places.windows(2) {
            if pair[1].0 < pair[0].1 {
                let problem =
                    format!("tensors `{}` and `{}` overlap", shown(pair[0].2), shown(pair[1].2));
                return Err(reader.broken(problem));
            }
        }
        Ok(())
    }

    /// A tensor that has to be there.
    pub fn tensor(&self, name: &str) -> Result<&Tensor, GgufError> {
        self.tensors.get(name).ok_or_else(|| {
            self.refused(format!("tensor `{name}` is missing"), "take another file of the model")
        })
    }

    /// An error of this file that is no damage.
    pub fn refused(&self, problem: impl Into<String>, remedy: impl Into<String>) -> GgufError {
        GgufError::Refused {
            path: self.path.clone(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

struct Reader<'a> {
    path: &'a Path,
    bytes: BufReader<fs_err::File>,
    at: u64,
    end: u64,
}

impl Reader<'_> {
    fn broken(&self, problem: impl Into<String>) -> GgufError {
        GgufError::Broken { path: self.path.to_owned(), at: self.at, problem: problem.into() }
    }

    fn refused(&self, problem: impl Into<String>, remedy: impl Into<String>) -> GgufError {
        let path = self.path.to_owned();
        GgufError::Refused { path, problem: problem.into(), remedy: remedy.into() }
    }

    /// Whether so many bytes of the header may still be there.
    fn need(&self, count: u64) -> Result<(), GgufError> {
        match count <= self.end - self.at {
            true => Ok(()),
            false if self.end < MOST_HEADER => Err(self.broken("the file ends in its header")),
            false => Err(self.broken(format!("the header is longer than {MOST_HEADER} bytes"))),
        }
    }

    fn take<const SIZE: usize>(&mut self) -> Result<[u8; SIZE], GgufError> {
        self.need(SIZE as u64)?;
        let mut bytes = [0; SIZE];
        self.bytes.read_exact(&mut bytes)?;
        self.at += SIZE as u64;
        Ok(bytes)
    }

    fn word(&mut self) -> Result<u32, GgufError> {
        self.take().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Result<u64, GgufError> {
        self.take().map(u64::from_le_bytes)
    }

    fn text(&mut self, longest: u64) -> Result<String, GgufError> {
        let length = self.long()?;
        if length > longest {
            return Err(self.broken(format!("a name of {length} bytes")));
        }
        self.need(length)?;
        let mut bytes = vec![0; length as usize];
        self.bytes.read_exact(&mut bytes)?;
        self.at += length;
        String::from_utf8(bytes).map_err(|_| self.broken("a text is not UTF-8"))
    }

    fn version(&mut self) -> Result<(), GgufError> {
        if self.end < 4 || &self.take::<4>()? != b"GGUF" {
            let remedy = "a model in other files is named by its directory";
            return Err(self.refused("it is no GGUF file", remedy));
        }
        match self.word()? {
            2 | 3 => Ok(()),
            1 => Err(self.refused(
                "it is GGUF of version 1, of 2023; 2 and 3 are known",
                "take a newer file of the model",
            )),
            version if version.trailing_zeros() >= 16 && version != 0 => Err(self.refused(
                "its numbers are big-endian; little-endian ones are known",
                "convert it where it came from: gguf-py has `gguf-convert-endian`",
            )),
            version => Err(self.refused(
                format!("it is GGUF of version {version}; 2 and 3 are known"),
                "take an older file of the model",
            )),
        }
    }

    fn count(&mut self, what: &str) -> Result<u64, GgufError> {
        match self.long()? {
            count if count <= MOST_ENTRIES => Ok(count),
            count => Err(self.broken(format!("{count} {what}; {MOST_ENTRIES} at most are taken"))),
        }
    }

    fn value(&mut self) -> Result<Value, GgufError> {
        let kind = self.word()?;
        if kind != 9 {
            return self.scalar(kind);
        }
        let (kind, count) = (self.word()?, self.long()?);
        let smallest = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            8 | 10..=12 => 8,
            9 => return Err(self.broken("a list of lists in the metadata")),
            _ => 4,
        };
        self.need(count.saturating_mul(smallest))?;
        if kind == 8 {
            return (0..count)
                .map(|_| self.text(u64::MAX))
                .collect::<Result<_, _>>()
                .map(Value::Texts);
        }
        let number = |value| match value {
            Value::Integer(value) => value as f32,
            Value::Float(value) => value as f32,
            Value::Flag(value) => f32::from(u8::from(value)),
            Value::Text(_) | Value::Texts(_) | Value::Numbers(_) => f32::NAN,
        };
        let numbers = (0..count).map(|_| self.scalar(kind).map(number));
        numbers.collect::<Result<_, _>>().map(Value::Numbers)
    }

    fn scalar(&mut self, kind: u32) -> Result<Value, GgufError> {
        Ok(match kind {
            0 => Value::Integer(u8::from_le_bytes(self.take()?).into()),
            1 => Value::Integer(i8::from_le_bytes(self.take()?).into()),
            2 => Value::Integer(u16::from_le_bytes(self.take()?).into()),
            3 => Value::Integer(i16::from_le_bytes(self.take()?).into()),
            4 => Value::Integer(self.word()?.into()),
            5 => Value::Integer(i32::from_le_bytes(self.take()?).into()),
            6 => Value::Float(as_written(f32::from_le_bytes(self.take()?))),
            7 => match self.take::<1>()? {
                [flag @ 0..=1] => Value::Flag(flag == 1),
                [other] => return Err(self.broken(format!("a flag is {other}"))),
            },
            8 => Value::Text(self.text(u64::MAX)?),
            10 => Value::Integer(self.long()?.into()),
            11 => Value::Integer(i64::from_le_bytes(self.take()?).into()),
            12 => Value::Float(f64::from_le_bytes(self.take()?)),
            other => return Err(self.broken(format!("metadata of an unknown type, {other}"))),
        })
    }

    fn tensor(&mut self) -> Result<(String, Tensor), GgufError> {
        let name = self.text(LONGEST_NAME)?;
        let says = |problem: String| format!("tensor `{}` {problem}", shown(&name));
        let dimensions = self.word()?;
        if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
            return Err(self.broken(says(format!("has {dimensions} dimensions"))));
        }
        let mut shape = Vec::new();
        for _ in 0..dimensions {
            shape.push(self.long()?);
        }
        let format = BlockFormat::find(self.word()?).map_err(|kind| {
            let remedy = format!("take a file of another kind; known: {}", BlockFormat::names());
            self.refused(says(format!("is of the type {kind}, which is not known here")), remedy)
        })?;
        let numbers = shape.iter().try_fold(1_u64, |all, size| all.checked_mul(*size));
        let blocks = numbers.map(|numbers| numbers / format.values as u64);
        let bytes = blocks.and_then(|blocks| blocks.checked_mul(format.bytes as u64));
        let is_whole = shape[0].is_multiple_of(format.values as u64);
        let (Some(bytes), true) = (bytes.filter(|bytes| *bytes > 0), is_whole) else {
            return Err(self.broken(says(format!("has the shape {shape:?} in {}", format.name))));
        };
        let start = self.long()?;
        // Sizes whose product fits, none of them zero.
        let shape = shape.iter().rev().map(|size| *size as usize).collect();
        Ok((name, Tensor { format, shape, start, bytes }))
    }
}

/// The shortest decimal number of an f32, as whoever wrote it had typed it.
fn as_written(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}
