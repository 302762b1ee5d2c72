//! Load on something that completes prompts: who asks when, and what each asker saw.

mod figures;
pub mod http;

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

pub use self::figures::{LoadFigures, Percentiles};
use crate::random::{SplitMix64, mix};

/// What the prompts are made of: one or two tokens each in the vocabularies of the served families.
const WORDS: [&str; 32] = [
    "the", "patient", "was", "given", "after", "pain", "history", "blood", "pressure", "normal",
    "left", "right", "with", "without", "fever", "daily", "dose", "chest", "heart", "lung",
    "acute", "days", "three", "two", "showed", "test", "reports", "year", "old", "woman", "man",
    "treated",
];

/// What every request of a load asks for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PromptShape {
    pub words: usize,
    /// Of the words, those at the beginning that all prompts share: from 0 to 1.
    pub shared: f64,
    pub max_tokens: usize,
    pub seed: u64,
}

impl PromptShape {
    /// The prompt of request `index`: always the same one.
    pub fn prompt(&self, index: usize) -> String {
        let common = (self.words as f64 * self.shared).round() as usize;
        let own = mix(mix(self.seed) ^ (index as u64).wrapping_add(1));
        let word = |place: usize| {
            let stream = if place < common { self.seed } else { own };
            WORDS[(mix(stream ^ place as u64) % WORDS.len() as u64) as usize]
        };
        let words: Vec<&str> = (0..self.words).map(word).collect();
        words.join(" ")
    }
}

/// When requests come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// So many clients, each of which asks again as soon as it is answered.
    Closed { clients: usize },
    /// At random, so many a second in the mean, however long the answers take.
    Open { per_second: f64 },
}

impl fmt::Display for Arrival {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arrival::Closed { clients } => write!(formatter, "{clients} at once"),
            Arrival::Open { per_second } => write!(formatter, "{per_second} a second"),
        }
    }
}

/// When a load ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    Requests(usize),
    After(Duration),
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Answered,
    /// The server had too much to do (status 429).
    Refused,
    Failed(String),
}

/// What an asker saw of one request.
#[derive(Clone, Debug)]
pub struct Seen {
    pub outcome: Outcome,
    /// From asking to the first text.
    pub first: Option<Duration>,
    /// Between two pieces of text.
    pub gaps: Vec<Duration>,
    /// From asking to the end.
    pub elapsed: Duration,
    pub prompt_tokens: usize,
    pub completion_tokens: usize,
    pub text: String,
}

/// Takes the times of a request as its text comes.
pub struct Watch {
    began: Instant,
    last: Instant,
    first: Option<Duration>,
    gaps: Vec<Duration>,
    text: String,
}

impl Watch {
    pub fn start() -> Watch {
        let began = Instant::now();
        Watch { began, last: began, first: None, gaps: Vec::new(), text: String::new() }
    }

    pub fn piece(&mut self, text: &str) {
        let now = Instant::now();
        match self.first {
            None => self.first = Some(now - self.began),
            Some(_) => self.gaps.push(now - self.last),
        }
        self.last = now;
        self.text += text;
    }

    pub fn end(self, outcome: Outcome, prompt_tokens: usize, completion_tokens: usize) -> Seen {
        let Watch { began, first, gaps, text, .. } = self;
        let elapsed = began.elapsed();
        Seen { outcome, first, gaps, elapsed, prompt_tokens, completion_tokens, text }
    }
}

/// What all requests of a load saw, by the number of the request.
pub struct Finished {
    pub seen: Vec<(usize, Seen)>,
    pub wall: Duration,
}

/// Puts a load on `ask`, which completes the prompt of the request with the given number.
pub fn put(
    arrival: Arrival,
    end: End,
    seed: u64,
    ask: &(dyn Fn(usize) -> Seen + Sync),
) -> Finished {
    let began = Instant::now();
    let mut seen = match arrival {
        Arrival::Closed { clients } => closed(clients, end, began, ask),
        Arrival::Open { per_second } => open(per_second, end, seed, ask),
    };
    let wall = began.elapsed();
    seen.sort_by_key(|(index, _)| *index);
    Finished { seen, wall }
}

type Asked = Vec<(usize, Seen)>;

fn closed(clients: usize, end: End, began: Instant, ask: &(dyn Fn(usize) -> Seen + Sync)) -> Asked {
    let next = AtomicUsize::new(0);
    let client = || {
        let mut seen = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let is_over = match end {
                End::Requests(count) => index >= count,
                End::After(time) => began.elapsed() >= time,
            };
            if is_over {
                return seen;
            }
            seen.push((index, ask(index)));
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        // A client that panicked has seen nothing.
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    })
}

/// The pauses between requests are distributed exponentially, so that they come as independent askers would send them.
fn open(per_second: f64, end: End, seed: u64, ask: &(dyn Fn(usize) -> Seen + Sync)) -> Asked {
    let began = Instant::now();
    let mut random = SplitMix64::new(seed);
    let mut due = Duration::ZERO;
    let (sender, seen) = channel();
    thread::scope(|scope| {
        for index in 0.. {
            let is_over = match end {
                End::Requests(count) => index >= count,
                End::After(time) => due >= time,
            };
            if is_over {
                break;
            }
            thread::sleep(due.saturating_sub(began.elapsed()));
            let sender = sender.clone();
            // Not joined one by one: a thread that nobody waits for gives its stack back when it ends.
            scope.spawn(move || {
                // The receiver outlives the threads.
                let _ = sender.send((index, ask(index)));
            });
            // From above 0 to 1.
            let uniform = (random.below(1 << 53) + 1) as f64 / (1_u64 << 53) as f64;
            due += Duration::from_secs_f64(-libm::log(uniform) / per_second);
        }
    });
    drop(sender);
    seen.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn answer(index: usize) -> Seen {
        let mut watch = Watch::start();
        watch.piece(&index.to_string());
        watch.end(Outcome::Answered, 1, 1)
    }

    #[test]
    fn prompts_share_what_they_should_and_no_more() {
        let shape = PromptShape { words: 40, shared: 0.5, max_tokens: 1, seed: 3 };
        let words =
            |index| -> Vec<String> { shape.prompt(index).split(' ').map(str::to_owned).collect() };
        let (one, other) = (words(0), words(1));
        assert_eq!((one.len(), &one[..20]), (40, &other[..20]));
        assert_ne!(one[20..], other[20..]);
        assert_eq!(one, words(0));
        let apart = PromptShape { shared: 0.0, ..shape };
        assert_ne!(apart.prompt(0)[..60], apart.prompt(1)[..60]);
    }

    #[test]
    fn closed_loads_have_as_many_askers_as_clients() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let ask = |index| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // However slow the machine, the others come meanwhile.
            let began = Instant::now();
            while most.load(Ordering::SeqCst) < 3 && began.elapsed() < Duration::from_secs(20) {
                thread::sleep(Duration::from_millis(2));
            }
            now.fetch_sub(1, Ordering::SeqCst);
            answer(index)
        };
        let finished = put(Arrival::Closed { clients: 3 }, End::Requests(20), 0, &ask);
        let indices: Vec<usize> = finished.seen.iter().map(|(index, _)| *index).collect();
        assert_eq!(indices, (0..20).collect::<Vec<_>>());
        assert_eq!(most.into_inner(), 3);
    }

    #[test]
    fn open_loads_do_not_wait_for_answers() {
        let ask = |index| {
            thread::sleep(Duration::from_millis(200));
            answer(index)
        };
        let finished = put(Arrival::Open { per_second: 500.0 }, End::Requests(20), 1, &ask);
        assert_eq!(finished.seen.len(), 20);
        assert!(finished.wall < Duration::from_secs(2), "{:?}", finished.wall);
    }
}
