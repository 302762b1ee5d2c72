//! A built corpus, mapped: chunks, documents and vectors by number. Opening it looks at sizes alone and reads no vectors; a chunk's text is
//! compared with its sum whenever it is taken.

pub mod layout;
pub mod manifest;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use layout::{
    CHUNK_BYTES, CHUNKS, ChunkRecord, DOCUMENTS, DocumentRecord, FULL_VECTORS, HEADER_BYTES, TEXTS,
    VECTORS, vector_header,
};
use manifest::{BuiltSource, MANIFEST, Manifest, ManifestFile, PLAN, StoredFile};

use super::damaged;
use crate::diagnosis::Failure;
use crate::hub::sha256_file;
use crate::ops::mapped::MappedFile;
use crate::ops::vectors::VectorRows;
use crate::outside;

#[derive(Debug)]
pub struct Corpus {
    directory: PathBuf,
    /// The manifest with its id and what is local to this machine.
    pub file: ManifestFile,
    /// What `corpus.toml` lists, by name.
    maps: HashMap<String, MappedFile>,
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
    pub fn open(directory: &Path) -> Result<Corpus, Failure> {
        let path = directory.join(MANIFEST);
        if !path.is_file() {
            let at = directory.display();
            return Err(match directory.join(PLAN).is_file() {
                true => Failure::missing(
                    format!("the corpus at {at} was not built to its end"),
                    "the `corpus build` that began it goes on when it is given again",
                ),
                false => Failure::missing(
                    format!("there is no corpus at {at}: it has no corpus.toml"),
                    "name a directory that `wardround corpus build` wrote",
                ),
            });
        }
        let file = ManifestFile::read(&path)?;
        let mut maps = HashMap::new();
        for stored in &file.manifest.files {
            let path = outside::below(directory, &stored.name)?;
            let map = MappedFile::open(&path)?;
            let (expected, found) = (stored.size_bytes, map.len() as u64);
            if found != expected {
                let problem = format!("it has {found} bytes, and corpus.toml says {expected}");
                return Err(damaged(&path, problem));
            }
            maps.insert(stored.name.clone(), map);
        }
        let corpus =
            Corpus { directory: directory.to_owned(), file, maps, starts: OnceLock::new() };
        corpus.check_shape()?;
        Ok(corpus)
    }

    /// Checks every file, and where all are well every chunk's text against its own sum. Gives each file's name with its problem, if it has one.
    pub fn verify(directory: &Path) -> Result<Vec<(String, Option<String>)>, Failure> {
        let path = directory.join(MANIFEST);
        if !path.is_file() {
            // Opening says whether it is unfinished.
            Corpus::open(directory)?;
        }
        let file = ManifestFile::read(&path)?;
        let mut checks = Vec::new();
        for stored in &file.manifest.files {
            checks.push((stored.name.clone(), check(directory, stored)?));
        }
        if checks.iter().all(|(_, problem)| problem.is_none()) {
            let corpus = Corpus::open(directory)?;
            if let Some(error) = (0..corpus.len()).find_map(|number| corpus.chunk(number).err()) {
                checks.retain(|(name, _)| name != CHUNKS);
                checks.push((CHUNKS.to_owned(), Some(error.to_string())));
            }
        }
        Ok(checks)
    }

    /// Whether counts, headers and sizes agree.
    fn check_shape(&self) -> Result<(), Failure> {
        let Manifest { chunks, vectors, sources, .. } = self.manifest();
        if self.bytes(CHUNKS).len() as u64 != chunks * CHUNK_BYTES as u64 {
            let problem = format!("it does not hold {chunks} chunks, as corpus.toml says");
            return Err(self.damaged(CHUNKS, &problem));
        }
        self.vectors()?;
        if vectors.full_dims.is_some() {
            self.full_vectors()?;
        }
        let end = sources.iter().try_fold(0, |end, source| {
            let [start, next] = source.range;
            (start == end && next >= start).then_some(next)
        });
        match end == Some(*chunks) {
            true => Ok(()),
            false => {
                Err(self.damaged(MANIFEST, "the ranges of its sources do not hold its chunks"))
            }
        }
    }

    /// Of a file that `corpus.toml` does not list, none.
    fn bytes(&self, name: &str) -> &[u8] {
        self.maps.get(name).map_or(&[], |map| &**map)
    }

    pub fn manifest(&self) -> &Manifest {
        &self.file.manifest
    }

    /// Chunks.
    pub fn len(&self) -> usize {
        self.manifest().chunks as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is known of a chunk beside its text.
    pub fn record(&self, number: usize) -> Result<ChunkRecord, Failure> {
        let damaged = |problem: &str| self.damaged(CHUNKS, &format!("chunk {number} {problem}"));
        let record = self.bytes(CHUNKS).as_chunks::<CHUNK_BYTES>().0.get(number);
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
    pub fn chunk(&self, number: usize) -> Result<Chunk<'_>, Failure> {
        let record = self.record(number)?;
        match record.text(self.bytes(TEXTS)) {
            Ok(text) => Ok(Chunk { text, record }),
            Err(problem) => Err(self.damaged(TEXTS, &format!("chunk {number} {problem}"))),
        }
    }

    pub fn document(&self, number: u32) -> Result<DocumentRecord<&str>, Failure> {
        let documents = self.bytes(DOCUMENTS);
        let starts = self.starts.get_or_init(|| {
            let (mut starts, mut at) = (Vec::new(), 0);
            while let Some((_, length)) = DocumentRecord::read(&documents[at..]) {
                starts.push(at as u64);
                at += length;
            }
            starts
        });
        let start = starts.get(number as usize);
        let record = start.and_then(|start| DocumentRecord::read(&documents[*start as usize..]));
        let absent = || self.damaged(DOCUMENTS, &format!("document {number} cannot be read"));
        record.map(|(record, _)| record).ok_or_else(absent)
    }

    /// The source of a chunk whose record was read.
    pub fn source(&self, record: &ChunkRecord) -> &BuiltSource {
        &self.manifest().sources[usize::from(record.source)]
    }

    /// `LABEL/DOCUMENT#PARAGRAPH`.
    pub fn name(&self, number: usize) -> Result<String, Failure> {
        let record = self.record(number)?;
        let document = self.document(record.document)?;
        let label = &self.source(&record).description.label;
        Ok(format!("{label}/{}#{}", document.id, record.paragraph))
    }

    /// The vectors that are searched, a row a chunk.
    pub fn vectors(&self) -> Result<VectorRows<'_>, Failure> {
        self.rows(VECTORS, self.manifest().vectors.dims)
    }

    /// The vectors at full width, where they are kept.
    ///
    /// # Errors
    /// There are none; the file is damaged.
    pub fn full_vectors(&self) -> Result<VectorRows<'_>, Failure> {
        match self.manifest().vectors.full_dims {
            Some(dims) => self.rows(FULL_VECTORS, dims),
            None => Err(Failure::usage(
                format!("the corpus at {} has no vectors at full width", self.directory.display()),
                "build it with --dims D --search-dims S, D the encoder's full width, or take --rerank off",
            )),
        }
    }

    fn rows(&self, name: &str, dims: usize) -> Result<VectorRows<'_>, Failure> {
        let (header, rows) = self.bytes(name).split_at_checked(HEADER_BYTES).unwrap_or_default();
        if header != vector_header(dims, self.manifest().chunks) {
            let problem = "its header says another type, width or number than corpus.toml";
            return Err(self.damaged(name, problem));
        }
        let rows = VectorRows::new(rows, dims);
        rows.filter(|rows| rows.len() == self.len())
            .ok_or_else(|| self.damaged(name, &format!("it does not hold {} vectors", self.len())))
    }

    /// The chunks of the sources of these labels; of all without labels.
    pub fn ranges(&self, labels: &[String]) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for source in &self.manifest().sources {
            if source.is_among(labels) {
                let [start, end] = source.range.map(|end| end as usize);
                match ranges.last_mut().filter(|last| last.end == start) {
                    Some(last) => last.end = end,
                    None => ranges.push(start..end),
                }
            }
        }
        ranges
    }

    fn damaged(&self, name: &str, problem: &str) -> Failure {
        damaged(&self.directory.join(name), problem)
    }
}

fn check(directory: &Path, stored: &StoredFile) -> Result<Option<String>, Failure> {
    let path = directory.join(&stored.name);
    if !path.is_file() {
        return Ok(Some("is missing".to_owned()));
    }
    let found = fs_err::metadata(&path)?.len();
    if found != stored.size_bytes {
        return Ok(Some(format!("has {found} bytes, and corpus.toml says {}", stored.size_bytes)));
    }
    let is_right = sha256_file(&path)? == stored.sha256;
    Ok((!is_right).then(|| "has another sha256 than corpus.toml says".to_owned()))
}
