//! What the flags of systems that search come to: whole paths, and a reranker's folder by its card.

use std::path::PathBuf;

use crate::cli::exit::Failure;
use crate::cli::list;
use crate::cli::options::model_folder;
use crate::retrieval::{CorpusSpec, Refinement};

/// The folder of the reranker.
pub fn reranker(given: &CorpusSpec) -> Result<Option<PathBuf>, Failure> {
    let folder = given.reranker.as_deref().map(model_folder).transpose()?;
    Ok(folder.map(std::path::absolute).transpose()?)
}

/// The spec that flags ask for; `None` without a corpus.
pub fn corpus(given: &CorpusSpec) -> Result<Option<CorpusSpec>, Failure> {
    if given.directories.is_empty() && given.refinement != Refinement::default() {
        let message = "--hybrid, --dedup and --newer-than need a corpus";
        return Err(Failure::usage(message, "give --corpus DIR"));
    }
    if given.directories.is_empty() {
        return Ok(None);
    }
    let directories = list::paths(&given.directories)?;
    let directories = directories.iter().map(std::path::absolute).collect::<Result<_, _>>()?;
    Ok(Some(CorpusSpec { directories, reranker: reranker(given)?, ..given.clone() }))
}

/// With the best of overlapping passages alone: the reader of a single case wants no repeats.
pub fn deduplicated(mut corpus: CorpusSpec) -> CorpusSpec {
    corpus.refinement.dedup = true;
    corpus
}
