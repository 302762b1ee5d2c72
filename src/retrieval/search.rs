//! A search: the query is encoded, each corpus scanned, and all pairs are reranked at once.

use std::sync::Arc;
use std::time::Instant;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::corpora::Corpora;
use super::{Rerank, SearchRequest, SearchResult};
use crate::corpus::embed::{Embed, cut};
use crate::corpus::store::Chunk;
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::encoder::{Embedded, Pair, Reranker, between_0_and_1};
use crate::ops::Cpu;
use crate::record::{Passage, RetrievedChunk, SearchTimes};

/// What is escaped of an id in an address (RFC 3986); that of a file keeps its folders.
const IN_URL: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Everything that answers.
pub struct Searcher {
    pub corpora: Arc<Corpora>,
    pub encoder: Box<dyn Embed + Send>,
    pub reranker: Option<Reranker>,
    pub rerank: Rerank,
    /// What scans.
    pub cpu: Cpu,
}

/// The number of a corpus, and of a chunk in it.
type Place = (usize, usize);

/// A chunk that was found, as it may be shown.
struct Candidate {
    place: Place,
    /// What decides its rank: of reranking the logit, since the logistic function makes equals of great ones.
    order: f32,
    passage: Passage,
}

impl Searcher {
    pub fn answer(&self, request: &SearchRequest) -> Result<SearchResult, Failure> {
        let started = Instant::now();
        let Embedded { vectors, cut } = self.encoder.embed_queries(&[&request.query])?;
        let (vector, is_query_cut) = (&vectors[0], cut[0]);
        let embed_ms = milliseconds(started);
        let started = Instant::now();
        let found = self.scan(request.retrieve_top_k, vector)?;
        let scan_ms = milliseconds(started);
        let started = Instant::now();
        let found = found.into_iter().map(|(place, score)| self.candidate(place, score));
        let mut candidates = found.collect::<Result<Vec<Candidate>, Failure>>()?;
        let retrieved = candidates.iter().map(retrieved_chunk).collect();
        self.rerank(&request.query, vector, &mut candidates)?;
        let took = SearchTimes { embed_ms, scan_ms, rerank_ms: milliseconds(started) };
        let best = candidates.into_iter().take(request.rerank_top_k);
        let shown = best.map(|candidate| candidate.passage).collect();
        Ok(SearchResult { retrieved, shown, took, is_query_cut, is_cached: false })
    }

    /// The best chunks of all corpora with their scores, best first.
    fn scan(&self, count: usize, vector: &[f32]) -> Result<Vec<(Place, f32)>, Failure> {
        let mut found = Vec::new();
        for (number, shelf) in self.corpora.shelves.iter().enumerate() {
            let rows = shelf.corpus.vectors()?;
            let form = shelf.corpus.manifest().vectors;
            let query = rows.query(&cut(vector, form.dims, form.normalised));
            let hits = self.cpu.scan(&rows, &query, &shelf.ranges, count);
            found.extend(hits.into_iter().map(|hit| ((number, hit.row), hit.score)));
        }
        found.sort_by(|(place, score): &(Place, f32), (other, less)| {
            less.total_cmp(score).then(place.cmp(other))
        });
        found.truncate(count);
        Ok(found)
    }

    fn candidate(&self, place: Place, score: f32) -> Result<Candidate, Failure> {
        let (shelf, number) = place;
        let corpus = &self.corpora.shelves[shelf].corpus;
        let Chunk { text, record } = corpus.chunk(number)?;
        let document = corpus.document(record.document)?;
        let source = &corpus.source(&record).description;
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let of_template = |template: &String| {
            template.replace("{id}", &utf8_percent_encode(document.id, IN_URL).to_string())
        };
        let passage = Passage {
            chunk: corpus.name(number)?,
            source: source.label.clone(),
            title: document.title.to_owned(),
            paragraph: record.paragraph,
            score,
            sha256: sha256(text),
            text: Some(text.to_owned()),
            url: given(document.url).or_else(|| source.url_template.as_ref().map(of_template)),
            date: given(document.date),
            licence: given(&source.licence),
        };
        Ok(Candidate { place, order: score, passage })
    }

    /// Puts the candidates in the order of reranking.
    fn rerank(
        &self,
        query: &str,
        vector: &[f32],
        candidates: &mut [Candidate],
    ) -> Result<(), Failure> {
        match (self.rerank, &self.reranker) {
            (Rerank::CrossEncoder, Some(reranker)) => {
                let pairs = candidates.iter().map(|candidate| Pair {
                    query,
                    title: &candidate.passage.title,
                    text: candidate.text(),
                });
                let scores = reranker.score(&pairs.collect::<Vec<_>>())?;
                for (candidate, score) in candidates.iter_mut().zip(scores) {
                    candidate.order = score;
                    candidate.passage.score = between_0_and_1(score);
                }
            }
            (Rerank::Embedding, _) => {
                for candidate in candidates.iter_mut() {
                    let (shelf, chunk) = candidate.place;
                    let rows = self.corpora.shelves[shelf].corpus.full_vectors()?;
                    candidate.order = cosine(vector, &rows.numbers(chunk)) as f32;
                    candidate.passage.score = candidate.order;
                }
            }
            _ => return Ok(()),
        }
        // Of equals the one that was retrieved first.
        candidates.sort_by(|one, other| other.order.total_cmp(&one.order));
        Ok(())
    }
}

impl Candidate {
    fn text(&self) -> &str {
        self.passage.text.as_deref().unwrap_or_default()
    }
}

fn retrieved_chunk(Candidate { order: score, passage, .. }: &Candidate) -> RetrievedChunk {
    RetrievedChunk { chunk: passage.chunk.clone(), score: *score }
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// The cosine similarity, in f64 and in order; 0 where a vector is all zeros.
pub fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let dot = |one: &[f32], other: &[f32]| -> f64 {
        one.iter().zip(other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum()
    };
    let lengths = (dot(one, one) * dot(other, other)).sqrt();
    if lengths > 0.0 { dot(one, other) / lengths } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_in_an_address_is_the_same_id_behind_it() {
        let in_url = |id| utf8_percent_encode(id, IN_URL).to_string();
        assert_eq!(in_url("ward/a-1_~.md"), "ward/a-1_~.md");
        assert_eq!(
            in_url("What is a fever? #2&b=50%+"),
            "What%20is%20a%20fever%3F%20%232%26b%3D50%25%2B"
        );
        assert_eq!(in_url("sjögren\n\"'<>"), "sj%C3%B6gren%0A%22%27%3C%3E");
    }
}
