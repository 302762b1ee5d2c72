//! The files of a corpus while it grows: segments are appended whole, made durable, and then counted in `progress.json`.

use std::collections::BTreeMap;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use fs_err::File;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::corpus::damaged;
use crate::corpus::embed::cut;
use crate::corpus::store::layout::{
    CHUNKS, ChunkRecord, DOCUMENTS, FULL_VECTORS, TEXTS, VECTORS, vector_header,
};
use crate::corpus::store::manifest::VectorForm;
use crate::diagnosis::Failure;
use crate::ops::vectors::append;
use crate::outside;

use super::reading::NewChunk;

/// How far a build has come. It is put in place whole after each segment, and goes when the build is over.
pub const PROGRESS: &str = "progress.json";

/// What the whole segments hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    pub chunks: u64,
    /// Records of documents.
    documents: u64,
    /// Where each file ends.
    ends: BTreeMap<String, u64>,
}

/// The files, open for appending.
pub struct Segments {
    directory: PathBuf,
    form: VectorForm,
    files: BTreeMap<&'static str, File>,
    pub done: Progress,
}

/// The matrices of vectors: the file of each, and how many numbers a row has.
fn matrices(form: VectorForm) -> impl Iterator<Item = (&'static str, usize)> {
    let full = form.full_dims.map(|dims| (FULL_VECTORS, dims));
    std::iter::once((VECTORS, form.dims)).chain(full)
}

impl Segments {
    /// Opens the files at the end of the last whole segment; what was written after it goes.
    ///
    /// # Errors
    /// A file is shorter than its segments; `progress.json` is damaged.
    pub fn open(directory: &Path, form: VectorForm) -> Result<Segments, Failure> {
        let path = directory.join(PROGRESS);
        let found = outside::if_there(outside::json::<Progress>(&path))?.transpose();
        let mut done = found.map_err(|error| damaged(&path, error))?.unwrap_or_default();
        let mut files = BTreeMap::new();
        let plain = [TEXTS, CHUNKS, DOCUMENTS].map(|name| (name, None));
        let headed = matrices(form).map(|(name, dims)| (name, Some(vector_header(dims, 0))));
        for (name, header) in plain.into_iter().chain(headed) {
            let path = directory.join(name);
            let mut file = outside::open_to_write(&path)?;
            let (end, found) = (done.ends.get(name).copied(), file.metadata()?.len());
            if let Some(end) = end.filter(|end| found < *end) {
                return Err(damaged(&path, format!("it has {found} bytes of {end}")));
            }
            file.set_len(end.unwrap_or(0))?;
            if let (None, Some(header)) = (end, header) {
                file.write_all(&header)?;
            }
            let end = file.seek(SeekFrom::End(0))?;
            done.ends.insert(name.to_owned(), end);
            files.insert(name, file);
        }
        Ok(Segments { directory: directory.to_owned(), form, files, done })
    }

    /// Appends a segment and makes it durable. `vectors` are at the width of the encoder.
    ///
    /// # Errors
    /// A vector that cannot be kept; the disk is full, and then the segment is not counted.
    pub fn append(&mut self, chunks: &[NewChunk], vectors: &[Vec<f32>]) -> Result<(), Failure> {
        let mut done = self.done.clone();
        let mut offset = done.ends.get(TEXTS).copied().unwrap_or_default();
        let (mut texts, mut records, mut documents) = (Vec::new(), Vec::new(), Vec::new());
        for chunk in chunks {
            if chunk.is_first {
                chunk.document.append(&mut documents);
                done.documents += 1;
            }
            let sum = Sha256::digest(&chunk.text);
            let record = ChunkRecord {
                offset,
                length: chunk.text.len() as u32,
                document: done.documents.saturating_sub(1) as u32,
                paragraph: chunk.paragraph,
                source: chunk.source,
                sum: sum.first_chunk().copied().unwrap_or_default(),
            };
            records.extend(record.to_bytes());
            texts.extend_from_slice(chunk.text.as_bytes());
            offset += chunk.text.len() as u64;
        }
        let mut parts = vec![(TEXTS, texts), (CHUNKS, records), (DOCUMENTS, documents)];
        for (name, dims) in matrices(self.form) {
            let mut rows = Vec::new();
            for (chunk, vector) in chunks.iter().zip(vectors) {
                let vector = cut(vector, dims, self.form.normalised);
                append(&vector, &mut rows).map_err(|problem| {
                    let (document, paragraph) = (&chunk.document.id, chunk.paragraph);
                    Failure::refused(format!(
                        "the vector of chunk {document}#{paragraph} {problem}"
                    ))
                })?;
            }
            parts.push((name, rows));
        }
        for (name, bytes) in parts {
            if let (Some(file), Some(end)) = (self.files.get_mut(name), done.ends.get_mut(name)) {
                file.write_all(&bytes)?;
                file.sync_data()?;
                *end += bytes.len() as u64;
            }
        }
        done.chunks += chunks.len() as u64;
        let text = serde_json::to_vec(&done).map_err(std::io::Error::from)?;
        outside::replace(&self.directory.join(PROGRESS), text, false)?;
        self.done = done;
        Ok(())
    }

    /// Writes the number of rows into the headers.
    pub fn finish(mut self) -> Result<(), Failure> {
        for (name, dims) in matrices(self.form) {
            if let Some(file) = self.files.get_mut(name) {
                file.seek(SeekFrom::Start(0))?;
                file.write_all(&vector_header(dims, self.done.chunks))?;
                file.sync_all()?;
            }
        }
        Ok(outside::sync_directory(&self.directory)?)
    }
}
