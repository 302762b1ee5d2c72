//! What answers searches, one after another: it owns corpora, encoder and reranker, and remembers what it has answered last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::corpora::Corpora;
use super::search::Searcher;
use super::{Retrieve, RetrieverOptions, SearchRequest, SearchResult, Searched};
use crate::corpus::embed::{Embed, encoder_of, expect_encoder};
use crate::diagnosis::Failure;
use crate::encoder::{Encoder, Reranker};
use crate::ops::{Cpu, Device};
use crate::record::SearchTimes;

/// Results that are remembered, of some ten kilobytes each: more than a run's items at work ask for.
const MOST_KNOWN: usize = 4096;

/// The corpora of runs and what searches them, each time on all threads.
pub struct Retriever {
    pub options: RetrieverOptions,
    pub(super) corpora: Arc<Corpora>,
    turn: Mutex<Turn>,
}

/// What the search at hand works with: the models, which are loaded on first use, and what was found before.
#[derive(Default)]
pub(super) struct Turn {
    pub(super) searcher: Option<Searcher>,
    known: Known,
}

type Known = HashMap<SearchRequest, SearchResult>;

impl Retriever {
    /// Opens the corpora: no vector is read, no model loaded.
    ///
    /// # Errors
    /// A directory that is no corpus; corpora of several encoders; a source that none of them has; no reranker where one is needed.
    pub fn open(options: RetrieverOptions) -> Result<Retriever, Failure> {
        let corpora = Arc::new(Corpora::open(&options)?);
        Ok(Retriever { options, corpora, turn: Mutex::default() })
    }

    /// The same with its models loaded.
    ///
    /// # Errors
    /// A model that cannot be loaded, or is another than the corpora's.
    pub fn loaded(self: &Arc<Self>) -> Result<Arc<dyn Retrieve>, Failure> {
        self.searcher(&mut self.turn())?;
        Ok(self.clone())
    }

    pub(super) fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn searcher<'a>(&self, turn: &'a mut Turn) -> Result<(&'a Searcher, &'a mut Known), Failure> {
        let searcher = match turn.searcher.take() {
            Some(searcher) => searcher,
            None => self.load()?,
        };
        let searcher: &Searcher = turn.searcher.insert(searcher);
        Ok((searcher, &mut turn.known))
    }

    fn load(&self) -> Result<Searcher, Failure> {
        let options = &self.options;
        let file = &self.corpora.shelves[0].corpus.file;
        let directory = options.encoder.as_deref();
        let encoder = Encoder::open(&encoder_of(file, directory, options.device.clone())?)?;
        // Another kind of device gives the same vectors up to rounding, which is enough for queries.
        let alike = |mut identity: toml::Table| {
            identity.remove("device_kind");
            identity
        };
        expect_encoder(&alike(file.manifest.encoder.clone()), &alike(Embed::identity(&encoder)?))?;
        let reranker = options.reranker_options()?;
        let reranker = reranker.map(|options| Reranker::open(&options)).transpose()?;
        let cpu = match &options.device {
            Device::Cpu(cpu) => cpu.clone(),
            other => Cpu::new(other.threads())?,
        };
        let (corpora, rerank) = (self.corpora.clone(), options.rerank);
        Ok(Searcher { corpora, encoder: Box::new(encoder), reranker, rerank, cpu })
    }
}

impl Retrieve for Retriever {
    fn searched(&self) -> &Searched {
        &self.corpora.searched
    }

    fn search(&self, request: &SearchRequest) -> Result<SearchResult, Failure> {
        if request.query.trim().is_empty() {
            return Ok(SearchResult::default());
        }
        let mut turn = self.turn();
        let (searcher, known) = self.searcher(&mut turn)?;
        if let Some(result) = known.get(request) {
            let took = SearchTimes::default();
            return Ok(SearchResult { took, is_cached: true, ..result.clone() });
        }
        let result = searcher.answer(request)?;
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(request.clone(), result.clone());
        Ok(result)
    }
}
