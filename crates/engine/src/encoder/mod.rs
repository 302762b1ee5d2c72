//! Text to vectors and pairs to scores: encoders and rerankers from local folders, on our own operations.
//!
//! How a model is used stands in its card, in the folder's `encoder.toml`, or in sentence-transformers' modules.json.
//! Texts share a step without padding, and no vector depends on the texts beside it.

mod bert;
mod card;
mod causal;
mod dense;
mod error;
pub mod folder;
mod form;
mod identity;
mod memory;
mod modules;
mod network;
mod older_pickle;
mod options;
mod pickle_size;
mod reranker;
mod tokens;
mod vector;

use std::path::Path;

pub use card::{EncoderCard, EncoderOutput, KnownModel};
pub use error::EncoderError;
pub use identity::EncoderIdentity;
pub use memory::footprint;
pub use options::{Document, Embedded, EncoderOptions, Pair};
pub use reranker::Reranker;

use dense::Linear;
use folder::{CONFIG, Folder};
use form::{Form, document_text, query_text};
use identity::Particulars;
use network::{Described, Network, Place};
use tokens::{Sequence, Tokens};
use vector::{finish, pool};

use crate::ops::Device;

/// An encoder.
pub struct Encoder {
    documents: Reader,
    /// What reads queries: another model, or the same one with another limit.
    queries: Reader,
    /// Numbers of a state.
    state_width: usize,
    /// After pooling, first to last.
    dense: Vec<Linear>,
    card: EncoderCard,
    identity: EncoderIdentity,
}

/// A model with its tokenizer; `None`: the model that reads documents.
struct Reader {
    network: Option<Box<dyn Network>>,
    tokens: Tokens,
}

impl Encoder {
    /// Loads config.json, tokenizer.json and model.safetensors or pytorch_model.bin.
    pub fn open(options: &EncoderOptions) -> Result<Encoder, EncoderError> {
        let form = Form::read(&options.directory, options.known)?;
        form.expect_score(false)?;
        let described = Described::read(&form.folder)?;
        let precision = described.precision(&form.folder, options)?;
        let output = form.card.output;
        let mut dense = Vec::new();
        let state_width = described.width();
        let mut width = state_width;
        for folder in &form.dense {
            let layer = Linear::read(folder, width)?;
            width = layer.outputs(width);
            dense.push(layer);
        }
        let dims = form.dims(options.dims, width)?;
        let tokens = |folder: &Folder, described: &Described, limit: usize| {
            let tokens = Tokens::read(folder, described, limit, options)?;
            tokens.expect_special(folder).map(|()| tokens)
        };
        let EncoderCard { query_tokens, document_tokens, .. } = form.card;
        let document_limits = tokens(&form.folder, &described, document_tokens)?;
        let place = Place { precision, device: &options.device };
        let other = form.card.query_folder.as_ref().map(|name| form.folder.subfolder(name));
        let other = other.transpose()?;
        let queries = match &other {
            Some(folder) => {
                let described = Described::read(folder)?;
                let tokens = tokens(folder, &described, query_tokens)?;
                if described.width() != width {
                    let problem =
                        format!("makes vectors of {} numbers, not {width}", described.width());
                    return Err(folder.wrong(CONFIG, problem));
                }
                let network = described.load(folder, output, tokens.max_tokens(), &place)?;
                Reader { network: Some(network), tokens }
            }
            None => {
                Reader { network: None, tokens: tokens(&form.folder, &described, query_tokens)? }
            }
        };
        let longest = document_limits.max_tokens().max(queries.tokens.max_tokens());
        let network = described.load(&form.folder, output, longest, &place)?;
        let documents = Reader { network: Some(network), tokens: document_limits };
        let particulars = Particulars {
            known: options.known,
            dims,
            width,
            query_tokens: queries.tokens.max_tokens(),
            document_tokens: documents.tokens.max_tokens(),
            precision,
            device: &options.device,
            queries: other.as_ref(),
        };
        let identity = EncoderIdentity::of(&form, &particulars)?;
        Ok(Encoder { documents, queries, state_width, dense, card: form.card, identity })
    }

    /// The folder as it is, on all of this machine's threads.
    pub fn open_folder(directory: &Path) -> Result<Encoder, EncoderError> {
        let cpu = Device::cpu(rayon::current_num_threads())?;
        Encoder::open(&EncoderOptions::new(directory, cpu))
    }

    /// What its vectors depend on.
    pub fn identity(&self) -> &EncoderIdentity {
        &self.identity
    }

    /// Numbers in a vector.
    pub fn width(&self) -> usize {
        self.identity.dims
    }

    /// Where documents are cut, special tokens included.
    pub fn max_tokens(&self) -> usize {
        self.documents.tokens.max_tokens()
    }

    /// `[documents][width]`.
    pub fn embed_documents(
        &self,
        documents: &[Document<'_>],
    ) -> Result<Vec<Vec<f32>>, EncoderError> {
        let tokens = &self.documents.tokens;
        let sequence = |document: &Document<'_>| match self.card.pair {
            true => tokens.pair(document.title, document.text),
            false => tokens.text(&document_text(&self.card, document.title, document.text)),
        };
        let sequences = documents.iter().map(sequence).collect::<Result<_, _>>()?;
        Ok(self.vectors(&self.documents, sequences)?.vectors)
    }

    /// `[queries][width]`, and whether a query was cut.
    pub fn embed_queries(&self, queries: &[&str]) -> Result<Embedded, EncoderError> {
        let sequence = |query: &&str| self.queries.tokens.text(&query_text(&self.card, query));
        let sequences = queries.iter().map(sequence).collect::<Result<_, _>>()?;
        self.vectors(&self.queries, sequences)
    }

    /// `[texts][width]` of texts as they are, without a prompt; an empty text has a vector too, that of its special tokens.
    pub fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncoderError> {
        let sequence = |text: &&str| self.documents.tokens.text(text);
        let sequences = texts.iter().map(sequence).collect::<Result<_, _>>()?;
        Ok(self.vectors(&self.documents, sequences)?.vectors)
    }

    fn vectors(&self, reader: &Reader, texts: Vec<Sequence>) -> Result<Embedded, EncoderError> {
        let network = reader.network.as_ref().or(self.documents.network.as_ref());
        let Some(network) = network else {
            return Ok(Embedded::default());
        };
        let (width, output) = (self.state_width, self.card.output);
        let states = network.run(&texts, &|states| pool(states, width, output))?;
        let finish = |vector: Vec<f64>| {
            let vector = self.dense.iter().fold(vector, |vector, layer| layer.apply(&vector));
            finish(&vector, self.identity.dims, self.identity.normalised)
        };
        Ok(Embedded {
            vectors: states.into_iter().map(finish).collect(),
            cut: texts.iter().map(|text| text.is_cut).collect(),
        })
    }
}
