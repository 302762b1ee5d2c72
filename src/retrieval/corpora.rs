//! The corpora that a retriever searches, opened together: of one encoder, with the chunks that count.

use std::ops::Range;

use super::{Rerank, RetrieverOptions, Searched};
use crate::corpus::embed::expect_encoder;
use crate::corpus::{Corpus, CorpusError, folder_sum};
use crate::diagnosis::Failure;
use crate::record::SourceCounts;

/// The corpora and what is searched of them.
pub struct Corpora {
    pub shelves: Vec<Shelf>,
    pub searched: Searched,
}

pub struct Shelf {
    pub corpus: Corpus,
    /// The chunks that count, in order.
    pub ranges: Vec<Range<usize>>,
}

impl Corpora {
    /// `known` is what an earlier opening of the same options found: the reranker's files are not summed again.
    pub fn open(options: &RetrieverOptions, known: Option<&Searched>) -> Result<Corpora, Failure> {
        let mut corpora = Vec::new();
        for directory in &options.corpus.directories {
            corpora.push(Corpus::open(directory)?);
        }
        let Some(first) = corpora.first() else {
            return Err(Failure::usage(
                "there is no corpus to search",
                "name one with --corpus DIR",
            ));
        };
        for other in &corpora[1..] {
            expect_encoder(&first.manifest().encoder, &other.manifest().encoder)?;
            if first.manifest().vectors.dims != other.manifest().vectors.dims {
                return Err(CorpusError::Differs {
                    what: "the width of vectors".to_owned(),
                    one: first.manifest().vectors.dims.to_string(),
                    other: other.manifest().vectors.dims.to_string(),
                    hint: "corpora that are searched together have vectors of one width",
                }
                .into());
            }
        }
        let reranker = match (options.rerank, &options.corpus.reranker) {
            (Rerank::CrossEncoder, Some(directory)) => {
                match known.and_then(|known| known.reranker.clone()) {
                    Some(sum) => Some(sum),
                    None => Some(folder_sum(directory)?),
                }
            }
            (Rerank::CrossEncoder, None) => {
                return Err(Failure::usage(
                    "reranking by a cross-encoder needs one",
                    "name its folder with --reranker DIR, or take none: --set rerank=off for a system, --rerank off for `corpus search`",
                ));
            }
            (Rerank::Embedding | Rerank::Off, _) => None,
        };
        let mut shelves = Vec::new();
        for corpus in corpora {
            if options.rerank == Rerank::Embedding {
                corpus.full_vectors()?;
            }
            let labels = labels_in(&corpus, &options.corpus.sources);
            let is_left_out = !options.corpus.sources.is_empty() && labels.is_empty();
            let ranges = if is_left_out { Vec::new() } else { corpus.ranges(&labels)? };
            let ranges = match &options.corpus.refinement.newer_than {
                Some(day) => newer(&corpus, &ranges, day)?,
                None => ranges,
            };
            shelves.push(Shelf { corpus, ranges });
        }
        for label in &options.corpus.sources {
            // The first corpus says what it knows where none knows the label.
            let mut unknown =
                shelves.iter().map(|shelf| shelf.corpus.ranges(std::slice::from_ref(label)));
            if unknown.all(|ranges| ranges.is_err()) {
                shelves[0].corpus.ranges(std::slice::from_ref(label))?;
            }
        }
        let longest = shelves.iter().map(|shelf| shelf.corpus.manifest().longest_chunk_chars).max();
        let encoder = &shelves[0].corpus.manifest().encoder;
        let document_tokens = encoder.get("document_tokens").and_then(toml::Value::as_integer);
        let searched = Searched {
            corpus: shelves.iter().map(|shelf| shelf.corpus.id().to_owned()).collect(),
            sources: options.corpus.sources.clone(),
            contents: contents(&shelves, &options.corpus.sources),
            reranker,
            document_tokens: document_tokens.and_then(|tokens| usize::try_from(tokens).ok()),
            longest_chunk_chars: longest.unwrap_or_default(),
        };
        Ok(Corpora { shelves, searched })
    }
}

/// Of the sources so named, all where no name is given, what there is over all corpora.
fn contents(shelves: &[Shelf], labels: &[String]) -> Vec<SourceCounts> {
    let mut contents: Vec<SourceCounts> = Vec::new();
    for source in shelves.iter().flat_map(|shelf| &shelf.corpus.manifest().sources) {
        if !labels.is_empty() && !labels.iter().any(|label| source.is_named(label)) {
            continue;
        }
        let label = &source.description.label;
        match contents.iter_mut().find(|counts| counts.label == *label) {
            Some(counts) => {
                counts.documents += source.documents;
                counts.chunks += source.chunks;
            }
            None => contents.push(SourceCounts {
                label: label.clone(),
                documents: source.documents,
                chunks: source.chunks,
            }),
        }
    }
    contents
}

/// Of the labels, those that this corpus has: as a source's own, or as its group's.
fn labels_in(corpus: &Corpus, labels: &[String]) -> Vec<String> {
    let known = |label: &&String| corpus.ranges(std::slice::from_ref(*label)).is_ok();
    labels.iter().filter(known).cloned().collect()
}

/// Of these chunks, those of documents of that day or later. Days are compared as they are written: 2020, 2020-03, 2020-03-01.
fn newer(
    corpus: &Corpus,
    ranges: &[Range<usize>],
    day: &str,
) -> Result<Vec<Range<usize>>, Failure> {
    let is_day =
        day.len() >= 4 && day.chars().all(|letter| letter.is_ascii_digit() || letter == '-');
    if !is_day {
        return Err(Failure::usage(format!("`{day}` is no date"), "write it as 2020-01-31"));
    }
    let mut newer: Vec<Range<usize>> = Vec::new();
    for number in ranges.iter().flat_map(Clone::clone) {
        if corpus.document(corpus.record(number)?.document)?.date < day {
            continue;
        }
        match newer.last_mut().filter(|last| last.end == number) {
            Some(last) => last.end = number + 1,
            None => newer.push(number..number + 1),
        }
    }
    Ok(newer)
}
