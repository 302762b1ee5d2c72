//! What threads that tokenise keep of it, in a process of its own: nothing for the words that they met.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use std::sync::Barrier;

use wardround::model::{Family, peak_memory};
use wardround::tokenizer::Tokenizer;

/// As many as `run` has items under way, by default.
const THREADS: usize = 32;
const WORDS: usize = 5_000;
/// Far less than those words take, far more than the threads do.
const MOST_BYTES: usize = 16 << 20;

// Only Linux says what a process has held.
#[cfg(target_os = "linux")]
#[test]
fn a_thread_that_tokenises_keeps_no_words() {
    let before = peak_memory().unwrap();
    for family in [Family::Gemma3, Family::Llama, Family::Qwen3] {
        let path = common::synthetic(family).join("tokenizer.json");
        let tokenizer = Tokenizer::load(&path).unwrap();
        let before = peak_memory().unwrap().max(before);
        let all_are_done = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for number in 0..WORDS {
                        tokenizer.encode(&word(number)).unwrap();
                    }
                    all_are_done.wait();
                });
            }
        });
        let grown = peak_memory().unwrap() - before;
        assert!(grown < MOST_BYTES, "{family:?}: {grown} bytes");
    }
}

/// A word of letters alone: digits would be split off.
fn word(number: usize) -> String {
    let letter = |place: u32| char::from(b'a' + (number / 26_usize.pow(place) % 26) as u8);
    (0..6).map(letter).collect()
}
