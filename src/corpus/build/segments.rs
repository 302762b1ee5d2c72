//! The files of a corpus while it grows: segments are appended whole, made durable, and then counted in `build.jsonl`.

use std::collections::BTreeMap;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use fs_err::File;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::appended;
use crate::corpus::damaged;
use crate::corpus::embed::cut;
use crate::corpus::store::layout::{
    CHUNKS, ChunkRecord, DOCUMENTS, FULL_VECTORS, HEADER_BYTES, SEGMENTS, TEXTS, VECTORS,
    vector_header,
};
use crate::corpus::store::manifest::VectorForm;
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::ops::vectors::append;
use crate::outside;

use super::reading::NewChunk;

/// A line of `build.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentLine {
    pub segment: u64,
    /// Chunks up to its end.
    pub chunks: u64,
    /// Records of documents up to its end.
    pub documents: u64,
    /// Of each file, where the segment ends and the SHA-256 of its part.
    pub files: BTreeMap<String, SegmentPart>,
    /// Documents without text that were met before its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub empty: Vec<String>,
}

/// A segment's part of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentPart {
    pub end: u64,
    pub sha256: String,
}

/// The files, open for appending.
pub struct Segments {
    directory: PathBuf,
    form: VectorForm,
    matrices: Vec<Matrix>,
    files: BTreeMap<&'static str, File>,
    log: File,
    ends: BTreeMap<&'static str, u64>,
    pub segments: u64,
    pub chunks: u64,
    pub documents: u64,
    /// Documents without text that are listed.
    pub empty: usize,
}

/// A vector's matrix: its file and how many numbers it has.
struct Matrix {
    name: &'static str,
    dims: usize,
}

impl Segments {
    /// Opens the files at the end of the last whole segment; what was written after it goes.
    ///
    /// # Errors
    /// A file is shorter than its segments; `build.jsonl` is damaged.
    pub fn open(directory: &Path, form: VectorForm) -> Result<Segments, Failure> {
        let lines = read_lines(&directory.join(SEGMENTS))?;
        let last = lines.last();
        let mut matrices = vec![Matrix { name: VECTORS, dims: form.dims }];
        matrices.extend(form.full_dims.map(|dims| Matrix { name: FULL_VECTORS, dims }));
        let mut names = vec![TEXTS, CHUNKS, DOCUMENTS];
        names.extend(matrices.iter().map(|matrix| matrix.name));
        let (mut files, mut ends) = (BTreeMap::new(), BTreeMap::new());
        for name in names {
            let path = directory.join(name);
            let mut file = outside::open_to_write(&path)?;
            let matrix = matrices.iter().find(|matrix| matrix.name == name);
            let first = if matrix.is_some() { HEADER_BYTES as u64 } else { 0 };
            let end = last.and_then(|line| line.files.get(name)).map_or(first, |part| part.end);
            let found = file.metadata()?.len();
            if last.is_some() && found < end {
                return Err(damaged(&path, format!("it has {found} bytes of {end}")));
            }
            file.set_len(end)?;
            if let (Some(matrix), None) = (matrix, last) {
                file.write_all(&vector_header(matrix.dims, 0))?;
            }
            file.seek(SeekFrom::End(0))?;
            files.insert(name, file);
            ends.insert(name, end);
        }
        let path = directory.join(SEGMENTS);
        let mut log = outside::open_to_write(&path)?;
        log.set_len(appended::split(&outside::file(&path)?).0.len() as u64)?;
        log.seek(SeekFrom::End(0))?;
        Ok(Segments {
            directory: directory.to_owned(),
            form,
            matrices,
            files,
            log,
            ends,
            segments: lines.len() as u64,
            chunks: last.map_or(0, |line| line.chunks),
            documents: last.map_or(0, |line| line.documents),
            empty: lines.iter().map(|line| line.empty.len()).sum(),
        })
    }

    /// Appends a segment and makes it durable. `vectors` are at the width of the encoder.
    ///
    /// # Errors
    /// A vector that cannot be kept; the disk is full, and then the segment is not counted.
    pub fn append(
        &mut self,
        chunks: &[NewChunk],
        vectors: &[Vec<f32>],
        empty: Vec<String>,
    ) -> Result<(), Failure> {
        let mut parts: BTreeMap<&'static str, Vec<u8>> =
            self.files.keys().map(|name| (*name, Vec::new())).collect();
        let mut add = |name: &'static str, bytes: &[u8]| {
            parts.entry(name).or_default().extend_from_slice(bytes);
        };
        let mut offset = self.ends.get(TEXTS).copied().unwrap_or_default();
        let mut documents = self.documents;
        for chunk in chunks {
            if chunk.is_first {
                let mut record = Vec::new();
                chunk.document.append(&mut record);
                add(DOCUMENTS, &record);
                documents += 1;
            }
            let sum = Sha256::digest(&chunk.text);
            let record = ChunkRecord {
                offset,
                length: chunk.text.len() as u32,
                document: documents.saturating_sub(1) as u32,
                paragraph: chunk.paragraph,
                source: chunk.source,
                sum: sum.first_chunk().copied().unwrap_or_default(),
            };
            add(CHUNKS, &record.to_bytes());
            add(TEXTS, chunk.text.as_bytes());
            offset += chunk.text.len() as u64;
        }
        for matrix in &self.matrices {
            let mut rows = Vec::new();
            for (chunk, vector) in chunks.iter().zip(vectors) {
                let vector = cut(vector, matrix.dims, self.form.normalised);
                let kept = append(&vector, &mut rows);
                kept.map_err(|problem| {
                    let (document, paragraph) = (&chunk.document.id, chunk.paragraph);
                    Failure::refused(format!(
                        "the vector of chunk {document}#{paragraph} {problem}"
                    ))
                })?;
            }
            add(matrix.name, &rows);
        }
        let mut files = BTreeMap::new();
        for (name, bytes) in &parts {
            if let (Some(file), Some(end)) = (self.files.get_mut(name), self.ends.get_mut(name)) {
                file.write_all(bytes)?;
                file.sync_data()?;
                *end += bytes.len() as u64;
                files.insert((*name).to_owned(), SegmentPart { end: *end, sha256: sha256(bytes) });
            }
        }
        self.chunks += chunks.len() as u64;
        self.documents = documents;
        let line =
            SegmentLine { segment: self.segments, chunks: self.chunks, documents, files, empty };
        self.log.write_all(line_text(&line)?.as_bytes())?;
        self.log.sync_data()?;
        self.segments += 1;
        Ok(())
    }

    /// Writes the number of rows into the headers.
    pub fn finish(mut self) -> Result<(), Failure> {
        for matrix in &self.matrices {
            if let Some(file) = self.files.get_mut(matrix.name) {
                file.seek(SeekFrom::Start(0))?;
                file.write_all(&vector_header(matrix.dims, self.chunks))?;
                file.sync_all()?;
            }
        }
        Ok(outside::sync_directory(&self.directory)?)
    }
}

fn line_text(line: &SegmentLine) -> Result<String, Failure> {
    Ok(format!("{}\n", serde_json::to_string(line).map_err(std::io::Error::from)?))
}

/// The lines of `build.jsonl`; what stands behind the last whole one does not count.
pub fn read_lines(path: &Path) -> Result<Vec<SegmentLine>, Failure> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let file = outside::file(path)?;
    let read = |(index, line): (usize, &[u8])| {
        serde_json::from_slice(line)
            .map_err(|error| damaged(path, format!("line {}: {error}", index + 1)))
    };
    appended::lines(&file).enumerate().map(read).collect()
}
