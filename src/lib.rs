//! Panels of small open language models, run offline and reproducibly.
//!
//! The way of one item through the house:
//!
//! ```text
//! item → systems → panel → engine → model → ops
//! and back: record → run directory → metrics → report
//! ```
//!
//! Nothing flows the other way: the engine knows no prompts, the model no requests, a system no tensors.

pub mod analysis;
pub mod bench;
pub mod chat;
pub mod cli;
pub mod console;
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
pub mod scorers;
pub mod synth;
pub mod systems;
pub mod text;
pub mod tokenizer;
