//! The switches of ReConcile.

use crate::systems::decoding::Decoding;
use crate::systems::protocol::Seat;
use crate::systems::settings::{SettingsError, within};

/// Models at the table.
pub const AGENTS: usize = 3;

const KEYS: [&str; 5] = [
    "max_rounds",
    "truncate_chars",
    "record_chars",
    "thinking",
    "max_tokens",
];

/// How ReConcile runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Discussion rounds at most; one always runs.
    pub max_rounds: u32,
    /// Characters of an explanation that the others are shown.
    pub truncate_chars: usize,
    pub decoding: Decoding,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            max_rounds: 3,
            truncate_chars: 500,
            decoding: Decoding::default(),
        }
    }
}

impl Settings {
    /// The agents' names in panel order.
    pub fn agents() -> [String; AGENTS] {
        std::array::from_fn(|agent| format!("agent-{}", agent + 1))
    }

    /// Each on a model of its own.
    pub fn seats() -> Vec<Seat> {
        Seat::in_order(Settings::agents(), &[])
    }

    /// Every setting, spelled as [`Settings::set`] reads it.
    pub fn to_table(&self) -> toml::Table {
        let mut table = self.decoding.to_table();
        table.insert("max_rounds".into(), i64::from(self.max_rounds).into());
        table.insert("truncate_chars".into(), (self.truncate_chars as i64).into());
        table
    }

    /// Calls on a question, at most.
    pub fn max_calls(&self) -> u32 {
        AGENTS as u32 * (1 + self.max_rounds)
    }

    /// Changes one setting.
    ///
    /// # Errors
    /// A key that is none, or a value that it cannot have.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingsError> {
        match key {
            "max_rounds" => self.max_rounds = within(key, value, 1..=100)?,
            "truncate_chars" => self.truncate_chars = within(key, value, 1..=10_000)?,
            _ => self.decoding.set(key, value, &KEYS)?,
        }
        Ok(())
    }
}
