//! `corpus search`: what a query retrieves, and the passages that are shown of it.

use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;

use super::super::options::model_folder;
use super::super::sandboxed::Paths;
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::hardware::DeviceChoice;
use crate::outside;
use crate::retrieval::{CorpusSpec, Rerank, Retrieve, Retriever, RetrieverOptions, SearchRequest};

#[derive(Debug, Args)]
pub struct Search {
    /// Directory of a corpus, or several of one encoder with commas between
    #[arg(value_name = "DIR,DIR")]
    directories: String,
    /// The query
    #[arg(required_unless_present = "queries", conflicts_with = "queries")]
    query: Option<String>,
    /// Search for every line of a file
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
    /// Number of chunks to retrieve
    #[arg(long, default_value_t = 50, value_name = "K", value_parser = from_one())]
    top_k: usize,
    /// Number of passages to show
    #[arg(long, default_value_t = 20, value_name = "K", value_parser = from_one())]
    rerank_top_k: usize,
    /// How to rerank the retrieved chunks [default: cross-encoder with --reranker, else off]
    #[arg(long, value_enum)]
    rerank: Option<Rerank>,
    /// A cross-encoder: its directory, or its card's name
    #[arg(long, value_name = "DIR|CARD")]
    reranker: Option<PathBuf>,
    /// Maximum number of tokens the reranker reads of a query and a passage [default: what its card says]
    #[arg(long, value_name = "N", requires = "reranker", value_parser = clap::value_parser!(u32).range(8..).map(|tokens| tokens as usize))]
    reranker_tokens: Option<usize>,
    /// Labels of the sources to search [default: all]
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    sources: Vec<String>,
    /// Directory of the encoder, where it has moved
    #[arg(long, env = "WARDROUND_ENCODER", value_name = "DIR")]
    encoder: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceChoice,
}

fn from_one() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u32).range(1..).map(|number| number as usize)
}

impl Search {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        let directories: Vec<PathBuf> = self.directories.split(',').map(PathBuf::from).collect();
        given.corpora(&directories).enter()?;
        let without_flag = self.reranker.as_ref().map_or(Rerank::Off, |_| Rerank::CrossEncoder);
        let rerank = self.rerank.unwrap_or(without_flag);
        let options = RetrieverOptions {
            corpus: CorpusSpec {
                directories,
                sources: self.sources,
                reranker: self.reranker.as_deref().map(model_folder).transpose()?,
                reranker_tokens: self.reranker_tokens,
            },
            rerank,
            encoder: self.encoder,
            device: self.device.one_device()?,
        };
        let retriever = Retriever::open(options)?;
        let queries = match (&self.queries, self.query) {
            (Some(path), _) => outside::text(path)?.lines().map(str::to_owned).collect(),
            (None, query) => vec![query.unwrap_or_default()],
        };
        let (retrieve_top_k, rerank_top_k) = (self.top_k, self.rerank_top_k);
        for query in queries {
            let request = SearchRequest { query, retrieve_top_k, rerank_top_k };
            let result = retriever.search(&request)?;
            let value = serde_json::json!({
                "query": request.query,
                "corpus": retriever.searched().corpus,
                "query_cut": result.is_query_cut,
                "retrieved": result.retrieved,
                "shown": result.shown,
                "took": result.took,
            });
            console::say(value.to_string())?;
        }
        Ok(())
    }
}
