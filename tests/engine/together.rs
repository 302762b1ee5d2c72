//! The engine's word: a completion depends on its request alone, whatever else runs, came before, or was given up.

use std::sync::LazyLock;

use wardround::engine::{EngineOptions, FinishReason, Request, Stop, Ticket};
use wardround::model::{WantedPrecision, WantedType};
use wardround::ops::{Cpu, PAGE, Quantisation, StoredType};

use crate::alone::{FAMILIES, Model, Outcome, requests};
use crate::common::{self, OPTIONS, tokens};

/// Every family, with weights kept as stored (bf16), as f32, and in blocks of either kind; keys and values as bf16 and f32.
static MODELS: LazyLock<Vec<Model>> = LazyLock::new(|| {
    let auto = WantedPrecision::default();
    let wide = WantedType::Exactly(StoredType::F32);
    let kept = [
        auto,
        WantedPrecision { dtype: wide, kv: WantedType::Exactly(StoredType::Bf16), ..auto },
        WantedPrecision { quantisation: Quantisation::Q8_0, ..auto },
        WantedPrecision { quantisation: Quantisation::Int8, ..auto },
        WantedPrecision { quantisation: Quantisation::Q4K, kv: wide, ..auto },
    ];
    FAMILIES
        .iter()
        .flat_map(|&family| kept.map(|kept| Model::new(family, kept, requests)))
        .collect()
});

#[test]
fn the_requests_cover_what_they_are_there_for() {
    for model in MODELS.iter() {
        let alone = &model.alone;
        let reasons: Vec<FinishReason> =
            alone.iter().map(|outcome| outcome.finish_reason).collect();
        assert!(reasons.contains(&FinishReason::Stop) && reasons.contains(&FinishReason::Length));
        assert_eq!(reasons[10], FinishReason::Stop, "{}", model.name);
        let record: serde_json::Value = serde_json::from_str(&alone[8].text).unwrap();
        assert!(record["score"].as_u64().unwrap() <= 3);
        assert!(alone[8].usage.forced_tokens > 0 && alone[11].text.starts_with("dose: "));
        for (request, outcome) in model.requests.iter().zip(alone) {
            let figures = request.logprobs.map_or(0, |_| outcome.tokens.len());
            assert_eq!(outcome.logprobs.len(), figures);
            let sampled = outcome.logprobs.iter().flatten();
            // Rows that no token has are not named.
            assert!(sampled.clone().all(|(_, all)| Some(all.len() - 1) <= request.logprobs));
            let forced = outcome.usage.forced_tokens;
            assert!(request.logprobs.is_none() || sampled.count() + forced == figures);
        }
        assert_ne!(alone[6].tokens, alone[7].tokens, "{}", model.name);
    }
    // Widening bf16 is exact, and the root of 64, Gemma's scale, is the same in both. Where the machine multiplies
    // bf16 itself, activations are rounded to meet the weights.
    let cpu = Cpu::new(1).unwrap();
    let kind = |stored: StoredType| cpu.kind(stored.into());
    let rounds = kind(StoredType::Bf16) != kind(StoredType::F32);
    for models in MODELS.chunk_by(|a, b| a.family == b.family) {
        let [stored, widened, quantised @ ..] = models else { panic!("a family has five models") };
        assert!(stored.alone == widened.alone || rounds, "{}", stored.name);
        let kinds = [stored].into_iter().chain(quantised).collect::<Vec<_>>();
        for (index, kind) in kinds.iter().enumerate() {
            for other in &kinds[..index] {
                assert!(kind.alone != other.alone, "{} is {}", kind.name, other.name);
            }
        }
    }
}

#[test]
fn together_at_every_batch_size_as_alone() {
    let threads = [1, 2, 3].map(|threads| Cpu::new(threads).unwrap());
    for model in MODELS.iter() {
        for max_batch in 1..=16 {
            let prefill_rows = [1, 7, 64, 512][max_batch % 4];
            let ops = &threads[max_batch % 3];
            let mut order = model.in_order();
            if max_batch / 2 % 2 == 1 {
                order.reverse();
            }
            let options = EngineOptions { max_batch, prefill_rows, ..OPTIONS };
            let how = format!("{options:?}, {} threads, in order {order:?}", ops.threads());
            model.check(&model.engine(options, ops), &order, &how);
        }
    }
}

#[test]
fn resumed_from_the_prefix_index_as_alone() {
    let ops = Cpu::new(2).unwrap();
    for model in MODELS.iter() {
        let engine = model.engine(OPTIONS, &ops);
        model.check(&engine, &model.in_order(), "the first time");
        let again = model.check(&engine, &model.in_order(), "from the index");
        for (request, completion) in model.requests.iter().zip(again) {
            let (length, cached) = (request.tokens.len(), completion.usage.cached_tokens);
            // Tokens that a grammar dictates before anything is computed belong to what is looked for.
            match request.constraint {
                None => assert_eq!(cached, (length - 1) / PAGE * PAGE),
                Some(_) => assert!(cached >= (length - 1) / PAGE * PAGE && cached <= length),
            }
        }
    }
}

#[test]
fn preempted_in_between_as_alone() {
    let ops = Cpu::new(2).unwrap();
    for model in MODELS.iter() {
        for spare in [0, 5] {
            let options =
                EngineOptions { pages: model.largest() + spare, prefill_rows: 64, ..OPTIONS };
            let engine = model.engine(options, &ops);
            model.check_preempted(&engine, &format!("in {} pages", options.pages));
        }
    }
}

#[test]
fn beside_neighbours_that_are_cancelled_as_alone() {
    let ops = Cpu::new(2).unwrap();
    for model in MODELS.iter() {
        let options = EngineOptions { max_batch: 6, prefill_rows: 64, ..OPTIONS };
        let engine = model.engine(options, &ops);
        let neighbour = |index: usize| {
            let mut request = model.requests[index].clone();
            (request.seed, request.max_tokens) = (1000, 400);
            (request.constraint, request.stop) = (None, Stop::default());
            engine.submit(request).unwrap()
        };
        let early: Vec<Ticket> = (0..6).map(neighbour).collect();
        let late: Vec<Ticket> = (4..8).map(neighbour).collect();
        let wanted = model.requests.iter().cloned();
        let tickets: Vec<Ticket> = wanted.map(|request| engine.submit(request).unwrap()).collect();
        drop(early);
        let mut late = late.into_iter();
        for (index, ticket) in tickets.into_iter().enumerate() {
            let outcome = Outcome::of(&model.requests[index].tokens, &ticket.wait().unwrap());
            assert!(outcome == model.alone[index], "{}, request {index}", model.name);
            drop(late.next());
        }
    }
}

#[test]
fn a_prompt_that_is_being_computed_is_waited_for() {
    for family in FAMILIES {
        let options = EngineOptions { prefill_rows: 48, ..OPTIONS };
        let engine = common::synthetic_engine(family, options);
        let common_part = tokens(5, 300);
        for (own, shared) in [(0, 288), (7, 288), (52, 288)] {
            // Another first page each time: nothing is left from the round before.
            let prompt = [&tokens(own as u64 + 50, PAGE)[..], &common_part].concat();
            let ask = |salt| Request {
                tokens: [&prompt[..], &tokens(salt, own)].concat(),
                seed: salt,
                max_tokens: 4,
                ..Request::default()
            };
            let tickets: Vec<Ticket> =
                (0..8).map(|salt| engine.submit(ask(salt)).unwrap()).collect();
            let mut cached: Vec<usize> = tickets
                .into_iter()
                .map(|ticket| ticket.wait().unwrap().usage.cached_tokens)
                .collect();
            cached.sort_unstable();
            assert_eq!((cached[0], &cached[1..]), (0, &[shared + PAGE; 7][..]));
        }
    }
}
