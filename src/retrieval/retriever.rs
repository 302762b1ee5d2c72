//! The thread that answers searches: it owns corpora, encoder and reranker, takes what waits as one batch, and remembers
//! what it has answered last.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender};

use super::corpora::Corpora;
use super::search::Searcher;
use super::{Retrieve, RetrieverOptions, SearchRequest, SearchResult, Searched};
use crate::corpus::CorpusError;
use crate::corpus::embed::{Embed, encoder_of, expect_encoder};
use crate::diagnosis::Failure;
use crate::encoder::{Encoder, Reranker};
use crate::ops::{Cpu, Device};
use crate::record::SearchTimes;

/// Searches at once: a batch of them is one scan.
const MOST: usize = 64;
/// Results that are remembered, of some ten kilobytes each: those of a long run's items at work, and no more of a server's.
const MOST_KNOWN: usize = 4096;

/// A handle on the thread; dropped, it ends.
pub struct Retriever {
    searched: Searched,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// A request and where its result goes.
struct Job {
    request: SearchRequest,
    reply: Sender<Answer>,
}

type Answer = Result<SearchResult, Failure>;

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
        let Some(first) = corpora.shelves.first() else {
            return Err(Failure::usage(
                "there is no corpus to search",
                "name one with --corpus DIR",
            ));
        };
        let file = first.corpus.file();
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
        Retriever::start(Searcher {
            corpora,
            encoder: Box::new(encoder),
            reranker,
            rerank: options.rerank,
            refinement: options.corpus.refinement.clone(),
            cpu,
        })
    }

    pub(super) fn start(searcher: Searcher) -> Result<Retriever, Failure> {
        let searched = searcher.corpora.searched.clone();
        let (jobs, waiting) = crossbeam_channel::unbounded();
        let thread = thread::Builder::new().name("retriever".to_owned());
        let thread = thread.spawn(move || answer_all(&searcher, &waiting))?;
        Ok(Retriever { searched, jobs: Some(jobs), thread: Some(thread) })
    }

    /// The results of several requests, in order. They wait together, and so share scans.
    pub fn search_all(&self, requests: &[SearchRequest]) -> Result<Vec<SearchResult>, Failure> {
        let asked = requests.iter().map(|request| self.ask(request));
        let asked = asked.collect::<Result<Vec<_>, _>>()?;
        asked.into_iter().map(answer).collect()
    }

    /// Puts a request before the thread; `None` where there is nothing to look for.
    fn ask(&self, request: &SearchRequest) -> Result<Option<Receiver<Answer>>, Failure> {
        if request.query.trim().is_empty() {
            return Ok(None);
        }
        let (reply, result) = crossbeam_channel::bounded(1);
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        jobs.send(Job { request: request.clone(), reply }).map_err(|_| gone())?;
        Ok(Some(result))
    }
}

impl Retrieve for Retriever {
    fn searched(&self) -> &Searched {
        &self.searched
    }

    fn search(&self, request: &SearchRequest) -> Result<SearchResult, Failure> {
        answer(self.ask(request)?)
    }
}

/// Waits for an answer.
fn answer(asked: Option<Receiver<Answer>>) -> Answer {
    match asked {
        None => Ok(SearchResult::default()),
        Some(result) => result.recv().map_err(|_| gone())?,
    }
}

fn gone() -> Failure {
    Failure::from(std::io::Error::other("the thread that searches has ended"))
}

impl Drop for Retriever {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // What panicked there was told to whoever waited.
            let _ = thread.join();
        }
    }
}

/// Results of the last searches, so that equal ones are not made again.
#[derive(Default)]
struct Known {
    results: HashMap<SearchRequest, SearchResult>,
    /// The oldest first.
    order: VecDeque<SearchRequest>,
}

impl Known {
    fn get(&self, request: &SearchRequest) -> Option<SearchResult> {
        self.results.get(request).map(cached)
    }

    fn insert(&mut self, request: SearchRequest, result: SearchResult) {
        if self.results.insert(request.clone(), result).is_none() {
            self.order.push_back(request);
        }
    }

    /// Forgets the oldest beyond [`MOST_KNOWN`].
    fn trim(&mut self) {
        while self.order.len() > MOST_KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.results.remove(&oldest);
        }
    }
}

fn answer_all(searcher: &Searcher, waiting: &Receiver<Job>) {
    let mut known = Known::default();
    while let Ok(first) = waiting.recv() {
        let mut jobs = vec![first];
        jobs.extend(waiting.try_iter().take(MOST - 1));
        let mut new: Vec<&SearchRequest> = Vec::new();
        for Job { request, .. } in &jobs {
            if !known.results.contains_key(request) && !new.contains(&request) {
                new.push(request);
            }
        }
        let mut fresh: HashMap<SearchRequest, Result<SearchResult, Failure>> = HashMap::new();
        match try_answer(searcher, &new) {
            Ok(results) => {
                let asked = new.iter().copied().cloned();
                fresh.extend(asked.zip(results.into_iter().map(Ok)));
            }
            // One that fails should not fail the others: each for itself.
            Err(_) => {
                for request in &new {
                    let result = try_answer(searcher, &[request]);
                    let first =
                        result.and_then(|results| results.into_iter().next().ok_or_else(nothing));
                    fresh.insert(SearchRequest::clone(request), first);
                }
            }
        }
        for Job { request, reply } in &jobs {
            let result = match fresh.remove(request) {
                Some(Ok(result)) => {
                    known.insert(request.clone(), result.clone());
                    Ok(result)
                }
                Some(Err(failure)) => Err(failure),
                None => known.get(request).ok_or_else(nothing),
            };
            // Whoever asked may be gone.
            let _ = reply.send(result);
        }
        known.trim();
    }
}

/// Searches. A panic is the error of this search, and the thread goes on: it changes nothing that the next one reads.
fn try_answer(
    searcher: &Searcher,
    requests: &[&SearchRequest],
) -> Result<Vec<SearchResult>, Failure> {
    catch_unwind(AssertUnwindSafe(|| searcher.answer(requests))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let reason = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason");
        Err(Failure::machine(
            format!("a search ended in a panic: {reason}"),
            "report it with the query; other searches go on",
        ))
    })
}

fn cached(result: &SearchResult) -> SearchResult {
    SearchResult { took: SearchTimes::default(), is_cached: true, ..result.clone() }
}

fn nothing() -> Failure {
    CorpusError::from(std::io::Error::other("an equal search failed beside this one")).into()
}
