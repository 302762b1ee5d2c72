//! A completion's text piece by piece, broken bytes and all, and stop strings wherever they stand in its tokens.

use wardround::engine::{Completion, Constraint, Engine, FinishReason, Grammar, Request, Sampling};

use crate::alone::FAMILIES;
use crate::common::{self, OPTIONS, complete, tokens};

/// The completion, and its text as it came.
fn in_pieces(engine: &Engine, mut request: Request) -> (Completion, Vec<String>) {
    request.pieces = true;
    let mut pieces = Vec::new();
    let ticket = engine.submit(request).unwrap();
    let completion = ticket.wait_with(|piece| pieces.push(piece.to_owned())).unwrap();
    (completion, pieces)
}

/// Noise whose tokens are often bytes that make no character, or a part of one.
fn bytes(seed: u64) -> Request {
    let sampling = Sampling { temperature: 3.0, ..Sampling::default() };
    Request { tokens: tokens(seed, 9), seed, sampling, max_tokens: 80, ..Request::default() }
}

#[test]
fn pieces_make_the_text_broken_bytes_and_all() {
    for family in FAMILIES {
        let engine = common::synthetic_engine(family, OPTIONS);
        let mut broken = 0;
        for seed in 0..30 {
            let (completion, pieces) = in_pieces(&engine, bytes(seed));
            assert_eq!(pieces.concat(), completion.text, "{} {seed}", family.name());
            assert!(pieces.len() > 10 && pieces.iter().all(|piece| !piece.is_empty()));
            broken += completion.text.matches('\u{fffd}').count();
        }
        assert!(broken > 30, "no bytes were broken: {broken}");
    }
}

#[test]
fn a_stop_string_is_found_across_tokens() {
    for family in FAMILIES {
        let engine = common::synthetic_engine(family, OPTIONS);
        let tokenizer = common::tokenizer(&common::synthetic(family));
        let mut crossed = 0;
        for seed in 0..12 {
            let free = complete(&engine, bytes(seed));
            // From the middle of one token to the middle of the next but two.
            let text: Vec<String> = free.tokens.iter().map(|&id| tokenizer.decode(&[id])).collect();
            let [from, to] =
                [40, 43].map(|token| text[..token].concat().len() + text[token].len() / 2);
            let stop = free.text.get(from..to);
            // Broken bytes are no text that could be asked for.
            let Some(stop) = stop.filter(|stop| stop.len() > 2 && !stop.contains('\u{fffd}'))
            else {
                continue;
            };
            crossed += 1;
            let mut request = bytes(seed);
            request.stop.strings = vec!["no such text".to_owned(), stop.to_owned()];
            let (stopped, pieces) = in_pieces(&engine, request);
            let at = free.text.find(stop).unwrap();
            assert_eq!(stopped.text, free.text[..at], "{} {seed}", family.name());
            assert_eq!(pieces.concat(), stopped.text);
            assert_eq!(stopped.finish_reason, FinishReason::Stop);
            assert!(free.tokens.starts_with(&stopped.tokens));
            // It ended with the very token that completed the stop.
            let last = stopped.tokens.len() - 1;
            assert!(tokenizer.decode(&stopped.tokens).contains(stop));
            assert!(!tokenizer.decode(&stopped.tokens[..last]).contains(stop));
        }
        assert!(crossed > 2, "{}: {crossed} stops were tried", family.name());
    }
}

#[test]
fn a_stop_string_of_characters_in_several_tokens_is_found() {
    for family in FAMILIES {
        let engine = common::synthetic_engine(family, OPTIONS);
        for seed in 0..4 {
            let mut request = Request {
                tokens: tokens(seed, 9),
                seed,
                constraint: Some(Constraint {
                    grammar: Grammar::Regex("([😀ж]{3}、){4}".to_owned()),
                    after: None,
                }),
                max_tokens: 200,
                ..Request::default()
            };
            let (free, pieces) = in_pieces(&engine, request.clone());
            assert_eq!(free.text.chars().count(), 16, "{}", free.text);
            assert_eq!(pieces.concat(), free.text);
            assert!(!free.text.contains('\u{fffd}') && free.tokens.len() > 20);
            let middle: String = free.text.chars().skip(4).take(3).collect();
            request.stop.strings = vec![middle.clone()];
            let (stopped, pieces) = in_pieces(&engine, request);
            assert_eq!(stopped.text, free.text[..free.text.find(&middle).unwrap()]);
            assert_eq!(pieces.concat(), stopped.text);
            assert_eq!(stopped.finish_reason, FinishReason::Stop);
        }
    }
}
