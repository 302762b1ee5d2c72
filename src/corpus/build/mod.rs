//! Building a corpus: inputs in order, split, embedded in segments, appended. A killed build goes on at its last whole
//! segment, and gives the same bytes at any batch size and number of threads.

pub mod add;
pub mod embed;
pub mod estimate;
pub mod reading;
pub mod segments;
#[cfg(test)]
pub(crate) mod tests;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fs_err::File;

use self::embed::Embed;
use self::reading::{NewChunk, Read, read_sources};
use self::segments::{EXACT, Segments};
use super::description::Source;
use super::store::layout;
use super::store::manifest::{
    BuiltSource, InputFile, Local, MANIFEST, Manifest, ManifestFile, PLAN, SCHEMA, StoredFile,
    VectorForm,
};
use super::{CorpusError, Description, formats, postings};
use crate::encoder::Document;
use crate::hub::sha256_file;
use crate::ops::vectors::VectorType;

/// Chunks of a segment.
pub const SEGMENT: usize = 4096;

/// What is built, and how.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    pub description: Description,
    /// Where inputs are.
    pub data: PathBuf,
    pub out: PathBuf,
    /// The encoder's folder, for whoever searches later.
    pub encoder: PathBuf,
    pub dtype: VectorType,
    /// Numbers of a vector that is searched, where the encoder's are more; its own are kept too.
    pub search_dims: Option<usize>,
    /// Documents of each source at most.
    pub limit: Option<usize>,
    /// Whether postings for words are made too.
    pub bm25: bool,
}

/// How work is cut, which decides no byte.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Chunks that are handed to the encoder at once.
    pub batch: usize,
    /// Stop after so many segments, as a kill would.
    pub most_segments: Option<u64>,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { batch: 64, most_segments: None }
    }
}

/// A build with its directory locked.
#[derive(Debug)]
pub struct Build {
    out: PathBuf,
    file: ManifestFile,
    /// Held until the build is over.
    _lock: File,
}

impl Build {
    /// Checks the inputs and writes the plan into a new directory.
    ///
    /// # Errors
    /// An input that is not there; a directory that is taken; the encoder's vectors are shorter than asked.
    pub fn begin(options: &BuildOptions, encoder: &dyn Embed) -> Result<Build, CorpusError> {
        let out = &options.out;
        if out.exists() && fs_err::read_dir(out)?.next().is_some() {
            return Err(CorpusError::Taken { path: out.clone() });
        }
        let manifest = plan(options, encoder)?;
        let local = Local {
            built_at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            data: std::path::absolute(&options.data)?,
            encoder: std::path::absolute(&options.encoder)?,
        };
        let file = ManifestFile::new(manifest, local)?;
        fs_err::create_dir_all(out)?;
        replace(&out.join(PLAN), &file.text()?)?;
        Ok(Build { _lock: lock(out)?, out: out.clone(), file })
    }

    /// Reads the plan of a build that was killed.
    ///
    /// # Errors
    /// There is none; another process is building; an input has changed.
    pub fn resume(out: &Path) -> Result<Build, CorpusError> {
        let path = out.join(PLAN);
        if !path.is_file() {
            return Err(CorpusError::Lacks {
                path: out.to_owned(),
                what: "build to go on with",
                hint: "name the directory of a build that was killed; `wardround corpus info DIR` shows a finished one",
            });
        }
        let build =
            Build { _lock: lock(out)?, file: ManifestFile::read(&path)?, out: out.to_owned() };
        let manifest = &build.file.manifest;
        let is_new = |label: &String| {
            manifest
                .sources
                .iter()
                .any(|source| source.description.label == *label && !source.is_built())
        };
        for input in manifest.inputs.iter().filter(|input| is_new(&input.source)) {
            let path = build.file.local.data.join(&input.path);
            let found = sha256_file(&path)?;
            if found != input.sha256 {
                return Err(CorpusError::ChangedInput {
                    path,
                    expected: input.sha256.clone(),
                    found,
                });
            }
        }
        Ok(build)
    }

    /// Where the corpus is going to be.
    pub fn directory(&self) -> &Path {
        &self.out
    }

    /// What the build was begun with.
    pub fn file(&self) -> &ManifestFile {
        &self.file
    }

    /// Goes on to the end; `tell` is told the chunks that are done. `false` where `pace` stopped it before.
    ///
    /// # Errors
    /// Another encoder or device than the plan's; an input that is none; a vector that cannot be kept; a full disk.
    pub fn run(
        self,
        encoder: &dyn Embed,
        pace: Pace,
        tell: &mut dyn FnMut(u64),
    ) -> Result<bool, CorpusError> {
        let Build { out, file, _lock } = &self;
        let mut manifest = file.manifest.clone();
        expect_encoder(&manifest.encoder, &encoder.identity()?)?;
        let segments = Segments::open(out, manifest.vectors)?;
        let done = segments.chunks;
        // Sources that a corpus had before others were added are not read again.
        let first_new = manifest.sources.iter().position(|source| !source.is_built());
        let (built, new) = manifest.sources.split_at_mut(first_new.unwrap_or(0));
        let mut writer = Writer {
            encoder,
            pace,
            tell,
            seen: built.iter().map(|source| source.chunks).sum(),
            first_new: built.len() as u16,
            waiting: Vec::new(),
            listed: segments.empty
                - built
                    .iter()
                    .map(|source| source.empty as usize)
                    .sum::<usize>()
                    .min(segments.empty),
            empty: Vec::new(),
            longest: manifest.longest_chunk_chars,
            segments,
        };
        let most = pace.most_segments;
        let read = read_sources(new, &file.local.data, manifest.limit, &mut |read| {
            if most.is_some_and(|most| writer.segments.segments >= most) {
                return Err(CorpusError::Stopped);
            }
            writer.take(read, done)
        });
        match read {
            Err(CorpusError::Stopped) => return Ok(false),
            other => other?,
        }
        writer.flush()?;
        manifest.longest_chunk_chars = writer.longest;
        manifest.chunks = writer.segments.chunks;
        manifest.documents = manifest.sources.iter().map(|source| source.documents).sum();
        writer.segments.finish()?;
        finish(out, manifest, &file.local)?;
        Ok(true)
    }
}

/// The last steps of everything that writes a corpus: postings, sums, `corpus.toml`.
pub(super) fn finish(out: &Path, mut manifest: Manifest, local: &Local) -> Result<(), CorpusError> {
    let mut end = 0;
    for source in &mut manifest.sources {
        source.range = [end, end + source.chunks];
        end += source.chunks;
    }
    if manifest.vectors.dtype == VectorType::I8 && out.join(EXACT).is_file() {
        manifest.vectors.overlap_at_50 = estimate::overlap(out, manifest.vectors, end)?;
        fs_err::remove_file(out.join(EXACT))?;
    }
    if manifest.bm25 {
        postings::build::write(out, end as usize)?;
    }
    let mut names = vec![layout::TEXTS, layout::CHUNKS, layout::DOCUMENTS, layout::VECTORS];
    names.extend(manifest.vectors.full_dims.map(|_| layout::FULL_VECTORS));
    names.extend((manifest.vectors.dtype == VectorType::I8).then_some(layout::SCALES));
    names.extend(manifest.bm25.then_some(layout::POSTINGS));
    names.push(layout::SEGMENTS);
    manifest.files.clear();
    for name in names {
        let path = out.join(name);
        let (size_bytes, sha256) = (fs_err::metadata(&path)?.len(), sha256_file(&path)?);
        manifest.files.push(StoredFile { name: name.to_owned(), size_bytes, sha256 });
    }
    replace(&out.join(MANIFEST), &ManifestFile::new(manifest, local.clone())?.text()?)?;
    match fs_err::remove_file(out.join(PLAN)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Everything that is known before the first chunk.
fn plan(options: &BuildOptions, encoder: &dyn Embed) -> Result<Manifest, CorpusError> {
    let width = encoder.width();
    let dims = options.search_dims.unwrap_or(width);
    if dims == 0 || dims > width {
        return Err(CorpusError::Differs {
            what: "the width of vectors".to_owned(),
            one: format!("{dims} asked for"),
            other: format!("{width} of the encoder"),
            hint: "ask for as many numbers as the encoder has, or for fewer",
        });
    }
    let mut inputs = Vec::new();
    for source in &options.description.sources {
        inputs.extend(input_files(source, &options.data)?);
    }
    Ok(Manifest {
        schema: SCHEMA,
        name: options.description.name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        limit: options.limit,
        documents: 0,
        chunks: 0,
        longest_chunk_chars: 0,
        vectors: VectorForm {
            dtype: options.dtype,
            dims,
            full_dims: (dims < width).then_some(width),
            normalised: encoder.is_normalised(),
            overlap_at_50: None,
        },
        bm25: options.bm25,
        encoder: encoder.identity()?,
        sources: options.description.sources.iter().cloned().map(BuiltSource::new).collect(),
        inputs,
        files: Vec::new(),
    })
}

/// The files of a source, with their sums.
fn input_files(source: &Source, data: &Path) -> Result<Vec<InputFile>, CorpusError> {
    let mut paths = formats::inputs(source, data)?;
    paths.extend(source.filter.as_ref().map(|filter| data.join(filter)));
    let input = |path: &PathBuf| {
        Ok(InputFile {
            source: source.label.clone(),
            path: formats::relative(path, data),
            size_bytes: fs_err::metadata(path)?.len(),
            sha256: sha256_file(path)?,
        })
    };
    paths.iter().map(input).collect()
}

/// # Errors
/// The encoders differ; the message names the first field that does.
pub fn expect_encoder(one: &toml::Table, other: &toml::Table) -> Result<(), CorpusError> {
    let text = |table: &toml::Table, key: &str| {
        table.get(key).map_or("nothing".to_owned(), |value| value.to_string())
    };
    let keys = one.keys().chain(other.keys());
    match keys.into_iter().find(|key| one.get(*key) != other.get(*key)) {
        None => Ok(()),
        Some(key) => Err(CorpusError::Differs {
            what: format!("the encoder's `{key}`"),
            one: text(one, key),
            other: text(other, key),
            hint: "vectors of two encoders cannot be compared: take the encoder of the corpus, as `wardround corpus info DIR` names it",
        }),
    }
}

/// Chunks on their way into segments.
struct Writer<'a> {
    encoder: &'a dyn Embed,
    pace: Pace,
    tell: &'a mut dyn FnMut(u64),
    segments: Segments,
    /// Chunks read so far, and those of sources that are not read again.
    seen: u64,
    /// The number of the first source that is read.
    first_new: u16,
    waiting: Vec<NewChunk>,
    /// Documents without text that segments list and that were not met yet.
    listed: usize,
    empty: Vec<String>,
    longest: usize,
}

impl Writer<'_> {
    /// The first `done` chunks are in segments already.
    fn take(&mut self, read: Read, done: u64) -> Result<(), CorpusError> {
        match read {
            // Those that a segment lists come first again.
            Read::Empty(name) => match self.listed.checked_sub(1) {
                Some(left) => self.listed = left,
                None => self.empty.push(name),
            },
            Read::Chunk(mut chunk) => {
                chunk.source += self.first_new;
                if self.seen >= u64::from(u32::MAX) {
                    return Err(CorpusError::TooMany);
                }
                let title = &chunk.document.title;
                self.longest = self.longest.max(title.chars().count() + chunk.text.chars().count());
                self.seen += 1;
                if self.seen > done {
                    self.waiting.push(chunk);
                }
            }
        }
        match self.waiting.len() == SEGMENT {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), CorpusError> {
        if self.waiting.is_empty() && self.empty.is_empty() {
            return Ok(());
        }
        // Texts of like length together, so that batches are even.
        let mut order: Vec<usize> = (0..self.waiting.len()).collect();
        order.sort_by_key(|index| self.waiting[*index].text.len());
        let mut vectors = vec![Vec::new(); self.waiting.len()];
        for batch in order.chunks(self.pace.batch.max(1)) {
            let document = |index: &usize| {
                let chunk = &self.waiting[*index];
                Document { title: &chunk.document.title, text: &chunk.text }
            };
            let documents: Vec<Document<'_>> = batch.iter().map(document).collect();
            for (index, vector) in batch.iter().zip(self.encoder.embed(&documents)?) {
                vectors[*index] = vector;
            }
            (self.tell)(self.segments.chunks + batch.len() as u64);
        }
        self.segments.append(&self.waiting, &vectors, std::mem::take(&mut self.empty))?;
        (self.tell)(self.segments.chunks);
        self.waiting.clear();
        Ok(())
    }
}

/// Locks the plan, so that no two processes append.
pub(super) fn lock(out: &Path) -> Result<File, CorpusError> {
    let file = File::open(out.join(PLAN))?;
    match file.file().try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(CorpusError::Busy { path: out.to_owned() }),
        Err(std::fs::TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Puts a whole file in the place of `path`, durably.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), CorpusError> {
    let part = path.with_added_extension("part");
    fs_err::write(&part, text)?;
    File::open(&part)?.sync_all()?;
    fs_err::rename(&part, path)?;
    Ok(File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()?)
}
