//! `corpus.toml`: what a corpus is made of and how. Its id is the SHA-256 of all but the table `[local]`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::corpus::damaged;
use crate::corpus::description::Source;
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::outside;

/// The schema that this program writes, and the newest that it reads.
pub const SCHEMA: u32 = 1;

pub const MANIFEST: &str = "corpus.toml";
/// What `corpus.toml` is going to be, while a corpus is built.
pub const PLAN: &str = "plan.toml";

const LOCAL: &str = "\n[local]\n";

/// Everything that decides a corpus's bytes, and the sums of these. What else earlier versions wrote here, and files that they listed for
/// searches by words, are left aside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub schema: u32,
    pub name: String,
    /// The version of wardround.
    pub version: String,
    #[serde(default)]
    pub documents: u64,
    #[serde(default)]
    pub chunks: u64,
    /// Characters of the longest chunk with its title.
    #[serde(default)]
    pub longest_chunk_chars: usize,
    pub vectors: VectorForm,
    /// What the encoder is: its identity as the encoder gives it.
    pub encoder: toml::Table,
    #[serde(rename = "source")]
    pub sources: Vec<BuiltSource>,
    #[serde(default, rename = "input")]
    pub inputs: Vec<InputFile>,
    #[serde(default, rename = "file", skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<StoredFile>,
}

/// How vectors are kept: their numbers as f16. Earlier versions had other types, whose files have another header.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct VectorForm {
    /// Numbers of a vector that is searched.
    pub dims: usize,
    /// Numbers of the longer vector that reranking by embedding takes, where one is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_dims: Option<usize>,
    /// Whether vectors have length 1.
    pub normalised: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuiltSource {
    #[serde(default)]
    pub documents: u64,
    /// Documents without text, left out.
    #[serde(default)]
    pub empty: u64,
    #[serde(default)]
    pub chunks: u64,
    /// Of its chunks.
    #[serde(default)]
    pub text_bytes: u64,
    /// Its first chunk and the one after its last.
    #[serde(default)]
    pub range: [u64; 2],
    pub description: Source,
}

impl BuiltSource {
    /// Whether the label is its own or its group's.
    pub fn is_named(&self, label: &str) -> bool {
        self.description.label == label || self.description.group.as_deref() == Some(label)
    }

    /// Whether it is of one of these labels; of none, it is.
    pub fn is_among(&self, labels: &[String]) -> bool {
        labels.is_empty() || labels.iter().any(|label| self.is_named(label))
    }
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputFile {
    pub source: String,
    /// In the data directory.
    pub path: String,
    pub size_bytes: u64,
    pub sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredFile {
    pub name: String,
    pub size_bytes: u64,
    pub sha256: String,
}

/// What says where and when, and is no part of the id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Local {
    pub built_at: String,
    /// Where the inputs were.
    pub data: PathBuf,
    /// The encoder's folder.
    pub encoder: PathBuf,
}

/// A manifest with what stands beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestFile {
    pub manifest: Manifest,
    pub local: Local,
    /// 64 hexadecimal digits.
    pub id: String,
}

impl ManifestFile {
    /// Reads `corpus.toml`, or the plan of a build.
    ///
    /// # Errors
    /// It is damaged, or newer than this program.
    pub fn read(path: &Path) -> Result<ManifestFile, Failure> {
        let text = outside::text(path)?;
        let (body, local) =
            text.rsplit_once(LOCAL).ok_or_else(|| damaged(path, "it has no table [local]"))?;
        let manifest: Manifest = outside::toml(body).map_err(|error| damaged(path, error))?;
        if manifest.schema > SCHEMA {
            let (path, found) = (path.display(), manifest.schema);
            return Err(Failure::missing(
                format!("{path} is of schema {found}; this program reads up to {SCHEMA}"),
                "take the version of wardround that built it, or a newer one",
            ));
        }
        let local = outside::toml(local).map_err(|_| damaged(path, "its table [local] is none"))?;
        Ok(ManifestFile { manifest, local, id: sha256(body) })
    }

    pub fn new(manifest: Manifest, local: Local) -> Result<ManifestFile, Failure> {
        let body = body(&manifest)?;
        Ok(ManifestFile { manifest, local, id: sha256(body) })
    }

    /// As it stands on disk.
    pub fn text(&self) -> Result<String, Failure> {
        let local = toml::to_string(&self.local).map_err(std::io::Error::other)?;
        Ok(format!("{}{LOCAL}{local}", body(&self.manifest)?))
    }
}

fn body(manifest: &Manifest) -> Result<String, Failure> {
    Ok(toml::to_string(manifest).map_err(std::io::Error::other)?)
}
