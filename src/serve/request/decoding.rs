//! Parses the fields shared by chat and text completions: sampling, stopping, log-probabilities and streaming.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::fields::{Fields, asks_for_nothing, ids, inner_flag, number, text, unknown, wrong_type};
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
        refuse_unsupported(fields, n)?;
        let mut ignored = Vec::new();
        let given = WITHOUT_EFFECT.into_iter().filter(|name| fields.take(name).is_some());
        let mut without_effect = given.collect();
        let float = |value: Option<f64>| value.map(|value| value as f32);
        let top_p = float(fields.number("top_p", 0.0..=1.0)?);
        if top_p == Some(0.0) {
            let message = "top_p is 0; expected a number above 0, up to 1";
            return Err(ApiError::invalid("top_p", message));
        }
        let penalty = float(fields.number("repetition_penalty", 0.0..=f64::MAX)?);
        if penalty.is_some_and(|penalty| penalty <= 0.0 || !penalty.is_finite()) {
            let message = "repetition_penalty is not a number above 0";
            return Err(ApiError::invalid("repetition_penalty", message));
        }
        // The newer name wins.
        let limit = i64::from(u32::MAX);
        let older = fields.integer("max_tokens", 0..=limit)?;
        let max_tokens = fields.integer("max_completion_tokens", 0..=limit)?.or(older);
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

/// Refuses known parameters that are not supported, unless their value asks for nothing.
fn refuse_unsupported(fields: &mut Fields, n: i64) -> Result<(), ApiError> {
    // Without tools, «auto» and «none» are the same.
    let choice = fields.take("tool_choice");
    let calls_no_tool = choice.as_ref().is_some_and(|choice| *choice == "none");
    if choice.is_some_and(|choice| choice != "none" && choice != "auto") {
        let message = "tool_choice is neither none nor auto: tools are not supported";
        return Err(ApiError::of(Code::UnsupportedParameter, "tool_choice", message));
    }
    let is = |number: f64| move |value: &Value| value.as_f64() == Some(number);
    let is_text = |value: &Value| *value == serde_json::json!(["text"]);
    type IsNeutral<'a> = &'a dyn Fn(&Value) -> bool;
    let neutral: [(&str, IsNeutral<'_>); 14] = [
        ("tools", &|value| asks_for_nothing(value) || calls_no_tool),
        ("functions", &asks_for_nothing),
        ("function_call", &|value| *value == "none"),
        ("audio", &asks_for_nothing),
        ("suffix", &asks_for_nothing),
        ("best_of", &is(n as f64)),
        ("use_beam_search", &asks_for_nothing),
        ("length_penalty", &is(1.0)),
        ("truncate_prompt_tokens", &asks_for_nothing),
        ("include_stop_str_in_output", &asks_for_nothing),
        ("bad_words", &asks_for_nothing),
        ("allowed_token_ids", &asks_for_nothing),
        ("logits_processors", &asks_for_nothing),
        ("modalities", &is_text),
    ];
    for (name, is_neutral) in neutral {
        if fields.take(name).is_some_and(|value| !is_neutral(&value)) {
            let message = format!("{name} is not supported; leave it out");
            return Err(ApiError::of(Code::UnsupportedParameter, name, message));
        }
    }
    Ok(())
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
    let mut biases = Vec::with_capacity(map.len());
    for (id, bias) in map {
        let id: u32 = id
            .parse()
            .map_err(|_| ApiError::invalid(NAME, "logit_bias has a key that is no token id"))?;
        biases.push((id, number(NAME, &bias, &(-100.0..=100.0))? as f32));
    }
    biases.sort_by_key(|(id, _)| *id);
    biases.dedup_by_key(|(id, _)| *id);
    Ok(biases)
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
        match value {
            Value::String(text) if text.len() > MOST_STOP_BYTES => {
                let message = format!(
                    "stop has a string of {} bytes; at most {MOST_STOP_BYTES} are taken",
                    text.len()
                );
                return Err(ApiError::invalid("stop", message));
            }
            value => stops.push(text(&format!("stop[{index}]"), value)?),
        }
    }
    stops.retain(|stop| !stop.is_empty());
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
    use serde_json::json;

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
        assert_eq!(read.without_effect, ["user"]);
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
            ("stop_token_ids", json!(vec![0; 17])),
            ("logit_bias", json!({"x": 1})),
            ("logit_bias", json!({"1": 101})),
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
            json!({"stop": ["", "b"], "seed": -1, "max_tokens": 3, "max_completion_tokens": 5, "top_k": -1,
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
