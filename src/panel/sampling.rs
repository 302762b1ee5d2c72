//! Sampling parameters that a run sets in place of the model's or the endpoint's defaults.

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::engine::Sampling;

/// What a run or an agent sets. `None` is the model's default; an endpoint is not sent it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SamplingChoice {
    /// Sampling temperature; 0 is greedy [default: the model's]
    #[arg(long, help_heading = "Decoding", value_name = "T", allow_negative_numbers = true, value_parser = temperature)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Sample from the likeliest tokens up to P [default: the model's]
    #[arg(long, help_heading = "Decoding", value_name = "P", value_parser = share)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f32>,
    /// Sample from the K likeliest tokens; 0: all [default: the model's]
    #[arg(long, help_heading = "Decoding", value_name = "K")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// Leave out what is below P of the likeliest [default: the model's]
    #[arg(long, help_heading = "Decoding", value_name = "P", value_parser = share)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_p: Option<f32>,
    /// Tokens of a completion at most, beside what the system's own limit says: the lower one holds; no flag.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
}

/// The names of the parameters that endpoints are sent, in the API and in `--set slot.AGENT.NAME=VALUE`.
pub const NAMES: [&str; 4] = ["temperature", "top_p", "top_k", "min_p"];

impl SamplingChoice {
    /// `defaults`, with each parameter that is set in its place.
    pub fn over(self, defaults: Sampling) -> Sampling {
        Sampling {
            temperature: self.temperature.unwrap_or(defaults.temperature),
            top_k: self.top_k.map_or(defaults.top_k, |k| Some(k).filter(|k| *k > 0)),
            top_p: self.top_p.map_or(defaults.top_p, |p| Some(p).filter(|p| *p < 1.0)),
            min_p: self.min_p.map_or(defaults.min_p, |p| Some(p).filter(|p| *p > 0.0)),
            ..defaults
        }
    }

    /// These parameters, and those of `other` that are not set here.
    pub fn or(self, other: SamplingChoice) -> SamplingChoice {
        SamplingChoice {
            temperature: self.temperature.or(other.temperature),
            top_p: self.top_p.or(other.top_p),
            top_k: self.top_k.or(other.top_k),
            min_p: self.min_p.or(other.min_p),
            max_tokens: self.max_tokens.or(other.max_tokens),
        }
    }

    /// The names of the set parameters that an endpoint is sent.
    pub fn sent(&self) -> impl Iterator<Item = &'static str> {
        // What is not set is not written.
        let set = serde_json::to_value(self).unwrap_or_default();
        NAMES.into_iter().filter(move |name| set.get(name).is_some())
    }

    /// Sets the parameter of this name.
    ///
    /// # Errors
    /// What was expected: a known name, or a value in the parameter's range.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "temperature" => self.temperature = Some(temperature(value)?),
            "top_p" => self.top_p = Some(share(value)?),
            "top_k" => self.top_k = Some(value.parse().map_err(|_| "expected a whole number")?),
            "min_p" => self.min_p = Some(share(value)?),
            "max_tokens" => {
                let tokens = value.parse().ok().filter(|tokens| *tokens > 0);
                self.max_tokens = Some(tokens.ok_or("expected a whole number of at least 1")?);
            }
            _ => return Err(format!("expected {} or max_tokens", NAMES.join(", "))),
        }
        Ok(())
    }

    pub fn check(&self) -> Result<(), String> {
        // What is not set is not written.
        let set = serde_json::to_value(self).unwrap_or_default();
        for (name, value) in set.as_object().into_iter().flatten() {
            let one = SamplingChoice::default().set(name, &value.to_string());
            one.map_err(|expected| format!("{name} is {value}: {expected}"))?;
        }
        Ok(())
    }
}

/// Parses a sampling temperature.
pub fn temperature(text: &str) -> Result<f32, String> {
    let number = text.parse().ok();
    let is_sound = |number: &f32| number.is_finite() && *number >= 0.0;
    number.filter(is_sound).ok_or_else(|| "expected a number of at least 0".to_owned())
}

/// Parses a number from 0 to 1.
pub fn share(text: &str) -> Result<f32, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_goes_before_the_default_and_a_filter_can_be_off() {
        let defaults = Sampling { top_k: Some(50), top_p: Some(0.9), ..Sampling::default() };
        let mut chosen = SamplingChoice::default();
        assert_eq!(chosen.over(defaults), defaults);
        for (name, value) in
            [("temperature", "0.2"), ("top_p", "1"), ("top_k", "0"), ("min_p", "0.05")]
        {
            chosen.set(name, value).unwrap();
        }
        let expected = Sampling {
            temperature: 0.2,
            top_k: None,
            top_p: None,
            min_p: Some(0.05),
            ..Sampling::default()
        };
        assert_eq!(chosen.over(defaults), expected);
        assert_eq!(
            chosen.or(SamplingChoice { top_k: Some(9), ..SamplingChoice::default() }),
            chosen
        );
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let refused = |name, value| SamplingChoice::default().set(name, value).unwrap_err();
        assert_eq!(refused("temperature", "-1"), "expected a number of at least 0");
        assert_eq!(refused("min_p", "2"), "expected a number from 0 to 1");
        assert_eq!(refused("top_k", "-1"), "expected a whole number");
        assert_eq!(refused("max_tokens", "0"), "expected a whole number of at least 1");
        assert_eq!(refused("topk", "1"), "expected temperature, top_p, top_k, min_p or max_tokens");
        let chosen = SamplingChoice { top_p: Some(2.0), ..SamplingChoice::default() };
        assert_eq!(chosen.check().unwrap_err(), "top_p is 2.0: expected a number from 0 to 1");
    }
}
