//! What turns texts into vectors or pairs into scores, beside the weights: a card's `[encoder]` table, or `encoder.toml` beside the weights.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::EncoderError;
use super::bert::bert_config;
use super::folder::Folder;
use crate::outside;

/// The user's own `[encoder]` table.
const OWN: &str = "encoder.toml";
/// No text is longer, whatever a damaged file says.
const MOST_TOKENS: usize = 1 << 17;

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

impl EncoderCard {
    /// Whether a card or the folder says how a model becomes vectors or scores.
    pub fn is_said(path: &Path, known: Option<KnownModel>) -> bool {
        known.is_some_and(|known| known.encoder.is_some()) || path.join(OWN).is_file()
    }

    /// # Errors
    /// A folder that does not say how its model is used; a table with an unknown field.
    pub(super) fn read(folder: &Folder, known: Option<KnownModel>) -> Result<Self, EncoderError> {
        if let Some(card) = known.and_then(|known| known.encoder) {
            return Ok(card.clone());
        }
        if !folder.has(OWN) {
            // Of another kind of model no table says how it is used.
            bert_config(folder)?;
            let problem = "is missing: it says how the model is used, by `output`, `query_tokens`, `document_tokens`, and where they \
                           are not the plain text `query` and `document`";
            return Err(folder.wrong(OWN, problem));
        }
        let text = outside::text(folder.file(OWN)?)?;
        let card: EncoderCard = outside::toml(&text).map_err(|error| {
            folder.wrong(OWN, format!("does not say how an encoder is used: {}", error))
        })?;
        match card.query_tokens.min(card.document_tokens) {
            0..3 => Err(folder.wrong(
                OWN,
                "leaves no room for text: `query_tokens` and `document_tokens` are 3 at least",
            )),
            _ => Ok(card),
        }
    }

    /// An error where a reranker was named for an encoder, or the other way round.
    pub(super) fn expect_score(&self, folder: &Folder, is_score: bool) -> Result<(), EncoderError> {
        match (self.output.is_score(), is_score) {
            (true, false) => Err(folder.wrong("", "is a reranker, not an encoder")),
            (false, true) => Err(folder.wrong("", "is an encoder, not a reranker")),
            (true, true) | (false, false) => Ok(()),
        }
    }

    /// The numbers of a vector that is cut to `dims` of `width`.
    pub(super) fn dims(
        &self,
        folder: &Folder,
        dims: Option<usize>,
        width: usize,
    ) -> Result<usize, EncoderError> {
        let Some(dims) = dims.filter(|dims| *dims != width) else { return Ok(width) };
        let mut widths: Vec<usize> = self.widths.iter().copied().filter(|w| *w < width).collect();
        if widths.contains(&dims) {
            return Ok(dims);
        }
        widths.push(width);
        let known = widths.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        Err(EncoderError::Width { path: folder.path().to_owned(), dims, known })
    }

    pub(super) fn document_text(&self, title: &str, text: &str) -> String {
        fill(&self.document, &[("title", title), ("text", text)])
    }

    pub(super) fn query_text(&self, query: &str) -> String {
        fill(&self.query, &[("query", query)])
    }
}

/// Where texts of at most `limit` tokens are cut, with room for `positions`.
pub(super) fn cut_at(limit: usize, asked: Option<usize>, positions: usize) -> usize {
    limit.min(asked.unwrap_or(limit)).min(positions).min(MOST_TOKENS)
}

/// `template` with each `{name}` replaced; what is put in is not searched.
fn fill(template: &str, parts: &[(&str, &str)]) -> String {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('{') {
        filled += before;
        let named = parts
            .iter()
            .find_map(|(name, value)| Some((value, behind.strip_prefix(name)?.strip_prefix('}')?)));
        let (value, after) = named.unwrap_or((&"{", behind));
        filled += value;
        rest = after;
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_not_searched() {
        let parts = [("title", "{text}"), ("text", "{title} {x}")];
        assert_eq!(fill("T: {title}\nX: {text}", &parts), "T: {text}\nX: {title} {x}");
        assert_eq!(fill("{other} {title", &parts), "{other} {title");
        assert_eq!(fill("{", &parts), "{");
    }
}
