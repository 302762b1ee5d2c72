//! What is known of a corpus before its first chunk: widths, inputs with their sums, the encoder.

use std::path::{Path, PathBuf};

use super::BuildOptions;
use crate::corpus::description::Source;
use crate::corpus::embed::Embed;
use crate::corpus::store::manifest::{BuiltSource, InputFile, Manifest, SCHEMA, VectorForm};
use crate::corpus::{CorpusError, formats};

/// Everything that is known before the first chunk.
pub(super) fn plan(options: &BuildOptions, encoder: &dyn Embed) -> Result<Manifest, CorpusError> {
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
        },
        encoder: encoder.identity()?,
        sources: options.description.sources.iter().cloned().map(BuiltSource::new).collect(),
        inputs,
        files: Vec::new(),
    })
}

/// The files of a source, with their sums.
pub(super) fn input_files(source: &Source, data: &Path) -> Result<Vec<InputFile>, CorpusError> {
    let mut paths = formats::inputs(source, data)?;
    paths.extend(source.filter.as_ref().map(|filter| data.join(filter)));
    let input = |path: &PathBuf| InputFile::of(&source.label, path, formats::relative(path, data));
    paths.iter().map(input).collect()
}
