//! The records of run directories and of the API: calls, searches, results of items, and their parts.

mod answer;
mod call;
mod completion;
mod flag;
mod grammar;
mod item;
mod language;
mod message;
mod note;
mod schema;
mod search;
mod text;
mod trajectory;

pub use answer::{AnswerLine, RoundLine};
pub use call::{ASSUMED, CONTRADICTION, CallKey, CallLine, NOT_AN_OPTION, Parse, Stage};
pub use completion::{AnsweredBy, FinishReason, SamplingLine, Usage};
pub use flag::{Basis, Flag, found_in_words, sentence_in_words};
pub use grammar::Grammar;
pub use item::{ItemKey, ItemLine};
pub use language::Language;
pub use message::{Message, Part, SearchPlace};
pub use note::{
    DetectionLine, GoldLine, LocalisationLine, NO_SENTENCE, NoteLine, NoteStage, Source,
};
pub use schema::{SCHEMA, Schema};
pub use search::{Passage, RetrievedChunk, SearchKey, SearchLine, SearchTimes, SourceCounts};
pub use text::{ItemText, NoteText, QuestionText};
pub use trajectory::{EvidenceLine, Trajectory, TurnLine};
