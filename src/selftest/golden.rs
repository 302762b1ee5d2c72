//! Golden files: what a model answered where it was released, `NAME.DEVICE-KIND.jsonl`, a head and then a line a call.
//!
//! They have no times, so the same model on the same kind of device gives the same bytes.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::SelftestError;
use super::trial::Answer;
use super::{SCHEMA, calls};
use crate::diagnosis::Failure;
use crate::experiment::plan::MemberPlan;
use crate::experiment::whole_file;
use crate::hub::if_there;
use crate::ops::{Device, Precision};
use crate::outside;

/// More than sixteen completions take many times over.
const LARGEST_BYTES: u64 = 1 << 20;

/// What the answers were made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    pub schema: u32,
    pub model: String,
    /// Of wardround.
    pub version: String,
    /// Equal kinds give equal tokens.
    pub device_kind: String,
    pub dtype: String,
    pub quantisation: String,
    pub kv_dtype: String,
    pub weights_sha256: String,
    pub config_sha256: String,
    pub tokenizer_sha256: String,
    pub template_sha256: String,
    /// Over everything that the calls ask for.
    pub calls_sha256: String,
}

/// A golden file as it was read.
#[derive(Clone, Debug)]
pub struct Golden {
    pub path: PathBuf,
    pub head: Head,
    pub answers: Vec<Answer>,
}

/// The kind of a device as file names have it: `cpu-x86_64`, or `cpu-x86_64-avx512-amx` where bf16 weights are multiplied by
/// instructions of their own; of a GPU its compute capability.
pub fn device_kind(device: &Device, precision: Precision) -> String {
    let kind = device.kind([precision]);
    let place = match device {
        Device::Cpu(_) => "cpu",
        Device::Cuda(_) => "cuda",
        Device::Metal(_) => "metal",
    };
    let kind = kind.strip_prefix(place).unwrap_or(&kind);
    let words =
        kind.split(|char: char| !char.is_ascii_alphanumeric() && char != '_' && char != '.');
    let words = std::iter::once(place).chain(words.filter(|word| !word.is_empty()));
    words.collect::<Vec<_>>().join("-")
}

/// Where the golden file of a model lies. A hub id's slash is no part of a file's name.
pub fn path(directory: &Path, model: &str, device_kind: &str) -> PathBuf {
    directory.join(format!("{}.{device_kind}.jsonl", model.replace('/', "--")))
}

/// The golden files of a model on any kind of device, in the order of their names.
///
/// # Errors
/// A directory or a file that cannot be read; a file that is not one of these.
pub fn find(directory: &Path, model: &str) -> Result<Vec<Golden>, Failure> {
    let begins = format!("{}.", model.replace('/', "--"));
    let mut paths = Vec::new();
    for entry in if_there(fs_err::read_dir(directory))?.into_iter().flatten() {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&begins) && name.ends_with(".jsonl") {
            paths.push(entry.path());
        }
    }
    paths.sort();
    let mut found = Vec::with_capacity(paths.len());
    for path in paths {
        let golden = Golden::read(&path)?;
        // Names have dots: llama3.2-3b's files begin as llama3's.
        if golden.head.model == model {
            found.push(golden);
        }
    }
    Ok(found)
}

impl Head {
    /// Of a model as a plan would name it, on this kind of device.
    pub fn new(model: &MemberPlan, device_kind: &str) -> Head {
        Head {
            schema: SCHEMA,
            model: model.backbone.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            device_kind: device_kind.to_owned(),
            dtype: model.dtype.clone(),
            quantisation: model.quantisation.clone(),
            kv_dtype: model.kv_dtype.clone(),
            weights_sha256: model.weights_sha256.clone(),
            config_sha256: model.config_sha256.clone(),
            tokenizer_sha256: model.tokenizer_sha256.clone(),
            template_sha256: model.template_sha256.clone(),
            calls_sha256: calls::sum(&calls::all()),
        }
    }
}

impl Golden {
    /// # Errors
    /// A file that cannot be read or is no golden file: the first line that is wrong.
    pub fn read(path: &Path) -> Result<Golden, Failure> {
        let bad =
            |line, reason: String| SelftestError::Golden { path: path.to_owned(), line, reason };
        let size = fs_err::metadata(path)?.len();
        if size > LARGEST_BYTES {
            return Err(bad(None, format!("{size} bytes are no golden file")).into());
        }
        let bytes = outside::file(path)?;
        let text = String::from_utf8(bytes).map_err(|error| bad(None, error.to_string()))?;
        #[derive(Deserialize)]
        struct Numbered {
            schema: u32,
        }
        let mut lines = text.lines().zip(1..);
        let first = lines.next().map_or("", |(line, _)| line);
        let Numbered { schema } =
            serde_json::from_str(first).map_err(|error| bad(Some(1), error.to_string()))?;
        if schema != SCHEMA {
            return Err(bad(Some(1), format!("it has the schema {schema}, not {SCHEMA}")).into());
        }
        let head: Head =
            serde_json::from_str(first).map_err(|error| bad(Some(1), error.to_string()))?;
        let answers = lines.map(|(line, number)| {
            serde_json::from_str(line).map_err(|error| bad(Some(number), error.to_string()))
        });
        let answers = answers.collect::<Result<Vec<Answer>, _>>()?;
        let golden = Golden { path: path.to_owned(), head, answers };
        if golden.head.calls_sha256 != calls::sum(&calls::all()) {
            let version = golden.head.version;
            return Err(SelftestError::OtherCalls { path: golden.path, version }.into());
        }
        let (found, wanted) = (golden.answers.len(), calls::all().len());
        match found == wanted {
            true => Ok(golden),
            false => Err(bad(None, format!("it has {found} calls, not {wanted}")).into()),
        }
    }

    /// # Errors
    /// A model whose files are not those that the golden file was made with.
    pub fn expect_model(&self, here: &Head) -> Result<(), SelftestError> {
        let there = &self.head;
        let parts = [
            ("weights", &there.weights_sha256, &here.weights_sha256),
            ("a config.json", &there.config_sha256, &here.config_sha256),
            ("a tokenizer", &there.tokenizer_sha256, &here.tokenizer_sha256),
            ("a chat template", &there.template_sha256, &here.template_sha256),
        ];
        match parts.into_iter().find(|(_, there, here)| there != here) {
            None => Ok(()),
            Some((what, expected, found)) => Err(SelftestError::OtherModel {
                path: self.path.clone(),
                what,
                expected: expected.clone(),
                found: found.clone(),
            }),
        }
    }

    /// Writes the file whole, or not at all.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self) -> Result<(), Failure> {
        let mut text = serde_json::to_string(&self.head).map_err(std::io::Error::from)? + "\n";
        for answer in &self.answers {
            text += &serde_json::to_string(answer).map_err(std::io::Error::from)?;
            text.push('\n');
        }
        Ok(whole_file::write_public(&self.path, text.as_bytes())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{Cpu, Quantisation, StoredType};

    #[test]
    fn kinds_are_names_of_files() {
        let device = Device::Cpu(Cpu::new(1).unwrap());
        // Quantised weights beside f32 caches: nothing that a machine has instructions of its own for.
        let quantised = Precision { quantisation: Quantisation::Q4K, ..StoredType::F32.into() };
        let kind = device_kind(&device, quantised);
        assert_eq!(kind, format!("cpu-{}", std::env::consts::ARCH));
        let own = device_kind(&device, StoredType::Bf16.into());
        assert!(own.starts_with(&kind) && !own.contains(' '), "{own}");
        let path = path(Path::new("golden"), "Qwen/Qwen3-4B", "cpu-x86_64");
        assert_eq!(path, Path::new("golden/Qwen--Qwen3-4B.cpu-x86_64.jsonl"));
    }
}
