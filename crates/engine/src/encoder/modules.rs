//! What a sentence-transformers directory says of an encoder: where its files lie, how its states become a vector, and
//! where texts are cut.

use serde_json::Value;

use super::EncoderError;
use super::card::EncoderOutput;
use super::folder::{CONFIG, Folder, TOKENIZER_LIMIT};

const MODULES: &str = "modules.json";
const PROMPTS: &str = "config_sentence_transformers.json";
const LIMITS: &str = "sentence_bert_config.json";

/// The steps that modules.json lists.
pub(super) struct Modules {
    /// The model's own files.
    pub(super) transformer: Folder,
    pub(super) pooling: EncoderOutput,
    pub(super) normalised: bool,
}

/// What sentence-transformers puts before texts unless it is told otherwise.
#[derive(Default)]
pub(super) struct Prompts {
    pub(super) query: String,
    pub(super) document: String,
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
        let at = |index: usize| folder.subfolder(text(&listed[index], "path"));
        Ok(Self { transformer: at(0)?, pooling: pooling(&at(1)?)?, normalised })
    }

    /// What config_sentence_transformers.json, where it is there, has before queries and documents.
    pub(super) fn prompts(&self, folder: &Folder) -> Result<Prompts, EncoderError> {
        if !folder.has(PROMPTS) {
            return Ok(Prompts::default());
        }
        let config: Value = folder.json(PROMPTS)?;
        let named = text(&config, "default_prompt_name");
        if !matches!(named, "" | "document") {
            return Err(folder.unsupported(PROMPTS, "default_prompt_name", named, "document"));
        }
        let prompts = &config["prompts"];
        Ok(Prompts {
            query: text(prompts, "query").to_owned(),
            document: text(prompts, "document").to_owned(),
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

fn pooling(folder: &Folder) -> Result<EncoderOutput, EncoderError> {
    let config: Value = folder.json(CONFIG)?;
    if config["include_prompt"] == false {
        return Err(folder.unsupported(CONFIG, "include_prompt", "false", "true"));
    }
    // Before version 6 a flag for each mode: pooling_mode_mean_tokens.
    let flags = config.as_object().into_iter().flatten();
    let set: Vec<&str> = flags
        .filter(|(name, value)| name.starts_with("pooling_mode_") && **value == true)
        .map(|(name, _)| name.as_str())
        .collect();
    match (text(&config, "pooling_mode"), &set[..]) {
        ("cls", _) | ("", ["pooling_mode_cls_token"]) => Ok(EncoderOutput::Cls),
        ("mean", _) | ("", ["pooling_mode_mean_tokens"]) => Ok(EncoderOutput::Mean),
        (mode, _) => {
            let found = format!("{mode}{}", set.join(", "));
            Err(folder.unsupported(CONFIG, "pooling_mode", &found, "cls or mean"))
        }
    }
}
