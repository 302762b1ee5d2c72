//! How a base model is asked.

use serde::{Deserialize, Serialize};

use super::protocol::{AGENT, BaseLlm, TRIES};
use crate::prompts::{PromptError, PromptSet};
use crate::systems::System;
use crate::systems::config::{self, Seat};
use crate::systems::decoding::Decoding;
use crate::systems::settings::{switch, whole};

/// How a base model is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// MEDEC's first or second.
    #[serde(deserialize_with = "whole::<1, 2, _, _>")]
    pub prompt: u32,
    /// Whether any output that holds CORRECT, be it INCORRECT, means that there is no error, as in MedGuards' published code.
    #[serde(with = "switch")]
    pub release_compat: bool,
    #[serde(flatten)]
    pub decoding: Decoding,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { prompt: 1, release_compat: false, decoding: Decoding::default() }
    }
}

impl config::Settings for Settings {
    fn seats(&self) -> Vec<Seat> {
        vec![Seat::new(AGENT, 0)]
    }

    fn max_calls(&self) -> u32 {
        TRIES
    }

    fn decoding(&self) -> &Decoding {
        &self.decoding
    }

    fn build(&self, prompts: &PromptSet) -> Result<Box<dyn System>, PromptError> {
        Ok(Box::new(BaseLlm::new(self, prompts)?))
    }
}
