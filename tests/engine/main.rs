//! What is computed within one process: logits, completions, vectors, each against others' and whatever else runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod added_words;
mod alone;
mod bits;
mod candle;
mod chats;
#[path = "../common/mod.rs"]
mod common;
mod constraint;
mod drafts;
mod encoder;
mod encoder_forms;
mod formats;
mod full_layers;
mod gguf;
mod known;
mod life;
#[cfg(target_os = "linux")]
mod memory;
mod parity;
mod pieces;
mod real_models;
mod service;
mod together;
mod traps;
