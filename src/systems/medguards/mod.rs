//! MedGuards: an error in a clinical note is detected, located and corrected, each by agents of its own, with arbitration where two differ.

mod meaning;
pub mod parse;
pub mod protocol;
pub mod settings;
pub mod tags;
#[cfg(test)]
mod tests;
pub mod texts;
