//! What is done with the sentences of a note: cut into words, compared, aligned; nothing here knows a model or a file.

mod language;

pub use language::Language;
