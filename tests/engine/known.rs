//! Log-probabilities of tokens that were known beforehand, penalties, biases and salts: each request as alone, and as
//! computed again from the model's own logits.

use std::sync::{Arc, LazyLock};

use wardround::engine::{
    Constraint, EngineOptions, FinishReason, Grammar, Request, Sampling, Stop, TokenLogprobs,
};
use wardround::model::{Family, WantedPrecision, WantedType};
use wardround::ops::sampling::{forbid, logprobs};
use wardround::ops::{Cpu, Quantisation, StoredType};

use crate::alone::{Likelihoods, Model, likelihoods};
use crate::common::{self, GREEDY, OPTIONS, complete, tokens};

/// A model of each family, with requests of every kind that a server is sent.
pub static SERVED: LazyLock<Vec<Model>> = LazyLock::new(|| {
    let auto = WantedPrecision::default();
    let wide = WantedPrecision { dtype: WantedType::Exactly(StoredType::F32), ..auto };
    let blocks = WantedPrecision { quantisation: Quantisation::Q8_0, ..auto };
    let kept = [(Family::Gemma3, auto), (Family::Llama, wide), (Family::Qwen3, blocks)];
    kept.map(|(family, kept)| Model::new(family, kept, mixed)).into()
});

/// Prompts that share prefixes; some want log-probabilities of all tokens, some are penalised, biased or salted.
fn mixed(eos_ids: &[u32]) -> Vec<Request> {
    let shared = tokens(1, 160);
    let request = |share: usize, own: usize, seed: u64| Request {
        tokens: [&shared[..share], &tokens(seed + 20, own)].concat(),
        seed,
        sampling: Sampling { temperature: 1.5, ..Sampling::default() },
        stop: Stop { ids: eos_ids.to_vec(), ..Stop::default() },
        max_tokens: 20,
        ..Request::default()
    };
    let dictating = |text: &str| {
        let grammar = Grammar::Regex(text.to_owned());
        Some(Constraint { grammar, after: None })
    };
    let scored = |request: Request| Request {
        logprobs: Some(2),
        forced_logprobs: true,
        prompt_logprobs: Some(3),
        ..request
    };
    let penalised = |request: Request| Request {
        sampling: Sampling {
            frequency_penalty: Some(0.9),
            presence_penalty: Some(-0.4),
            ..request.sampling
        },
        logit_bias: vec![(301, 3.0), (40, -100.0), (302, 2.5)],
        ..request
    };
    vec![
        request(96, 7, 1),
        scored(request(96, 7, 1)),
        // What lm-eval asks: a long prompt, one greedy token.
        scored(Request { sampling: GREEDY, max_tokens: 1, ..request(160, 40, 2) }),
        // Nothing to generate, at lengths around whole pages.
        scored(Request { max_tokens: 0, ..request(0, 1, 3) }),
        scored(Request { max_tokens: 0, ..request(64, 0, 4) }),
        Request { prompt_logprobs: Some(0), max_tokens: 0, ..request(64, 33, 5) },
        // A grammar that dictates from the start, at its end, and all the way.
        scored(Request {
            constraint: dictating("dose: [0-9]{1,3} milligrams"),
            ..request(64, 5, 6)
        }),
        scored(Request { constraint: dictating("nothing to report"), ..request(32, 5, 7) }),
        Request {
            constraint: dictating("((yes|no), ){6}(perhaps|certainly not)"),
            sampling: GREEDY,
            max_tokens: 40,
            logprobs: Some(1),
            forced_logprobs: true,
            ..request(96, 1, 8)
        },
        // Cut in the middle of what is dictated.
        scored(Request {
            constraint: dictating("a long dictated text"),
            max_tokens: 4,
            ..request(0, 9, 9)
        }),
        penalised(request(128, 3, 10)),
        penalised(scored(Request { sampling: GREEDY, max_tokens: 30, ..request(128, 3, 11) })),
        Request {
            min_tokens: 6,
            logit_bias: eos_ids.iter().map(|id| (*id, 100.0)).collect(),
            logprobs: Some(1),
            ..request(32, 8, 12)
        },
        Request { salt: Some([7; 16]), ..request(96, 7, 1) },
        scored(Request { salt: Some([8; 16]), ..request(160, 40, 2) }),
        // Greedy and long: its drafts are often right.
        Request { sampling: GREEDY, max_tokens: 50, ..request(160, 2, 13) },
    ]
}

#[test]
fn requests_of_every_kind_together_as_alone() {
    let ops = Cpu::new(2).unwrap();
    for model in SERVED.iter() {
        for (max_batch, prefill_rows, known_logit_rows, draft) in
            [(16, 512, 64, 0), (4, 33, 1, 0), (9, 100, 5, 4), (2, 7, 3, 8)]
        {
            let options =
                EngineOptions { max_batch, prefill_rows, known_logit_rows, draft, ..OPTIONS };
            let engine = model.engine(options, &ops);
            let reversed: Vec<usize> = model.in_order().into_iter().rev().collect();
            // The second time prompts are found in the index, where they may be.
            for order in [model.in_order(), reversed] {
                model.check(&engine, &order, &format!("{options:?}, in order {order:?}"));
            }
        }
    }
}

#[test]
fn requests_of_every_kind_preempted_as_alone() {
    let ops = Cpu::new(2).unwrap();
    for model in SERVED.iter() {
        for (known_logit_rows, draft) in [(64, 0), (3, 4)] {
            let pages = model.largest() + 3;
            let options =
                EngineOptions { pages, prefill_rows: 64, known_logit_rows, draft, ..OPTIONS };
            let engine = model.engine(options, &ops);
            model.check_preempted(&engine, &format!("{options:?}"));
        }
    }
}

/// The log-probabilities of each of `all` but the first, from logits that were computed without an engine.
fn recomputed(model: &Model, all: &[u32], counts: impl Fn(usize) -> usize) -> Vec<TokenLogprobs> {
    let ops = Cpu::new(2).unwrap();
    let decoder = model.decoder(all.len(), &ops);
    let rows = common::logits_on(&ops, &decoder, all, 16);
    let tokens = all.iter().enumerate().skip(1);
    // Over all rows of the head, those without a token too, as other engines and who normalises logits does; such rows
    // are not named.
    let present = present(model, decoder.config.vocab_size);
    let is_token = |id: u32| present[id as usize / 32] >> (id % 32) & 1 == 1;
    tokens
        .zip(rows)
        .map(|((place, token), row)| {
            let mut scores = logprobs(&row, *token, counts(place));
            scores.top.retain(|(id, _)| is_token(*id));
            scores
        })
        .collect()
}

fn present(model: &Model, rows: usize) -> Arc<[u32]> {
    common::tokenizer(&common::synthetic(model.family)).present(rows)
}

#[test]
fn log_probabilities_are_those_of_the_models_own_logits() {
    for model in SERVED.iter() {
        let (mut prompts, mut dictated) = (0, 0);
        for (request, alone) in model.requests.iter().zip(&model.alone) {
            let length = request.tokens.len();
            let all = [&request.tokens[..], &alone.tokens].concat();
            let count = |place: usize| {
                let wanted =
                    if place < length { request.prompt_logprobs } else { request.logprobs };
                wanted.unwrap_or(0)
            };
            let scores = recomputed(model, &all, count);
            let scores: Vec<Option<TokenLogprobs>> =
                std::iter::once(None).chain(scores.into_iter().map(Some)).collect();
            let scores = likelihoods(&all, &scores);
            if request.prompt_logprobs.is_some() {
                assert!(alone.prompt_logprobs == scores[..length], "{}", model.name);
                prompts += 1;
            }
            if request.logprobs.is_some() {
                assert!(alone.logprobs == scores[length..], "{}: {request:?}", model.name);
                dictated += alone.usage.forced_tokens;
            }
            assert_eq!(alone.usage.completion_tokens, alone.tokens.len());
        }
        assert!(prompts > 6 && dictated > 20, "{prompts} prompts, {dictated} dictated tokens");
    }
}

/// A token that is among the likeliest has the very same log-probability there.
#[test]
fn a_likeliest_token_has_one_log_probability() {
    for model in SERVED.iter() {
        let mut found = 0;
        for outcome in &model.alone {
            let all: Vec<&Likelihoods> =
                outcome.prompt_logprobs.iter().chain(&outcome.logprobs).collect();
            for (rank, entries) in all.into_iter().flatten() {
                let (chosen, top) = (entries[0], &entries[1..]);
                let place = top.iter().position(|(id, _)| *id == chosen.0);
                // Rows that no token has count in ranks, and are not named.
                let rank = *rank as usize;
                assert!(place.map_or(rank > top.len(), |place| place < rank), "{rank}: {top:?}");
                assert!(place.is_none_or(|place| top[place] == chosen));
                found += usize::from(place.is_some());
            }
        }
        assert!(found > 20, "{}: {found}", model.name);
    }
}

#[test]
fn a_request_may_want_nothing_but_its_prompts_log_probabilities() {
    for model in SERVED.iter() {
        let only: Vec<usize> =
            model.in_order().into_iter().filter(|i| model.requests[*i].max_tokens == 0).collect();
        assert_eq!(only.len(), 3);
        for index in only {
            let (request, outcome) = (&model.requests[index], &model.alone[index]);
            assert_eq!((outcome.tokens.len(), outcome.text.as_str()), (0, ""));
            assert_eq!(outcome.finish_reason, FinishReason::Length);
            assert_eq!(outcome.prompt_logprobs.len(), request.tokens.len());
            assert!(outcome.prompt_logprobs[0].is_none());
            assert!(outcome.prompt_logprobs[1..].iter().all(Option::is_some));
        }
    }
    // An engine that was started without room for them says so.
    let options = EngineOptions { known_logit_rows: 0, ..OPTIONS };
    let engine = common::synthetic_engine(Family::Llama, options);
    let request = Request { tokens: vec![301; 3], prompt_logprobs: Some(1), ..Request::default() };
    let refusal = engine.submit(request).unwrap_err().to_string();
    assert_eq!(refusal, "the engine has no room for log-probabilities of known tokens");
}

#[test]
fn penalties_and_biases_are_what_openai_defines() {
    let ops = Cpu::new(2).unwrap();
    for model in SERVED.iter() {
        let request = &model.requests[11];
        let (prompt, said) = (&request.tokens, &model.alone[11].tokens);
        let all = [&prompt[..], said].concat();
        let decoder = model.decoder(all.len(), &ops);
        let rows = common::logits_on(&ops, &decoder, &all, 16);
        let present = present(model, decoder.config.vocab_size);
        let mut moved = 0;
        for (place, token) in said.iter().enumerate() {
            let mut row = rows[prompt.len() + place - 1].clone();
            forbid(&present, &mut row);
            let free = logprobs(&row, *token, 1).top[0].0;
            for (id, bias) in &request.logit_bias {
                row[*id as usize] += bias;
            }
            for (id, logit) in row.iter_mut().enumerate() {
                let count = said[..place].iter().filter(|said| **said as usize == id).count();
                if count > 0 {
                    // Presence −0.4 and frequency 0.9 are the request's.
                    *logit += 0.4 - 0.9 * count as f32;
                }
            }
            // Rounding may differ by the order of additions, so the token need only be as likely as the likeliest.
            let best = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert!(best - row[*token as usize] < 1e-4, "{}: token {place}", model.name);
            moved += usize::from(free != *token);
        }
        assert!(moved > 2, "{}: {moved} tokens differ from the model's own", model.name);
        assert!(!said.contains(&40));
    }
}

#[test]
fn nothing_ends_a_completion_before_its_least_length() {
    for model in SERVED.iter() {
        // The end of turn is always the likeliest: it comes as soon as it may.
        let said = &model.alone[12];
        assert_eq!((said.tokens.len(), said.finish_reason), (7, FinishReason::Stop));
        let stops = &model.requests[12].stop.ids;
        assert!(!said.tokens[..6].iter().any(|token| stops.contains(token)));
    }
    let engine = common::synthetic_engine(Family::Qwen3, OPTIONS);
    let eos = 1;
    let ask = |grammar: &str| Request {
        tokens: tokens(1, 9),
        min_tokens: 50,
        max_tokens: 60,
        stop: Stop { ids: vec![eos], ..Stop::default() },
        constraint: Some(Constraint { grammar: Grammar::Regex(grammar.to_owned()), after: None }),
        ..Request::default()
    };
    // A grammar's end is an end.
    let short = complete(&engine, ask("yes|no"));
    assert_eq!(short.finish_reason, FinishReason::Stop);
    // A stop string counts from the least length on.
    let stop = Stop::default();
    let free =
        Request { constraint: None, seed: 5, max_tokens: 40, min_tokens: 0, stop, ..ask("") };
    let text = complete(&engine, free.clone()).text;
    let stop = text.chars().find(char::is_ascii_alphabetic).unwrap().to_string();
    let stopped = |min_tokens| {
        let stop = Stop { strings: vec![stop.clone()], ..Stop::default() };
        complete(&engine, Request { stop, min_tokens, ..free.clone() }).tokens.len()
    };
    let early = stopped(0);
    assert!(early < 40, "{text:?}");
    assert!(
        stopped(early + 1) > early && stopped(40) == 40,
        "{text:?}: {early}, {}, {}",
        stopped(early + 1),
        stopped(40)
    );
}

#[test]
fn salted_requests_find_the_pages_of_their_own_salt_alone() {
    let engine = common::synthetic_engine(Family::Gemma3, OPTIONS);
    let cached = |salt: Option<u8>| {
        let request = Request {
            tokens: tokens(1, 100),
            max_tokens: 2,
            salt: salt.map(|salt| [salt; 16]),
            ..Request::default()
        };
        complete(&engine, request).usage.cached_tokens
    };
    assert_eq!([None, Some(1), Some(2)].map(cached), [0; 3]);
    assert_eq!([None, Some(1), Some(2), Some(0)].map(cached), [96, 96, 96, 0]);
    // Whose log-probabilities are wanted, is computed anew, and found by others.
    let scored = Request {
        tokens: tokens(1, 100),
        prompt_logprobs: Some(0),
        salt: Some([9; 16]),
        ..Request::default()
    };
    assert_eq!(
        [complete(&engine, scored.clone()), complete(&engine, scored)]
            .map(|c| c.usage.cached_tokens),
        [0, 0]
    );
    assert_eq!(cached(Some(9)), 96);
}

#[test]
fn stops_count_from_the_end_of_the_thinking_on() {
    let engine = common::synthetic_engine(Family::Qwen3, OPTIONS);
    let tokenizer = common::tokenizer(&common::synthetic(Family::Qwen3));
    let free = Request { tokens: tokens(1, 9), seed: 5, max_tokens: 60, ..Request::default() };
    let said = complete(&engine, free.clone()).tokens;
    // Some token stands for the one that ends the thinking.
    let mut places = said.iter().enumerate().skip(15);
    let (end, after) = places.find(|(place, id)| !said[..*place].contains(id)).unwrap();
    let (thought, answer) = (tokenizer.decode(&said[..end]), tokenizer.decode(&said[end + 1..]));
    let is_in_both = |c: &char| c.is_ascii_alphabetic() && thought.contains(*c);
    let letter = answer.chars().find(is_in_both).unwrap().to_string();
    let length = |after: Option<u32>| {
        let stop = Stop { strings: vec![letter.clone()], after, ..Stop::default() };
        let stopped = complete(&engine, Request { stop, ..free.clone() });
        assert_eq!(stopped.finish_reason, FinishReason::Stop);
        stopped.tokens.len()
    };
    assert!(length(None) <= end && length(Some(*after)) > end + 1, "{letter}: {said:?}");
    // Ids end it anywhere.
    let stop = Stop { ids: vec![said[3]], after: Some(*after), ..Stop::default() };
    assert!(complete(&engine, Request { stop, ..free }).tokens.len() <= 4);
}

#[test]
fn a_penalty_that_makes_logits_infinite_is_refused() {
    let engine = common::synthetic_engine(Family::Qwen3, OPTIONS);
    for penalty in [1e-38, 0.0, f32::NAN, 1e30] {
        let sampling = Sampling { repetition_penalty: Some(penalty), ..Sampling::default() };
        let request =
            Request { tokens: tokens(1, 9), sampling, max_tokens: 2, ..Request::default() };
        let refused = engine.submit(request).err().unwrap().to_string();
        assert!(refused.contains("is not from 0.01 to 100"), "{refused}");
    }
}
