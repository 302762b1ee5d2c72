//! The engine as a service: events, snapshots, cancellation, and an end for every request.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use wardround::engine::{
    Completion, Constraint, Engine, EngineError, EngineOptions, Event, FinishReason, Grammar,
    Request, RequestHandle, TokenLogprobs,
};
use wardround::model::{Config, Decoder, Family};
use wardround::ops::{Cpu, PAGE, StoredType};

use super::known::SERVED;
use crate::alone::Outcome;
use crate::common::{self, OPTIONS, tokens};

/// A request on its way, its events as they come.
pub struct Asked {
    pub events: Receiver<Event>,
    handle: RequestHandle,
}

pub fn ask(engine: &Engine, request: Request) -> Asked {
    let (sender, events) = channel();
    let handle = engine.submit_with(request, Box::new(move |event| drop(sender.send(event))));
    Asked { events, handle: handle.unwrap() }
}

/// What the events of one request said.
#[derive(Default)]
pub struct Told {
    pub admitted: Vec<usize>,
    pub text: String,
    pub tokens: Vec<u32>,
    pub logprobs: Vec<Option<TokenLogprobs>>,
    pub pieces: usize,
}

impl Asked {
    pub fn wait(self) -> (Told, Result<Box<Completion>, EngineError>) {
        let mut told = Told::default();
        let end = loop {
            match self.events.recv().unwrap() {
                Event::Admitted { cached_tokens } => {
                    assert_eq!(told.pieces, 0, "admitted after a piece");
                    told.admitted.push(cached_tokens);
                }
                Event::Piece { text, tokens, logprobs } => {
                    assert!(!text.is_empty() || !tokens.is_empty());
                    told.pieces += 1;
                    told.text.push_str(&text);
                    told.tokens.extend(tokens);
                    told.logprobs.extend(logprobs);
                }
                Event::Done(end) => break end,
            }
        };
        drop(self.handle);
        assert!(self.events.recv().is_err(), "something was told after the end");
        (told, end)
    }
}

#[test]
fn events_put_together_are_the_completion() {
    let ops = Cpu::new(2).unwrap();
    for model in SERVED.iter() {
        for draft in [0, 4] {
            let engine = model.engine(EngineOptions { draft, max_batch: 5, ..OPTIONS }, &ops);
            let in_pieces =
                |request: &Request| ask(&engine, Request { pieces: true, ..request.clone() });
            let asked: Vec<Asked> = model.requests.iter().map(in_pieces).collect();
            let mut pieces = 0;
            for (index, asked) in asked.into_iter().enumerate() {
                let (told, end) = asked.wait();
                let completion = end.unwrap();
                let prompt = &model.requests[index].tokens;
                assert!(Outcome::of(prompt, &completion) == model.alone[index], "request {index}");
                // A prompt of one token with nothing to generate needs no computation.
                let is_admitted = prompt.len() > 1 || completion.usage.completion_tokens > 0;
                let cached = Some(completion.usage.cached_tokens).filter(|_| is_admitted);
                assert_eq!(told.admitted, Vec::from_iter(cached));
                assert_eq!(told.text, completion.text, "request {index}");
                assert_eq!(told.tokens, completion.tokens, "request {index}");
                assert_eq!(told.logprobs, completion.logprobs, "request {index}");
                pieces += told.pieces;
            }
            assert!(pieces > 50, "{pieces} pieces");
        }
    }
}

#[test]
fn an_unstreamed_request_is_told_of_its_admission_and_end_alone() {
    let engine = common::synthetic_engine(Family::Qwen3, OPTIONS);
    let request = Request { tokens: tokens(1, 40), max_tokens: 8, ..Request::default() };
    let (told, end) = ask(&engine, request).wait();
    assert_eq!((told.admitted, told.pieces), (vec![0], 0));
    assert_eq!(end.unwrap().tokens.len(), 8);
}

#[test]
fn every_request_of_an_engine_that_dies_is_told_and_so_is_who_asks_later() {
    let directory = common::synthetic(Family::Llama);
    let ops = Cpu::new(2).unwrap();
    // Its rotary tables end before its context does.
    let config = Config::read(&directory.join("config.json")).unwrap();
    let files = common::weight_files(&directory);
    let sick = Decoder::load(&ops, config, &files, StoredType::Bf16.into(), 16).unwrap();
    let options = EngineOptions { max_batch: 2, ..OPTIONS };
    let sick = common::start(sick, common::tokenizer(&directory), options, &ops);
    assert_eq!(sick.failure(), None);
    let request = || Request { tokens: tokens(1, 10), max_tokens: 40, ..Request::default() };
    let died = |error: EngineError| matches!(error, EngineError::Died { .. });
    // Some of these come when it is dead already: those are refused or told, never left alone.
    let mut asked = Vec::new();
    for _ in 0..200 {
        let (sender, events) = channel();
        let told = Box::new(move |event| drop(sender.send(event)));
        match sick.submit_with(request(), told) {
            Ok(handle) => asked.push(Asked { events, handle }),
            Err(error) => {
                assert!(died(error) && events.recv().is_err());
            }
        }
    }
    assert!(!asked.is_empty());
    for asked in asked {
        assert!(died(asked.wait().1.unwrap_err()));
    }
    assert!(died(sick.failure().unwrap()) && died(common::snapshot(&sick).err().unwrap()));
}

#[test]
fn a_snapshot_counts_what_runs_and_what_was_done() {
    let options = EngineOptions { max_batch: 2, ..OPTIONS };
    let engine = common::synthetic_engine(Family::Gemma3, options);
    let idle = common::snapshot(&engine).unwrap();
    assert_eq!((idle.running, idle.waiting, idle.pages_in_use, idle.stats.pages), (0, 0, 0, 512));
    let prompt = tokens(1, 100);
    let request = Request { tokens: prompt.clone(), max_tokens: 5, ..Request::default() };
    common::complete(&engine, request.clone());
    common::complete(&engine, request);
    let done = common::snapshot(&engine).unwrap();
    let counts = done.stats.counts;
    assert_eq!((counts.admitted, counts.prompt_tokens, counts.cached_tokens), (2, 200, 96));
    assert_eq!((done.stats.sampled_tokens, done.stats.forced_tokens), (10, 0));
    assert_eq!((counts.preemptions, counts.cancelled, done.pages_in_use), (0, 0, 0));
    // Each request's four tokens after its first, and the four tokens of the second's prompt that the cache had not.
    assert_eq!((done.stats.decode.steps, done.stats.decode.rows), (9, 12));

    // Three that go on for long: two run, one waits.
    let long = |seed| Request { tokens: tokens(seed, 60), max_tokens: 3000, ..Request::default() };
    let asked: Vec<Asked> = (10..13).map(|seed| ask(&engine, long(seed))).collect();
    let working = common::snapshot(&engine).unwrap();
    assert_eq!((working.running + working.waiting, working.stats.counts.cancelled), (3, 0));
    assert!(working.pending_prompt_tokens >= 60, "{working:?}");
    drop(asked);
    let given_up = common::snapshot(&engine).unwrap();
    assert_eq!((given_up.running, given_up.waiting, given_up.pages_in_use), (0, 0, 0));
    assert_eq!((given_up.stats.counts.cancelled, given_up.pending_prompt_tokens), (3, 0));
}

#[test]
fn two_hundred_requests_that_are_dropped_leave_no_page_in_use_within_two_steps() {
    let options = EngineOptions { pages: 2048, ..OPTIONS };
    let engine = common::synthetic_engine(Family::Llama, options);
    let request = |seed| Request {
        tokens: tokens(seed, 3 * PAGE),
        max_tokens: 400,
        pieces: seed % 2 == 0,
        ..Request::default()
    };
    let asked: Vec<Asked> = (0..200).map(|seed| ask(&engine, request(seed))).collect();
    // Until something was computed.
    asked[0].events.recv().unwrap();
    let steps = |engine: &Engine| {
        let snapshot = common::snapshot(engine).unwrap();
        let steps = snapshot.stats.decode.steps + snapshot.stats.prefill.steps;
        (steps, snapshot)
    };
    let (before, working) = steps(&engine);
    assert!(working.running > 0);
    drop(asked);
    let (after, freed) = steps(&engine);
    assert_eq!((freed.running, freed.waiting, freed.pages_in_use), (0, 0, 0));
    assert!(after - before <= 2, "{} steps", after - before);
    assert_eq!(freed.stats.counts.cancelled, 200);
    // What is asked next has the engine for itself.
    let (told, end) = ask(&engine, Request { max_tokens: 3, ..request(1) }).wait();
    assert_eq!((end.unwrap().tokens.len(), told.admitted.len()), (3, 1));
}

#[test]
fn a_grammar_that_is_being_compiled_holds_up_nobody() {
    let engine = common::synthetic_engine(Family::Qwen3, OPTIONS);
    let busy =
        Request { tokens: tokens(1, 20), max_tokens: 3000, pieces: true, ..Request::default() };
    let busy = ask(&engine, busy);
    let pieces =
        || busy.events.try_iter().filter(|event| matches!(event, Event::Piece { .. })).count();
    while pieces() == 0 {}
    // Some hundred milliseconds of a compiler's work, on this thread.
    let long = Grammar::Regex("a{300000}".to_owned());
    engine.compile(&Grammar::Regex("yes".to_owned())).unwrap();
    pieces();
    let started = Instant::now();
    engine.compile(&long).unwrap();
    let (took, meanwhile) = (started.elapsed(), pieces());
    assert!(took < Duration::from_millis(100) || meanwhile > 0, "{meanwhile} pieces in {took:?}");
    // It is known from now on, and a grammar that does not compile is refused before the engine hears of it.
    let started = Instant::now();
    engine.compile(&long).unwrap();
    assert!(started.elapsed() < Duration::from_millis(100));
    let constraint = Some(Constraint { grammar: Grammar::Regex("(".to_owned()), after: None });
    let broken = Request { tokens: tokens(1, 20), max_tokens: 3, constraint, ..Request::default() };
    let refusal = engine.submit(broken).unwrap_err();
    assert!(matches!(refusal, EngineError::Grammar(_)), "{refusal}");
}

#[test]
fn a_grammar_holds_from_the_token_it_waits_for() {
    let engine = common::synthetic_engine(Family::Llama, OPTIONS);
    let free = Request { tokens: tokens(3, 20), max_tokens: 40, seed: 5, ..Request::default() };
    let said = common::complete(&engine, free.clone());
    let after = said.tokens[6];
    let until = said.tokens.iter().position(|token| *token == after).unwrap();
    let grammar = Grammar::Regex("(yes|no), [a-z]{3}".to_owned());
    let constraint = Some(Constraint { grammar, after: Some(after) });
    let held = common::complete(&engine, Request { constraint, pieces: true, ..free });
    assert_eq!(held.tokens[..=until], said.tokens[..=until]);
    let tokenizer = common::tokenizer(&common::synthetic(Family::Llama));
    let rest = tokenizer.decode(&held.tokens[until + 1..]);
    assert!(rest.starts_with("yes, ") || rest.starts_with("no, "), "{rest}");
    assert_eq!(held.finish_reason, FinishReason::Stop);
}
