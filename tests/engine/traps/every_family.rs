//! Every family's: rows without a token, what a prompt begins with, ties, and prefixes that are found again.

use std::sync::Arc;

use serde_json::json;
use wardround::chat::ChatTemplate;
use wardround::engine::{Constraint, Grammar, Request, Sampling};
use wardround::model::{Family, WantedType};
use wardround::ops::PAGE;
use wardround::tokenizer::Tokenizer;

use super::{Chat, FAMILIES, greedy, message, published_chat, row, row_mut};
use crate::common::golden;
use crate::common::{self, GREEDY, OPTIONS, complete, tokens};

#[test]
fn trap_09_rows_that_no_token_has_are_never_said() {
    for family in FAMILIES {
        let from = common::synthetic(family);
        let tokenizer = common::tokenizer(&from);
        let known = tokenizer.pieces().len() as u32;
        let prompt = tokens(1, 12);
        let likeliest = greedy(&from, &prompt);
        // The padding would win every draw.
        let directory = common::edited(family, |name, width, values| {
            if name.ends_with("embed_tokens.weight") {
                let winner: Vec<f32> =
                    row(values, width, likeliest).iter().map(|value| value * 8.0).collect();
                for row in values.chunks_exact_mut(width).skip(known as usize) {
                    row.copy_from_slice(&winner);
                }
            }
        });
        assert!(greedy(directory.path(), &prompt) >= known, "the padding does not win");
        let engine = common::engine(directory.path(), tokenizer, OPTIONS, 2);
        let grammar = Grammar::Regex(".{8,20}!".to_owned());
        for constraint in [None, Some(Constraint { grammar, after: None })] {
            let request = Request {
                tokens: prompt.clone(),
                constraint,
                max_tokens: 40,
                logprobs: Some(3),
                ..Request::default()
            };
            let completion = complete(&engine, request);
            assert!(completion.tokens.iter().all(|id| *id < known), "{:?}", completion.tokens);
            for sampled in completion.logprobs.iter().flatten() {
                assert!(sampled.top.iter().all(|(id, _)| *id < known), "{sampled:?}");
            }
        }
    }
}

#[test]
fn trap_17_a_prompt_begins_once() {
    // As published, the tokenizer would add the token that the template has written already.
    let directory = tempfile::tempdir().unwrap();
    let from = common::synthetic(Family::Llama);
    let mut json = golden::read(&from.join("tokenizer.json"));
    let (name, id) = ("<|begin_of_text|>", common::tokenizer(&from).id("<|begin_of_text|>"));
    json["post_processor"] = json!({
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": name, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {name: {"id": name, "ids": [id], "tokens": [name]}},
    });
    let path = directory.path().join("tokenizer.json");
    std::fs::write(&path, json.to_string()).unwrap();
    #[allow(clippy::disallowed_methods, reason = "the library itself is the reference")]
    let adding = tokenizers::Tokenizer::from_file(&path).unwrap();
    assert_eq!(adding.encode("x", true).unwrap().get_ids()[0], id.unwrap());
    let ours = (ChatTemplate::load(&from).unwrap(), Arc::new(Tokenizer::load(&path).unwrap()));
    begins_once(&ours, name);
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_trap_17_a_published_prompt_begins_once() {
    begins_once(published_chat(Family::Llama), "<|begin_of_text|>");
    begins_once(published_chat(Family::Gemma3), "<bos>");
}

fn begins_once((chat, tokenizer): &Chat, name: &str) {
    let text = chat.render(&[message("user", "Why?")], false).unwrap();
    let ids = tokenizer.encode(&text).unwrap();
    let begin = tokenizer.id(name).unwrap();
    assert_eq!(ids[0], begin);
    assert_eq!(ids.iter().filter(|id| **id == begin).count(), 1, "{name}");
}

#[test]
fn trap_18_of_equal_logits_the_lowest_id_is_said() {
    for family in FAMILIES {
        let from = common::synthetic(family);
        // The table's last rows have no token, and are never said.
        let winners =
            (1..).map(|salt| tokens(salt, 12)).map(|prompt| (greedy(&from, &prompt), prompt));
        let (winner, prompt) = winners.into_iter().find(|(id, _)| (300..800).contains(id)).unwrap();
        // The same row under a lower id and a higher one gives the same logit to the bit.
        let is_free = |id: &u32| !prompt.contains(id);
        let lower = (0..winner).rev().find(is_free).unwrap();
        let higher = (winner + 1..).find(is_free).unwrap();
        let directory = common::edited(family, |name, width, values| {
            if name.ends_with("embed_tokens.weight") {
                let row = row(values, width, winner).to_vec();
                row_mut(values, width, lower).copy_from_slice(&row);
                row_mut(values, width, higher).copy_from_slice(&row);
            }
        });
        let engine = common::engine(directory.path(), common::tokenizer(&from), OPTIONS, 2);
        let one = Sampling { top_k: Some(1), ..Sampling::default() };
        for (sampling, seed) in [(GREEDY, 0), (one, 1), (one, 2), (one, 3), (one, 4)] {
            let request = Request {
                tokens: prompt.clone(),
                sampling,
                seed,
                max_tokens: 1,
                logprobs: Some(3),
                ..Request::default()
            };
            let completion = complete(&engine, request);
            assert_eq!(completion.tokens, [lower], "{}", family.name());
            let top = &completion.logprobs[0].as_ref().unwrap().top;
            let ids: Vec<u32> = top.iter().map(|(id, _)| *id).collect();
            assert_eq!(ids, [lower, winner, higher]);
            assert!(top[0].1 == top[1].1 && top[1].1 == top[2].1);
        }
    }
}

#[test]
fn trap_19_a_prefix_is_one_models_own_and_its_last_token_is_computed() {
    let request = |tokens: Vec<u32>| Request {
        tokens,
        sampling: GREEDY,
        max_tokens: 8,
        logprobs: Some(2),
        ..Request::default()
    };
    let engine = common::synthetic_engine(Family::Qwen3, OPTIONS);
    // Of a prompt of whole pages the last is computed again: its logits are in no page.
    let prompt = tokens(1, 3 * PAGE);
    let first = complete(&engine, request(prompt.clone()));
    let again = complete(&engine, request(prompt.clone()));
    assert_eq!((first.usage.cached_tokens, again.usage.cached_tokens), (0, 2 * PAGE));
    assert_eq!((&first.tokens, &first.logprobs), (&again.tokens, &again.logprobs));
    // The same page after another one is another page.
    let moved = [&tokens(2, PAGE)[..], &prompt[PAGE..]].concat();
    let after = complete(&engine, request(moved.clone()));
    assert_eq!(after.usage.cached_tokens, 0);
    let fresh = common::synthetic_engine(Family::Qwen3, OPTIONS);
    let alone = complete(&fresh, request(moved));
    assert_eq!((after.tokens, after.logprobs), (alone.tokens, alone.logprobs));
    // Another model, and the same one with other weights, know nothing of it.
    let other = common::edited(Family::Qwen3, |_, _, values| {
        values.iter_mut().for_each(|value| *value *= 1.25);
    });
    let tokenizer = common::tokenizer(other.path());
    let other = common::engine(other.path(), tokenizer, OPTIONS, 2);
    let theirs = complete(&other, request(prompt));
    assert_eq!(theirs.usage.cached_tokens, 0);
    assert_ne!(theirs.logprobs, first.logprobs);
}

#[test]
fn trap_20_a_decoded_prefix_has_the_bits_of_a_computed_one() {
    for family in FAMILIES {
        let directory = common::synthetic(family);
        let decoder = common::load(&directory, WantedType::Auto);
        let prompt = tokens(1, 45);
        let engine = common::synthetic_engine(family, OPTIONS);
        let decoded = complete(
            &engine,
            Request {
                tokens: prompt.clone(),
                sampling: Sampling { temperature: 2.5, ..Sampling::default() },
                max_tokens: 90,
                ..Request::default()
            },
        );
        let whole = [prompt, decoded.tokens].concat();
        assert!(
            common::logits(&decoder, &whole, 1) == common::logits(&decoder, &whole, whole.len())
        );
        // A next round's prompt goes on from what was said; a fresh engine computes all of it at once.
        let next = Request {
            tokens: whole.clone(),
            max_tokens: 12,
            logprobs: Some(4),
            ..Request::default()
        };
        let resumed = complete(&engine, next.clone());
        let fresh = complete(&common::synthetic_engine(family, OPTIONS), next);
        // States are kept where a prompt's last page ends, keys and values of every page.
        let found = if decoder.config.state_bytes() > 0 { 45 } else { whole.len() - 1 };
        assert_eq!(resumed.usage.cached_tokens, found / PAGE * PAGE, "{}", family.name());
        assert_eq!(fresh.usage.cached_tokens, 0);
        assert_eq!(resumed.tokens, fresh.tokens);
        let bits = |completion: &wardround::engine::Completion| -> Vec<u32> {
            let sampled = completion.logprobs.iter().flatten();
            sampled.flat_map(|one| one.top.iter().map(|(_, logprob)| logprob.to_bits())).collect()
        };
        assert_eq!(bits(&resumed), bits(&fresh), "{}", family.name());
    }
}
