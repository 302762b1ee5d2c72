#![doc = include_str!("../README.md")]

pub mod ceiling; // what bytes from outside may take of memory and time, where the program keeps to it
pub mod chat; // messages, and a model's chat template
pub mod checkpoint; // the files of a model's directory
pub mod digest; // sha256
pub mod encoder; // text to vectors, pairs to scores
pub mod engine; // one model's thread: schedule, batch, sample, constrain; token ids only
pub mod fault; // errors that say of each who is to blame and what to do
pub mod generation; // a model's sampling defaults and end-of-turn tokens
#[cfg(test)]
#[path = "../../../src/linear.rs"]
mod linear; // whether what reads a client's text takes time in proportion to it: one file, for the tests of both crates
pub mod local_model; // a directory as a running engine
pub mod model; // one decoder for three families, and BERT
pub mod ops; // the arithmetic: cpu, cuda, candle behind one interface
pub mod outside; // files that others wrote, of bounded lengths
pub mod random; // seeded draws
pub mod synth; // checkpoints with random weights
pub mod tokenizer; // text to token ids and back

/// Raised whenever any device of a kind gives other bits to a request than it did before: what is kept under this number may be used
/// again. `tests/engine/bits.rs` notices what changes on a CPU, for weights that are not bf16; on a GPU nothing does.
pub const BITS: u32 = 3;

pub use local_model::LocalModel;
/// What every error says, and whom it blames.
pub use wardround_ops::diagnosis;
