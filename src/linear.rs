//! Whether what reads a client's text takes time in proportion to its length: of a text of any bad kind, four times as much takes at most
//! ten times as long, where the square takes sixteen.
//!
//! `linear.rs` in each folder that reads such texts lists what reads them there; `tests/house.rs` finds what is on no list.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The length of the shorter text, in bytes.
const LENGTH: usize = 8 << 10;
/// Of a text four times as long: in proportion it is 4, by its square 16. Memory that is asked for anew costs more than in proportion.
const MOST_GROWTH: f64 = 10.0;
/// What reads the longer text in less is fast enough, and too fast to be measured well.
const FAST: Duration = Duration::from_millis(2);
/// Single measurements are slowed by what else uses the caches: the best of so many counts.
const TRIES: usize = 8;

/// What one function does with a text: its name, and the call.
pub type Reader<'a> = (&'a str, &'a dyn Fn(&str));

/// Texts repeat one of these.
const UNITS: [&str; 52] = [
    "a.",
    "a. ",
    "a",
    "a ",
    "A",
    "A ",
    "Dr. ",
    "Dr.",
    "NO. A",
    "He is ill. ",
    "The answer is ",
    "The answer is A: ",
    "answer: A\n",
    "Options:\n",
    "Options: ",
    "A: x\n",
    "A: ",
    "A) x\n",
    "A (",
    "CORRECT ",
    "confidence ",
    "confidence 9",
    "1",
    "1.",
    "1.5 ",
    "0 1 ",
    "0\n1\n",
    "7.1a",
    "(",
    "[",
    "{",
    "{a:[",
    "{\"a\":",
    "{\"a\":\"",
    "{\"answer\": \"A\"} ",
    "}",
    "\"",
    "\"\"\" ",
    "'",
    "\\",
    "\\\"",
    "\\boxed{",
    "/*",
    "*",
    "\n",
    "\r\n",
    " ",
    "- a\n",
    "e\u{301}",
    "<b>&amp;",
    "aGVsbG8=",
    "<think></think><|eot_id|>",
];

/// Units beyond ASCII, whose characters have two bytes and more.
const BEYOND_ASCII: [&str; 6] = ["。", "患者", "患者。", "الجُرْعَةُ ", "\u{301}", "🩺"];

/// Uses a result, so that it must be computed.
pub fn keep<T>(result: T) {
    black_box(result);
}

/// Fails with all readers and texts whose time grows faster than the text.
pub fn check(readers: &[Reader<'_>]) {
    let mut found = Vec::new();
    for unit in UNITS.iter().chain(&BEYOND_ASCII) {
        let short = unit.repeat(LENGTH / unit.len());
        let long = short.repeat(4);
        for (name, read) in readers {
            if let Some(growth) = growth(read, &short, &long) {
                found.push(format!("{name} of {unit:?}: {growth:.1} times as long"));
            }
        }
    }
    assert!(found.is_empty(), "four times the text takes\n{}", found.join("\n"));
}

/// How much longer the longer text takes; `None` if it is no longer than it may.
fn growth(read: &dyn Fn(&str), short: &str, long: &str) -> Option<f64> {
    let time = |text: &str| {
        let began = thread_time();
        read(black_box(text));
        thread_time() - began
    };
    let (mut one, mut two) = (Duration::MAX, Duration::MAX);
    for _ in 0..TRIES {
        (one, two) = (one.min(time(short)), two.min(time(long)));
        if two < FAST || two.as_secs_f64() <= MOST_GROWTH * one.as_secs_f64() {
            return None;
        }
    }
    Some(two.as_secs_f64() / one.as_secs_f64())
}

/// How long this thread has computed: the work of others does not count.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn a_reader_that_looks_back_each_time_is_found() {
    let looks_back = |text: &str| {
        let seen = |at: usize| text.as_bytes()[..at].iter().rev().filter(|c| **c == b'a').count();
        keep((0..text.len()).step_by(256).map(seen).sum::<usize>());
    };
    let short = "a.".repeat(LENGTH);
    assert!(growth(&looks_back, &short, &short.repeat(4)).is_some());
    let once = |text: &str| keep(text.to_uppercase());
    assert!(growth(&once, &short, &short.repeat(4)).is_none());
}
