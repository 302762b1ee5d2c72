//! What turns texts into vectors or pairs into scores, beside the weights: a card's `[encoder]` table.

use serde::{Deserialize, Serialize};

/// How a model's states become what is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EncoderOutput {
    /// A vector: the state of the first token.
    Cls,
    /// A vector: the mean of the states of all tokens.
    Mean,
    /// A reranker's score: the one logit of a classifier over a pair.
    OneLogit,
}

impl EncoderOutput {
    /// Whether it is a reranker's.
    pub fn is_score(self) -> bool {
        self == EncoderOutput::OneLogit
    }

    /// As cards and `encoder.toml` write it.
    pub fn name(self) -> &'static str {
        match self {
            EncoderOutput::Cls => "cls",
            EncoderOutput::Mean => "mean",
            EncoderOutput::OneLogit => "one-logit",
        }
    }
}

/// A model whose use is known before its folder is opened.
#[derive(Clone, Copy, Debug)]
pub struct KnownModel {
    /// What errors and records call it.
    pub name: &'static str,
    /// How it is used; `None`: its folder says.
    pub encoder: Option<&'static EncoderCard>,
}

/// The `[encoder]` table of a card, or `encoder.toml` in a user's own folder.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderCard {
    /// What states become.
    pub output: EncoderOutput,
    /// Whether vectors are brought to length 1.
    #[serde(default)]
    pub normalised: bool,
    /// What is read of a query; `{query}` stands for it.
    #[serde(default = "query")]
    pub query: String,
    /// What is read of a document; `{title}` and `{text}` stand for its parts.
    #[serde(default = "text")]
    pub document: String,
    /// Whether title and text are two segments, and `document` is not used.
    #[serde(default)]
    pub pair: bool,
    /// The subfolder with the encoder of the queries, where it is another model.
    pub query_folder: Option<String>,
    /// Tokens at which texts are cut, special tokens included.
    pub query_tokens: usize,
    /// The same of documents.
    pub document_tokens: usize,
    /// Widths that vectors may be cut to, where the model was trained for that.
    #[serde(default)]
    pub widths: Vec<usize>,
}

fn query() -> String {
    "{query}".to_owned()
}

fn text() -> String {
    "{text}".to_owned()
}
