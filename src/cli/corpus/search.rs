//! `corpus search`: passages for a query, with their ranks before and after reranking.

use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;

use super::super::options::model_folder;
use super::super::sandboxed::Paths;
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::hardware::DeviceChoice;
use crate::outside;
use crate::retrieval::{
    CorpusSpec, Rerank, Retrieve, Retriever, RetrieverOptions, SearchRequest, SearchResult,
};
use crate::text::ellipsis;

#[derive(Debug, Args)]
pub struct Search {
    /// Directory of a corpus, or several of one encoder with commas between
    #[arg(value_name = "DIR,DIR")]
    directories: String,
    /// The query
    #[arg(required_unless_present = "queries", conflicts_with = "queries")]
    query: Option<String>,
    /// Search for every line of a file; print a JSON object for each
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
    /// Print JSON
    #[arg(long)]
    json: bool,
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
                ..CorpusSpec::default()
            },
            rerank,
            encoder: self.encoder,
            device: self.device.one_device()?,
        };
        let retriever = Retriever::open(options)?;
        let request = |query: &str| SearchRequest {
            query: query.to_owned(),
            retrieve_top_k: self.top_k,
            rerank_top_k: self.rerank_top_k,
        };
        let print = |request: &SearchRequest, result: &SearchResult| {
            let value = serde_json::json!({
                "query": request.query,
                "corpus": retriever.searched().corpus,
                "query_cut": result.is_query_cut,
                "retrieved": result.retrieved,
                "shown": result.shown,
                "took": result.took,
            });
            console::say(value.to_string())
        };
        if let Some(path) = &self.queries {
            let text = outside::given_text(path)?;
            for request in text.lines().map(request) {
                print(&request, &retriever.search(&request)?)?;
            }
            return Ok(());
        }
        let request = request(self.query.as_deref().unwrap_or_default());
        let result = retriever.search(&request)?;
        if self.json {
            return Ok(print(&request, &result)?);
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
        if result.shown.is_empty() {
            console::note("note: nothing was found");
        }
        if result.is_query_cut {
            console::note("note: the query is longer than the encoder reads, and was cut");
        }
        Ok(())
    }
}
