//! Responses: whole as one object, or streamed as events.

pub mod answer;
pub mod choice;
pub mod events;
pub mod logprobs;
pub mod reply;
