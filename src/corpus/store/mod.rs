//! A built corpus, mapped: chunks, documents and vectors by number. Opening it looks at sizes alone and reads no vectors; a chunk's text is
//! compared with its sum whenever it is taken.

pub mod layout;
pub mod manifest;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use layout::{
    CHUNK_BYTES, CHUNKS, ChunkRecord, DOCUMENTS, DocumentRecord, FULL_VECTORS, HEADER_BYTES,
    SCALES, TEXTS, VECTORS, VectorHeader,
};
use manifest::{BuiltSource, MANIFEST, Manifest, ManifestFile, PLAN};

use super::{CorpusError, expect_file};
use crate::ops::mapped::MappedFile;
use crate::ops::vectors::{VectorRows, VectorType};
use crate::outside;

#[derive(Debug)]
pub struct Corpus {
    directory: PathBuf,
    file: ManifestFile,
    texts: MappedFile,
    chunks: MappedFile,
    documents: MappedFile,
    vectors: MappedFile,
    full_vectors: Option<MappedFile>,
    scales: Option<MappedFile>,
    /// Where each document's record begins; made when the first is asked for.
    starts: OnceLock<Vec<u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    pub text: &'a str,
    pub record: ChunkRecord,
}

impl Corpus {
    /// # Errors
    /// There is none, it is not whole, its files are not of the sizes that corpus.toml says, or it is newer than this program.
    pub fn open(directory: &Path) -> Result<Corpus, CorpusError> {
        let path = directory.join(MANIFEST);
        if !path.is_file() {
            let path = directory.to_owned();
            return Err(match directory.join(PLAN).is_file() {
                true => CorpusError::Unfinished { path },
                false => CorpusError::NoCorpus { path },
            });
        }
        let file = ManifestFile::read(&path)?;
        for stored in &file.manifest.files {
            let path = outside::below(directory, &stored.name)?;
            expect_file(&path)?;
            let found = fs_err::metadata(&path)?.len();
            if found != stored.size_bytes {
                return Err(CorpusError::Size { path, expected: stored.size_bytes, found });
            }
        }
        let map = |name: &str| {
            let path = directory.join(name);
            expect_file(&path)?;
            Ok::<_, CorpusError>(MappedFile::open(&path)?)
        };
        let manifest = &file.manifest;
        let is_bytes = manifest.vectors.dtype == VectorType::I8;
        let corpus = Corpus {
            directory: directory.to_owned(),
            texts: map(TEXTS)?,
            chunks: map(CHUNKS)?,
            documents: map(DOCUMENTS)?,
            vectors: map(VECTORS)?,
            full_vectors: manifest.vectors.full_dims.map(|_| map(FULL_VECTORS)).transpose()?,
            scales: is_bytes.then(|| map(SCALES)).transpose()?,
            starts: OnceLock::new(),
            file,
        };
        corpus.check_shape()?;
        Ok(corpus)
    }

    /// Whether counts, headers and sizes agree.
    fn check_shape(&self) -> Result<(), CorpusError> {
        let manifest = self.manifest();
        let chunks = manifest.chunks;
        if self.chunks.len() as u64 != chunks * CHUNK_BYTES as u64 {
            let problem = format!("it does not hold {chunks} chunks, as corpus.toml says");
            return Err(self.damaged(CHUNKS, &problem));
        }
        let form = manifest.vectors;
        let named = [
            (VECTORS, Some(&self.vectors), Some(form.dims)),
            (FULL_VECTORS, self.full_vectors.as_ref(), form.full_dims),
        ];
        for (name, map, dims) in named {
            let (Some(map), Some(dims)) = (map, dims) else { continue };
            let kind = if name == VECTORS { form.dtype } else { VectorType::F16 };
            let header =
                VectorHeader::from_bytes(map).map_err(|problem| self.damaged(name, &problem))?;
            let expected = VectorHeader { kind, dims: dims as u32, rows: chunks };
            if header != expected {
                let problem = format!("its header says {header:?}, and corpus.toml {expected:?}");
                return Err(self.damaged(name, &problem));
            }
            self.rows(name)?;
        }
        let mut end = 0;
        for source in &manifest.sources {
            if source.range[0] != end || source.range[1] < end {
                return Err(
                    self.damaged(MANIFEST, "the ranges of its sources do not follow each other")
                );
            }
            end = source.range[1];
        }
        match end == chunks {
            true => Ok(()),
            false => Err(self.damaged(MANIFEST, "its sources do not hold all chunks")),
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn manifest(&self) -> &Manifest {
        &self.file.manifest
    }

    /// The manifest with what is local to this machine.
    pub fn file(&self) -> &ManifestFile {
        &self.file
    }

    /// 64 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.file.id
    }

    /// Chunks.
    pub fn len(&self) -> usize {
        self.manifest().chunks as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is known of a chunk beside its text.
    pub fn record(&self, number: usize) -> Result<ChunkRecord, CorpusError> {
        let damaged = |problem: &str| self.damaged(CHUNKS, &format!("chunk {number} {problem}"));
        let record = self.chunks.as_chunks::<CHUNK_BYTES>().0.get(number);
        let record = ChunkRecord::from_bytes(record.ok_or_else(|| damaged("is not there"))?);
        let is_known = usize::from(record.source) < self.manifest().sources.len();
        match is_known {
            true => Ok(record),
            false => Err(damaged("is of no source")),
        }
    }

    /// A chunk with its text, which is the one that was built.
    ///
    /// # Errors
    /// The corpus is damaged there.
    pub fn chunk(&self, number: usize) -> Result<Chunk<'_>, CorpusError> {
        let record = self.record(number)?;
        match record.text(&self.texts) {
            Ok(text) => Ok(Chunk { text, record }),
            Err(problem) => Err(self.damaged(TEXTS, &format!("chunk {number} {problem}"))),
        }
    }

    pub fn document(&self, number: u32) -> Result<DocumentRecord<'_>, CorpusError> {
        let starts = self.starts.get_or_init(|| {
            let (mut starts, mut at) = (Vec::new(), 0);
            while let Some((_, length)) = DocumentRecord::read(&self.documents[at..]) {
                starts.push(at as u64);
                at += length;
            }
            starts
        });
        let start = starts.get(number as usize);
        let record =
            start.and_then(|start| DocumentRecord::read(&self.documents[*start as usize..]));
        let absent = || self.damaged(DOCUMENTS, &format!("document {number} cannot be read"));
        record.map(|(record, _)| record).ok_or_else(absent)
    }

    /// The source of a chunk whose record was read.
    pub fn source(&self, record: &ChunkRecord) -> &BuiltSource {
        &self.manifest().sources[usize::from(record.source)]
    }

    /// `LABEL/DOCUMENT#PARAGRAPH`.
    pub fn name(&self, number: usize) -> Result<String, CorpusError> {
        let record = self.record(number)?;
        let document = self.document(record.document)?;
        let label = &self.source(&record).description.label;
        Ok(format!("{label}/{}#{}", document.id, record.paragraph))
    }

    /// The vectors that are searched, a row a chunk.
    pub fn vectors(&self) -> Result<VectorRows<'_>, CorpusError> {
        self.rows(VECTORS)
    }

    /// The vectors at full width, where they are kept.
    ///
    /// # Errors
    /// There are none; the file is damaged.
    pub fn full_vectors(&self) -> Result<VectorRows<'_>, CorpusError> {
        self.rows(FULL_VECTORS)
    }

    fn rows(&self, name: &'static str) -> Result<VectorRows<'_>, CorpusError> {
        let form = self.manifest().vectors;
        let (map, kind, dims) = match name {
            VECTORS => (Some(&self.vectors), form.dtype, Some(form.dims)),
            _ => (self.full_vectors.as_ref(), VectorType::F16, form.full_dims),
        };
        let (Some(map), Some(dims)) = (map, dims) else {
            return Err(CorpusError::Lacks {
                path: self.directory.clone(),
                what: "vectors at full width",
                hint: "build it with --dims D --search-dims S, D the encoder's full width, or take --rerank off",
            });
        };
        let scales: &[u8] = self.scales.as_deref().unwrap_or_default();
        let bytes = map.get(HEADER_BYTES..).unwrap_or_default();
        let rows = VectorRows::new(bytes, scales, kind, dims);
        rows.filter(|rows| rows.len() == self.len())
            .ok_or_else(|| self.damaged(name, &format!("it does not hold {} vectors", self.len())))
    }

    /// The chunks of the sources of these labels; of all without labels.
    pub fn ranges(&self, labels: &[String]) -> Result<Vec<Range<usize>>, CorpusError> {
        let sources = &self.manifest().sources;
        for label in labels {
            if !sources.iter().any(|source| source.is_named(label)) {
                let known = sources.iter().map(|source| &*source.description.label);
                let known = known.collect::<Vec<_>>().join(", ");
                return Err(CorpusError::UnknownSource { label: label.clone(), known });
            }
        }
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for source in sources {
            if labels.is_empty() || labels.iter().any(|label| source.is_named(label)) {
                let [start, end] = source.range.map(|end| end as usize);
                match ranges.last_mut().filter(|last| last.end == start) {
                    Some(last) => last.end = end,
                    None => ranges.push(start..end),
                }
            }
        }
        Ok(ranges)
    }

    fn damaged(&self, name: &str, problem: &str) -> CorpusError {
        CorpusError::Damaged { path: self.directory.join(name), problem: problem.to_owned() }
    }
}
