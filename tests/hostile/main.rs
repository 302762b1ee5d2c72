//! Bytes from outside, damaged in every way: a parser may refuse them, but never panic, nor hang, nor fill the memory.
//!
//! `HOSTILE_SECONDS=600 cargo test --test hostile -- --test-threads 1 --nocapture` gives each ten minutes of new inputs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod ceilings;
mod checkpoints;
#[path = "../common/mod.rs"]
mod common;
mod corpora;
mod costly;
mod damage;
mod grammars;
mod items;
#[cfg(feature = "remote")]
mod remote;
mod replies;
mod runs;
mod trails;
