//! One model alone, as MedAgentBoard asks it: zero-shot, few-shot, by chain of thought, and by votes over samples of these.

pub mod messages;
pub mod parse;
pub mod protocol;
pub mod settings;
