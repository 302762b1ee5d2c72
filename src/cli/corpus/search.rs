//! `corpus search`: what a query retrieves, and the passages that are shown of it.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{Arg, ArgAction, Args};

use super::super::sandboxed::Paths;
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::hardware::DeviceChoice;
use crate::outside;
use crate::retrieval::{CorpusSpec, Rerank, Retrieve, Retriever, RetrieverOptions, SearchRequest};

#[derive(Debug, Args)]
#[command(mut_args(before_query))]
pub struct Search {
    #[command(flatten)]
    corpus: CorpusSpec,
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
    /// Directory of the encoder, where it has moved
    #[arg(long, env = "WARDROUND_ENCODER", value_name = "DIR")]
    encoder: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceChoice,
}

/// The corpora stand before the query, without a flag; nothing but a flag names the reranker.
fn before_query(flag: Arg) -> Arg {
    let none = None::<&'static str>;
    match flag.get_id().as_str() {
        "corpus" => {
            flag.long(none).help_heading(none).action(ArgAction::Set).num_args(1).required(true)
        }
        "reranker_tokens" => flag.requires("reranker"),
        _ => flag,
    }
}

fn from_one() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u32).range(1..).map(|number| number as usize)
}

impl Search {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        given.corpora(&self.corpus.directories).enter()?;
        let without_flag =
            self.corpus.reranker.as_ref().map_or(Rerank::Off, |_| Rerank::CrossEncoder);
        let options = RetrieverOptions {
            corpus: self.corpus.whole()?,
            rerank: self.rerank.unwrap_or(without_flag),
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
