//! A table or figure of a paper as one file: which methods on which datasets, and what is read off them.
//!
//! ```text
//! recipe file → cells (method × dataset), each a run → results: cells, and what the analyses compare
//! ```

pub mod built_in;
pub mod cells;
mod column;
pub mod error;
pub mod file;
pub mod machine;
pub mod manifest;
pub mod paper;
pub mod run;
pub mod variant;

pub use built_in::text as recipe_text;
pub use column::NoteColumn;
pub use error::RecipeError;
pub use file::Recipe;
