//! A batch of searches: queries encoded together, one scan of each corpus, all pairs reranked at once.

use std::time::Instant;

use super::corpora::Corpora;
use super::{Refinement, Rerank, SearchRequest, SearchResult};
use crate::corpus::CorpusError;
use crate::corpus::embed::{Embed, cut};
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::encoder::{Pair, Reranker, between_0_and_1};
use crate::ops::Cpu;
use crate::ops::vectors::Query;
use crate::record::{Passage, RetrievedChunk, SearchTimes};

/// Characters from which on two chunks of a document overlap too much to be shown both.
const OVERLAP: usize = 150;

/// Everything that answers.
pub struct Searcher {
    pub corpora: Corpora,
    pub encoder: Box<dyn Embed + Send>,
    pub reranker: Option<Reranker>,
    pub rerank: Rerank,
    pub refinement: Refinement,
    /// What scans.
    pub cpu: Cpu,
}

/// A chunk of one of the corpora.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    shelf: usize,
    chunk: usize,
}

/// A chunk with its score.
#[derive(Clone, Copy)]
struct Found {
    place: Place,
    score: f32,
}

/// A passage on its way.
struct Candidate {
    found: Found,
    /// Of reranking.
    score: f32,
    text: String,
    title: String,
    document: (usize, u32),
}

impl Searcher {
    /// The results of the requests, in order; none depends on the others.
    pub fn answer(&self, requests: &[&SearchRequest]) -> Result<Vec<SearchResult>, Failure> {
        let started = Instant::now();
        let queries: Vec<&str> = requests.iter().map(|request| &*request.query).collect();
        let embedded = self.encoder.embed_queries(&queries)?;
        let embed_ms = milliseconds(started);
        let started = Instant::now();
        let found = self.scan(requests, &embedded.vectors)?;
        let scan_ms = milliseconds(started);
        let started = Instant::now();
        let mut shown = Vec::new();
        for found in &found {
            shown.push(self.candidates(found)?);
        }
        self.rerank(requests, &embedded.vectors, &mut shown)?;
        let took = SearchTimes { embed_ms, scan_ms, rerank_ms: milliseconds(started) };
        let mut results = Vec::new();
        for (index, (found, candidates)) in found.iter().zip(shown).enumerate() {
            results.push(SearchResult {
                retrieved: found
                    .iter()
                    .map(|found| self.retrieved(found))
                    .collect::<Result<_, _>>()?,
                shown: self.show(candidates, requests[index].rerank_top_k)?,
                took,
                is_query_cut: embedded.cut.get(index).copied().unwrap_or_default(),
                is_cached: false,
            });
        }
        Ok(results)
    }

    /// Of each request its best chunks, best first.
    fn scan(
        &self,
        requests: &[&SearchRequest],
        vectors: &[Vec<f32>],
    ) -> Result<Vec<Vec<Found>>, Failure> {
        let most = requests.iter().map(|request| request.retrieve_top_k).max().unwrap_or_default();
        let mut found = vec![Vec::new(); requests.len()];
        for (shelf, this) in self.corpora.shelves.iter().enumerate() {
            let rows = this.corpus.vectors()?;
            let form = this.corpus.manifest().vectors;
            let queries: Vec<Query> = vectors
                .iter()
                .map(|vector| rows.query(&cut(vector, form.dims, form.normalised)))
                .collect();
            let hits = self.cpu.scan(&rows, &queries, &this.ranges, most);
            for (found, hits) in found.iter_mut().zip(hits) {
                found.extend(
                    hits.into_iter().map(|hit| Found {
                        place: Place { shelf, chunk: hit.row },
                        score: hit.score,
                    }),
                );
            }
        }
        for (found, request) in found.iter_mut().zip(requests) {
            found.sort_by(|one, other| {
                other.score.total_cmp(&one.score).then(one.place.cmp(&other.place))
            });
            found.truncate(request.retrieve_top_k);
        }
        Ok(found)
    }

    fn candidates(&self, found: &[Found]) -> Result<Vec<Candidate>, CorpusError> {
        let candidate = |found: &Found| {
            let Place { shelf, chunk } = found.place;
            let corpus = &self.corpora.shelves[shelf].corpus;
            let chunk = corpus.chunk(chunk)?;
            Ok(Candidate {
                found: *found,
                score: found.score,
                text: chunk.text.to_owned(),
                title: corpus.document(chunk.record.document)?.title.to_owned(),
                document: (shelf, chunk.record.document),
            })
        };
        found.iter().map(candidate).collect()
    }

    /// Puts each request's candidates in the order of reranking.
    fn rerank(
        &self,
        requests: &[&SearchRequest],
        vectors: &[Vec<f32>],
        candidates: &mut [Vec<Candidate>],
    ) -> Result<(), Failure> {
        match (self.rerank, &self.reranker) {
            (Rerank::CrossEncoder, Some(reranker)) => {
                let mut pairs = Vec::new();
                for (request, candidates) in requests.iter().zip(&*candidates) {
                    let pair = |candidate: &'_ Candidate| {
                        (candidate.title.clone(), candidate.text.clone())
                    };
                    pairs.extend(
                        candidates.iter().map(|candidate| (&request.query, pair(candidate))),
                    );
                }
                let pairs: Vec<Pair<'_>> = pairs
                    .iter()
                    .map(|(query, (title, text))| Pair { query, title, text })
                    .collect();
                let scores = reranker.score(&pairs)?;
                for (candidate, score) in candidates.iter_mut().flatten().zip(scores) {
                    candidate.score = between_0_and_1(score);
                    // The order is that of the logits: the logistic function makes equals of great ones.
                    candidate.found.score = score;
                }
            }
            (Rerank::Embedding, _) => {
                for (vector, candidates) in vectors.iter().zip(&mut *candidates) {
                    for candidate in candidates {
                        let Place { shelf, chunk } = candidate.found.place;
                        let rows = self.corpora.shelves[shelf].corpus.full_vectors()?;
                        candidate.score = cosine(vector, &rows.numbers(chunk));
                        candidate.found.score = candidate.score;
                    }
                }
            }
            _ => return Ok(()),
        }
        for candidates in candidates {
            // Of equals the one that was retrieved first.
            candidates.sort_by(|one, other| other.found.score.total_cmp(&one.found.score));
        }
        Ok(())
    }

    fn retrieved(&self, found: &Found) -> Result<RetrievedChunk, CorpusError> {
        let corpus = &self.corpora.shelves[found.place.shelf].corpus;
        Ok(RetrievedChunk { chunk: corpus.name(found.place.chunk)?, score: found.score })
    }

    /// The best `count`, without those that repeat a better one.
    fn show(&self, candidates: Vec<Candidate>, count: usize) -> Result<Vec<Passage>, CorpusError> {
        let mut kept: Vec<Candidate> = Vec::new();
        for candidate in candidates {
            if kept.len() == count {
                break;
            }
            let repeats = |other: &Candidate| {
                other.document == candidate.document && overlap(&other.text, &candidate.text)
            };
            if !(self.refinement.dedup && kept.iter().any(repeats)) {
                kept.push(candidate);
            }
        }
        kept.into_iter().map(|candidate| self.passage(candidate)).collect()
    }

    fn passage(&self, candidate: Candidate) -> Result<Passage, CorpusError> {
        let Place { shelf, chunk: number } = candidate.found.place;
        let corpus = &self.corpora.shelves[shelf].corpus;
        let record = corpus.record(number)?;
        let document = corpus.document(record.document)?;
        let source = &corpus.source(&record).description;
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let template = source.url_template.as_ref();
        let url = given(document.url)
            .or_else(|| template.map(|template| template.replace("{id}", &in_url(document.id))));
        Ok(Passage {
            chunk: corpus.name(number)?,
            source: source.label.clone(),
            title: candidate.title,
            paragraph: record.paragraph,
            score: candidate.score,
            sha256: sha256(&candidate.text),
            text: Some(candidate.text),
            url,
            date: given(document.date),
            licence: given(&source.licence),
        })
    }
}

/// An id as a part of an address (RFC 3986); that of a file keeps its folders.
fn in_url(id: &str) -> String {
    let mut url = String::new();
    for byte in id.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                url.push(char::from(byte));
            }
            _ => url += &format!("%{byte:02X}"),
        }
    }
    url
}

/// Whether the end of one text is the beginning of the other over so many characters, or one holds the other.
fn overlap(one: &str, other: &str) -> bool {
    one.contains(other) || other.contains(one) || continues(one, other) || continues(other, one)
}

/// Whether `second` begins with an end of `first` of at least [`OVERLAP`] characters.
fn continues(first: &str, second: &str) -> bool {
    let ends = first.char_indices().rev().map(|(at, _)| &first[at..]);
    ends.skip(OVERLAP - 1).any(|end| second.starts_with(end))
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// In f64 and in order; 0 where one is 0.
fn cosine(one: &[f32], other: &[f32]) -> f32 {
    let dot = |one: &[f32], other: &[f32]| -> f64 {
        one.iter().zip(other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum()
    };
    let lengths = (dot(one, one) * dot(other, other)).sqrt();
    if lengths > 0.0 { (dot(one, other) / lengths) as f32 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_in_an_address_is_the_same_id_behind_it() {
        assert_eq!(in_url("ward/a-1_~.md"), "ward/a-1_~.md");
        assert_eq!(
            in_url("What is a fever? #2&b=50%+"),
            "What%20is%20a%20fever%3F%20%232%26b%3D50%25%2B"
        );
        assert_eq!(in_url("sjögren\n\"'<>"), "sj%C3%B6gren%0A%22%27%3C%3E");
    }

    #[test]
    fn texts_overlap_from_150_characters_on() {
        let text: String = (0..200).map(|number| format!("{number:03}.")).collect();
        let long = |overlap: usize| overlap_of(&text[..400], &text[400 - overlap..]);
        fn overlap_of(one: &str, other: &str) -> bool {
            assert_eq!(overlap(one, other), overlap(other, one));
            overlap(one, other)
        }
        assert!(long(150) && long(200) && !long(149));
        assert!(overlap(&text, &text[20..40]));
        assert!(!overlap("one", "two"));
    }
}
