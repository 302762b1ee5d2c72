//! The switches of MDAgents, and its seats.

use serde::{Deserialize, Serialize};

use super::protocol::MdAgents;
use crate::prompts::{PromptError, PromptSet};
use crate::systems::System;
use crate::systems::config::{self, Seat};
use crate::systems::decoding::Decoding;
use crate::systems::settings::{switch, whole};

/// Seats that experts and team members take turns on.
pub const AGENTS: usize = 3;
/// Seats, as indices into the panel: the agents come first.
pub const MODERATOR: usize = AGENTS;
pub const RECRUITER: usize = AGENTS + 1;

/// Experts on an intermediate question.
pub const EXPERTS: usize = 5;
/// Teams on an advanced question, and members of each at most: MedAgentBoard asks for about three.
pub const TEAMS: usize = 3;
pub const MEMBERS: usize = 3;

/// How MDAgents runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Characters of an expert's explanation that the decision is shown.
    #[serde(deserialize_with = "whole::<1, 10000, _, _>")]
    pub truncate_chars: usize,
    /// Whether letters are found by MedAgentBoard's clean-up instead of MED-MAD's (B.2).
    #[serde(with = "switch")]
    pub mab_compat: bool,
    #[serde(flatten)]
    pub decoding: Decoding,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { truncate_chars: 200, mab_compat: false, decoding: Decoding::default() }
    }
}

impl config::Settings for Settings {
    fn seats(&self) -> Vec<Seat> {
        // The agents sit on the panel's models in turn; the moderator, who also decides, and the recruiter on its first.
        Seat::in_order((0..AGENTS).map(agent_name), &["moderator", "recruiter"])
    }

    fn max_calls(&self) -> u32 {
        // Those of an advanced question. A team's lead is asked twice.
        (3 + TEAMS * (MEMBERS + 1)) as u32
    }

    fn decoding(&self) -> &Decoding {
        &self.decoding
    }

    fn build(&self, prompts: &PromptSet) -> Result<Box<dyn System>, PromptError> {
        Ok(Box::new(MdAgents::new(self, prompts)?))
    }
}

pub fn agent_name(agent: usize) -> String {
    format!("agent-{}", agent + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_sit_on_the_panels_models_and_the_others_on_the_first() {
        let seats = config::Settings::seats(&Settings::default());
        let seat = |at: usize| (seats[at].agent.as_str(), seats[at].model);
        assert_eq!([seat(0), seat(1), seat(2)], [("agent-1", 0), ("agent-2", 1), ("agent-3", 2)]);
        assert_eq!(seat(MODERATOR), ("moderator", 0));
        assert_eq!(seat(RECRUITER), ("recruiter", 0));
        assert_eq!(seats.len(), 5);
    }
}
