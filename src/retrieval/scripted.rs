//! A corpus of two passages in the place of files and models, for tests.

use super::{Retrieve, SearchRequest, SearchResult, Searched};
use crate::diagnosis::Failure;
use crate::record::{Passage, RetrievedChunk};

/// Finds the same two passages for every query but blank ones.
#[derive(Default)]
pub struct Scripted(Searched);

/// The texts of its passages, best first.
pub const PASSAGES: [&str; 2] = [
    "Inhaled beta agonists relieve the wheezing of an attack within minutes.",
    "Beta blockers can bring an attack on.",
];

impl Scripted {
    /// A corpus of these ids.
    pub fn of(corpus: Vec<String>) -> Scripted {
        Scripted(Searched { corpus, ..Searched::default() })
    }
}

impl Retrieve for Scripted {
    fn searched(&self) -> &Searched {
        &self.0
    }

    fn search(&self, request: &SearchRequest) -> Result<SearchResult, Failure> {
        let found = if request.query.trim().is_empty() { &[][..] } else { &PASSAGES[..] };
        let found = &found[..found.len().min(request.rerank_top_k)];
        let shown = found.iter().zip(0..).map(|(text, paragraph)| Passage {
            chunk: format!("ward/asthma#{paragraph}"),
            source: "ward".to_owned(),
            title: "Asthma".to_owned(),
            paragraph,
            score: 1.0 / (paragraph + 1) as f32,
            sha256: format!("{paragraph}").repeat(64),
            text: Some((*text).to_owned()),
            ..Passage::default()
        });
        let shown: Vec<Passage> = shown.collect();
        let chunk = |passage: &Passage| RetrievedChunk {
            chunk: passage.chunk.clone(),
            score: passage.score,
        };
        let retrieved = shown.iter().map(chunk).collect();
        Ok(SearchResult { retrieved, shown, ..SearchResult::default() })
    }
}
