//! The fields shared by chat and text completions: sampling, stopping, log-probabilities and streaming.

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::fields::{Fields, asks_for_nothing, take, within};
use super::format::{self, Format, Guide, ResponseFormat};
use crate::engine::Sampling;
use crate::serve::error::ApiError;

const MOST_STOPS: usize = 16;
const MOST_STOP_BYTES: usize = 256;
/// The most top log-probabilities of each token.
pub const MOST_LOGPROBS: f64 = 20.0;

/// The parameters of a completion; `None` if the request does not have the field.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Decoding {
    temperature: Option<f64>,
    top_p: Option<f64>,
    /// 0 and -1 switch it off.
    top_k: Option<i64>,
    min_p: Option<f64>,
    repetition_penalty: Option<f64>,
    frequency_penalty: Option<f64>,
    presence_penalty: Option<f64>,
    /// A negative one is read as in two's complement.
    seed: Option<i64>,
    /// The number of completions of each prompt.
    n: Option<usize>,
    stop: Option<Stops>,
    pub ignore_eos: bool,
    #[serde(alias = "max_completion_tokens")]
    pub max_tokens: Option<usize>,
    stream: bool,
    stream_options: Option<Streaming>,
    response_format: Option<ResponseFormat>,
    structured_outputs: Option<Guide>,
    #[serde(skip)]
    pub format: Option<Format>,
    #[serde(flatten)]
    rest: Fields,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "is of another type; expected a string, or an array of strings")]
enum Stops {
    One(String),
    Several(Vec<String>),
}

#[derive(Clone, Debug, Deserialize)]
struct Streaming {
    include_usage: Option<bool>,
}

impl Decoding {
    /// Takes its fields.
    ///
    /// # Errors
    /// What is known and not supported; values that no model can be asked for.
    pub fn take(fields: &mut Fields) -> Result<Decoding, ApiError> {
        let mut own = take(fields, |own: &mut Decoding| &mut own.rest)?;
        own.format = format::only(own.response_format.take(), own.structured_outputs.take())?;
        for name in UNSUPPORTED.split_whitespace() {
            if fields.shift_remove(name).is_some_and(|value| !asks_for_nothing(&value)) {
                return Err(ApiError::unsupported(name));
            }
        }
        own.check()?;
        Ok(own)
    }

    /// What the types of the fields do not say.
    fn check(&self) -> Result<(), ApiError> {
        let (positive, most) = (f64::from(f32::MIN_POSITIVE), f64::from(u32::MAX));
        within("temperature", self.temperature, 0.0..=most)?;
        within("top_p", self.top_p, positive..=1.0)?;
        within("top_k", self.top_k.map(|k| k as f64), -1.0..=most)?;
        within("min_p", self.min_p, 0.0..=1.0)?;
        within("repetition_penalty", self.repetition_penalty, positive..=most)?;
        within("frequency_penalty", self.frequency_penalty, -2.0..=2.0)?;
        within("presence_penalty", self.presence_penalty, -2.0..=2.0)?;
        within("n", self.n.map(|n| n as f64), 1.0..=16.0)?;
        let stops = self.stops();
        let is_bounded = |stop: &String| (1..=MOST_STOP_BYTES).contains(&stop.len());
        if stops.len() > MOST_STOPS || !stops.iter().all(is_bounded) {
            let message = format!(
                "stop is more than {MOST_STOPS} texts, or one is not of 1 to {MOST_STOP_BYTES} bytes"
            );
            return Err(ApiError::invalid("stop", message));
        }
        Ok(())
    }

    pub fn n(&self) -> usize {
        self.n.unwrap_or(1)
    }

    pub fn seed(&self) -> Option<u64> {
        self.seed.map(|seed| seed as u64)
    }

    /// Whether a stream's last chunk has the usage; `None` where the response is whole.
    pub fn streaming(&self) -> Option<bool> {
        let options = self.stream_options.as_ref();
        let has_usage = options.is_some_and(|options| options.include_usage == Some(true));
        self.stream.then_some(has_usage)
    }

    pub fn stops(&self) -> &[String] {
        match &self.stop {
            None => &[],
            Some(Stops::One(text)) => std::slice::from_ref(text),
            Some(Stops::Several(list)) => list,
        }
    }

    /// The sampling parameters; those not given are the model's defaults.
    pub fn sampling(&self, defaults: Sampling) -> Sampling {
        let on = |value: Option<f64>, default: Option<f32>, off: f32| match value {
            Some(value) => Some(value as f32).filter(|value| *value != off),
            None => default,
        };
        Sampling {
            temperature: self.temperature.map_or(defaults.temperature, |given| given as f32),
            top_k: match self.top_k {
                Some(k) => u32::try_from(k).ok().filter(|k| *k > 0),
                None => defaults.top_k,
            },
            top_p: on(self.top_p, defaults.top_p, 1.0),
            min_p: on(self.min_p, defaults.min_p, 0.0),
            repetition_penalty: on(self.repetition_penalty, defaults.repetition_penalty, 1.0),
            frequency_penalty: on(self.frequency_penalty, None, 0.0),
            presence_penalty: on(self.presence_penalty, None, 0.0),
        }
    }

    /// The seed of choice `index`, derived from the request's; the first choice has the request's own, as with n = 1.
    pub fn seed_of_choice(seed: u64, index: usize) -> u64 {
        if index == 0 {
            return seed;
        }
        let sum = Sha256::digest([seed.to_le_bytes(), (index as u64).to_le_bytes()].concat());
        sum.first_chunk().map_or(0, |low| u64::from_le_bytes(*low)) & SEED_BITS
    }
}

/// 53 bits, which every JSON parser preserves.
pub const SEED_BITS: u64 = (1 << 53) - 1;

/// What is known and not supported, and is refused unless its value asks for nothing. What a text looks like is said by `response_format` or
/// `structured_outputs`.
const UNSUPPORTED: &str = "tools tool_choice functions function_call audio suffix best_of use_beam_search length_penalty \
    truncate_prompt_tokens logit_bias include_stop_str_in_output bad_words allowed_token_ids logits_processors grammar json_schema \
    guided_json guided_regex guided_choice guided_grammar guided_json_object min_tokens stop_token_ids prompt_logprobs return_token_ids \
    return_tokens_as_token_ids cache_salt continue_final_message";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::fields::parse;
    use super::*;
    use crate::serve::error::Code;

    fn decoding(body: Value) -> Result<Decoding, ApiError> {
        Decoding::take(&mut parse(body.to_string().as_bytes()).unwrap())
    }

    #[test]
    fn values_at_their_neutral_place_are_accepted_and_others_refused_by_name() {
        let neutral = json!({"tools": [], "functions": null, "n": 2, "use_beam_search": false,
            "tool_choice": "none", "bad_words": [], "include_stop_str_in_output": false, "logits_processors": null,
            "continue_final_message": false});
        assert_eq!(decoding(neutral).unwrap().n(), 2);
        let tool = json!([{"type": "function"}]);
        for (name, value) in [
            ("tool_choice", json!("required")),
            ("tools", tool),
            ("best_of", json!(3)),
            ("suffix", json!("a")),
            ("use_beam_search", json!(true)),
            ("truncate_prompt_tokens", json!(5)),
            ("allowed_token_ids", json!([1])),
            ("grammar", json!("root ::= \"a\"")),
            ("guided_choice", json!(["A"])),
            ("min_tokens", json!(3)),
            ("logit_bias", json!({"7": -100})),
            ("prompt_logprobs", json!(0)),
        ] {
            let error = decoding(json!({name: value})).unwrap_err();
            assert_eq!(
                (error.code, error.param.as_deref()),
                (Code::UNSUPPORTED_PARAMETER, Some(name))
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
        ] {
            let error = decoding(json!({name: value})).unwrap_err();
            // Of an entry inside, with its key.
            assert!(error.param.is_some_and(|param| param.starts_with(name)), "{name}");
            assert_eq!(error.code, Code::INVALID_VALUE, "{name}: {}", error.message);
        }
    }

    #[test]
    fn stops_seeds_and_limits_are_read_as_clients_write_them() {
        let read =
            decoding(json!({"stop": ["b"], "seed": -1, "max_completion_tokens": 5, "top_k": -1}));
        let read = read.unwrap();
        assert_eq!(read.stops(), ["b"]);
        assert_eq!((read.seed(), read.max_tokens), (Some(u64::MAX), Some(5)));
        let usual = Sampling { top_k: Some(3), ..read.sampling(Sampling::default()) };
        assert_eq!(read.sampling(usual).top_k, None);
        let two = json!({"max_tokens": 3, "max_completion_tokens": 5});
        assert_eq!(decoding(two).unwrap_err().param.as_deref(), Some("max_tokens"));
        let error = decoding(json!({"stop": ["a", null]})).unwrap_err();
        assert_eq!((error.code, error.param.as_deref()), (Code::INVALID_TYPE, Some("stop")));
    }

    #[test]
    fn the_last_chunk_has_the_usage_where_it_is_asked_for() {
        let read =
            decoding(json!({"stream": true, "stream_options": {"include_usage": true}})).unwrap();
        assert_eq!(read.streaming(), Some(true));
        assert_eq!(decoding(json!({"stream": true})).unwrap().streaming(), Some(false));
        assert_eq!(decoding(json!({"stream": false})).unwrap().streaming(), None);
    }

    #[test]
    fn the_first_choice_has_the_requests_own_seed() {
        assert_eq!(Decoding::seed_of_choice(7, 0), 7);
        let others: Vec<u64> = (1..16).map(|index| Decoding::seed_of_choice(7, index)).collect();
        assert!(others.iter().all(|seed| *seed <= SEED_BITS && *seed != 7));
        assert!(others.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
