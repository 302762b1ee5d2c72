//! Pages as a whole, from fixtures of each kind of run.

pub mod fixtures;
mod note_page;
pub mod notes;
mod question_page;
pub mod questions;
mod snapshots;
mod trajectory;
