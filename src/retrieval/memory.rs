//! The memory that a retriever takes, computed from configs and sizes of files: no model is loaded, no vector read.

use super::RetrieverOptions;
use crate::corpus::Corpus;
use crate::corpus::embed::encoder_of;
use crate::diagnosis::Failure;
use crate::encoder::{EncoderOptions, footprint};
use crate::model::Footprint;

/// What a retriever of these options would load and keep, by name. Its corpora's files are mapped: what is read of them stays where memory is
/// free, and goes where it is not.
///
/// # Errors
/// A directory that is no corpus; a folder that is no encoder or no reranker.
pub fn memory(options: &RetrieverOptions) -> Result<Vec<(String, Footprint)>, Failure> {
    let mut models = Vec::new();
    let mut add = |role: &str, options: &EncoderOptions| {
        let folder = options.directory.file_name().unwrap_or_default().to_string_lossy();
        models.push((format!("{role} {folder}"), footprint(options)?));
        Ok::<_, Failure>(())
    };
    if let Some(directory) = options.corpus.directories.first() {
        let (corpus, folder) = (Corpus::open(directory)?, options.encoder.as_deref());
        add("encoder", &encoder_of(&corpus.file, folder, options.device.clone())?)?;
    }
    if let Some(reranker) = options.reranker_options()? {
        add("reranker", &reranker)?;
    }
    Ok(models)
}
