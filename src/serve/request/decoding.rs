//! The fields shared by chat and text completions: sampling, stopping, log-probabilities and streaming.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::fields::{
    Fields, MOST, Real, Seed, TextOrList, Whole, agreed, asks_for_nothing, take, unknown,
};
use super::format::{self, Format, Guide, ResponseFormat};
use crate::engine::Sampling;
use crate::serve::error::{ApiError, Code};

const MOST_STOPS: usize = 16;
const MOST_STOP_BYTES: usize = 256;
const MOST_BIASED: usize = 1024;
/// The most top log-probabilities of each token.
pub const MOST_LOGPROBS: i64 = 20;

/// The parameters of a completion; `None` if the request does not have the field.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Decoding {
    temperature: Option<Real<0, MOST>>,
    top_p: Option<Real<0, 1>>,
    /// 0 and -1 switch it off.
    top_k: Option<Whole<-1, MOST>>,
    min_p: Option<Real<0, 1>>,
    repetition_penalty: Option<Real<0, MOST>>,
    frequency_penalty: Option<Real<-2, 2>>,
    presence_penalty: Option<Real<-2, 2>>,
    /// By token ids, as texts.
    logit_bias: BTreeMap<u32, Real<-100, 100>>,
    seed: Option<Seed>,
    /// The number of completions of each prompt.
    n: Option<Whole<1, 16>>,
    stop: Option<TextOrList<String>>,
    pub ignore_eos: bool,
    pub max_tokens: Option<Whole<0, MOST>>,
    max_completion_tokens: Option<Whole<0, MOST>>,
    stream: bool,
    stream_options: Option<Streaming>,
    response_format: Option<ResponseFormat>,
    structured_outputs: Option<Guide>,
    #[serde(skip)]
    pub format: Option<Format>,
    /// Unknown fields of inner objects.
    #[serde(skip)]
    pub ignored: Vec<String>,
    /// Given fields that are known and have no effect.
    #[serde(skip)]
    pub without_effect: Vec<&'static str>,
    #[serde(flatten)]
    rest: Fields,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Streaming {
    /// Whether a last chunk has the usage.
    pub include_usage: Option<bool>,
    #[serde(flatten)]
    rest: Fields,
}

impl Decoding {
    /// # Errors
    /// What is known and not supported; values that no model can be asked for.
    pub fn take(fields: &mut Fields) -> Result<Decoding, ApiError> {
        let mut decoding = take(fields, |own: &mut Decoding| &mut own.rest)?;
        let (first, second) = (decoding.response_format.take(), decoding.structured_outputs.take());
        decoding.format = format::only(first, second, &mut decoding.ignored)?;
        decoding.refuse_unsupported(fields)?;
        let newer = decoding.max_completion_tokens;
        decoding.max_tokens =
            agreed([("max_completion_tokens", newer), ("max_tokens", decoding.max_tokens)])?;
        decoding.check()?;
        if let Some(options) = &decoding.stream_options {
            decoding.ignored.extend(unknown("stream_options", &options.rest));
        }
        Ok(decoding)
    }

    /// What the types of the fields do not say.
    fn check(&self) -> Result<(), ApiError> {
        let invalid = |name: &str, message: String| Err(ApiError::invalid(name, message));
        let top_p = self.top_p.map(|share| share.0);
        let penalty = self.repetition_penalty.map(|penalty| penalty.0);
        for (name, value) in [("top_p", top_p), ("repetition_penalty", penalty)] {
            if value.is_some_and(|value| value <= 0.0) {
                return invalid(name, format!("{name} is not a number above 0"));
            }
        }
        let count = self.stops().len();
        if count > MOST_STOPS {
            return invalid("stop", format!("stop has {count}; at most {MOST_STOPS} are taken"));
        }
        if self.stops().iter().any(|stop| !(1..=MOST_STOP_BYTES).contains(&stop.len())) {
            let message = format!("stop has a text that is not of 1 to {MOST_STOP_BYTES} bytes");
            return invalid("stop", message);
        }
        if self.stream_options.is_some() && !self.stream {
            let message = "stream_options is given without stream: true";
            return Err(ApiError::of(Code::StreamOptions, "stream_options", message));
        }
        let count = self.logit_bias.len();
        if count > MOST_BIASED {
            let most = format!("at most {MOST_BIASED} are taken");
            return invalid("logit_bias", format!("logit_bias has {count} entries; {most}"));
        }
        Ok(())
    }

    /// Refuses parameters that are not supported, unless their value asks for nothing. Notes what is passed over: another server would show
    /// tools to the model, which is not to call any.
    fn refuse_unsupported(&mut self, fields: &mut Fields) -> Result<(), ApiError> {
        let calls_none = fields.get("tool_choice").is_some_and(|choice| choice == "none");
        for name in UNSUPPORTED.split(' ') {
            let Some(value) = fields.shift_remove(name) else { continue };
            match name {
                "add_generation_prompt" if value == true => {}
                _ if asks_for_nothing(&value) && name != "add_generation_prompt" => {}
                "tools" if calls_none => self.without_effect.push(name),
                "tool_choice" if value == "none" || value == "auto" => {}
                "function_call" if value == "none" => {}
                "best_of" if value.as_f64() == Some(self.n() as f64) => {}
                "length_penalty" if value.as_f64() == Some(1.0) => {}
                "min_tokens" if value.as_f64() == Some(0.0) => {}
                "modalities" if value == json!(["text"]) => {}
                _ => return Err(ApiError::unsupported(name)),
            }
        }
        let without_effect = WITHOUT_EFFECT.into_iter();
        let given = without_effect.filter(|name| fields.shift_remove(*name).is_some());
        self.without_effect.extend(given);
        Ok(())
    }

    pub fn n(&self) -> usize {
        self.n.map_or(1, Whole::count)
    }

    pub fn seed(&self) -> Option<u64> {
        self.seed.map(|seed| seed.0 as u64)
    }

    pub fn max_tokens(&self) -> Option<usize> {
        self.max_tokens.map(Whole::count)
    }

    /// How the response is streamed; `None` for a whole one.
    pub fn streaming(&self) -> Option<Streaming> {
        self.stream.then(|| self.stream_options.clone().unwrap_or_default())
    }

    pub fn stops(&self) -> &[String] {
        match &self.stop {
            None => &[],
            Some(TextOrList::Text(text)) => std::slice::from_ref(text),
            Some(TextOrList::List(list)) => list,
        }
    }

    /// Sorted by token id.
    pub fn biases(&self) -> Vec<(u32, f32)> {
        self.logit_bias.iter().map(|(id, bias)| (*id, bias.0)).collect()
    }

    /// The sampling parameters; those not given are the model's defaults.
    pub fn sampling(&self, defaults: Sampling) -> Sampling {
        let on = |value: Option<f32>, default: Option<f32>, off: f32| match value {
            Some(value) => Some(value).filter(|value| *value != off),
            None => default,
        };
        Sampling {
            temperature: self.temperature.map_or(defaults.temperature, |given| given.0),
            top_k: match self.top_k {
                Some(k) => u32::try_from(k.0).ok().filter(|k| *k > 0),
                None => defaults.top_k,
            },
            top_p: on(self.top_p.map(|share| share.0), defaults.top_p, 1.0),
            min_p: on(self.min_p.map(|share| share.0), defaults.min_p, 0.0),
            repetition_penalty: on(
                self.repetition_penalty.map(|penalty| penalty.0),
                defaults.repetition_penalty,
                1.0,
            ),
            frequency_penalty: on(self.frequency_penalty.map(|penalty| penalty.0), None, 0.0),
            presence_penalty: on(self.presence_penalty.map(|penalty| penalty.0), None, 0.0),
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

/// What is known and not supported. What a text looks like is said by `response_format` or `structured_outputs`.
const UNSUPPORTED: &str = "tools tool_choice functions function_call audio suffix best_of use_beam_search length_penalty \
    truncate_prompt_tokens include_stop_str_in_output bad_words allowed_token_ids logits_processors modalities grammar json_schema \
    guided_json guided_regex guided_choice guided_grammar guided_json_object min_tokens stop_token_ids prompt_logprobs return_token_ids \
    return_tokens_as_token_ids cache_salt continue_final_message add_generation_prompt";

/// What is taken and has no effect.
const WITHOUT_EFFECT: [&str; 6] =
    ["user", "metadata", "store", "service_tier", "parallel_tool_calls", "prediction"];

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::fields::parse;
    use super::*;

    fn decoding(body: Value) -> Result<Decoding, ApiError> {
        Decoding::take(&mut parse(body.to_string().as_bytes()).unwrap())
    }

    #[test]
    fn values_at_their_neutral_place_are_accepted_and_others_refused_by_name() {
        let neutral = json!({"tools": [], "functions": null, "best_of": 2, "n": 2, "length_penalty": 1.0, "use_beam_search": false,
            "modalities": ["text"], "bad_words": [], "include_stop_str_in_output": false, "logits_processors": null, "min_tokens": 0,
            "add_generation_prompt": true, "continue_final_message": false});
        assert_eq!(decoding(neutral).unwrap().n(), 2);
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
            ("grammar", json!("root ::= \"a\"")),
            ("guided_choice", json!(["A"])),
            ("min_tokens", json!(3)),
            ("prompt_logprobs", json!(0)),
            ("add_generation_prompt", json!(false)),
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
            ("logit_bias", json!({"x": 1})),
            ("logit_bias", json!({"1": 101})),
            ("logit_bias", json!({"1": 1, "01": 2})),
        ] {
            let error = decoding(json!({name: value})).unwrap_err();
            // Of an entry inside, with its key.
            assert!(error.param.is_some_and(|param| param.starts_with(name)), "{name}");
            assert_eq!(error.code, Code::InvalidValue, "{name}: {}", error.message);
        }
    }

    #[test]
    fn stops_seeds_and_limits_are_read_as_clients_write_them() {
        let read = decoding(
            json!({"stop": ["b"], "seed": -1, "max_tokens": 5, "max_completion_tokens": 5, "top_k": -1,
            "logit_bias": {"7": -100, "3": 1.5}}),
        );
        let read = read.unwrap();
        assert_eq!(read.stops(), ["b"]);
        assert_eq!((read.seed(), read.max_tokens()), (Some(u64::MAX), Some(5)));
        let usual = Sampling { top_k: Some(3), ..read.sampling(Sampling::default()) };
        assert_eq!(read.sampling(usual).top_k, None);
        assert_eq!(read.biases(), [(3, 1.5), (7, -100.0)]);
        let two = json!({"max_tokens": 3, "max_completion_tokens": 5});
        assert_eq!(decoding(two).unwrap_err().param.as_deref(), Some("max_tokens"));
        let error = decoding(json!({"stop": ["a", null]})).unwrap_err();
        assert_eq!((error.code, error.param.as_deref()), (Code::InvalidType, Some("stop")));
    }

    #[test]
    fn stream_options_need_a_stream() {
        let error = decoding(json!({"stream_options": {"include_usage": true}})).unwrap_err();
        assert_eq!(error.code, Code::StreamOptions);
        let read =
            decoding(json!({"stream": true, "stream_options": {"include_usage": true}})).unwrap();
        assert_eq!(read.streaming().unwrap().include_usage, Some(true));
        assert!(decoding(json!({"stream": false})).unwrap().streaming().is_none());
    }

    #[test]
    fn the_first_choice_has_the_requests_own_seed() {
        assert_eq!(Decoding::seed_of_choice(7, 0), 7);
        let others: Vec<u64> = (1..16).map(|index| Decoding::seed_of_choice(7, index)).collect();
        assert!(others.iter().all(|seed| *seed <= SEED_BITS && *seed != 7));
        assert!(others.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
