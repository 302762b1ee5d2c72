//! What a client is given: an answer as one object, or as events while it grows.

pub mod answer;
pub mod choice;
pub mod events;
pub mod logprobs;
