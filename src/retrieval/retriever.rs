//! The thread that answers searches: it owns corpora, encoder and reranker, takes what waits as one batch, and remembers
//! what it has answered last.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender};

use super::corpora::Corpora;
use super::search::Searcher;
use super::{Retrieve, RetrieverOptions, SearchRequest, SearchResult, Searched};
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
        Retriever::start(Searcher {
            corpora,
            encoder: Box::new(encoder),
            reranker,
            rerank: options.rerank,
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
        let asked: Vec<_> = requests.iter().map(|request| self.ask(request)).collect();
        asked.into_iter().map(answer).collect()
    }

    /// Puts a request before the thread, where there is something to look for.
    fn ask(&self, request: &SearchRequest) -> Receiver<Answer> {
        let (reply, answer) = crossbeam_channel::bounded(1);
        if request.query.trim().is_empty() {
            let _ = reply.send(Ok(SearchResult::default()));
        } else if let Some(jobs) = &self.jobs {
            // Where the thread is gone the reply goes with the job, and whoever waits is told.
            let _ = jobs.send(Job { request: request.clone(), reply });
        }
        answer
    }
}

impl Retrieve for Retriever {
    fn searched(&self) -> &Searched {
        &self.searched
    }

    fn search(&self, request: &SearchRequest) -> Result<SearchResult, Failure> {
        answer(self.ask(request))
    }
}

/// Waits for an answer.
fn answer(asked: Receiver<Answer>) -> Answer {
    let gone = |_| std::io::Error::other("the thread that searches has ended");
    asked.recv().map_err(gone)?
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

fn answer_all(searcher: &Searcher, waiting: &Receiver<Job>) {
    // Results of the last searches, so that equal ones are not made again.
    let mut known: HashMap<SearchRequest, SearchResult> = HashMap::new();
    let mut oldest_first: VecDeque<SearchRequest> = VecDeque::new();
    while let Ok(first) = waiting.recv() {
        let mut jobs = vec![first];
        jobs.extend(waiting.try_iter().take(MOST - 1));
        let mut new: Vec<&SearchRequest> = Vec::new();
        for Job { request, .. } in &jobs {
            if !known.contains_key(request) && !new.contains(&request) {
                new.push(request);
            }
        }
        let answers: Vec<Answer> = match try_answer(searcher, &new) {
            Ok(results) => results.into_iter().map(Ok).collect(),
            // One that fails should not fail the others: each for itself.
            Err(_) => {
                new.iter().map(|request| Ok(try_answer(searcher, &[request])?.remove(0))).collect()
            }
        };
        let mut fresh: HashMap<&SearchRequest, Answer> = new.into_iter().zip(answers).collect();
        for Job { request, reply } in &jobs {
            let answer = match fresh.remove(request) {
                Some(answer) => answer.inspect(|result| {
                    known.insert(request.clone(), result.clone());
                    oldest_first.push_back(request.clone());
                }),
                None => known.get(request).map(cached).ok_or_else(|| {
                    std::io::Error::other("an equal search failed beside this one").into()
                }),
            };
            // Whoever asked may be gone.
            let _ = reply.send(answer);
        }
        while oldest_first.len() > MOST_KNOWN
            && let Some(oldest) = oldest_first.pop_front()
        {
            known.remove(&oldest);
        }
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
