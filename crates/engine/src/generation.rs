//! `generation_config.json`: a model's sampling defaults and end-of-turn tokens, read as transformers reads them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::chat::ChatTemplate;
use crate::checkpoint::CheckpointFiles;
use crate::engine::{PENALTIES, Sampling};
use crate::model::config::Ids;
use crate::model::{Config, ConfigError};
use crate::outside;
use crate::tokenizer::Tokenizer;

/// A model's sampling defaults, and the tokens that end its turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// How the model's makers draw.
    pub sampling: Sampling,
    /// Any of them ends a turn.
    pub eos_ids: Vec<u32>,
    /// What the file sets that acts in transformers and not here.
    pub warning: Option<String>,
}

/// The default `top_k` of transformers' `GenerationConfig`, for files without one, such as Llama 3.2's. vLLM has it off then.
const DEFAULT_TOP_K: u32 = 50;

/// What else acts on a completion in transformers, where it is set to something.
const NOT_KNOWN: &str = "bad_words_ids begin_suppress_tokens constraints diversity_penalty dola_layers encoder_no_repeat_ngram_size \
    encoder_repetition_penalty epsilon_cutoff eta_cutoff exponential_decay_length_penalty force_words_ids forced_bos_token_id \
    forced_eos_token_id guidance_scale min_length min_new_tokens no_repeat_ngram_size num_beams penalty_alpha sequence_bias \
    stop_strings suppress_tokens token_healing top_h typical_p watermarking_config";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Raw {
    do_sample: Option<bool>,
    temperature: Option<f32>,
    /// `None`: missing; `Some(None)`: `null`, which is off in transformers.
    #[serde(deserialize_with = "present")]
    top_k: Option<Option<u32>>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    repetition_penalty: Option<f32>,
    eos_token_id: Option<Ids>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

impl Raw {
    fn not_known(&self) -> Vec<&'static str> {
        let acts = |name: &str, value: &Value| match value {
            Value::Null => false,
            Value::Bool(is_on) => *is_on,
            // One of 0 and 1 does nothing, but is a token as any other.
            Value::Number(number) => {
                name.ends_with("_token_id") || ![Some(0.0), Some(1.0)].contains(&number.as_f64())
            }
            Value::String(text) => !text.is_empty(),
            Value::Array(list) => !list.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
        };
        let is_set = |name: &&str| self.others.get(*name).is_some_and(|value| acts(name, value));
        NOT_KNOWN.split(' ').filter(is_set).collect()
    }
}

impl Generation {
    /// Of the checkpoint whose files those of `directory` are. What ends a turn is said in three places, and published files forget it in any of
    /// them: `generation_config.json`, else `config.json`; the tokenizer's `eos_token`; the token that the chat template writes behind a turn.
    pub fn of_checkpoint(
        directory: &Path,
        files: &CheckpointFiles,
        config: &Config,
        tokenizer: &Tokenizer,
        chat: Option<&ChatTemplate>,
    ) -> Result<Generation, ConfigError> {
        let path = files.generation_config.as_deref();
        let mut generation = Generation::read(path, &config.eos_ids)?;
        let eos = match eos_token(&directory.join("tokenizer_config.json"))? {
            None => eos_token(&directory.join("special_tokens_map.json"))?,
            token => token,
        };
        let eos = eos.and_then(|token| tokenizer.id(&token));
        for id in eos.into_iter().chain(chat.and_then(|chat| chat.end_of_turn(tokenizer))) {
            if !generation.eos_ids.contains(&id) {
                generation.eos_ids.push(id);
            }
        }
        Ok(generation)
    }

    /// From the file, if there is one. As in transformers, decoding is greedy without `do_sample`, a missing `top_k` is 50, and every other
    /// missing filter is off.
    pub fn read(path: Option<&Path>, config_eos_ids: &[u32]) -> Result<Generation, ConfigError> {
        let Some(path) = path else {
            return Ok(Generation::of(&Raw::default(), config_eos_ids));
        };
        let fail = |problem: String| ConfigError::damaged(path, problem);
        let raw: Raw = read_json(path)?;
        for (name, value) in [("top_p", raw.top_p), ("min_p", raw.min_p)] {
            if let Some(value) = value.filter(|value| !(0.0..=1.0).contains(value)) {
                return Err(fail(format!("`{name}` is {value}, which is not from 0 to 1")));
            }
        }
        if let Some(temperature) = raw.temperature.filter(|t| !t.is_finite() || *t < 0.0) {
            return Err(fail(format!("`temperature` is {temperature}")));
        }
        if let Some(penalty) = raw.repetition_penalty.filter(|p| !PENALTIES.contains(p)) {
            return Err(fail(format!("`repetition_penalty` is {penalty}")));
        }
        let fields = raw.not_known().join(", ");
        let warning = format!("{} sets {fields}: not known here, and left out", path.display());
        let warning = Some(warning).filter(|_| !fields.is_empty());
        Ok(Generation { warning, ..Generation::of(&raw, config_eos_ids) })
    }

    fn of(raw: &Raw, config_eos_ids: &[u32]) -> Generation {
        let temperature = match raw.do_sample {
            Some(true) => raw.temperature.unwrap_or(1.0),
            _ => 0.0,
        };
        let sampling = Sampling {
            temperature,
            top_k: raw.top_k.unwrap_or(Some(DEFAULT_TOP_K)).filter(|k| *k > 0),
            top_p: raw.top_p.filter(|p| *p < 1.0),
            min_p: raw.min_p.filter(|p| *p > 0.0),
            repetition_penalty: raw.repetition_penalty.filter(|p| *p != 1.0),
            ..Sampling::default()
        };
        let eos_ids =
            raw.eos_token_id.as_ref().map_or_else(|| config_eos_ids.to_vec(), Ids::to_vec);
        Generation { sampling, eos_ids, warning: None }
    }
}

fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<u32>>, D::Error> {
    Option::deserialize(value).map(Some)
}

/// The `eos_token` of a tokenizer's file, if there is one: a string, or an object with its `content`.
fn eos_token(path: &Path) -> Result<Option<String>, ConfigError> {
    if !path.is_file() {
        return Ok(None);
    }
    let fields: Value = read_json(path)?;
    let token = &fields["eos_token"];
    let text = token.as_str().or_else(|| token["content"].as_str());
    Ok(text.map(str::to_owned))
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let read = outside::json(path).map_err(|error| ConfigError::damaged(path, error))?;
    read.map_err(|error| ConfigError::damaged(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Family;
    use crate::synth::{Recipe, Shape, write_with_our_words};

    #[test]
    fn each_of_the_three_places_ends_turns() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("model");
        let recipe = Recipe { family: Family::Qwen3, shape: Shape::Tiny, seed: 1, tokenizer: None };
        write_with_our_words(&recipe, &directory).unwrap();
        let edit = |name: &str, change: &dyn Fn(&mut serde_json::Value)| {
            let path = directory.join(name);
            let text = fs_err::read_to_string(&path).unwrap_or_else(|_| "{}".to_owned());
            let mut value = serde_json::from_str(&text).unwrap();
            change(&mut value);
            fs_err::write(&path, value.to_string()).unwrap();
        };
        let read = || {
            let files = CheckpointFiles::find(&directory).unwrap();
            let config = Config::read(&files.config).unwrap();
            let tokenizer = Tokenizer::load(files.tokenizer.as_deref().unwrap()).unwrap();
            let chat = ChatTemplate::load(&directory).unwrap();
            let of =
                |chat| Generation::of_checkpoint(&directory, &files, &config, &tokenizer, chat);
            (of(Some(&chat)).unwrap().eos_ids, of(None).unwrap().eos_ids, tokenizer)
        };
        let (published, _, tokenizer) = read();
        let id = |name: &str| tokenizer.id(name).unwrap();
        assert_eq!(published, [id("<|im_end|>"), id("<|endoftext|>")]);
        let controls = tokenizer.pieces().iter().filter_map(|piece| match piece {
            crate::tokenizer::Piece::Control(name) => Some(name.clone()),
            _ => None,
        });
        let controls: Vec<String> = controls.collect();
        for name in ["config.json", "generation_config.json"] {
            edit(name, &|value| {
                value.as_object_mut().unwrap().shift_remove("eos_token_id");
            });
        }
        edit("tokenizer_config.json", &|value| {
            value.as_object_mut().unwrap().shift_remove("eos_token");
        });
        let (chat, text, _) = read();
        assert_eq!((chat, text), (vec![id("<|im_end|>")], vec![]));
        edit("special_tokens_map.json", &|value| {
            value["eos_token"] = serde_json::json!({"content": controls[0]});
        });
        assert_eq!(read().1, [id(&controls[0])]);
        edit("tokenizer_config.json", &|value| {
            value["eos_token"] = controls[1].clone().into();
        });
        assert_eq!(read().1, [id(&controls[1])]);
        edit("generation_config.json", &|value| value["eos_token_id"] = 7.into());
        assert_eq!(read().0, [7, id(&controls[1]), id("<|im_end|>")]);
    }

    fn read(text: &str) -> Result<Generation, ConfigError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs_err::write(file.path(), text).unwrap();
        Generation::read(Some(file.path()), &[9])
    }

    #[test]
    fn the_published_files_give_their_filters_and_every_eos() {
        let gemma = r#"{"bos_token_id": 2, "do_sample": true, "eos_token_id": [1, 106], "top_k": 64, "top_p": 0.95}"#;
        let gemma = read(gemma).unwrap();
        assert_eq!(gemma.eos_ids, [1, 106]);
        let sampling = Sampling { top_k: Some(64), top_p: Some(0.95), ..Sampling::default() };
        assert_eq!(gemma.sampling, sampling);
        assert_eq!(read(r#"{"eos_token_id": 7}"#).unwrap().eos_ids, [7]);
        assert_eq!(read("{}").unwrap(), Generation::read(None, &[9]).unwrap());
        assert_eq!(read("{}").unwrap().sampling.temperature, 0.0);
        let llama = read(r#"{"do_sample": true, "temperature": 0.6, "top_p": 0.9}"#).unwrap();
        let sampling = Sampling { temperature: 0.6, top_p: Some(0.9), ..llama.sampling };
        assert_eq!((llama.sampling, llama.sampling.top_k), (sampling, Some(50)));
        for off in [r#"{"do_sample": true, "top_k": 0}"#, r#"{"do_sample": true, "top_k": null}"#] {
            assert_eq!(read(off).unwrap().sampling.top_k, None);
        }
    }

    #[test]
    fn what_is_set_and_not_known_is_named_if_it_acts() {
        let warning = |text: &str| read(text).unwrap().warning;
        let acts =
            r#"{"suppress_tokens": [3], "num_beams": 4, "typical_p": 0.9, "stop_strings": "x"}"#;
        let said = warning(acts).unwrap();
        assert!(
            said.contains(" sets num_beams, stop_strings, suppress_tokens, typical_p:"),
            "{said}"
        );
        let neutral = r#"{"suppress_tokens": [], "num_beams": 1, "typical_p": 1.0, "min_length": 0,
            "forced_eos_token_id": null, "token_healing": false, "guidance_scale": 1, "pad_token_id": 0,
            "transformers_version": "5.0", "top_k": 5, "max_length": 20}"#;
        assert_eq!(warning(neutral), None);
        // A token's id, which is never neutral.
        assert!(warning(r#"{"forced_eos_token_id": 0}"#).is_some());
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        for (text, name) in [
            (r#"{"top_p": 1.5}"#, "top_p"),
            (r#"{"temperature": -1}"#, "temperature"),
            (r#"{"repetition_penalty": 0}"#, "repetition_penalty"),
            (r#"{"repetition_penalty": 1e-38}"#, "repetition_penalty"),
            (r#"{"top_k": "many"}"#, "top_k"),
        ] {
            let problem = read(text).unwrap_err().to_string();
            assert!(problem.contains(name) || problem.contains("invalid type"), "{problem}");
        }
    }
}
