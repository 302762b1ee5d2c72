//! Adding a source to a corpus: segments are appended, and the new `corpus.toml` has a new id.

use std::path::Path;

use super::{Build, Pace, input_files, lock, replace};
use crate::corpus::CorpusError;
use crate::corpus::description::Source;
use crate::corpus::embed::{Embed, expect_encoder};
use crate::corpus::store::Corpus;
use crate::corpus::store::manifest::{BuiltSource, MANIFEST, ManifestFile, PLAN};

/// What a `corpus.toml` of this id is called when it is no longer the corpus's own.
pub(super) fn old_name(id: &str) -> String {
    format!("corpus-{}.toml", &id[..12])
}

/// Appends a source whose path is absolute or in the current directory. What `corpus.toml` was stays beside it under the
/// first digits of its id. Killed, it goes on as a build does.
///
/// # Errors
/// The label is taken; another encoder than the corpus's; a text that was changed; an input that is none. The corpus is then as it was.
pub fn add(directory: &Path, source: Source, encoder: &dyn Embed) -> Result<(), CorpusError> {
    let corpus = Corpus::open(directory)?;
    let ManifestFile { mut manifest, local, .. } = corpus.file().clone();
    expect_encoder(&manifest.encoder, &encoder.identity()?)?;
    let path = std::path::absolute(&source.path)?;
    let source = Source { path: path.to_string_lossy().into_owned(), ..source };
    source.check(&path)?;
    if manifest.sources.iter().any(|built| built.description.label == source.label) {
        return Err(CorpusError::Description {
            path: directory.join(MANIFEST),
            problem: format!("two sources are called `{}`", source.label),
        });
    }
    // All sums are taken anew below: a text that was changed since must not get one.
    for number in 0..corpus.len() {
        corpus.chunk(number)?;
    }
    drop(corpus);
    // What cannot be read is found before anything is written.
    let mut dry = [BuiltSource::new(source.clone())];
    super::reading::read_sources(&mut dry, &local.data, None, &mut |_| Ok(()))?;
    manifest.inputs.extend(input_files(&source, &local.data)?);
    manifest.sources.push(BuiltSource::new(source));
    manifest.files.clear();
    let file = ManifestFile::new(manifest, local)?;
    replace(&directory.join(PLAN), &file.text()?)?;
    let build = Build { _lock: lock(directory)?, out: directory.to_owned(), file };
    build.run(encoder, Pace::default(), &mut |_| {})?;
    Ok(())
}
