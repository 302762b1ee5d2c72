//! The records of run directories and of the API: calls, searches, results of items, and their parts.

mod answer;
mod call;
mod flag;
mod item;
mod language;
mod message;
mod note;
mod reply;
mod schema;
mod search;
mod trajectory;

pub use answer::{AnswerLine, RoundLine};
pub use call::{AnsweredBy, CallKey, CallLine, Parse, SamplingLine, Stage};
pub use flag::{Basis, Flag, count, found_in_words, sentence_in_words};
pub use item::{ItemKey, ItemLine};
pub use language::Language;
pub use message::{Message, Part, SearchPlace};
pub use note::{
    DetectionLine, GoldLine, LocalisationLine, NO_SENTENCE, NoteLine, NoteStage, SettledBy,
};
pub use reply::{CONTRADICTION, NOT_AN_OPTION, Reply, Says};
pub use schema::{SCHEMA, Schema};
pub use search::{Passage, RetrievedChunk, SearchKey, SearchLine, SearchTimes, SourceCounts};
pub use trajectory::{EvidenceLine, Trajectory, TurnLine};

/// For fields that are written only where they say something.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

// What a model gives back is the engine's.
pub use crate::engine::{FinishReason, Grammar, Usage};
