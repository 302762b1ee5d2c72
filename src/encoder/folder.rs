//! An encoder's directory: where its files lie, and what they say about pooling, lengths and limits.

use std::path::{Path, PathBuf};

use candle_transformers::models::bert::Config;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::EncoderError;

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const MODULES: &str = "modules.json";
const LIMITS: &str = "sentence_bert_config.json";
const WEIGHTS: [&str; 2] = ["model.safetensors", "pytorch_model.bin"];

/// How the last layer's states become one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pooling {
    /// The state of the first token.
    Cls,
    /// The mean over all tokens.
    Mean,
}

/// What [`super::Encoder::open`] needs to know.
pub(super) struct Folder {
    pub(super) config: Config,
    pub(super) tokenizer: PathBuf,
    /// Of both forms safetensors goes first.
    pub(super) weights: PathBuf,
    pub(super) pooling: Pooling,
    pub(super) normalised: bool,
    pub(super) max_tokens: usize,
}

impl Folder {
    pub(super) fn read(directory: &Path) -> Result<Folder, EncoderError> {
        if !directory.is_dir() {
            return Err(EncoderError::NoDirectory {
                path: directory.to_owned(),
            });
        }
        let modules = Modules::read(directory)?;
        let config = config(&file(&modules.transformer, CONFIG)?)?;
        let weights = WEIGHTS
            .iter()
            .find_map(|name| file(&modules.transformer, name).ok())
            .ok_or_else(|| EncoderError::NoWeights {
                directory: modules.transformer.clone(),
            })?;
        Ok(Folder {
            tokenizer: file(&modules.transformer, TOKENIZER)?,
            weights,
            pooling: modules.pooling,
            normalised: modules.normalised,
            max_tokens: max_tokens(&modules.transformer, &config)?,
            config,
        })
    }
}

/// The steps that modules.json lists.
struct Modules {
    /// Where the model's own files lie.
    transformer: PathBuf,
    pooling: Pooling,
    normalised: bool,
}

impl Modules {
    fn read(directory: &Path) -> Result<Modules, EncoderError> {
        let path = file(directory, MODULES)?;
        let listed: Vec<Value> = json(&path)?;
        // "sentence_transformers.models.Pooling", or longer since version 6.
        let kinds: Vec<&str> = listed
            .iter()
            .map(|module| text(module, "type").rsplit('.').next().unwrap_or_default())
            .collect();
        let normalised = match kinds[..] {
            ["Transformer", "Pooling"] => false,
            ["Transformer", "Pooling", "Normalize"] => true,
            _ => {
                return Err(EncoderError::Unsupported {
                    path,
                    field: "type".to_owned(),
                    value: kinds.join(", "),
                    supported: "Transformer, Pooling and, where wanted, Normalize",
                });
            }
        };
        Ok(Modules {
            transformer: directory.join(text(&listed[0], "path")),
            pooling: pooling(&file(&directory.join(text(&listed[1], "path")), CONFIG)?)?,
            normalised,
        })
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn pooling(path: &Path) -> Result<Pooling, EncoderError> {
    let config: Value = json(path)?;
    // Before version 6 a flag for each mode: pooling_mode_mean_tokens.
    let flags = ["cls_token", "mean_tokens"].map(|mode| format!("pooling_mode_{mode}"));
    let set: Vec<&str> = config
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, value)| name.starts_with("pooling_mode_") && **value == true)
        .map(|(name, _)| name.as_str())
        .collect();
    match (text(&config, "pooling_mode"), &set[..]) {
        ("cls", _) => Ok(Pooling::Cls),
        ("mean", _) => Ok(Pooling::Mean),
        ("", [flag]) if *flag == flags[0] => Ok(Pooling::Cls),
        ("", [flag]) if *flag == flags[1] => Ok(Pooling::Mean),
        (mode, _) => Err(EncoderError::Unsupported {
            path: path.to_owned(),
            field: "pooling_mode".to_owned(),
            value: format!("{mode}{}", set.join(", ")),
            supported: "cls or mean, one of them",
        }),
    }
}

fn config(path: &Path) -> Result<Config, EncoderError> {
    let config: Value = json(path)?;
    let family = text(&config, "model_type");
    if family != "bert" {
        return Err(EncoderError::Unsupported {
            path: path.to_owned(),
            field: "model_type".to_owned(),
            value: family.to_owned(),
            supported: "bert",
        });
    }
    serde_json::from_value(config).map_err(|source| EncoderError::Json {
        path: path.to_owned(),
        source,
    })
}

/// As sentence-transformers has it: its own limit, else the tokenizer's, and never more than there are positions.
fn max_tokens(directory: &Path, config: &Config) -> Result<usize, EncoderError> {
    let mut limit = None;
    for (name, field) in [
        (LIMITS, "max_seq_length"),
        (TOKENIZER_CONFIG, "model_max_length"),
    ] {
        let Ok(path) = file(directory, name) else {
            continue;
        };
        let limits: Value = json(&path)?;
        if name == LIMITS && limits["do_lower_case"] == true {
            return Err(EncoderError::Unsupported {
                path,
                field: "do_lower_case".to_owned(),
                value: "true".to_owned(),
                supported: "false; a tokenizer lowers letters itself",
            });
        }
        // A tokenizer without a limit says 1e30.
        limit = limit.or(limits[field].as_u64());
    }
    let positions = config.max_position_embeddings;
    Ok(limit.map_or(positions, |limit| positions.min(limit as usize)))
}

fn file(directory: &Path, name: &str) -> Result<PathBuf, EncoderError> {
    let path = directory.join(name);
    match path.is_file() {
        true => Ok(path),
        false => Err(EncoderError::Missing { path }),
    }
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T, EncoderError> {
    let text = fs_err::read_to_string(path)?;
    serde_json::from_str(&text).map_err(|source| EncoderError::Json {
        path: path.to_owned(),
        source,
    })
}
