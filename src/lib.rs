//! Panels of small open language models, run offline and reproducibly.
//!
//! The way of one item through the house:
//!
//! ```text
//! item → systems → panel → | engine → model → ops
//! and back: record → experiment (run directory) → analysis → report
//! ```
//!
//! What stands behind the bar is a crate of its own, `wardround-engine`. Nothing flows the other way: the engine knows no prompts, the
//! model no requests, a system no tensors.
//!
//! A debate in a few lines; `examples/debate.rs` makes its own tiny models:
//!
//! ```no_run
//! use std::{path::Path, sync::Arc};
//!
//! use wardround::data::Format;
//! use wardround::experiment::driver::execute;
//! use wardround::experiment::spec::Spec;
//! use wardround::systems::SystemConfig;
//!
//! # fn main() -> Result<(), wardround::diagnosis::Failure> {
//! let system = SystemConfig::parse("medmad", &["t_max=2"])?;
//! let spec = Spec::new(system, "questions.jsonl", Format::Mcq)?;
//! let executed = execute(spec, Path::new("run"), Arc::new(()), Arc::default())?;
//! for answer in executed.contents.answers().into_values() {
//!     println!("{}: {}", answer.item, answer.answer);
//! }
//! # Ok(())
//! # }
//! ```

pub mod analysis; // reads finished runs: metrics, figures, comparison, ratings
pub mod appended; // files of lines, and what a power cut leaves behind the last
pub mod audit; // the chained trail of what was done with which text
pub mod bench; // how fast a model is on this machine
#[cfg(feature = "airgap")]
pub mod bundle; // models, data and program as one signed folder
pub mod calls; // completions under the sum of what determines them: none is computed twice
pub mod cli; // flags to a spec, print the outcome
pub mod console; // lines to stdout and stderr
pub mod corpus; // corpora on disk: built, added to, checked
pub mod data; // files of questions and notes, read and checked
pub mod experiment; // spec → plan → run: directory, chained logs, resume, verify, replay
#[cfg(test)]
mod fake_http; // a server on the loopback
pub mod hub; // model files and datasets, fetched and verified
#[cfg(test)]
mod linear; // whether what reads a client's text takes time in proportion to it
pub mod panel; // agents on models: render, ask, read
pub mod prompts; // prompt texts, built in or from a directory
pub mod recipe; // a table or figure of a paper: its cells, each a run, and what is read off them
pub mod record; // what lies on disk and goes over the wire
pub mod report; // pages and tables of runs, recipes, ratings
pub mod retrieval; // exact search, reranking
pub mod sandbox; // what the process may read, write and reach
pub mod scorers; // BERTScore and BLEURT
pub mod selftest; // whether models are what they should be and answer the same in every way
#[cfg(feature = "serve")]
pub mod serve; // models and systems over HTTP
pub mod synth; // checkpoints with random weights, which know the words of our prompts
pub mod systems; // the published systems: files in systems/ and what runs them, a folder for each that is a program
pub mod text; // words, similarity, hidden characters, patterns

use wardround_engine::fault;
use wardround_engine::ops::variable;
/// The engine, a crate of its own: its map is its `lib.rs`.
pub use wardround_engine::{
    BITS, ceiling, chat, checkpoint, diagnosis, digest, encoder, engine, generation, local_model,
    model, ops, outside, random, tokenizer,
};
