//! HealthcareAgent (Ren et al. 2025) as MedAgentBoard adapts it to multiple choice: one doctor plans, drafts, is reviewed, and revises.

pub mod messages;
pub mod parse;
pub mod protocol;

use serde::{Deserialize, Serialize};

use self::protocol::{AGENT, HealthcareAgent, MAX_CALLS};
use crate::prompts::{PromptError, PromptSet};
use crate::systems::System;
use crate::systems::config::{self, Seat};
use crate::systems::decoding::Decoding;

/// How HealthcareAgent runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    #[serde(flatten)]
    pub decoding: Decoding,
}

impl config::Settings for Settings {
    fn seats(&self) -> Vec<Seat> {
        vec![Seat::new(AGENT, 0)]
    }

    fn max_calls(&self) -> u32 {
        MAX_CALLS
    }

    fn decoding(&self) -> &Decoding {
        &self.decoding
    }

    fn build(&self, prompts: &PromptSet) -> Result<Box<dyn System>, PromptError> {
        Ok(Box::new(HealthcareAgent::new(&self.decoding, prompts)?))
    }
}
