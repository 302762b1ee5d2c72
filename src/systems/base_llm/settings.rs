//! The switches of the base model: parsed from `key=value`, checked, and written into the plan, every one of them.

use crate::systems::decoding::Decoding;
use crate::systems::settings::{SettingsError, on_off, switch, within};

const KEYS: [&str; 5] = [
    "prompt",
    "release_compat",
    "record_chars",
    "thinking",
    "max_tokens",
];

/// How a base model is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// MEDEC's first or second.
    pub prompt: u32,
    /// Whether any output that holds CORRECT, be it INCORRECT, means that there is no error, as in MedGuards' published code.
    pub release_compat: bool,
    pub decoding: Decoding,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            prompt: 1,
            release_compat: false,
            decoding: Decoding::default(),
        }
    }
}

impl Settings {
    /// Every setting, spelled as [`Settings::set`] reads it.
    pub fn to_table(&self) -> toml::Table {
        let mut table = self.decoding.to_table();
        table.insert("prompt".into(), i64::from(self.prompt).into());
        table.insert("release_compat".into(), on_off(self.release_compat).into());
        table
    }

    /// Changes one setting.
    ///
    /// # Errors
    /// A key that is none, or a value that it cannot have.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingsError> {
        match key {
            "prompt" => self.prompt = within(key, value, 1..=2)?,
            "release_compat" => self.release_compat = switch(key, value)?,
            _ => self.decoding.set(key, value, &KEYS)?,
        }
        Ok(())
    }
}
