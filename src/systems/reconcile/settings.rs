//! The switches of ReConcile.

use serde::{Deserialize, Serialize};

use super::protocol::Reconcile;
use crate::prompts::{PromptError, PromptSet};
use crate::systems::System;
use crate::systems::config::{self, Seat};
use crate::systems::decoding::Decoding;
use crate::systems::settings::whole;

/// Models at the table.
pub const AGENTS: usize = 3;

/// How ReConcile runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Discussion rounds at most; one always runs.
    #[serde(deserialize_with = "whole::<1, 100, _, _>")]
    pub max_rounds: u32,
    /// Characters of an explanation that the others are shown.
    #[serde(deserialize_with = "whole::<1, 10000, _, _>")]
    pub truncate_chars: usize,
    #[serde(flatten)]
    pub decoding: Decoding,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { max_rounds: 3, truncate_chars: 500, decoding: Decoding::default() }
    }
}

impl Settings {
    /// The agents' names in panel order.
    pub fn agents() -> [String; AGENTS] {
        std::array::from_fn(|agent| format!("agent-{}", agent + 1))
    }
}

impl config::Settings for Settings {
    fn seats(&self) -> Vec<Seat> {
        Seat::in_order(Settings::agents(), &[])
    }

    fn max_calls(&self) -> u32 {
        AGENTS as u32 * (1 + self.max_rounds)
    }

    fn decoding(&self) -> &Decoding {
        &self.decoding
    }

    fn build(&self, prompts: &PromptSet) -> Result<Box<dyn System>, PromptError> {
        Ok(Box::new(Reconcile::new(self, prompts)?))
    }
}
