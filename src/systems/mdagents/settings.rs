//! The switches of MDAgents, and its seats.

use crate::systems::decoding::Decoding;
use crate::systems::protocol::Seat;
use crate::systems::settings::{SettingsError, on_off, switch, within};

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

const KEYS: [&str; 5] = [
    "truncate_chars",
    "mab_compat",
    "record_chars",
    "thinking",
    "max_tokens",
];

/// How MDAgents runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Characters of an expert's explanation that the decision is shown.
    pub truncate_chars: usize,
    /// Whether letters are found by MedAgentBoard's clean-up instead of MED-MAD's (B.2).
    pub mab_compat: bool,
    pub decoding: Decoding,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            truncate_chars: 200,
            mab_compat: false,
            decoding: Decoding::default(),
        }
    }
}

impl Settings {
    /// The agents sit on the panel's models in turn; the moderator, who also decides, and the recruiter on its first.
    pub fn seats() -> Vec<Seat> {
        Seat::in_order((0..AGENTS).map(agent_name), &["moderator", "recruiter"])
    }

    /// Every setting, spelled as [`Settings::set`] reads it.
    pub fn to_table(&self) -> toml::Table {
        let mut table = self.decoding.to_table();
        table.insert("truncate_chars".into(), (self.truncate_chars as i64).into());
        table.insert("mab_compat".into(), on_off(self.mab_compat).into());
        table
    }

    /// Calls on a question, at most: those of an advanced one. A team's lead is asked twice.
    pub fn max_calls(&self) -> u32 {
        (3 + TEAMS * (MEMBERS + 1)) as u32
    }

    /// Changes one setting.
    ///
    /// # Errors
    /// A key that is none, or a value that it cannot have.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingsError> {
        match key {
            "truncate_chars" => self.truncate_chars = within(key, value, 1..=10_000)?,
            "mab_compat" => self.mab_compat = switch(key, value)?,
            _ => self.decoding.set(key, value, &KEYS)?,
        }
        Ok(())
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
        let seats = Settings::seats();
        let seat = |at: usize| (seats[at].agent.as_str(), seats[at].model);
        assert_eq!(
            [seat(0), seat(1), seat(2)],
            [("agent-1", 0), ("agent-2", 1), ("agent-3", 2)]
        );
        assert_eq!(seat(MODERATOR), ("moderator", 0));
        assert_eq!(seat(RECRUITER), ("recruiter", 0));
        assert_eq!(seats.len(), 5);
    }
}
