//! The switches of HealthcareAgent: parsed from `key=value`, checked, and written into the plan, every one of them.

use crate::systems::settings::{SettingsError, on_off, switch, tokens, tokens_value, within};

const KEYS: [&str; 3] = ["record_chars", "thinking", "max_tokens"];

/// Calls where the planner wants an inquiry: the planner, the inquiry, the draft, three critiques, the final answer.
pub const MAX_CALLS: u32 = 7;

/// How HealthcareAgent runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Characters of a question and of a step; the grammar gives an explanation or a critique [`crate::systems::form::STEPS`] steps.
    pub record_chars: usize,
    /// Whether a `<think>` section is asked for, where the template knows the switch.
    pub thinking: bool,
    /// Tokens of a completion at most; `None` (`auto`): as many as the longest record could take, or, with `thinking`, as the
    /// context leaves.
    pub max_tokens: Option<usize>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            record_chars: 240,
            thinking: false,
            max_tokens: None,
        }
    }
}

impl Settings {
    /// Every setting, spelled as [`Settings::set`] reads it.
    pub fn to_table(&self) -> toml::Table {
        let mut table = toml::Table::new();
        table.insert("record_chars".into(), (self.record_chars as i64).into());
        table.insert("thinking".into(), on_off(self.thinking).into());
        table.insert("max_tokens".into(), tokens_value(self.max_tokens));
        table
    }

    /// Changes one setting.
    ///
    /// # Errors
    /// A key that is none, or a value that it cannot have.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingsError> {
        match key {
            "record_chars" => self.record_chars = within(key, value, 1..=2000)?,
            "thinking" => self.thinking = switch(key, value)?,
            "max_tokens" => self.max_tokens = tokens(key, value)?,
            _ => return Err(SettingsError::unknown(key, &KEYS)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::systems::protocol::Protocol;

    #[test]
    fn the_plan_names_every_setting_and_gives_them_back() {
        let pairs = ["record_chars=32", "thinking=on", "max_tokens=900"];
        let protocol = Protocol::parse("healthcareagent", &pairs).unwrap();
        let table = protocol.to_table();
        assert_eq!(table.len(), super::KEYS.len());
        assert_eq!(Protocol::from_table(protocol.name(), &table), Ok(protocol));
        let error = Protocol::parse("healthcareagent", &["samples=2"]).unwrap_err();
        assert!(error.hint().unwrap().contains("record_chars, thinking"));
    }

    #[test]
    fn one_doctor_sits_there_and_speaks_seven_times_at_most() {
        let protocol = Protocol::named("healthcareagent").unwrap();
        let seats = protocol.seats();
        assert_eq!((seats.len(), protocol.models()), (1, 1));
        assert_eq!(seats[0].agent, "doctor");
        assert_eq!(protocol.max_calls(), 7);
    }
}
