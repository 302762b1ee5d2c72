//! What answers searches, one after another: it owns corpora, encoder and reranker, and remembers what it has answered last.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use super::corpora::Corpora;
use super::search::Searcher;
use super::{Retrieve, RetrieverOptions, SearchRequest, SearchResult, Searched};
use crate::corpus::embed::{Embed, encoder_of, expect_encoder};
use crate::diagnosis::Failure;
use crate::encoder::{Encoder, Reranker};
use crate::ops::{Cpu, Device};
use crate::record::SearchTimes;

/// Results that are remembered, of some ten kilobytes each: those of a long run's items at work, and no more of a server's.
const MOST_KNOWN: usize = 4096;

/// Searches, each on all threads.
pub struct Retriever {
    searched: Searched,
    turn: Mutex<(Searcher, Known)>,
}

/// Results of the last searches, so that equal ones are not made again.
#[derive(Default)]
struct Known {
    results: HashMap<SearchRequest, SearchResult>,
    oldest_first: VecDeque<SearchRequest>,
}

impl Retriever {
    /// As what was described as `known`, whose sums are not computed again.
    ///
    /// # Errors
    /// A corpus or a model that cannot be opened.
    pub fn open(
        options: &RetrieverOptions,
        known: Option<&Searched>,
    ) -> Result<Retriever, Failure> {
        let corpora = Corpora::open(options, known)?;
        let file = corpora.shelves[0].corpus.file();
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
        Ok(Retriever::new(Searcher {
            corpora,
            encoder: Box::new(encoder),
            reranker,
            rerank: options.rerank,
            cpu,
        }))
    }

    pub(super) fn new(searcher: Searcher) -> Retriever {
        let searched = searcher.corpora.searched.clone();
        Retriever { searched, turn: Mutex::new((searcher, Known::default())) }
    }
}

impl Retrieve for Retriever {
    fn searched(&self) -> &Searched {
        &self.searched
    }

    fn search(&self, request: &SearchRequest) -> Result<SearchResult, Failure> {
        if request.query.trim().is_empty() {
            return Ok(SearchResult::default());
        }
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (searcher, known) = &mut *turn;
        if let Some(result) = known.results.get(request) {
            let took = SearchTimes::default();
            return Ok(SearchResult { took, is_cached: true, ..result.clone() });
        }
        let result = try_answer(searcher, request)?;
        known.results.insert(request.clone(), result.clone());
        known.oldest_first.push_back(request.clone());
        if known.oldest_first.len() > MOST_KNOWN
            && let Some(oldest) = known.oldest_first.pop_front()
        {
            known.results.remove(&oldest);
        }
        Ok(result)
    }
}

/// Searches. A panic is the error of this search, and others go on: it changes nothing that the next one reads.
fn try_answer(searcher: &Searcher, request: &SearchRequest) -> Result<SearchResult, Failure> {
    catch_unwind(AssertUnwindSafe(|| searcher.answer(request))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let reason = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason");
        Err(Failure::machine(
            format!("a search ended in a panic: {reason}"),
            "report it with the query; other searches go on",
        ))
    })
}
