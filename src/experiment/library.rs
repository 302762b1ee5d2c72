//! What a run searches: opened before anything is loaded, once for all runs that search the same.

use std::path::Path;
use std::sync::Arc;

use super::exemplars::{ExemplarSpec, Shown};
use super::models::Models;
use super::run::Run;
use super::spec::Spec;
use crate::diagnosis::Failure;
use crate::hub::{self, HubOptions};
use crate::model::Footprint;
use crate::ops::Device;
use crate::retrieval::{self, CorpusSpec, Retrieve, Retriever, RetrieverOptions};

/// Characters per token in English prose, by which the longest prompt is estimated. A prompt that is longer than the context after all
/// fails its item with an error; no prompt is truncated.
const CHARS_PER_TOKEN: usize = 4;
/// Characters of a quoted passage beside its chunk.
const PASSAGE_FRAME: usize = 100;
/// Tokens that a completion needs at most in the published release.
const COMPLETION_TOKENS: usize = 1200;

/// What several runs show and search, each once.
#[derive(Default)]
pub struct Shared {
    pub(super) shown: Vec<(ExemplarSpec, Shown)>,
    libraries: Vec<Arc<Retriever>>,
}

impl CorpusSpec {
    /// The same with whole paths, and the folder of a reranker that is named by its card; files of it that are not cached are downloaded.
    pub fn whole(mut self) -> Result<CorpusSpec, Failure> {
        for path in &mut self.directories {
            *path = std::path::absolute(&*path)?;
        }
        if let Some(named) = &mut self.reranker {
            *named = std::path::absolute(hub::folder(named, &HubOptions::capture()?)?)?;
        }
        Ok(self)
    }
}

/// Whether two runs can share a retriever.
pub(super) fn is_equal(one: &RetrieverOptions, other: &RetrieverOptions) -> bool {
    (&one.corpus, one.rerank) == (&other.corpus, other.rerank)
}

impl Shared {
    /// What searches by these options; that of another run, where it is equal.
    fn find(&mut self, options: RetrieverOptions) -> Result<Arc<Retriever>, Failure> {
        if let Some(known) = self.libraries.iter().find(|one| is_equal(one.options(), &options)) {
            return Ok(known.clone());
        }
        let retriever = Arc::new(Retriever::open(options)?);
        self.libraries.push(retriever.clone());
        Ok(retriever)
    }
}

impl Spec {
    /// What the system searches.
    ///
    /// # Errors
    /// A corpus where none is searched, none where one is; one that cannot be read.
    pub fn library(
        &self,
        models: &Models,
        shared: &mut Shared,
    ) -> Result<Option<Arc<Retriever>>, Failure> {
        let options = self.retriever_options(&models.devices)?;
        options.map(|options| shared.find(options)).transpose()
    }

    /// What the system searches and by what; the panel computes on `devices`.
    ///
    /// # Errors
    /// A corpus where none is searched, none where one is.
    pub(super) fn retriever_options(
        &self,
        devices: &[Device],
    ) -> Result<Option<RetrieverOptions>, Failure> {
        let name = self.config.entry.name;
        let (search, spec) = match (self.config.search(), &self.corpus) {
            (Some(search), Some(spec)) if !spec.directories.is_empty() => (search, spec),
            (None, None) => return Ok(None),
            (Some(_), _) => {
                return Err(Failure::usage(
                    format!("{name} searches a corpus, and none was given"),
                    "give --corpus DIR, which `wardround corpus build` writes",
                ));
            }
            (None, Some(_)) => {
                let hint = "leave --corpus out, or run medreact, medreflex or em-mixers";
                return Err(Failure::usage(format!("{name} searches no corpus"), hint));
            }
        };
        if let Some(missing) = spec.directories.iter().find(|path| !Path::is_dir(path)) {
            let message = format!("{} is no directory", missing.display());
            return Err(Failure::usage(message, "`wardround corpus build` writes a corpus"));
        }
        Ok(Some(RetrieverOptions {
            corpus: spec.clone(),
            rerank: search.rerank,
            encoder: None,
            device: self.hardware.compute.on.of_encoders(devices)?,
        }))
    }
}

impl Run {
    /// Refuses items of a system that searches whose longest prompt leaves a member no room, before anything is loaded.
    pub(super) fn refuse_long_prompts(&self) -> Result<(), Failure> {
        let Some(library) = &self.library else { return Ok(()) };
        let chars = library.searched().longest_chunk_chars + PASSAGE_FRAME;
        let items = self.items.iter();
        let prompts =
            items.filter_map(|item| Some((self.system.longest_prompt(item, chars)?, item.id())));
        let Some((chars, item)) = prompts.max() else { return Ok(()) };
        let tokens = chars.div_ceil(CHARS_PER_TOKEN);
        let limit = self.settings.max_tokens;
        let completion = limit.map_or(COMPLETION_TOKENS, |limit| limit.min(COMPLETION_TOKENS));
        let needed = tokens + completion;
        let local = self.plan.panel.iter().filter(|member| !member.is_remote());
        let Some(member) = local.filter(|member| member.context < needed).min_by_key(|m| m.context)
        else {
            return Ok(());
        };
        Err(Failure::usage(
            format!(
                "the longest prompt of {item} can come to {needed} tokens, its completion among them, and {} has a context of {} \
                 (passages of at most {} characters, {CHARS_PER_TOKEN} characters a token)",
                member.backbone,
                member.context,
                library.searched().longest_chunk_chars
            ),
            &format!(
                "quote less: --set rerank_top_k=5 or --set results_kept=last; or give more room: --context {needed}, where the model takes it"
            ),
        ))
    }
}

/// The memory that the retrievers of these runs take, each once.
///
/// # Errors
/// A corpus where none is searched, none where one is; a corpus or a model that cannot be read.
pub fn memory_of_retrievers(
    specs: &[Spec],
    devices: &[Device],
) -> Result<Vec<(String, Footprint)>, Failure> {
    let (mut retrievers, mut models) = (Vec::<RetrieverOptions>::new(), Vec::new());
    for spec in specs {
        let Some(options) = spec.retriever_options(devices)? else { continue };
        if !retrievers.iter().any(|known| is_equal(known, &options)) {
            models.extend(retrieval::memory(&options)?);
            retrievers.push(options);
        }
    }
    Ok(models)
}

#[cfg(test)]
mod tests;
