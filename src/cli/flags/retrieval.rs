//! What the flags of systems that search come to: whole paths, and a reranker's folder by its card.

use std::path::PathBuf;

use crate::cli::exit::Failure;
use crate::cli::options::model_folder;
use crate::experiment::spec::Spec;
use crate::retrieval::{CorpusSpec, Rerank};

/// The folder of the reranker.
pub fn reranker(given: &CorpusSpec) -> Result<Option<PathBuf>, Failure> {
    let folder = given.reranker.as_deref().map(model_folder).transpose()?;
    Ok(folder.map(std::path::absolute).transpose()?)
}

/// The spec that flags ask for; `None` without a corpus.
pub fn corpus(given: &CorpusSpec) -> Result<Option<CorpusSpec>, Failure> {
    if given.directories.is_empty() {
        let hint = "give --corpus DIR";
        return match *given == CorpusSpec::default() {
            true => Ok(None),
            false => Err(Failure::usage(
                "a flag of searching, such as --reranker or --sources, needs a corpus",
                hint,
            )),
        };
    }
    let directories =
        given.directories.iter().map(std::path::absolute).collect::<Result<_, _>>()?;
    Ok(Some(CorpusSpec { directories, reranker: reranker(given)?, ..given.clone() }))
}

/// # Errors
/// A reranker, where nothing is reranked by one.
pub fn refuse_idle_reranker(spec: &Spec) -> Result<(), Failure> {
    let is_given = spec.corpus.as_ref().is_some_and(|corpus| corpus.reranker.is_some());
    let reranks = spec.config.search().is_some_and(|one| one.rerank == Rerank::CrossEncoder);
    match is_given && !reranks {
        false => Ok(()),
        true => Err(Failure::usage(
            format!("{} reranks by no cross-encoder here", spec.config.entry.name),
            "leave --reranker out, or give --set rerank=cross-encoder to a system that has it",
        )),
    }
}
