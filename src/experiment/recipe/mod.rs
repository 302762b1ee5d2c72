//! A table or figure of a paper as one file: which methods on which datasets, and what is read off them.
//!
//! ```text
//! recipe file → cells (method × dataset), each a run → results: cells, and what the analyses compare
//! ```

pub mod built_in;
pub mod cells;
mod check;
pub mod error;
pub mod file;
pub mod manifest;
pub mod paper;
pub mod run;

/// What a recipe of one's own on questions begins with; `@RECIPE@`, `@FOLDER@`, `@FILE@` and `@FORMAT@` are filled in.
pub const NEW_ON_QUESTIONS: &str = include_str!("new_on_questions.toml");
/// The same on notes.
pub const NEW_ON_NOTES: &str = include_str!("new_on_notes.toml");
pub use error::RecipeError;
pub use file::Recipe;
pub use paper::NoteColumn;
