//! Building a corpus: inputs in order, split, embedded in segments, appended. A killed build goes on at its last whole
//! segment, and gives the same bytes at any batch size and number of threads.

pub mod reading;
pub mod segments;
#[cfg(test)]
pub(crate) mod tests;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fs_err::File;

use self::reading::{NewChunk, read_sources};
use self::segments::{PROGRESS, Segments};
use super::description::{Description, Source};
use super::embed::Embed;
use super::formats;
use super::store::layout;
use super::store::manifest::{
    BuiltSource, InputFile, Local, MANIFEST, Manifest, ManifestFile, PLAN, SCHEMA, StoredFile,
    VectorForm,
};
use crate::diagnosis::Failure;
use crate::encoder::Document;
use crate::hub::sha256_file;
use crate::outside;

/// Chunks of a segment.
pub const SEGMENT: usize = 4096;
/// Chunks that an encoder is handed at once, which decides no byte.
pub const BATCH: usize = 64;
/// What is built, and how.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    pub description: Description,
    /// Where inputs are.
    pub data: PathBuf,
    pub out: PathBuf,
    /// The encoder's folder, for whoever searches later.
    pub encoder: PathBuf,
    /// Numbers of a vector that is searched, where the encoder's are more; its own are kept too.
    pub search_dims: Option<usize>,
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
    /// Checks the inputs and writes the plan into a new directory. Where a build of the same plan was killed it goes on.
    ///
    /// # Errors
    /// An input that is not there, or has changed; a directory that is taken, or that another process builds in; the encoder's vectors are
    /// shorter than asked.
    pub fn begin(options: &BuildOptions, encoder: &dyn Embed) -> Result<Build, Failure> {
        let BuildOptions { description, data, out, .. } = options;
        let path = out.join(PLAN);
        let is_begun = path.is_file();
        if !is_begun {
            expect_free(out)?;
        }
        let width = encoder.width();
        let dims = options.search_dims.unwrap_or(width);
        if dims == 0 || dims > width {
            return Err(Failure::usage(
                format!("vectors of {dims} numbers are asked for, and the encoder's have {width}"),
                "ask for as many numbers as the encoder has, or for fewer",
            ));
        }
        let mut inputs = Vec::new();
        for source in &description.sources {
            inputs.extend(input_files(source, data)?);
        }
        let built = |description: &Source| BuiltSource {
            description: description.clone(),
            ..BuiltSource::default()
        };
        let manifest = Manifest {
            schema: SCHEMA,
            name: description.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            documents: 0,
            chunks: 0,
            longest_chunk_chars: 0,
            vectors: VectorForm {
                dims,
                full_dims: (dims < width).then_some(width),
                normalised: encoder.is_normalised(),
            },
            encoder: encoder.identity()?,
            sources: description.sources.iter().map(built).collect(),
            inputs,
            files: Vec::new(),
        };
        let local = Local {
            built_at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            data: std::path::absolute(data)?,
            encoder: std::path::absolute(&options.encoder)?,
        };
        let file = ManifestFile::new(manifest, local)?;
        if !is_begun {
            fs_err::create_dir_all(out)?;
            outside::replace(&path, file.text()?, false)?;
        }
        let build = Build { _lock: lock(out)?, out: out.to_owned(), file };
        if is_begun && ManifestFile::read(&path)?.manifest != build.file.manifest {
            return Err(Failure::usage(
                format!(
                    "the corpus at {} was begun with other inputs, options or another encoder",
                    out.display()
                ),
                "put back what it was begun with, which its plan.toml has, or build into a new directory",
            ));
        }
        Ok(build)
    }

    /// Goes on to the end. `tell` is told the chunks that are done and how many there are, and its error ends the build as a kill would.
    ///
    /// # Errors
    /// An input that is none; a vector that cannot be kept; a full disk.
    pub fn run(
        self,
        encoder: &dyn Embed,
        batch: usize,
        tell: &mut dyn FnMut(u64, u64) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Build { out, file: ManifestFile { mut manifest, local, .. }, _lock } = self;
        if out.join(MANIFEST).is_file() {
            // Killed between its last steps.
            return remove_plan(&out);
        }
        let mut total = 0;
        read_sources(&mut manifest.sources.clone(), &local.data, &mut |_| {
            total += 1;
            Ok(())
        })?;
        let segments = Segments::open(&out, manifest.vectors)?;
        let mut writer = Writer {
            encoder,
            batch,
            tell: &mut |chunks| tell(chunks, total),
            done: segments.done.chunks,
            seen: 0,
            longest: 0,
            waiting: Vec::new(),
            segments,
        };
        read_sources(&mut manifest.sources, &local.data, &mut |chunk| writer.take(chunk))?;
        writer.flush()?;
        manifest.longest_chunk_chars = writer.longest;
        manifest.chunks = writer.segments.done.chunks;
        manifest.documents = manifest.sources.iter().map(|source| source.documents).sum();
        writer.segments.finish()?;
        finish(&out, manifest, local)
    }
}

/// Chunks on their way into segments.
struct Writer<'a> {
    encoder: &'a dyn Embed,
    /// Chunks that are handed to the encoder at once.
    batch: usize,
    tell: &'a mut dyn FnMut(u64) -> Result<(), Failure>,
    segments: Segments,
    /// Chunks that segments held before.
    done: u64,
    /// Chunks read so far.
    seen: u64,
    longest: usize,
    waiting: Vec<NewChunk>,
}

impl Writer<'_> {
    fn take(&mut self, chunk: NewChunk) -> Result<(), Failure> {
        if self.seen >= u64::from(u32::MAX) {
            let most = u32::MAX;
            return Err(Failure::refused(format!("a corpus holds {most} chunks at most")));
        }
        let title = &chunk.document.title;
        self.longest = self.longest.max(title.chars().count() + chunk.text.chars().count());
        self.seen += 1;
        if self.seen > self.done {
            self.waiting.push(chunk);
        }
        match self.waiting.len() == SEGMENT {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        // Texts of like length together, so that batches are even.
        let mut order: Vec<usize> = (0..self.waiting.len()).collect();
        order.sort_by_key(|index| self.waiting[*index].text.len());
        let mut vectors = vec![Vec::new(); self.waiting.len()];
        let mut embedded = self.segments.done.chunks;
        for batch in order.chunks(self.batch.max(1)) {
            let document = |index: &usize| {
                let chunk = &self.waiting[*index];
                Document { title: &chunk.document.title, text: &chunk.text }
            };
            let documents: Vec<Document<'_>> = batch.iter().map(document).collect();
            for (index, vector) in batch.iter().zip(self.encoder.embed(&documents)?) {
                vectors[*index] = vector;
            }
            embedded += batch.len() as u64;
            (self.tell)(embedded)?;
        }
        self.segments.append(&self.waiting, &vectors)?;
        self.waiting.clear();
        Ok(())
    }
}

/// The files of a source, with their sums.
fn input_files(source: &Source, data: &Path) -> Result<Vec<InputFile>, Failure> {
    let mut paths = formats::inputs(source, data)?;
    paths.extend(source.filter.as_ref().map(|filter| data.join(filter)));
    let input = |path: &PathBuf| {
        Ok(InputFile {
            source: source.label.clone(),
            path: outside::relative(path, data),
            size_bytes: fs_err::metadata(path)?.len(),
            sha256: sha256_file(path)?,
        })
    };
    paths.iter().map(input).collect()
}

/// The last steps: sums, `corpus.toml`.
fn finish(out: &Path, mut manifest: Manifest, local: Local) -> Result<(), Failure> {
    let mut end = 0;
    for source in &mut manifest.sources {
        source.range = [end, end + source.chunks];
        end += source.chunks;
    }
    let mut names = vec![layout::TEXTS, layout::CHUNKS, layout::DOCUMENTS, layout::VECTORS];
    names.extend(manifest.vectors.full_dims.map(|_| layout::FULL_VECTORS));
    for name in names {
        let path = out.join(name);
        let (size_bytes, sha256) = (fs_err::metadata(&path)?.len(), sha256_file(&path)?);
        manifest.files.push(StoredFile { name: name.to_owned(), size_bytes, sha256 });
    }
    outside::replace(&out.join(MANIFEST), ManifestFile::new(manifest, local)?.text()?, false)?;
    remove_plan(out)
}

/// What is left of a build that is over.
fn remove_plan(out: &Path) -> Result<(), Failure> {
    outside::if_there(fs_err::remove_file(out.join(PROGRESS)))?;
    outside::if_there(fs_err::remove_file(out.join(PLAN)))?;
    Ok(())
}

/// An error where a directory holds more than what a build left that was killed before it had a plan.
fn expect_free(out: &Path) -> Result<(), Failure> {
    for entry in outside::if_there(fs_err::read_dir(out))?.into_iter().flatten() {
        if entry?.path() != outside::partial(&out.join(PLAN)) {
            return Err(Failure::usage(
                format!("{} exists and is not empty", out.display()),
                "name a new directory; a build that was killed goes on by the very command that began it",
            ));
        }
    }
    Ok(())
}

/// Locks the plan, so that no two processes append.
fn lock(out: &Path) -> Result<File, Failure> {
    let file = outside::open(out.join(PLAN))?;
    match outside::lock(&file)? {
        true => Ok(file),
        false => {
            Err(Failure::refused(format!("{} is being written by another process", out.display())))
        }
    }
}
