//! A batch of searches: queries encoded together, one scan of each corpus, all pairs reranked at once.

use std::time::Instant;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::corpora::Corpora;
use super::{Rerank, SearchRequest, SearchResult};
use crate::corpus::CorpusError;
use crate::corpus::embed::{Embed, cut};
use crate::corpus::store::Chunk;
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::encoder::{Pair, Reranker, between_0_and_1};
use crate::ops::Cpu;
use crate::ops::vectors::Query;
use crate::record::{Passage, RetrievedChunk, SearchTimes};

/// What is escaped of an id in an address (RFC 3986); that of a file keeps its folders.
const IN_URL: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Everything that answers.
pub struct Searcher {
    pub corpora: Corpora,
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
        let (mut retrieved, mut candidates) = (Vec::new(), Vec::new());
        for found in found {
            let found = found.into_iter().map(|(place, score)| self.candidate(place, score));
            let found = found.collect::<Result<Vec<Candidate>, CorpusError>>()?;
            retrieved.push(found.iter().map(retrieved_chunk).collect());
            candidates.push(found);
        }
        self.rerank(requests, &embedded.vectors, &mut candidates)?;
        let took = SearchTimes { embed_ms, scan_ms, rerank_ms: milliseconds(started) };
        let found = retrieved.into_iter().zip(candidates).zip(embedded.cut);
        let result = |(((retrieved, candidates), is_query_cut), request): (_, &&SearchRequest)| {
            let best = candidates.into_iter().take(request.rerank_top_k);
            let shown = best.map(|candidate| candidate.passage).collect();
            SearchResult { retrieved, shown, took, is_query_cut, is_cached: false }
        };
        Ok(found.zip(requests).map(result).collect())
    }

    /// Of each request its best chunks with their scores, best first.
    fn scan(
        &self,
        requests: &[&SearchRequest],
        vectors: &[Vec<f32>],
    ) -> Result<Vec<Vec<(Place, f32)>>, Failure> {
        let most = requests.iter().map(|request| request.retrieve_top_k).max().unwrap_or_default();
        let mut found = vec![Vec::new(); requests.len()];
        for (number, shelf) in self.corpora.shelves.iter().enumerate() {
            let rows = shelf.corpus.vectors()?;
            let form = shelf.corpus.manifest().vectors;
            let query = |vector: &Vec<f32>| rows.query(&cut(vector, form.dims, form.normalised));
            let queries: Vec<Query> = vectors.iter().map(query).collect();
            let hits = self.cpu.scan(&rows, &queries, &shelf.ranges, most);
            for (found, hits) in found.iter_mut().zip(hits) {
                found.extend(hits.into_iter().map(|hit| ((number, hit.row), hit.score)));
            }
        }
        for (found, request) in found.iter_mut().zip(requests) {
            found.sort_by(|(place, score), (other, less)| {
                less.total_cmp(score).then(place.cmp(other))
            });
            found.truncate(request.retrieve_top_k);
        }
        Ok(found)
    }

    fn candidate(&self, place: Place, score: f32) -> Result<Candidate, CorpusError> {
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
                    pairs.extend(candidates.iter().map(|candidate| Pair {
                        query: &request.query,
                        title: &candidate.passage.title,
                        text: candidate.text(),
                    }));
                }
                let scores = reranker.score(&pairs)?;
                for (candidate, score) in candidates.iter_mut().flatten().zip(scores) {
                    candidate.order = score;
                    candidate.passage.score = between_0_and_1(score);
                }
            }
            (Rerank::Embedding, _) => {
                for (vector, candidates) in vectors.iter().zip(&mut *candidates) {
                    for candidate in candidates {
                        let (shelf, chunk) = candidate.place;
                        let rows = self.corpora.shelves[shelf].corpus.full_vectors()?;
                        candidate.order = cosine(vector, &rows.numbers(chunk));
                        candidate.passage.score = candidate.order;
                    }
                }
            }
            _ => return Ok(()),
        }
        for candidates in candidates {
            // Of equals the one that was retrieved first.
            candidates.sort_by(|one, other| other.order.total_cmp(&one.order));
        }
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
        let in_url = |id| utf8_percent_encode(id, IN_URL).to_string();
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
