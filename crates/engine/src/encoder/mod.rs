//! Text to vectors and pairs to scores: encoders and rerankers from local folders, on our own operations.
//!
//! How a model is used stands in its card or in the folder's `encoder.toml`.
//! Texts share a step without padding, and no vector depends on the texts beside it.

mod bert;
mod card;
mod error;
pub mod folder;
mod identity;
mod memory;
mod older_pickle;
mod options;
mod reranker;
mod steps;
mod tokens;
mod vector;

use std::sync::Arc;

pub use card::{EncoderCard, EncoderOutput, KnownModel};
pub use error::EncoderError;
pub use identity::EncoderIdentity;
pub use memory::footprint;
pub use options::{Document, Embedded, EncoderOptions, Pair, Side};
pub use reranker::{Reranker, between_0_and_1};
pub use tokens::Sequence;
pub use vector::cut_to;

use bert::{Network, bert_config, load};
use folder::{CONFIG, Folder};
use tokens::Tokens;
use vector::pool;

use crate::model::BertConfig;

pub struct Encoder {
    documents: Reader,
    /// What reads queries: another model, or the same one with another limit.
    queries: Reader,
    /// Numbers of a state.
    state_width: usize,
    card: EncoderCard,
    /// What its vectors depend on, their width and where documents are cut among it.
    pub identity: EncoderIdentity,
}

/// A model with its tokenizer.
struct Reader {
    network: Arc<dyn Network>,
    tokens: Tokens,
}

impl Encoder {
    /// Loads config.json, tokenizer.json and model.safetensors or pytorch_model.bin.
    pub fn open(options: &EncoderOptions) -> Result<Encoder, EncoderError> {
        let folder = Folder::of(options)?;
        let card = EncoderCard::read(&folder, options.known)?;
        card.expect_score(&folder, false)?;
        let config = bert_config(&folder)?;
        let state_width = config.hidden_size;
        let dims = card.dims(&folder, options.dims, state_width)?;
        let tokens = |folder: &Folder, config: &BertConfig, limit: usize| {
            let tokens = Tokens::read(folder, config, limit, options)?;
            tokens.expect_special(folder).map(|()| tokens)
        };
        let EncoderCard { query_tokens, document_tokens, .. } = card;
        let documents = Reader {
            tokens: tokens(&folder, &config, document_tokens)?,
            network: load(&folder, config.clone(), options)?,
        };
        let other = card.query_folder.as_ref().map(|name| folder.subfolder(name)).transpose()?;
        let queries = match &other {
            Some(folder) => {
                let config = bert_config(folder)?;
                let tokens = tokens(folder, &config, query_tokens)?;
                if config.hidden_size != state_width {
                    let own = config.hidden_size;
                    let problem = format!("makes vectors of {own} numbers, not {state_width}");
                    return Err(folder.wrong(CONFIG, problem));
                }
                Reader { network: load(folder, config, options)?, tokens }
            }
            None => Reader {
                network: documents.network.clone(),
                tokens: tokens(&folder, &config, query_tokens)?,
            },
        };
        let limits = [queries.tokens.max_tokens, documents.tokens.max_tokens];
        let dims = [dims, state_width];
        let identity =
            EncoderIdentity::of((&folder, &card), options, dims, limits, other.as_ref())?;
        Ok(Encoder { documents, queries, state_width, card, identity })
    }

    /// What is read of a text without a title.
    pub fn sequence(&self, side: Side, text: &str) -> Result<Sequence, EncoderError> {
        match side {
            Side::Document => self.of_document(&Document { title: "", text }),
            Side::Query => self.of_query(text),
        }
    }

    /// `[texts][width]`.
    pub fn embed_sequences(
        &self,
        side: Side,
        texts: &[Sequence],
    ) -> Result<Vec<Vec<f32>>, EncoderError> {
        let reader = match side {
            Side::Document => &self.documents,
            Side::Query => &self.queries,
        };
        let (width, output) = (self.state_width, self.card.output);
        let states = reader.network.run(texts, &|states| pool(states, width, output))?;
        let EncoderIdentity { dims, normalised, .. } = self.identity;
        let finish = |vector: &Vec<f64>| cut_to(vector, dims, normalised);
        expect_finite(states.iter().map(finish).collect())
    }

    /// `[documents][width]`.
    pub fn embed_documents(
        &self,
        documents: &[Document<'_>],
    ) -> Result<Vec<Vec<f32>>, EncoderError> {
        let sequences = documents.iter().map(|document| self.of_document(document));
        let sequences = sequences.collect::<Result<Vec<_>, _>>()?;
        self.embed_sequences(Side::Document, &sequences)
    }

    /// `[queries][width]`, and whether a query was cut.
    pub fn embed_queries(&self, queries: &[&str]) -> Result<Embedded, EncoderError> {
        let sequences = queries.iter().map(|query| self.of_query(query));
        let sequences = sequences.collect::<Result<Vec<_>, _>>()?;
        Ok(Embedded {
            vectors: self.embed_sequences(Side::Query, &sequences)?,
            cut: sequences.iter().map(|text| text.left_out > 0).collect(),
        })
    }

    /// `[texts][width]` of texts as they are, without a prompt; an empty text has a vector too, that of its special tokens.
    pub fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncoderError> {
        let sequences = texts.iter().map(|text| self.documents.tokens.text(text));
        let sequences = sequences.collect::<Result<Vec<_>, _>>()?;
        self.embed_sequences(Side::Document, &sequences)
    }

    fn of_document(&self, document: &Document<'_>) -> Result<Sequence, EncoderError> {
        let tokens = &self.documents.tokens;
        match self.card.pair {
            true => tokens.pair(document.title, document.text),
            false => tokens.text(&self.card.document_text(document.title, document.text)),
        }
    }

    fn of_query(&self, query: &str) -> Result<Sequence, EncoderError> {
        self.queries.tokens.text(&self.card.query_text(query))
    }
}

/// The same numbers.
fn expect_finite<T: AsRef<[f32]>>(numbers: Vec<T>) -> Result<Vec<T>, EncoderError> {
    let is_broken = |one: &T| !one.as_ref().iter().all(|number| number.is_finite());
    match numbers.iter().position(is_broken) {
        None => Ok(numbers),
        Some(text) => Err(EncoderError::NotFinite { place: text + 1, of: numbers.len() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_whose_numbers_are_not_finite_is_an_error_that_names_it() {
        assert_eq!(expect_finite(vec![[1.0]; 3]).unwrap().len(), 3);
        for broken in [f32::NAN, f32::INFINITY] {
            let error = expect_finite(vec![[1.0], [broken], [1.0]]).unwrap_err().to_string();
            assert!(error.ends_with("not finite (NaN or infinity) of text 2 of 3"), "{error}");
        }
    }
}
