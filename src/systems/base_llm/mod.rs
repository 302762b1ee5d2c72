//! One model asked once for the error in a note: the rows beside MedGuards, with MEDEC's prompts.

pub mod parse;
pub mod protocol;
pub mod settings;
