//! What makes vectors of chunks: an encoder, or something predictable in tests.

use crate::corpus::CorpusError;
use crate::encoder::{Document, Encoder};

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
}
