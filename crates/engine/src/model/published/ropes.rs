//! The ropes of full and of sliding layers, from `rope_theta` and `rope_scaling`, or from `rope_parameters`.

use serde_json::Value;

use super::{Raw, Reader};
use crate::model::config::{ConfigError, RopeConfig, RopeScaling};
use crate::model::families::Traits;

impl Reader<'_> {
    /// Of full layers, of sliding ones.
    pub(super) fn ropes(
        &self,
        traits: &Traits,
        raw: &Raw,
    ) -> Result<(RopeConfig, RopeConfig), ConfigError> {
        let theta = raw.rope_theta.unwrap_or(traits.defaults.theta);
        let own_theta =
            traits.local_theta.map(|left_out| raw.rope_local_base_freq.unwrap_or(left_out));
        let local_theta = own_theta.unwrap_or(theta);
        // Where sliding layers have a rope of their own, only the others' is stretched.
        let beside = |full: RopeConfig| match own_theta {
            Some(theta) => RopeConfig { theta, scaling: RopeScaling::None },
            None => full,
        };
        let parameters = raw.rope_parameters.as_ref();
        let Some(parameters) = parameters.filter(|value| !value.is_null()) else {
            let full = self.rope("rope_scaling", raw.rope_scaling.as_ref(), theta)?;
            return Ok((full, beside(full)));
        };
        let full = parameters.get("full_attention");
        let sliding = parameters.get("sliding_attention");
        if full.is_none() && sliding.is_none() {
            let full = self.rope("rope_parameters", Some(parameters), theta)?;
            return Ok((full, beside(full)));
        }
        Ok((
            self.rope("rope_parameters.full_attention", full, theta)?,
            self.rope("rope_parameters.sliding_attention", sliding, local_theta)?,
        ))
    }

    fn rope(
        &self,
        field: &str,
        value: Option<&Value>,
        theta: f64,
    ) -> Result<RopeConfig, ConfigError> {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return Ok(RopeConfig { theta, scaling: RopeScaling::None });
        };
        let number = |name: &str| {
            value.get(name).and_then(Value::as_f64).filter(|number| *number > 0.0).ok_or_else(
                || self.inconsistent(format!("`{field}` has no positive number `{name}`")),
            )
        };
        let theta = value.get("rope_theta").and_then(Value::as_f64).unwrap_or(theta);
        let kind = value.get("rope_type").or_else(|| value.get("type"));
        let scaling = match kind.and_then(Value::as_str).unwrap_or("default") {
            "default" => RopeScaling::None,
            "linear" => RopeScaling::Linear { factor: number("factor")? },
            "llama3" => RopeScaling::Llama3 {
                factor: number("factor")?,
                low_frequency: number("low_freq_factor")?,
                high_frequency: number("high_freq_factor")?,
                original_positions: number("original_max_position_embeddings")?,
            },
            other => {
                return Err(self.unsupported(
                    &format!("{field}.rope_type"),
                    other,
                    "known: default, linear, llama3",
                ));
            }
        };
        Ok(RopeConfig { theta, scaling })
    }
}
