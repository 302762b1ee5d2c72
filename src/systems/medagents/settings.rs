//! The switches of MedAgents, and its seats.

use crate::systems::decoding::Decoding;
use crate::systems::protocol::Seat;
use crate::systems::settings::{SettingsError, one_of, within};

/// Doctors of a consultation; the experts of the original take turns on their seats.
pub const DOCTORS: usize = 3;
/// Seats, as indices into the panel: the doctors come first.
pub const GATHERER: usize = DOCTORS;
pub const META: usize = DOCTORS + 1;
pub const DECISION: usize = DOCTORS + 2;

/// Experts of the original on the question, and on its options.
pub const QUESTION_EXPERTS: usize = 5;
pub const OPTION_EXPERTS: usize = 2;

const KEYS: [&str; 5] = [
    "form",
    "max_rounds",
    "record_chars",
    "thinking",
    "max_tokens",
];

/// Whose protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// MedAgentBoard's.
    Harness,
    /// The authors'. They decode greedily; here every model keeps its own decoding, as in all systems.
    Original,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Form::Harness => "harness",
            Form::Original => "original",
        }
    }
}

/// How MedAgents runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub form: Form,
    /// Rounds of review at most, in the original of voting.
    pub max_rounds: u32,
    /// In the original form, `max_tokens` is the authors' for each kind of call.
    pub decoding: Decoding,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            form: Form::Harness,
            max_rounds: 3,
            decoding: Decoding::default(),
        }
    }
}

impl Settings {
    /// The doctors sit on the panel's models in turn; everybody else on its first.
    pub fn seats() -> Vec<Seat> {
        let doctors = (0..DOCTORS).map(doctor_name);
        Seat::in_order(doctors, &["gatherer", "meta", "decision"])
    }

    /// Every setting, spelled as [`Settings::set`] reads it.
    pub fn to_table(&self) -> toml::Table {
        let mut table = self.decoding.to_table();
        table.insert("form".into(), self.form.name().into());
        table.insert("max_rounds".into(), i64::from(self.max_rounds).into());
        table
    }

    /// Calls on a question, at most.
    pub fn max_calls(&self) -> u32 {
        let experts = (QUESTION_EXPERTS + OPTION_EXPERTS) as u32;
        match self.form {
            Form::Harness => 2 + self.max_rounds * (2 * DOCTORS as u32 + 1),
            Form::Original => 4 + experts + self.max_rounds * (2 * experts + 1),
        }
    }

    /// Changes one setting.
    ///
    /// # Errors
    /// A key that is none, or a value that it cannot have.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingsError> {
        match key {
            "form" => {
                self.form = one_of(key, value, [Form::Harness, Form::Original], Form::name)?;
            }
            "max_rounds" => self.max_rounds = within(key, value, 1..=100)?,
            _ => self.decoding.set(key, value, &KEYS)?,
        }
        Ok(())
    }
}

pub fn doctor_name(doctor: usize) -> String {
    format!("doctor-{}", doctor + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doctors_sit_on_the_panels_models_and_the_others_on_the_first() {
        let seats = Settings::seats();
        let names: Vec<&str> = seats.iter().map(|seat| seat.agent.as_str()).collect();
        assert_eq!(
            names,
            [
                "doctor-1", "doctor-2", "doctor-3", "gatherer", "meta", "decision"
            ]
        );
        let models: Vec<usize> = seats.iter().map(|seat| seat.model).collect();
        assert_eq!(models, [0, 1, 2, 0, 0, 0]);
        assert_eq!(names[GATHERER], "gatherer");
        assert_eq!((names[META], names[DECISION]), ("meta", "decision"));
    }
}
