//! Parses the fields shared by chat and text completions: sampling, stopping, log-probabilities and streaming.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::fields::{
    Fields, agreed, asks_for_nothing, ids, inner_flag, number, text, unknown, wrong_type,
};
use super::format::{self, Format};
use crate::engine::{Sampling, Stop};
use crate::serve::error::{ApiError, Code};

/// The most completions of one prompt.
const MOST_CHOICES: i64 = 16;
const MOST_STOPS: usize = 16;
const MOST_STOP_BYTES: usize = 256;
const MOST_BIASED: usize = 1024;
/// The most top log-probabilities of each token.
pub const MOST_LOGPROBS: usize = 20;

/// Fields that are accepted and have no effect.
const WITHOUT_EFFECT: [&str; 6] =
    ["user", "metadata", "store", "service_tier", "parallel_tool_calls", "prediction"];

/// The parameters of a completion; `None` if the request does not have the field.
#[derive(Clone, Debug, Default)]
pub struct Decoding {
    pub temperature: Option<f32>,
    pub top_p: Option<f32>,
    /// `Some(0)` switches it off.
    pub top_k: Option<u32>,
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
    pub frequency_penalty: f32,
    pub presence_penalty: f32,
    /// Sorted by token id.
    pub logit_bias: Vec<(u32, f32)>,
    pub min_tokens: usize,
    pub seed: Option<u64>,
    /// The number of completions of each prompt.
    pub n: usize,
    pub stop: Stop,
    pub ignore_eos: bool,
    pub max_tokens: Option<usize>,
    pub prompt_logprobs: Option<usize>,
    pub format: Option<Format>,
    pub stream: Option<Streaming>,
    pub return_token_ids: bool,
    /// Derived from `cache_salt`.
    pub salt: Option<[u8; 16]>,
    /// The client's own id of the request.
    pub request_id: Option<String>,
    /// Unknown fields of inner objects.
    pub ignored: Vec<String>,
    /// Given fields that are known and have no effect.
    pub without_effect: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Streaming {
    /// Whether a last chunk has the usage.
    pub include_usage: bool,
    /// Whether every chunk has the usage so far.
    pub continuous_usage: bool,
}

impl Decoding {
    pub fn read(fields: &mut Fields) -> Result<Decoding, ApiError> {
        let n = fields.integer("n", 1..=MOST_CHOICES)?.unwrap_or(1);
        let mut without_effect = refuse_unsupported(fields, n)?;
        let mut ignored = Vec::new();
        without_effect
            .extend(WITHOUT_EFFECT.into_iter().filter(|name| fields.take(name).is_some()));
        let float = |value: Option<f64>| value.map(|value| value as f32);
        let top_p = float(fields.number("top_p", 0.0..=1.0)?);
        let penalty = float(fields.number("repetition_penalty", 0.0..=f64::MAX)?);
        for (name, value) in [("top_p", top_p), ("repetition_penalty", penalty)] {
            if value.is_some_and(|value| value <= 0.0 || !value.is_finite()) {
                return Err(ApiError::invalid(name, format!("{name} is not a number above 0")));
            }
        }
        let limit = i64::from(u32::MAX);
        let older = fields.integer("max_tokens", 0..=limit)?;
        let newer = fields.integer("max_completion_tokens", 0..=limit)?;
        let max_tokens = agreed([("max_completion_tokens", newer), ("max_tokens", older)])?;
        let min_tokens = fields.count("min_tokens", u32::MAX as usize)?.unwrap_or(0);
        if max_tokens.is_some_and(|most| (most as usize) < min_tokens) {
            let message = "min_tokens is above max_tokens";
            return Err(ApiError::invalid("min_tokens", message));
        }
        let top_k = fields.integer("top_k", -1..=limit)?.map(|k| k.max(0) as u32);
        Ok(Decoding {
            temperature: float(fields.number("temperature", 0.0..=f64::from(f32::MAX))?),
            top_p,
            top_k,
            min_p: float(fields.number("min_p", 0.0..=1.0)?),
            repetition_penalty: penalty,
            frequency_penalty: float(fields.number("frequency_penalty", -2.0..=2.0)?)
                .unwrap_or(0.0),
            presence_penalty: float(fields.number("presence_penalty", -2.0..=2.0)?).unwrap_or(0.0),
            logit_bias: logit_bias(fields.take("logit_bias"))?,
            min_tokens,
            seed: fields.seed()?,
            n: n as usize,
            stop: Stop {
                strings: stops(fields.take("stop"))?,
                later_ids: stop_ids(fields)?,
                ..Stop::default()
            },
            ignore_eos: fields.flag("ignore_eos")?.unwrap_or(false),
            max_tokens: max_tokens.map(|tokens| tokens as usize),
            prompt_logprobs: fields.count("prompt_logprobs", MOST_LOGPROBS)?,
            format: format::read(fields, &mut ignored, &mut without_effect)?,
            stream: streaming(fields, &mut ignored)?,
            return_token_ids: fields.flag("return_token_ids")?.unwrap_or(false),
            salt: fields.text("cache_salt")?.map(|salt| salt_of(&salt)),
            request_id: fields.id("request_id")?,
            ignored,
            without_effect,
        })
    }

    /// The sampling parameters; those not given are the model's defaults.
    pub fn sampling(&self, defaults: Sampling) -> Sampling {
        let on = |value: Option<f32>, default: Option<f32>, off: f32| match value {
            Some(value) => Some(value).filter(|value| *value != off),
            None => default,
        };
        Sampling {
            temperature: self.temperature.unwrap_or(defaults.temperature),
            top_k: self.top_k.map_or(defaults.top_k, |k| Some(k).filter(|k| *k > 0)),
            top_p: on(self.top_p, defaults.top_p, 1.0),
            min_p: on(self.min_p, defaults.min_p, 0.0),
            repetition_penalty: on(self.repetition_penalty, defaults.repetition_penalty, 1.0),
            frequency_penalty: Some(self.frequency_penalty).filter(|penalty| *penalty != 0.0),
            presence_penalty: Some(self.presence_penalty).filter(|penalty| *penalty != 0.0),
        }
    }

    /// The seed of choice `index`, derived from the request's; the first choice has the request's own, as with n = 1.
    pub fn seed_of_choice(seed: u64, index: usize) -> u64 {
        if index == 0 {
            return seed;
        }
        let mut hasher = Sha256::new();
        hasher.update(seed.to_le_bytes());
        hasher.update((index as u64).to_le_bytes());
        let sum = hasher.finalize();
        let mut low = [0; 8];
        low.copy_from_slice(&sum[..8]);
        u64::from_le_bytes(low) & SEED_BITS
    }
}

/// 53 bits, which every JSON parser preserves.
pub const SEED_BITS: u64 = (1 << 53) - 1;

fn salt_of(text: &str) -> [u8; 16] {
    let sum = Sha256::digest(text);
    let mut salt = [0; 16];
    salt.copy_from_slice(&sum[..16]);
    salt
}

/// What is known and not supported.
const UNSUPPORTED: &str = "tools tool_choice functions function_call audio suffix best_of use_beam_search length_penalty \
    truncate_prompt_tokens include_stop_str_in_output bad_words allowed_token_ids logits_processors modalities";

/// Refuses parameters that are not supported, unless their value asks for nothing. Gives the name of what is passed over: another server
/// would show tools to the model, which is not to call any.
fn refuse_unsupported(fields: &mut Fields, n: i64) -> Result<Vec<&'static str>, ApiError> {
    let take = |name| (name, fields.take(name).unwrap_or_default());
    let given: Vec<(&str, Value)> = UNSUPPORTED.split(' ').map(take).collect();
    let calls_none = given.iter().any(|(name, value)| *name == "tool_choice" && *value == "none");
    let mut passed_over = Vec::new();
    for (name, value) in given {
        match name {
            _ if value.is_null() || asks_for_nothing(&value) => {}
            "tools" if calls_none => passed_over.push(name),
            "tool_choice" if value == "none" || value == "auto" => {}
            "function_call" if value == "none" => {}
            "best_of" if value.as_f64() == Some(n as f64) => {}
            "length_penalty" if value.as_f64() == Some(1.0) => {}
            "modalities" if value == json!(["text"]) => {}
            _ => {
                let message = format!("{name} is not supported; leave it out");
                return Err(ApiError::of(Code::UnsupportedParameter, name, message));
            }
        }
    }
    Ok(passed_over)
}

fn logit_bias(value: Option<Value>) -> Result<Vec<(u32, f32)>, ApiError> {
    const NAME: &str = "logit_bias";
    let map = match value {
        None => return Ok(Vec::new()),
        Some(Value::Object(map)) => map,
        Some(other) => return Err(wrong_type(NAME, &other, "an object from token id to bias")),
    };
    if map.len() > MOST_BIASED {
        let message =
            format!("logit_bias has {} entries; at most {MOST_BIASED} are taken", map.len());
        return Err(ApiError::invalid(NAME, message));
    }
    let mut biases = BTreeMap::new();
    for (id, bias) in map {
        let id: u32 = id
            .parse()
            .map_err(|_| ApiError::invalid(NAME, "logit_bias has a key that is no token id"))?;
        if biases.insert(id, number(NAME, &bias, &(-100.0..=100.0))? as f32).is_some() {
            return Err(ApiError::invalid(NAME, format!("logit_bias has token {id} twice")));
        }
    }
    Ok(biases.into_iter().collect())
}

fn stops(value: Option<Value>) -> Result<Vec<String>, ApiError> {
    let list = match value {
        None => Vec::new(),
        Some(Value::String(text)) => vec![Value::String(text)],
        Some(Value::Array(list)) => list,
        Some(other) => return Err(wrong_type("stop", &other, "a string or an array of strings")),
    };
    if list.len() > MOST_STOPS {
        let message = format!("stop has {} strings; at most {MOST_STOPS} are taken", list.len());
        return Err(ApiError::invalid("stop", message));
    }
    let mut stops = Vec::new();
    for (index, value) in list.into_iter().enumerate() {
        let stop = text(&format!("stop[{index}]"), value)?;
        if !(1..=MOST_STOP_BYTES).contains(&stop.len()) {
            let message =
                format!("stop[{index}] has {} bytes; expected 1 to {MOST_STOP_BYTES}", stop.len());
            return Err(ApiError::invalid("stop", message));
        }
        stops.push(stop);
    }
    Ok(stops)
}

fn stop_ids(fields: &mut Fields) -> Result<Vec<u32>, ApiError> {
    const NAME: &str = "stop_token_ids";
    match fields.take(NAME) {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) if list.len() > MOST_STOPS => {
            let message = format!("{NAME} has {} ids; at most {MOST_STOPS} are taken", list.len());
            Err(ApiError::invalid(NAME, message))
        }
        Some(value) => ids(NAME, &value),
    }
}

fn streaming(
    fields: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<Option<Streaming>, ApiError> {
    const OPTIONS: &str = "stream_options";
    let is_wanted = fields.flag("stream")?.unwrap_or(false);
    let Some(mut options) = fields.inner(OPTIONS)? else {
        return Ok(is_wanted.then(Streaming::default));
    };
    if !is_wanted {
        let message = "stream_options is given without stream: true";
        return Err(ApiError::of(Code::StreamOptions, OPTIONS, message));
    }
    let mut flag = |name| inner_flag(OPTIONS, &mut options, name).map(Option::unwrap_or_default);
    let streaming = Streaming {
        include_usage: flag("include_usage")?,
        continuous_usage: flag("continuous_usage_stats")?,
    };
    ignored.extend(unknown(OPTIONS, options));
    Ok(Some(streaming))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoding(body: Value) -> Result<Decoding, ApiError> {
        Decoding::read(&mut Fields::parse(body.to_string().as_bytes()).unwrap())
    }

    #[test]
    fn values_at_their_neutral_place_are_accepted_and_others_refused_by_name() {
        let neutral = json!({"tools": [], "functions": null, "best_of": 2, "n": 2, "length_penalty": 1.0, "use_beam_search": false,
            "modalities": ["text"], "bad_words": [], "include_stop_str_in_output": false, "logits_processors": null});
        assert_eq!(decoding(neutral).unwrap().n, 2);
        let tool = json!([{"type": "function"}]);
        let read = decoding(json!({"tools": tool, "tool_choice": "none", "user": "a"})).unwrap();
        assert_eq!(read.without_effect, ["tools", "user"]);
        for (name, value) in [
            ("tool_choice", json!("required")),
            ("tools", tool),
            ("best_of", json!(3)),
            ("suffix", json!("a")),
            ("use_beam_search", json!(true)),
            ("truncate_prompt_tokens", json!(5)),
            ("modalities", json!(["audio"])),
            ("allowed_token_ids", json!([1])),
        ] {
            let error = decoding(json!({name: value})).unwrap_err();
            assert_eq!(
                (error.code, error.param.as_deref()),
                (Code::UnsupportedParameter, Some(name))
            );
        }
    }

    #[test]
    fn limits_are_kept_by_name() {
        for (name, value) in [
            ("temperature", json!(-0.1)),
            ("top_p", json!(0)),
            ("top_p", json!(1.1)),
            ("top_k", json!(-2)),
            ("min_p", json!(2)),
            ("repetition_penalty", json!(0)),
            ("frequency_penalty", json!(2.5)),
            ("n", json!(0)),
            ("n", json!(17)),
            ("max_tokens", json!(-1)),
            ("stop", json!(vec!["a"; 17])),
            ("stop", json!("a".repeat(257))),
            ("stop", json!("")),
            ("stop", json!(["a", ""])),
            ("stop_token_ids", json!(vec![0; 17])),
            ("logit_bias", json!({"x": 1})),
            ("logit_bias", json!({"1": 101})),
            ("logit_bias", json!({"1": 1, "01": 2})),
            ("prompt_logprobs", json!(21)),
        ] {
            let error = decoding(json!({name: value})).unwrap_err();
            assert_eq!(error.param.as_deref(), Some(name));
            assert_eq!(error.code, Code::InvalidValue, "{name}: {}", error.message);
        }
    }

    #[test]
    fn stops_seeds_and_limits_are_read_as_clients_write_them() {
        let read = decoding(
            json!({"stop": ["b"], "seed": -1, "max_tokens": 5, "max_completion_tokens": 5, "top_k": -1,
            "logit_bias": {"7": -100, "3": 1.5}, "cache_salt": "a"}),
        );
        let read = read.unwrap();
        assert_eq!(read.stop.strings, ["b"]);
        assert_eq!((read.seed, read.max_tokens, read.top_k), (Some(u64::MAX), Some(5), Some(0)));
        assert_eq!(read.logit_bias, [(3, 1.5), (7, -100.0)]);
        assert_eq!(
            decoding(json!({"stop": null, "stop_token_ids": [1]})).unwrap().stop.later_ids,
            [1]
        );
        assert!(read.salt.is_some());
        let two = json!({"max_tokens": 3, "max_completion_tokens": 5});
        assert_eq!(decoding(two).unwrap_err().param.as_deref(), Some("max_tokens"));
        let error = decoding(json!({"stop": ["a", null]})).unwrap_err();
        assert_eq!((error.code, error.param.as_deref()), (Code::InvalidType, Some("stop[1]")));
    }

    #[test]
    fn stream_options_need_a_stream() {
        let error = decoding(json!({"stream_options": {"include_usage": true}})).unwrap_err();
        assert_eq!(error.code, Code::StreamOptions);
        let read =
            decoding(json!({"stream": true, "stream_options": {"include_usage": true}})).unwrap();
        assert_eq!(read.stream, Some(Streaming { include_usage: true, continuous_usage: false }));
        assert_eq!(decoding(json!({"stream": false})).unwrap().stream, None);
    }

    #[test]
    fn the_first_choice_has_the_requests_own_seed() {
        assert_eq!(Decoding::seed_of_choice(7, 0), 7);
        let others: Vec<u64> = (1..16).map(|index| Decoding::seed_of_choice(7, index)).collect();
        assert!(others.iter().all(|seed| *seed <= SEED_BITS && *seed != 7));
        assert!(others.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
