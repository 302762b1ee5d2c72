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

pub mod data;
pub mod hub;
pub mod run;
