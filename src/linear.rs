//! Whether what reads a client's text takes time in proportion to its length: of a text of any bad kind, four times as much takes at most
//! six and a quarter times as long, two and a half times for twice as much, where the square takes sixteen.
//!
//! Time is what the thread computes, and the least of many tries counts, so that it says the same on a machine with other load.
//!
//! `linear.rs` in each folder that reads such texts lists what reads them there; `tests/house.rs` finds what is on no list.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The length of the shorter text, in bytes; four times as long while the longer one is read too fast to be measured well, up to
/// [`LONGEST`].
const LENGTH: usize = 8 << 10;
const LONGEST: usize = 512 << 10;
/// How much longer the longer text is than the shorter.
const TIMES: usize = 4;
/// Of the longer text: in proportion it is 4, with a logarithm up to 5, by its square 16.
const MOST_GROWTH: f64 = 6.25;
/// What is read in less cannot be measured well.
const FAST: Duration = Duration::from_millis(1);
/// Single measurements are slowed by what else uses the caches: the best of so many counts.
const TRIES: usize = 40;

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
        for (name, read) in readers {
            if let Some((growth, length)) = growth(read, unit) {
                found.push(format!("{name} of {length} bytes of {unit:?}: {growth:.1}"));
            }
        }
    }
    assert!(
        found.is_empty(),
        "{TIMES} times the text takes so many times as long:\n{}",
        found.join("\n")
    );
}

/// How much longer the longer text takes, and its length; `None` if it is no longer than it may.
fn growth(read: &dyn Fn(&str), unit: &str) -> Option<(f64, usize)> {
    let mut short = unit.repeat(LENGTH / unit.len());
    loop {
        let long = short.repeat(TIMES);
        let measure = || {
            let (one, two) = times(read, &short, &long);
            (two.as_secs_f64() / one.as_secs_f64(), two)
        };
        let (growth, two) = measure();
        if two >= FAST {
            // What other threads do to the caches for a while is not the reader's: it shows again later, or not at all.
            let is_found = growth > MOST_GROWTH && (0..2).all(|_| measure().0 > MOST_GROWTH);
            return is_found.then_some((growth, long.len()));
        }
        if long.len() > LONGEST / TIMES {
            return None;
        }
        short = long;
    }
}

/// The least time that each of both texts takes, in as many tries as it needs to be told.
fn times(read: &dyn Fn(&str), short: &str, long: &str) -> (Duration, Duration) {
    let time = |text: &str| {
        let began = thread_time();
        read(black_box(text));
        thread_time() - began
    };
    let (mut one, mut two) = (Duration::MAX, Duration::MAX);
    for _ in 0..TRIES {
        (one, two) = (one.min(time(short)), two.min(time(long)));
        if two < FAST || two.as_secs_f64() <= MOST_GROWTH * one.as_secs_f64() {
            break;
        }
    }
    (one, two)
}

/// How long this thread has computed: the work of others does not count.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn a_reader_that_looks_back_is_found_and_one_that_sorts_is_not() {
    // Where the shorter text was slowed by other work, a reader that is near the limit passes: what is asked here is that it is found at all.
    let is_found = |read: &dyn Fn(&str)| (0..10).any(|_| growth(read, "a.").is_some());
    let count = |bytes: &[u8]| bytes.iter().filter(|c| **c == b'a').count();
    let looks_back = |text: &str| {
        let seen = |at: usize| count(&text.as_bytes()[..at]);
        keep((0..text.len()).step_by(256).map(seen).sum::<usize>());
    };
    assert!(is_found(&looks_back));
    // As often as the root of the length: eight times as long.
    let looks_back_seldom = |text: &str| {
        let often = text.len().isqrt();
        keep((0..often / 4).map(|_| count(black_box(text.as_bytes()))).sum::<usize>());
    };
    assert!(is_found(&looks_back_seldom));
    assert!(growth(&|text| keep(text.to_uppercase()), "a.").is_none());
    let sorts = |text: &str| {
        let mut places: Vec<usize> = (0..text.len()).map(|at| at * 7919 % text.len()).collect();
        places.sort_by_key(|place| black_box(*place));
        keep(places);
    };
    assert!(growth(&sorts, "a.").is_none());
}
