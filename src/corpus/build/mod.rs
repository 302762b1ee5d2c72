//! Building a corpus: inputs in order, split, embedded in segments, appended. A killed build goes on at its last whole
//! segment, and gives the same bytes at any batch size and number of threads.

pub mod add;
mod plan;
pub mod reading;
pub mod segments;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

use std::io::Write;
use std::path::{Path, PathBuf};

use fs_err::File;

use self::plan::{input_files, plan};
use self::reading::read_sources;
use self::segments::Segments;
use self::writer::Writer;
use super::embed::{Embed, expect_encoder};
use super::store::layout;
use super::store::manifest::{Local, MANIFEST, Manifest, ManifestFile, PLAN, StoredFile};
use super::{CorpusError, Description};
use crate::hub::sha256_file;
use crate::ops::vectors::VectorType;
use crate::outside;

/// Chunks of a segment.
pub const SEGMENT: usize = 4096;
/// The ending of what is not whole yet.
const PART: &str = "part";

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
        expect_free(out)?;
        let manifest = plan(options, encoder)?;
        let local = Local::now(&options.data, &options.encoder)?;
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
            if !path.is_file() {
                return Err(CorpusError::NoInput { label: input.source.clone(), path });
            }
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
        if out.join(MANIFEST).is_file() {
            let there = ManifestFile::read(&out.join(MANIFEST))?;
            if there.manifest.sources.len() == manifest.sources.len() {
                // Killed between its last two steps.
                remove_plan(out)?;
                return Ok(true);
            }
            // Killed when a source was about to be added.
            fs_err::rename(out.join(MANIFEST), out.join(add::old_name(&there.id)))?;
        }
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

/// The last steps: sums, `corpus.toml`.
fn finish(out: &Path, mut manifest: Manifest, local: &Local) -> Result<(), CorpusError> {
    let mut end = 0;
    for source in &mut manifest.sources {
        source.range = [end, end + source.chunks];
        end += source.chunks;
    }
    let mut names = vec![layout::TEXTS, layout::CHUNKS, layout::DOCUMENTS, layout::VECTORS];
    names.extend(manifest.vectors.full_dims.map(|_| layout::FULL_VECTORS));
    names.extend((manifest.vectors.dtype == VectorType::I8).then_some(layout::SCALES));
    names.push(layout::SEGMENTS);
    manifest.files.clear();
    for name in names {
        let path = out.join(name);
        let (size_bytes, sha256) = (fs_err::metadata(&path)?.len(), sha256_file(&path)?);
        manifest.files.push(StoredFile { name: name.to_owned(), size_bytes, sha256 });
    }
    replace(&out.join(MANIFEST), &ManifestFile::new(manifest, local.clone())?.text()?)?;
    remove_plan(out)
}

/// What is left of a build that is over.
fn remove_plan(out: &Path) -> Result<(), CorpusError> {
    match fs_err::remove_file(out.join(PLAN)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// An error where a directory holds more than what a build left that was killed before it had a plan.
fn expect_free(out: &Path) -> Result<(), CorpusError> {
    let entries = if out.exists() { Some(fs_err::read_dir(out)?) } else { None };
    for entry in entries.into_iter().flatten() {
        if Path::new(&entry?.file_name()) != Path::new(PLAN).with_added_extension(PART) {
            return Err(CorpusError::Taken { path: out.to_owned() });
        }
    }
    Ok(())
}

/// Locks the plan, so that no two processes append.
fn lock(out: &Path) -> Result<File, CorpusError> {
    let file = outside::open(out.join(PLAN))?;
    match file.file().try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(CorpusError::Busy { path: out.to_owned() }),
        Err(std::fs::TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Puts a whole file in the place of `path`, durably.
fn replace(path: &Path, text: &str) -> Result<(), CorpusError> {
    let part = path.with_added_extension(PART);
    let mut file = outside::create_public(&part)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs_err::rename(&part, path)?;
    Ok(outside::sync_directory(path.parent().unwrap_or(Path::new(".")))?)
}
