//! The corpora that a retriever searches, opened together: of one encoder, with the chunks that count.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{CorpusSpec, Rerank, RetrieverOptions, Searched};
use crate::corpus::embed::expect_encoder;
use crate::corpus::store::manifest::BuiltSource;
use crate::corpus::{Corpus, differs, folder_sum};
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
    pub fn open(options: &RetrieverOptions) -> Result<Corpora, Failure> {
        let CorpusSpec { directories, sources: labels, .. } = &options.corpus;
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
            let (one, other) = (first.manifest().vectors.dims, other.manifest().vectors.dims);
            if one != other {
                let hint = "corpora that are searched together have vectors of one width";
                return Err(differs("the width of vectors", one, other, hint));
            }
        }
        let sources = || corpora.iter().flat_map(|corpus| &corpus.manifest().sources);
        if let Some(label) = labels.iter().find(|label| !sources().any(|one| one.is_named(label))) {
            let known: BTreeSet<&str> = sources().map(|one| &*one.description.label).collect();
            let known = Vec::from_iter(known).join(", ");
            let message = format!("no source is called `{label}`; known: {known}");
            return Err(Failure::refused(message));
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
        let reranker = match (options.rerank, &options.corpus.reranker) {
            (Rerank::CrossEncoder, Some(directory)) => Some(folder_sum(directory)?),
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
            corpus: corpora.iter().map(|corpus| corpus.file.id.clone()).collect(),
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
            let ranges = corpus.ranges(labels);
            shelves.push(Shelf { corpus, ranges });
        }
        Ok(Corpora { shelves, searched })
    }
}
