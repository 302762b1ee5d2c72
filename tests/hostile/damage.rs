//! What a hostile file is made of: a good one, cut, doubled, spliced and sprinkled with tokens that parsers stumble over.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use wardround::model::peak_memory;

use super::lost;

/// One change; places are taken modulo the length at hand.
#[derive(Clone, Debug)]
pub enum Damage {
    Cut { at: u32, length: u16 },
    Double { at: u32, length: u16, to: u32 },
    Byte { at: u32, byte: u8 },
    Insert { at: u32, token: &'static str, times: u16 },
    End { at: u32 },
}

/// What separates, opens, closes, escapes, overflows or looks like an answer.
const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    "\"",
    "'",
    "`",
    "```json\n",
    "```",
    ":",
    ",",
    ";",
    "\\",
    "\\u",
    "\\ud800",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "\0",
    "\u{feff}",
    "\u{2028}",
    "\u{a0}",
    "\u{301}",
    "ß",
    "。",
    "你",
    "ﷺ",
    "🩺",
    "null",
    "true",
    "-",
    "-1",
    "0",
    "1e999",
    "-1e-999",
    "NaN",
    "18446744073709551616",
    "4294967295",
    "1.7976931348623157e308",
    "{\"a\":",
    "[[",
    "{\"answer\": \"",
    "</think>",
    "<think>",
    "<answer>",
    "</answer>",
    "Answer: ",
    "A",
    "(B)",
    "data: ",
    "event: x\n",
    "{{",
    "}}",
    "{%",
    "%}",
    "{% for x in range(99999) %}",
    "{% endfor %}",
    "{{ 'x' * 99999999 }}",
    "__class__",
    "|",
    "$",
    "^(a+)+$",
    "%s",
    "%99999999d",
    "../",
    "/dev/zero",
    "|||",
    "--",
    "#",
];

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<u32>(), 1..400_u16).prop_map(|(at, length)| Damage::Cut { at, length }),
        (any::<u32>(), 1..400_u16, any::<u32>()).prop_map(|(at, length, to)| Damage::Double {
            at,
            length,
            to
        }),
        (any::<u32>(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte { at, byte }),
        (any::<u32>(), proptest::sample::select(TOKENS), 1..4_u16)
            .prop_map(|(at, token, times)| Damage::Insert { at, token, times }),
        (any::<u32>(), proptest::sample::select(TOKENS), 1..3000_u16)
            .prop_map(|(at, token, times)| Damage::Insert { at, token, times }),
        any::<u32>().prop_map(|at| Damage::End { at }),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let room = bytes.len() + 1;
        let place = |at: u32| at as usize % room;
        match *self {
            Damage::Cut { at, length } => {
                let start = place(at);
                let end = (start + usize::from(length)).min(bytes.len());
                bytes.drain(start..end);
            }
            Damage::Double { at, length, to } => {
                let (start, to) = (place(at), place(to));
                let end = (start + usize::from(length)).min(bytes.len());
                let piece = bytes[start..end].to_vec();
                bytes.splice(to..to, piece);
            }
            Damage::Byte { at, byte } => {
                let place = at as usize % bytes.len().max(1);
                if let Some(there) = bytes.get_mut(place) {
                    *there = byte;
                }
            }
            Damage::Insert { at, token, times } => {
                let at = place(at);
                let text = token.repeat(usize::from(times));
                bytes.splice(at..at, text.into_bytes());
            }
            Damage::End { at } => bytes.truncate(place(at)),
        }
    }
}

/// One of `good`, damaged up to eight times; sometimes untouched, sometimes noise.
pub fn damaged<T: AsRef<[u8]>>(good: impl IntoIterator<Item = T>) -> BoxedStrategy<Vec<u8>> {
    let good: Vec<Vec<u8>> = good.into_iter().map(|good| good.as_ref().to_vec()).collect();
    let spoilt = (proptest::sample::select(good), proptest::collection::vec(damage(), 0..8))
        .prop_map(|(mut bytes, damages)| {
            for damage in damages {
                damage.apply(&mut bytes);
            }
            bytes
        });
    let noise = proptest::collection::vec(any::<u8>(), 0..300);
    let tokens = proptest::collection::vec(proptest::sample::select(TOKENS), 0..60)
        .prop_map(|tokens| tokens.concat().into_bytes());
    prop_oneof![8 => spoilt, 1 => noise, 1 => tokens].boxed()
}

/// The same as text; what is no UTF-8 is replaced.
pub fn damaged_text<T: AsRef<[u8]>>(good: impl IntoIterator<Item = T>) -> BoxedStrategy<String> {
    damaged(good).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).boxed()
}

fn fresh_seed() -> [u8; 32] {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut seed = [0; 32];
    seed[..16].copy_from_slice(&now.as_nanos().to_le_bytes());
    seed
}

/// Far more than a parser of some kilobytes may take.
const LONGEST: Duration = Duration::from_secs(20);
/// What the whole process may hold, whatever was read so far.
const MOST_BYTES: usize = 2 << 30;

/// What this thread has computed so far; a loaded machine does not lengthen it. The time of day where no kernel counts it.
fn time_of_this_thread() -> Duration {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = counted.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds
        .map_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap(), Duration::from_nanos)
}

/// Gives `read` one hostile input after another: 256, always the same, or new ones for HOSTILE_SECONDS. It may refuse
/// them, but not panic, nor take long, nor much memory.
pub fn withstands<T: std::fmt::Debug>(name: &str, inputs: BoxedStrategy<T>, read: impl Fn(T)) {
    let seconds = std::env::var("HOSTILE_SECONDS").ok();
    let seconds: Option<u64> = seconds.map(|seconds| seconds.parse().unwrap());
    let start = Instant::now();
    lost();
    let mut count = 0_u64;
    let mut longest = Duration::ZERO;
    loop {
        let rng = match seconds {
            None => TestRng::deterministic_rng(RngAlgorithm::ChaCha),
            Some(_) => TestRng::from_seed(RngAlgorithm::ChaCha, &fresh_seed()),
        };
        let config = Config { max_shrink_iters: 2000, ..Config::default() };
        let cases = u64::from(config.cases);
        let slowest = std::cell::Cell::new(longest);
        let outcome = TestRunner::new_with_rng(config, rng).run(&inputs, |input| {
            let start = time_of_this_thread();
            let read = catch_unwind(AssertUnwindSafe(|| read(input)));
            let took = time_of_this_thread().saturating_sub(start);
            prop_assert!(read.is_ok(), "it panicked");
            slowest.set(slowest.get().max(took));
            prop_assert!(took < LONGEST, "it took {took:?}");
            Ok(())
        });
        if let Err(error) = outcome {
            panic!("{name}: {error}");
        }
        longest = slowest.get();
        count += cases;
        if let Some(held) = peak_memory() {
            // Work that was stopped keeps what it held, to a bound of its own.
            let most = MOST_BYTES + lost();
            assert!(held < most, "{name}: the process held {held} bytes, not below {most}");
        }
        // A process that has lost so much reads nothing more from outside: another one has to go on.
        let is_over = |seconds| start.elapsed().as_secs() >= seconds || lost() > 4 << 30;
        if seconds.is_none_or(is_over) {
            break;
        }
    }
    let held = peak_memory().unwrap_or_default() >> 20;
    let lost = lost() >> 20;
    println!(
        "{name}: {count} inputs, the longest took {longest:?}, the process held {held} MiB, {lost} of them lost"
    );
}
