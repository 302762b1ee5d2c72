//! `corpus search`: passages for a query, with their ranks before and after reranking.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::super::options::ComputeFlags;
use crate::cli::exit::Failure;
use crate::console;
use crate::retrieval::{self, Refinement, Rerank, Retrieve, RetrieverOptions, SearchRequest};
use crate::text::ellipsis;

#[derive(Debug, Args)]
pub struct Search {
    /// Directory of a corpus, or several of one encoder with commas between
    #[arg(required = true, num_args = 1, value_delimiter = ',', value_name = "DIR,DIR")]
    directories: Vec<PathBuf>,
    /// What to look for
    query: String,
    /// Chunks to retrieve at most
    #[arg(long, default_value_t = 50, value_name = "K")]
    top_k: usize,
    /// Passages to show at most
    #[arg(long, default_value_t = 20, value_name = "K")]
    rerank_top_k: usize,
    /// How to order what was retrieved [default: cross-encoder with --reranker, else off]
    #[arg(long, value_enum)]
    rerank: Option<Order>,
    /// Directory of a cross-encoder
    #[arg(long, value_name = "DIR")]
    reranker: Option<PathBuf>,
    /// Labels of the sources to search [default: all]
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    sources: Vec<String>,
    #[command(flatten)]
    refinement: RefinementFlags,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    compute: ComputeFlags,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Order {
    CrossEncoder,
    Embedding,
    Off,
}

/// What is done beside the search of the papers.
#[derive(Clone, Debug, Default, Args)]
pub struct RefinementFlags {
    /// The encoder's directory, where it lies elsewhere now
    #[arg(long, env = "WARDROUND_ENCODER", value_name = "DIR")]
    encoder: Option<PathBuf>,
    /// Search for words by BM25 too, and fuse both orders by rank
    #[arg(long)]
    hybrid: bool,
    /// Of chunks of one document that overlap, show the better one alone
    #[arg(long)]
    dedup: bool,
    /// Leave out documents dated before this day, and those without a date
    #[arg(long, value_name = "YYYY-MM-DD")]
    newer_than: Option<String>,
}

impl RefinementFlags {
    pub fn refinement(self) -> Refinement {
        let RefinementFlags { encoder, hybrid, dedup, newer_than } = self;
        Refinement { encoder, hybrid, dedup, newer_than }
    }
}

impl Search {
    pub fn run(self) -> Result<(), Failure> {
        let rerank = match (self.rerank, &self.reranker) {
            (Some(Order::CrossEncoder), _) | (None, Some(_)) => Rerank::CrossEncoder,
            (Some(Order::Embedding), _) => Rerank::Embedding,
            (Some(Order::Off) | None, _) => Rerank::Off,
        };
        let retriever = retrieval::Retriever::open(&RetrieverOptions {
            corpora: self.directories,
            sources: self.sources,
            rerank,
            reranker: self.reranker,
            refinement: self.refinement.refinement(),
            device: self.compute.one_device()?,
        })?;
        let result = retriever.search(&SearchRequest {
            query: self.query,
            retrieve_top_k: self.top_k,
            rerank_top_k: self.rerank_top_k,
        })?;
        if self.json {
            let value = serde_json::json!({
                "corpus": retriever.searched().corpus,
                "query_cut": result.is_query_cut,
                "retrieved": result.retrieved,
                "shown": result.shown,
                "took": result.took,
            });
            return Ok(console::say(value.to_string())?);
        }
        for (rank, passage) in result.shown.iter().enumerate() {
            let before = result.retrieved.iter().position(|chunk| chunk.chunk == passage.chunk);
            let before = before.map_or("-".to_owned(), |before| (before + 1).to_string());
            let place = passage.url.as_ref().unwrap_or(&passage.chunk);
            console::say(format!(
                "{:>3} (retrieved {before:>3})  {:.4}  {}  {place}",
                rank + 1,
                passage.score,
                passage.title
            ))?;
            let text = passage.text.as_deref().unwrap_or_default();
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            console::say(format!("      {}", ellipsis(&line, 200)))?;
        }
        if result.is_query_cut {
            console::note("note: the query is longer than the encoder reads, and was cut");
        }
        Ok(())
    }
}
