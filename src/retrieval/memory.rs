//! The memory that a retriever takes, computed from configs and sizes of files: no model is loaded, no vector read.

use super::RetrieverOptions;
use crate::corpus::Corpus;
use crate::corpus::embed::encoder_of;
use crate::diagnosis::Failure;
use crate::encoder::{EncoderOptions, footprint};
use crate::model::Footprint;

/// What a retriever takes.
#[derive(Clone, Debug, Default)]
pub struct SearchMemory {
    pub models: Vec<SearchModel>,
    /// Bytes of the corpora's files. They are mapped: what is read of them stays where memory is free, and goes where it is not.
    pub mapped: u64,
}

/// A model that a retriever loads, or what it keeps of its corpora.
#[derive(Clone, Debug)]
pub struct SearchModel {
    pub name: String,
    pub footprint: Footprint,
}

/// What a retriever of these options would take.
///
/// # Errors
/// A directory that is no corpus; a folder that is no encoder or no reranker.
pub fn memory(options: &RetrieverOptions) -> Result<SearchMemory, Failure> {
    let mut memory = SearchMemory::default();
    let mut documents = 0;
    for directory in &options.corpus.directories {
        let corpus = Corpus::open(directory)?;
        let files = &corpus.manifest().files;
        memory.mapped += files.iter().map(|file| file.size_bytes).sum::<u64>();
        documents += corpus.manifest().documents as usize;
        if memory.models.is_empty() {
            let folder = options.encoder.as_deref();
            let encoder = encoder_of(corpus.file(), folder, options.device.clone())?;
            memory.models.push(SearchModel::of("encoder", &encoder)?);
        }
    }
    if let Some(reranker) = options.reranker_options()? {
        memory.models.push(SearchModel::of("reranker", &reranker)?);
    }
    // Where each document's record begins.
    let footprint = Footprint { scratch: documents * size_of::<u64>(), ..Footprint::default() };
    memory.models.push(SearchModel { name: "tables of documents".to_owned(), footprint });
    Ok(memory)
}

impl SearchModel {
    fn of(role: &str, options: &EncoderOptions) -> Result<SearchModel, Failure> {
        let folder = options.directory.file_name().unwrap_or_default().to_string_lossy();
        Ok(SearchModel { name: format!("{role} {folder}"), footprint: footprint(options)? })
    }
}
