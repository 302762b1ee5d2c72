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

pub mod bench;
pub mod chat;
pub mod cli;
pub mod comparison;
pub mod console;
pub mod data;
pub mod encoder;
pub mod engine;
pub mod exit;
pub mod hub;
pub mod mediqa_corr;
pub mod metrics;
pub mod model;
pub mod notes;
pub mod ops;
pub mod panel;
pub mod prompts;
pub mod random;
pub mod rating;
pub mod recipe;
pub mod report;
pub mod run;
pub mod scorers;
pub mod synth;
pub mod systems;
pub mod text;
pub mod tokenizer;
