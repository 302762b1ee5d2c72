//! What a sentence-transformers directory says of an encoder: where its files lie, how its states become a vector, and
//! where texts are cut.

use serde_json::Value;

use super::EncoderError;
use super::folder::{CONFIG, Folder, TOKENIZER_LIMIT};

const MODULES: &str = "modules.json";
const LIMITS: &str = "sentence_bert_config.json";

/// How the last layer's states become one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pooling {
    /// The state of the first token.
    Cls,
    /// The mean over all tokens.
    Mean,
}

/// The steps that modules.json lists.
pub(super) struct Modules {
    /// The model's own files.
    pub(super) transformer: Folder,
    pub(super) pooling: Pooling,
    pub(super) normalised: bool,
}

impl Modules {
    pub(super) fn read(folder: &Folder) -> Result<Self, EncoderError> {
        let listed: Vec<Value> = folder.json(MODULES)?;
        // "sentence_transformers.models.Pooling", or longer since version 6.
        let kinds: Vec<&str> = listed
            .iter()
            .map(|module| text(module, "type").rsplit('.').next().unwrap_or_default())
            .collect();
        let normalised = match kinds[..] {
            ["Transformer", "Pooling"] => false,
            ["Transformer", "Pooling", "Normalize"] => true,
            _ => {
                let expected = "Transformer, Pooling and optionally Normalize";
                return Err(folder.unsupported(MODULES, "type", &kinds.join(", "), expected));
            }
        };
        Ok(Self {
            transformer: folder.subfolder(text(&listed[0], "path")),
            pooling: pooling(&folder.subfolder(text(&listed[1], "path")))?,
            normalised,
        })
    }

    /// As sentence-transformers cuts texts: at its own limit, else at the tokenizer's.
    pub(super) fn max_tokens(&self, positions: usize) -> Result<usize, EncoderError> {
        let folder = &self.transformer;
        if folder.has(LIMITS) && folder.json::<Value>(LIMITS)?["do_lower_case"] == true {
            return Err(folder.unsupported(LIMITS, "do_lower_case", "true", "false"));
        }
        folder.max_tokens(&[(LIMITS, "max_seq_length"), TOKENIZER_LIMIT], positions)
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn pooling(folder: &Folder) -> Result<Pooling, EncoderError> {
    let config: Value = folder.json(CONFIG)?;
    // Before version 6 a flag for each mode: pooling_mode_mean_tokens.
    let flags = config.as_object().into_iter().flatten();
    let set: Vec<&str> = flags
        .filter(|(name, value)| name.starts_with("pooling_mode_") && **value == true)
        .map(|(name, _)| name.as_str())
        .collect();
    match (text(&config, "pooling_mode"), &set[..]) {
        ("cls", _) | ("", ["pooling_mode_cls_token"]) => Ok(Pooling::Cls),
        ("mean", _) | ("", ["pooling_mode_mean_tokens"]) => Ok(Pooling::Mean),
        (mode, _) => {
            let found = format!("{mode}{}", set.join(", "));
            Err(folder.unsupported(CONFIG, "pooling_mode", &found, "cls or mean, one of them"))
        }
    }
}
