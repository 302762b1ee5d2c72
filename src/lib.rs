//! Panels of small open language models, run offline and reproducibly.
//!
//! The way of one item through the house:
//!
//! ```text
//! item → systems → panel → engine → model → ops
//! and back: record → experiment (run directory) → analysis → report
//! ```
//!
//! Nothing flows the other way: the engine knows no prompts, the model no requests, a system no tensors.
//!
//! A debate in a few lines; `examples/debate.rs` makes its own tiny models:
//!
//! ```no_run
//! use std::{path::Path, sync::Arc};
//!
//! use wardround::data::Format;
//! use wardround::experiment::driver::{Unobserved, execute};
//! use wardround::experiment::spec::Spec;
//! use wardround::systems::SystemConfig;
//!
//! # fn main() -> Result<(), wardround::diagnosis::Failure> {
//! let system = SystemConfig::parse("medmad", &["t_max=2"])?;
//! let spec = Spec::new(system, "questions.jsonl", Format::Mcq)?;
//! let executed = execute(spec, Path::new("run"), Arc::new(Unobserved))?;
//! for answer in executed.contents.answers().into_values() {
//!     println!("{}: {}", answer.item, answer.answer);
//! }
//! # Ok(())
//! # }
//! ```

pub mod analysis;
pub mod audit;
pub mod bench;
pub mod build_info;
#[cfg(feature = "airgap")]
pub mod bundle;
pub mod chat;
pub mod cli;
pub mod console;
pub mod corpus;
pub mod data;
pub mod diagnosis;
pub mod digest;
pub mod encoder;
pub mod engine;
pub mod experiment;
pub mod hub;
pub mod model;
pub mod ops;
pub mod panel;
pub mod prompts;
pub mod random;
pub mod record;
pub mod report;
pub mod retrieval;
pub mod sandbox;
pub mod scorers;
pub mod selftest;
#[cfg(feature = "serve")]
pub mod serve;
pub mod synth;
pub mod systems;
pub mod text;
pub mod tokenizer;
