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
        let agents = Settings::agents().into_iter().enumerate();
        let seat = |(model, agent): (usize, String)| Seat::new(agent, model);
        agents.map(seat).collect()
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
            _ if self.decoding.set(key, value)? => {}
            _ => return Err(SettingsError::unknown(key, &KEYS)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::settings::set_table;

    #[test]
    fn the_plan_names_every_setting_and_gives_them_back() {
        let mut settings = Settings::default();
        for (key, value) in [
            ("max_rounds", "2"),
            ("truncate_chars", "80"),
            ("thinking", "on"),
        ] {
            settings.set(key, value).unwrap();
        }
        let table = settings.to_table();
        let mut keys = KEYS.to_vec();
        keys.sort();
        let written: Vec<&str> = table.keys().map(String::as_str).collect();
        assert_eq!(written, keys);
        let mut read = Settings::default();
        set_table(&table, |key, value| read.set(key, value)).unwrap();
        assert_eq!(read, settings);
        assert_eq!(settings.max_calls(), 9);
    }

    #[test]
    fn bad_settings_are_refused_by_name() {
        let refused = |key, value| Settings::default().set(key, value).unwrap_err().to_string();
        assert_eq!(refused("t_max", "1"), "there is no setting t_max");
        assert_eq!(
            refused("max_rounds", "0"),
            "setting max_rounds: \"0\" is not a whole number from 1 to 100"
        );
    }
}
