//! Drafts: tokens that are guessed and then computed together change nothing of what is said.

use std::sync::LazyLock;

use wardround::engine::{Constraint, EngineOptions, EngineStats, Grammar, Request, Ticket};
use wardround::model::{Family, WantedPrecision};
use wardround::ops::{Cpu, Quantisation};

use crate::alone::{Model, Outcome, requests};
use crate::common::{OPTIONS, tokens};

/// Families of every kind of layer, with requests whose drafts are often right.
static REPETITIVE: LazyLock<Vec<Model>> = LazyLock::new(|| {
    let kept = [
        (Family::Gemma3, Quantisation::None),
        (Family::Llama, Quantisation::Q8_0),
        (Family::Qwen3, Quantisation::Int8),
        (Family::Qwen35, Quantisation::None),
    ];
    kept.into_iter()
        .map(|(family, quantisation)| {
            let kept = WantedPrecision { quantisation, ..WantedPrecision::default() };
            Model::new(family, kept, repetitive)
        })
        .collect()
});

impl Model {
    /// More drafts than so many are right: Qwen 3.5's random weights seldom repeat themselves.
    fn least(&self) -> u64 {
        if self.family == Family::Qwen35 { 10 } else { 100 }
    }
}

/// The same, cooler and longer, so that these models repeat themselves: most in what they say, one in its prompt too.
fn repetitive(eos_ids: &[u32]) -> Vec<Request> {
    let mut all = requests(eos_ids);
    for (index, request) in all.iter_mut().enumerate() {
        request.max_tokens = 60;
        request.sampling.temperature = [0.0, 0.7, 1.2][index % 3];
    }
    all[6].tokens = tokens(13, 9).repeat(30);
    // A penalty that is felt, and still leaves something to repeat.
    all[5].sampling.repetition_penalty = Some(1.05);
    all[6].sampling.repetition_penalty = Some(1.2);
    // Texts of long runs, some of them dictated.
    let constrained = |grammar: &str| {
        Some(Constraint { grammar: Grammar::Regex(grammar.to_owned()), after: None })
    };
    all[7].constraint = constrained("((yes|no), ){12}(perhaps|certainly not)");
    all[9].constraint = constrained("[ab]{40}!");
    all
}

/// What `model`'s engine with these options counted over all of its requests, each as alone.
fn check_drafts(model: &Model, ops: &Cpu, options: EngineOptions) -> EngineStats {
    let engine = model.engine(options, ops);
    let reversed: Vec<usize> = model.in_order().into_iter().rev().collect();
    // The second time, prompts are found in pages that drafts were thrown out of.
    for order in [model.in_order(), reversed] {
        model.check(&engine, &order, &format!("{options:?}, in order {order:?}"));
    }
    engine.finish().unwrap()
}

#[test]
fn drafted_at_every_length_as_without() {
    let ops = Cpu::new(2).unwrap();
    for model in REPETITIVE.iter() {
        for draft in [1, 4, 8, 31] {
            for (max_batch, prefill_rows) in [(1, 512), (3, 7), (16, 64)] {
                let options = EngineOptions { max_batch, prefill_rows, draft, ..OPTIONS };
                let stats = check_drafts(model, &ops, options);
                let (drafted, accepted) = (stats.drafted_tokens, stats.accepted_tokens);
                let how = format!("{}, {options:?}: {accepted} of {drafted}", model.name);
                assert!(model.least() < accepted && accepted < drafted, "{how}");
            }
        }
        assert_eq!(check_drafts(model, &ops, OPTIONS).drafted_tokens, 0);
    }
}

#[test]
fn drafted_under_every_rule_as_without() {
    let ops = Cpu::new(2).unwrap();
    let mut right = Vec::new();
    for (index, what) in [
        (0, "greedy"),
        (1, "drawn"),
        (5, "penalised"),
        (6, "penalised and quoting"),
        (7, "dictated in part"),
        (9, "constrained"),
        (10, "stopped by a string"),
    ] {
        let accepted = REPETITIVE.iter().map(|model| {
            let options = EngineOptions { draft: 6, ..OPTIONS };
            let engine = model.engine(options, &ops);
            model.check(&engine, &[index], what);
            engine.finish().unwrap().accepted_tokens
        });
        right.push(accepted.sum::<u64>());
    }
    // What random weights repeat is chance: one kind may have no draft that is right.
    assert!(right.iter().filter(|right| **right > 3).count() > 4, "{right:?}");
}

#[test]
fn drafted_and_preempted_as_without() {
    let ops = Cpu::new(2).unwrap();
    for model in REPETITIVE.iter() {
        for spare in [0, 5] {
            let options = EngineOptions {
                pages: model.largest() + spare,
                prefill_rows: 64,
                draft: 8,
                ..OPTIONS
            };
            let engine = model.engine(options, &ops);
            model.check_preempted(&engine, &format!("{options:?}"));
            assert!(engine.finish().unwrap().accepted_tokens > model.least());
        }
    }
}

#[test]
fn drafted_beside_neighbours_that_are_cancelled_as_without() {
    let ops = Cpu::new(2).unwrap();
    for model in REPETITIVE.iter() {
        let options = EngineOptions { max_batch: 6, draft: 8, ..OPTIONS };
        let engine = model.engine(options, &ops);
        let ask = |index: usize| engine.submit(model.requests[index].clone()).unwrap();
        let mut neighbours: Vec<Ticket> = [6, 0, 1, 2].map(ask).into();
        for index in model.in_order() {
            let outcome = Outcome::of(&model.requests[index].tokens, &ask(index).wait().unwrap());
            assert!(outcome == model.alone[index], "{}, request {index}", model.name);
            drop(neighbours.pop());
        }
    }
}

/// What is said of a completion beforehand changes nothing of it, true or not: so one that is not what it was said to be is found.
#[test]
fn expected_tokens_change_nothing_and_cost_few_steps_where_they_are_true() {
    let ops = Cpu::new(2).unwrap();
    let mut random = wardround::random::SplitMix64::new(5);
    for model in REPETITIVE.iter() {
        let steps = |expected: &dyn Fn(usize) -> Vec<u32>| {
            let options = EngineOptions { max_batch: 16, draft: 31, ..OPTIONS };
            let engine = model.engine(options, &ops);
            let asked = model.in_order().into_iter().map(|index| {
                let expected = expected(index);
                let request = Request { expected, ..model.requests[index].clone() };
                (index, engine.submit(request).unwrap())
            });
            for (index, ticket) in asked.collect::<Vec<_>>() {
                let outcome = Outcome::of(&model.requests[index].tokens, &ticket.wait().unwrap());
                assert!(outcome == model.alone[index], "{}, request {index}", model.name);
            }
            let stats = engine.finish().unwrap();
            stats.prefill.steps + stats.decode.steps
        };
        let said = |index: usize| model.alone[index].tokens.clone();
        let (unknown, known) = (steps(&|_| Vec::new()), steps(&said));
        assert!(3 * known < unknown, "{}: {known} steps of {unknown}", model.name);
        for _ in 0..4 {
            let drawn: Vec<u64> = model.alone.iter().map(|_| random.below(1 << 32)).collect();
            steps(&|index| {
                let mut tokens = said(index);
                let place = drawn[index] as usize % tokens.len().max(1);
                if let Some(token) = tokens.get_mut(place) {
                    *token = (*token + 1) % 800;
                }
                tokens
            });
            // None of the model's.
            steps(&|index| {
                let mut tokens = said(index);
                let place = drawn[index] as usize % tokens.len().max(1);
                if let Some(token) = tokens.get_mut(place) {
                    *token = u32::MAX - (drawn[index] % 9) as u32;
                }
                tokens
            });
            // Too few, and too many.
            steps(&|index| said(index)[..drawn[index] as usize % (said(index).len() + 1)].to_vec());
            steps(&|index| [said(index), vec![7; 40]].concat());
        }
    }
}
