//! Requests and engines from their beginning to their end: refused, seeded, dropped, dead.

use std::time::{Duration, Instant};

use wardround::diagnosis::Diagnosis;
use wardround::engine::{Engine, EngineError, EngineOptions, Request, Ticket};
use wardround::model::{Config, Decoder, Family, WantedType};
use wardround::ops::{Cpu, PAGE, StoredType};

use crate::common::{self, GREEDY, OPTIONS, complete, tokens};

#[test]
fn what_can_never_run_is_refused_at_once() {
    let options = EngineOptions { pages: 4, context: 200, ..OPTIONS };
    let engine = common::synthetic_engine(Family::Llama, options);
    let refuse = |tokens: Vec<u32>, max_tokens| {
        let request = Request { tokens, max_tokens, ..Request::default() };
        engine.submit(request).unwrap_err()
    };
    assert_eq!(refuse(vec![], 1), EngineError::EmptyPrompt);
    assert_eq!(refuse(vec![1], 0), EngineError::NothingToGenerate);
    let too_long = refuse(vec![1; 190], 11);
    let text =
        "a prompt of 190 tokens and a completion of up to 11 exceed the context of 200 tokens";
    assert_eq!(too_long.to_string(), text);
    assert!(too_long.hint().unwrap().contains("--context"));
    let too_many = refuse(vec![1; 100], 29);
    let text = "a prompt of 100 tokens and a completion of up to 29 need 5 pages of the KV cache, which has 4";
    assert_eq!(too_many.to_string(), text);
    assert!(too_many.hint().unwrap().contains("--kv-tokens"));
    let unknown = refuse(vec![1, 2, 70_000], 1).to_string();
    assert!(unknown.starts_with("token id 70000 is beyond the model's "), "{unknown}");
    // What just fits runs.
    let request = Request { tokens: vec![301; 100], max_tokens: 28, ..Request::default() };
    assert_eq!(complete(&engine, request).tokens.len(), 28);
}

#[test]
fn a_dropped_ticket_makes_room() {
    let options = EngineOptions { pages: 64, max_batch: 1, ..OPTIONS };
    let engine = common::synthetic_engine(Family::Qwen3, options);
    let long =
        Request { tokens: tokens(1, 40), sampling: GREEDY, max_tokens: 2000, ..Request::default() };
    let mut begun = long.clone();
    begun.pieces = true;
    let pieces = std::cell::Cell::new(0);
    let first_three = || pieces.replace(pieces.get() + 1) < 3;
    let ticket = engine.submit(begun).unwrap();
    assert!(ticket.wait_while(first_three).is_none());
    let short = Request { tokens: tokens(2, 40), max_tokens: 4, ..Request::default() };
    assert_eq!(complete(&engine, short).tokens.len(), 4);
    // How far the dropped one came can be read off the index.
    let other = common::synthetic_engine(Family::Qwen3, options);
    let whole = [&long.tokens[..], &complete(&other, long.clone()).tokens].concat();
    let probe = |engine| {
        let request = Request { tokens: whole.clone(), max_tokens: 1, ..Request::default() };
        complete(engine, request).usage.cached_tokens
    };
    assert_eq!(probe(&other), 2016);
    let computed = probe(&engine);
    assert!((PAGE..2016).contains(&computed), "{computed} of 2016 tokens were computed");
}

#[test]
fn a_seed_says_the_same_twice_and_another_seed_something_else() {
    let engine = common::synthetic_engine(Family::Gemma3, OPTIONS);
    let say = |seed| {
        let request = Request { tokens: tokens(3, 50), seed, max_tokens: 16, ..Request::default() };
        complete(&engine, request).tokens
    };
    let said: Vec<Vec<u32>> = (0..6).map(say).collect();
    assert!((0..6).all(|seed| say(seed) == said[seed as usize]));
    for (index, one) in said.iter().enumerate() {
        assert!(!said[..index].contains(one), "two seeds said {one:?}");
    }
    // The high half of a seed counts too.
    assert_ne!(say(1 << 40), said[0]);
}

/// Names of this process's threads.
#[cfg(target_os = "linux")]
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    tasks.filter_map(|task| name(task.unwrap())).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_dropped_engine_finishes_what_is_wanted_and_ends_its_thread() {
    let directory = common::synthetic(Family::Llama);
    let decoder = common::load(&directory, WantedType::Auto);
    let ops = Cpu::new(1).unwrap();
    let tokenizer = common::tokenizer(&directory);
    let engine = Engine::start("brief", decoder, tokenizer, &[1], ops, OPTIONS).unwrap();
    let is_running = || threads().iter().any(|name| name.trim() == "engine-brief");
    let ask = |max_tokens| Request { tokens: tokens(1, 20), max_tokens, ..Request::default() };
    complete(&engine, ask(1));
    assert!(is_running());
    let wanted = engine.submit(ask(30)).unwrap();
    drop(engine.submit(ask(3000)).unwrap());
    drop(engine);
    // A thread that was joined stands in the system's list a moment longer.
    let until = Instant::now() + Duration::from_secs(10);
    while is_running() {
        assert!(Instant::now() < until, "its thread goes on");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(wanted.wait().unwrap().tokens.len(), 30);
}

fn says_the_panics_text(error: &EngineError) {
    let text = error.to_string();
    assert!(matches!(error, EngineError::Died { .. }), "{text}");
    assert!(text.contains("out of range for slice"), "{text}");
}

#[test]
fn an_engine_that_dies_says_so_and_leaves_the_others_alone() {
    let directory = common::synthetic(Family::Llama);
    let (ops, tokenizer) = (Cpu::new(2).unwrap(), common::tokenizer(&directory));
    let well = common::load(&directory, WantedType::Auto);
    let well = common::start(well, tokenizer.clone(), OPTIONS, &ops);
    // Its rotary tables end before its context does.
    let config = Config::read(&directory.join("config.json")).unwrap();
    let files = common::weight_files(&directory);
    let sick = Decoder::load(&ops, config, &files, StoredType::Bf16.into(), 16).unwrap();
    let sick = common::start(sick, tokenizer, OPTIONS, &ops);
    let ask = |length| Request { tokens: tokens(1, length), max_tokens: 40, ..Request::default() };
    let ill = [sick.submit(ask(10)).unwrap(), sick.submit(ask(12)).unwrap()];
    for ticket in ill {
        says_the_panics_text(&ticket.wait().unwrap_err());
    }
    let later = sick.submit(ask(4)).and_then(Ticket::wait);
    says_the_panics_text(&later.unwrap_err());
    says_the_panics_text(&sick.finish().unwrap_err());
    assert_eq!(complete(&well, ask(10)).tokens.len(), 40);
}
