//! How a folder's model is to be used: from its card, from `encoder.toml` beside the weights, or from modules.json.

use crate::outside;

use std::path::Path;

use super::EncoderError;
use super::bert::bert_config;
use super::card::{EncoderCard, KnownModel};
use super::folder::Folder;
use super::modules::Modules;

/// The user's own `[encoder]` table.
pub(super) const OWN: &str = "encoder.toml";
/// No text is longer, whatever a damaged file says.
const MOST_TOKENS: usize = 1 << 17;
const MODULES: &str = "modules.json";

/// A model's folder and how it is used.
pub(super) struct Form {
    /// The model's own files.
    pub(super) folder: Folder,
    pub(super) card: EncoderCard,
}

impl Form {
    /// Whether card or folder say how a model becomes vectors or scores.
    pub(super) fn is_said(path: &Path, known: Option<KnownModel>) -> bool {
        known.is_some_and(|known| known.encoder.is_some())
            || [OWN, MODULES].iter().any(|name| path.join(name).is_file())
    }

    /// # Errors
    /// A folder that says nowhere how its model is used; a table with an unknown field; modules that are none of ours.
    pub(super) fn read(path: &Path, known: Option<KnownModel>) -> Result<Self, EncoderError> {
        let folder = Folder::open(path, known.map(|known| known.name))?;
        let of_card = known.and_then(|known| known.encoder.cloned());
        let own = match (of_card, folder.has(OWN)) {
            (Some(card), _) => Some(card),
            (None, true) => Some(own(&folder)?),
            (None, false) => None,
        };
        match (own, folder.has(MODULES)) {
            (Some(card), false) => Ok(Self { folder, card }),
            (Some(card), true) => Ok(Self { folder: Modules::read(&folder)?.transformer, card }),
            (None, true) => Self::of_modules(&folder),
            (None, false) => {
                // Of another kind of model no table says how it is used.
                bert_config(&folder)?;
                Err(folder.wrong(
                    "",
                    format!(
                        "does not say how its model is used: there is neither {MODULES} nor {OWN} with `output`, `query_tokens`, \
                         `document_tokens`, and where they are not the plain text `query` and `document`"
                    ),
                ))
            }
        }
    }

    fn of_modules(folder: &Folder) -> Result<Self, EncoderError> {
        let modules = Modules::read(folder)?;
        let prompts = modules.prompts(folder)?;
        let max_tokens = modules.max_tokens(usize::MAX)?;
        let card = EncoderCard {
            output: modules.pooling,
            normalised: modules.normalised,
            query: format!("{}{{query}}", prompts.query),
            document: format!("{}{{text}}", prompts.document),
            pair: false,
            query_folder: None,
            query_tokens: max_tokens,
            document_tokens: max_tokens,
            widths: Vec::new(),
        };
        Ok(Self { folder: modules.transformer, card })
    }

    /// An error where a reranker was named for an encoder, or the other way round.
    pub(super) fn expect_score(&self, is_score: bool) -> Result<(), EncoderError> {
        let output = self.card.output;
        let (is, is_not) = match (output.is_score(), is_score) {
            (true, true) | (false, false) => return Ok(()),
            (false, true) => ("an encoder", "a reranker"),
            (true, false) => ("a reranker", "an encoder"),
        };
        let problem = format!("is {is} (output `{}`), not {is_not}", output.name());
        Err(self.folder.wrong("", problem))
    }

    /// The numbers of a vector that is cut to `dims` of `width`.
    pub(super) fn dims(&self, dims: Option<usize>, width: usize) -> Result<usize, EncoderError> {
        match dims {
            None => Ok(width),
            Some(dims) if dims == width || (dims < width && self.card.widths.contains(&dims)) => {
                Ok(dims)
            }
            Some(dims) => {
                let mut widths = self.card.widths.clone();
                widths.retain(|&one| one < width);
                widths.push(width);
                let widths: Vec<String> = widths.iter().map(usize::to_string).collect();
                Err(EncoderError::Width {
                    path: self.folder.path().to_owned(),
                    dims,
                    known: widths.join(", "),
                })
            }
        }
    }

    /// Where texts of at most `limit` tokens are cut, with room for `positions`.
    pub(super) fn cut_at(limit: usize, asked: Option<usize>, positions: usize) -> usize {
        limit.min(asked.unwrap_or(limit)).min(positions).min(MOST_TOKENS)
    }
}

fn own(folder: &Folder) -> Result<EncoderCard, EncoderError> {
    let text = outside::text(folder.file(OWN)?)?;
    let card: EncoderCard = outside::toml(&text).map_err(|error| {
        folder.wrong(OWN, format!("does not say how an encoder is used: {}", error.message()))
    })?;
    match card.query_tokens.min(card.document_tokens) {
        0..3 => Err(folder.wrong(
            OWN,
            "leaves no room for text: `query_tokens` and `document_tokens` are 3 at least",
        )),
        _ => Ok(card),
    }
}

/// `template` with each `{name}` replaced; what is put in is not searched.
pub(super) fn fill(template: &str, parts: &[(&str, &str)]) -> String {
    let mut filled = String::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        filled += &rest[..open];
        rest = &rest[open..];
        let part = parts.iter().find(|(name, _)| {
            rest[1..].strip_prefix(*name).is_some_and(|after| after.starts_with('}'))
        });
        match part {
            Some((name, value)) => {
                filled += value;
                rest = &rest[name.len() + 2..];
            }
            None => {
                filled.push('{');
                rest = &rest[1..];
            }
        }
    }
    filled + rest
}

/// What is read of a document.
pub(super) fn document_text(card: &EncoderCard, title: &str, text: &str) -> String {
    fill(&card.document, &[("title", title), ("text", text)])
}

/// What is read of a query.
pub(super) fn query_text(card: &EncoderCard, query: &str) -> String {
    fill(&card.query, &[("query", query)])
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
