//! Bytes from outside, damaged in every way: a parser may refuse them, but never panic, nor hang, nor fill the memory.
//!
//! `HOSTILE_SECONDS=600 cargo test --test hostile -- --test-threads 1 --nocapture` gives each ten minutes of new inputs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "../../src/ceiling.rs"]
mod ceiling;
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
mod stopped;
mod trails;

/// As the program has it.
#[global_allocator]
static ALLOCATOR: ceiling::Counting = ceiling::Counting;

/// Bytes that stopped work holds. From the first call on work is held to its ceilings.
fn lost() -> usize {
    wardround::ceiling::keep_with(ceiling::KEEPER);
    ceiling::LOST.load(std::sync::atomic::Ordering::Relaxed)
}
