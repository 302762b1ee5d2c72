//! What makes vectors of chunks: an encoder, or something predictable in tests.

use std::path::Path;

use crate::corpus::CorpusError;
use crate::corpus::store::manifest::ManifestFile;
use crate::encoder::{Document, Embedded, Encoder, EncoderOptions};
use crate::hub::Card;
use crate::ops::{Device, Quantisation};

/// Texts to vectors, each a function of its own text alone.
pub trait Embed {
    /// What the vectors depend on; two corpora may be searched together where this is equal.
    ///
    /// # Errors
    /// It cannot be written as a table.
    fn identity(&self) -> Result<toml::Table, CorpusError>;

    /// Whether vectors have length 1.
    fn is_normalised(&self) -> bool;

    /// Numbers in a vector.
    fn width(&self) -> usize;

    /// `[documents][width]`.
    ///
    /// # Errors
    /// The machine fails.
    fn embed(&self, documents: &[Document<'_>]) -> Result<Vec<Vec<f32>>, CorpusError>;

    /// `[queries][width]`, and whether a query was cut.
    ///
    /// # Errors
    /// The machine fails.
    fn embed_queries(&self, queries: &[&str]) -> Result<Embedded, CorpusError>;
}

impl Embed for Encoder {
    fn identity(&self) -> Result<toml::Table, CorpusError> {
        Ok(toml::Table::try_from(Encoder::identity(self)).map_err(std::io::Error::other)?)
    }

    fn is_normalised(&self) -> bool {
        Encoder::identity(self).normalised
    }

    fn width(&self) -> usize {
        Encoder::width(self)
    }

    fn embed(&self, documents: &[Document<'_>]) -> Result<Vec<Vec<f32>>, CorpusError> {
        Ok(self.embed_documents(documents)?)
    }

    fn embed_queries(&self, queries: &[&str]) -> Result<Embedded, CorpusError> {
        Ok(Encoder::embed_queries(self, queries)?)
    }
}

/// How a folder is opened: by the card of what was fetched into it.
///
/// # Errors
/// A provenance that cannot be read.
pub fn encoder_options(directory: &Path, device: Device) -> Result<EncoderOptions, CorpusError> {
    let card = Card::of_directory(directory)?;
    Ok(EncoderOptions { card, ..EncoderOptions::new(directory, device) })
}

/// How the encoder of a corpus is opened again: as its identity says.
///
/// # Errors
/// A provenance that cannot be read.
pub fn encoder_of(
    file: &ManifestFile,
    directory: Option<&Path>,
    device: Device,
) -> Result<EncoderOptions, CorpusError> {
    let identity = &file.manifest.encoder;
    let text = |key: &str| identity.get(key).and_then(toml::Value::as_str);
    let number = |key: &str| identity.get(key).and_then(toml::Value::as_integer);
    let directory = directory.unwrap_or(&file.local.encoder);
    let mut options = encoder_options(directory, device)?;
    options.card = text("name").and_then(Card::find).or(options.card);
    let quantisation =
        Quantisation::ALL.into_iter().find(|kind| Some(kind.name()) == text("quantisation"));
    options.quantisation = quantisation.unwrap_or_default();
    if let Some(Ok(dtype)) = text("dtype").map(str::parse) {
        options.dtype = dtype;
    }
    options.dims = number("dims").map(|dims| dims as usize);
    options.max_tokens = number("document_tokens").map(|tokens| tokens as usize);
    Ok(options)
}
