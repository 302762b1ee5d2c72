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
    let (mut models, mut documents) = (Vec::new(), 0);
    let mut add = |role: &str, options: &EncoderOptions| {
        let folder = options.directory.file_name().unwrap_or_default().to_string_lossy();
        models.push((format!("{role} {folder}"), footprint(options)?));
        Ok::<_, Failure>(())
    };
    for (number, directory) in options.corpus.directories.iter().enumerate() {
        let corpus = Corpus::open(directory)?;
        documents += corpus.manifest().documents as usize;
        if number == 0 {
            let folder = options.encoder.as_deref();
            add("encoder", &encoder_of(corpus.file(), folder, options.device.clone())?)?;
        }
    }
    if let Some(reranker) = options.reranker_options()? {
        add("reranker", &reranker)?;
    }
    // Where each document's record begins.
    let tables = Footprint { scratch: documents * size_of::<u64>(), ..Footprint::default() };
    models.push(("tables of documents".to_owned(), tables));
    Ok(models)
}
