//! Figures, scores, words and letters: equal to those of other people's code and to what was published.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "../common/mod.rs"]
mod common;
mod corpus;
mod metrics;
mod parser;
mod scorers;
mod text;
