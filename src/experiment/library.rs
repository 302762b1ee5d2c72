//! What a run searches: opened before anything is loaded, once for all runs that search the same.

use std::path::Path;
use std::sync::Arc;

use super::exemplars::{ExemplarSpec, Shown};
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

impl Shared {
    /// Opens what these runs search, each once, and gives the memory that its models will take; the panel computes on `devices`.
    pub fn open(
        &mut self,
        specs: &[Spec],
        devices: &[Device],
    ) -> Result<Vec<(String, Footprint)>, Failure> {
        specs.iter().try_for_each(|spec| spec.library(devices, self).map(drop))?;
        let all = self.libraries.iter().map(|library| retrieval::memory(&library.options));
        Ok(all.collect::<Result<Vec<_>, _>>()?.concat())
    }
}

impl Spec {
    /// What the system searches; that of another run, where it is equal. The panel computes on `devices`.
    ///
    /// # Errors
    /// A corpus where none is searched, none where one is; one that cannot be read.
    pub(super) fn library(
        &self,
        devices: &[Device],
        shared: &mut Shared,
    ) -> Result<Option<Arc<Retriever>>, Failure> {
        let name = self.config.entry.name;
        let (rerank, spec) = match (self.config.search(), &self.corpus) {
            (Some(rerank), Some(spec)) if !spec.directories.is_empty() => (rerank, spec),
            (None, None) => return Ok(None),
            (Some(_), _) => {
                return Err(Failure::usage(
                    format!("{name} searches a corpus, and none was given"),
                    "give --corpus DIR, which `wardround corpus build` writes",
                ));
            }
            (None, Some(_)) => {
                let hint = "leave --corpus out, or run medreact or medreflex";
                return Err(Failure::usage(format!("{name} searches no corpus"), hint));
            }
        };
        if let Some(missing) = spec.directories.iter().find(|path| !Path::is_dir(path)) {
            let message = format!("{} is no directory", missing.display());
            return Err(Failure::usage(message, "`wardround corpus build` writes a corpus"));
        }
        let is_equal =
            |one: &&Arc<Retriever>| (&one.options.corpus, one.options.rerank) == (spec, rerank);
        if let Some(known) = shared.libraries.iter().find(is_equal) {
            return Ok(Some(known.clone()));
        }
        let device = self.hardware.compute.on.of_encoders(devices)?;
        let options = RetrieverOptions { corpus: spec.clone(), rerank, encoder: None, device };
        let retriever = Arc::new(Retriever::open(options)?);
        shared.libraries.push(retriever.clone());
        Ok(Some(retriever))
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
                "quote less: --set rerank_top_k=5; or give more room: --context {needed}, where the model takes it"
            ),
        ))
    }
}

#[cfg(test)]
mod tests;
