//! What threads that tokenise keep of it, in a process of its own: nothing for the words that they met. Only Linux says what a process
//! has held.

use std::env;
use std::process::Command;
use std::sync::Barrier;

use wardround::model::{Family, peak_memory};
use wardround::tokenizer::Tokenizer;

use crate::common;

/// As many as `run` has items under way, by default.
const THREADS: usize = 32;
const WORDS: usize = 5_000;
/// Far less than those words take, far more than the threads do.
const MOST_BYTES: usize = 16 << 20;

/// Runs itself again and nothing else: what other tests hold beside it would count too.
#[test]
fn a_thread_that_tokenises_keeps_no_words() {
    const ALONE: &str = "WARDROUND_TEST_MEMORY_ALONE";
    if env::var_os(ALONE).is_some() {
        return keeps_no_words();
    }
    let run = Command::new(env::current_exe().unwrap())
        .args(["--exact", "memory::a_thread_that_tokenises_keeps_no_words"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = [run.stdout, run.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    // A name that is no test's would succeed, too.
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

fn keeps_no_words() {
    let before = peak_memory().unwrap();
    for family in Family::ALL {
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
