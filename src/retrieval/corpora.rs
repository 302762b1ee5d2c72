//! The corpora that a retriever searches, opened together: of one encoder, with the chunks that count.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{CorpusSpec, Rerank, RetrieverOptions, Searched};
use crate::corpus::embed::expect_encoder;
use crate::corpus::store::manifest::BuiltSource;
use crate::corpus::{Corpus, CorpusError, folder_sum};
use crate::diagnosis::Failure;
use crate::record::SourceCounts;
use crate::text::ellipsis;

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
        let CorpusSpec { directories, sources: labels, refinement, .. } = &options.corpus;
        let corpora = directories.iter().map(|directory| Corpus::open(directory));
        let corpora = corpora.collect::<Result<Vec<_>, _>>()?;
        let Some(first) = corpora.first() else {
            return Err(Failure::usage(
                "there is no corpus to search",
                "name one with --corpus DIR",
            ));
        };
        let encoder = &first.manifest().encoder;
        for other in &corpora[1..] {
            expect_encoder(encoder, &other.manifest().encoder)?;
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
        let sources = || corpora.iter().flat_map(|corpus| &corpus.manifest().sources);
        if let Some(label) = labels.iter().find(|label| !sources().any(|one| one.is_named(label))) {
            let known: BTreeSet<&str> = sources().map(|one| &*one.description.label).collect();
            let known = Vec::from_iter(known).join(", ");
            return Err(CorpusError::UnknownSource { label: label.clone(), known }.into());
        }
        let mut contents: Vec<SourceCounts> = Vec::new();
        for BuiltSource { description, documents, chunks, .. } in
            sources().filter(|source| source.is_among(labels))
        {
            match contents.iter_mut().find(|counts| counts.label == description.label) {
                Some(counts) => {
                    counts.documents += documents;
                    counts.chunks += chunks;
                }
                None => contents.push(SourceCounts {
                    label: description.label.clone(),
                    documents: *documents,
                    chunks: *chunks,
                }),
            }
        }
        let summed = known.and_then(|known| known.reranker.clone());
        let reranker = match (options.rerank, &options.corpus.reranker) {
            (Rerank::CrossEncoder, Some(directory)) => {
                Some(summed.map_or_else(|| folder_sum(directory), Ok)?)
            }
            (Rerank::CrossEncoder, None) => {
                return Err(Failure::usage(
                    "reranking by a cross-encoder needs one",
                    "name its folder with --reranker DIR, or take none: --set rerank=off for a system, --rerank off for `corpus search`",
                ));
            }
            (Rerank::Embedding | Rerank::Off, _) => None,
        };
        let longest = corpora.iter().map(|corpus| corpus.manifest().longest_chunk_chars).max();
        let document_tokens = encoder.get("document_tokens").and_then(toml::Value::as_integer);
        let searched = Searched {
            corpus: corpora.iter().map(|corpus| corpus.id().to_owned()).collect(),
            sources: labels.clone(),
            contents,
            reranker,
            document_tokens: document_tokens.and_then(|tokens| usize::try_from(tokens).ok()),
            longest_chunk_chars: longest.unwrap_or_default(),
        };
        let mut shelves = Vec::new();
        for corpus in corpora {
            if options.rerank == Rerank::Embedding {
                corpus.full_vectors()?;
            }
            let mut ranges = corpus.ranges(labels);
            if let Some(day) = &refinement.newer_than {
                ranges = newer(&corpus, &ranges, day)?;
            }
            shelves.push(Shelf { corpus, ranges });
        }
        Ok(Corpora { shelves, searched })
    }
}

/// Of these chunks, those of documents of that day or later. A document without a date is of none.
fn newer(
    corpus: &Corpus,
    ranges: &[Range<usize>],
    first: &str,
) -> Result<Vec<Range<usize>>, Failure> {
    let first = day(first)
        .ok_or_else(|| Failure::usage(format!("`{first}` is no date"), "write it as 2020-01-31"))?;
    let mut newer: Vec<Range<usize>> = Vec::new();
    for number in ranges.iter().flat_map(Clone::clone) {
        let document = corpus.document(corpus.record(number)?.document)?;
        let of_document = day(document.date);
        if of_document.is_none() && !document.date.is_empty() {
            let problem = format!("its date `{}` is no day", ellipsis(document.date, 40));
            return Err(Failure::usage(
                format!("{} cannot be held against a day: {problem}", corpus.name(number)?),
                "search without --newer-than, or build the corpus again with dates such as 2020-01-31",
            ));
        }
        if of_document.is_none_or(|day| day < first) {
            continue;
        }
        match newer.last_mut().filter(|last| last.end == number) {
            Some(last) => last.end = number + 1,
            None => newer.push(number..number + 1),
        }
    }
    Ok(newer)
}

/// A day as year, month and day: `2020-03-01`, also with a time behind it; of `2020-03` and `2020` the first one. `None` of what the
/// calendar does not have.
fn day(date: &str) -> Option<[u32; 3]> {
    let date = date.trim();
    let date = date.find(['T', ' ']).map_or(date, |time| &date[..time]);
    let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = date.split('-').map(|part| Some(part).filter(is_number)?.parse().ok());
    let (year, month, day) = match parts.collect::<Option<Vec<u32>>>()?[..] {
        [year] => (year, 1, 1),
        [year, month] => (year, month, 1),
        [year, month, day] => (year, month, day),
        _ => return None,
    };
    // The calendar is that of TOML's dates.
    let is_day = year >= 1000
        && format!("{year:04}-{month:02}-{day:02}").parse::<toml::value::Datetime>().is_ok();
    is_day.then_some([year, month, day])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_as_days() {
        for (date, read) in [
            ("2021-02-01", [2021, 2, 1]),
            ("2021-2-1", [2021, 2, 1]),
            ("2020", [2020, 1, 1]),
            (" 2020-03", [2020, 3, 1]),
            ("2024-02-29T10:00:00Z", [2024, 2, 29]),
            ("1998-12-31 23:59", [1998, 12, 31]),
        ] {
            assert_eq!(day(date), Some(read), "{date}");
        }
        for date in [
            "",
            "soon",
            "March 1998",
            "2021-13-45",
            "2021-02-30",
            "2023-02-29",
            "1900-02-29",
            "2021-00-01",
            "2021-04-31",
            "01/02/2021",
            "1.2.2021",
            "20210201",
            "21-02-01",
            "2021-",
            "2021--1",
            "2021-01-01-01",
            "-2021",
            "+2021",
            "2021-+1-01",
            "٢٠٢١",
        ] {
            assert_eq!(day(date), None, "{date}");
        }
    }
}
