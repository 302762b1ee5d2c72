//! Qwen 3's: normed heads of a width of their own, thought and what waits for its end, two ends and no beginning.

use wardround::engine::{Constraint, FinishReason, Grammar, Request, Sampling};
use wardround::generation::Generation;
use wardround::model::Family;
use wardround::panel::backbone::Backbone;
use wardround::systems::medmad::settings::Settings;

use super::{
    Chat, chat, describe, device, every_eos_ends, goldens_expose, message, published,
    published_chat,
};
use crate::common::{self, OPTIONS, complete, tokens};

#[test]
fn trap_11_qwens_heads_are_normed_before_they_turn_and_have_a_width_of_their_own() {
    goldens_expose(11, &["q_norm and k_norm skipped", "theta left at its default"]);
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_trap_11_qwens_published_heads_have_a_width_of_their_own() {
    let config = published("qwen3-4b");
    assert_eq!((config.hidden_size, config.heads, config.head_dim), (2560, 32, 128));
    assert_eq!(config.full_rope.theta, 1e6);
    assert!(config.tied_embeddings);
}

#[test]
fn trap_12_qwen_does_not_think_unless_asked_and_is_not_decoded_greedily() {
    let description = describe(&common::synthetic(Family::Qwen3));
    let sampling =
        Sampling { temperature: 0.6, top_k: Some(20), top_p: Some(0.95), ..Sampling::default() };
    assert_eq!(description.generation.sampling, sampling);
    assert!(!Settings::default().decoding.thinking.is_on());
    thinks_when_asked(&chat(&common::synthetic(Family::Qwen3)));
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_trap_12_qwens_published_template_does_not_think_unless_asked() {
    thinks_when_asked(published_chat(Family::Qwen3));
}

fn thinks_when_asked((chat, tokenizer): &Chat) {
    let turn = "<|im_start|>assistant\n";
    let messages = [message("user", "Why?")];
    let silent = chat.render(&messages, false).unwrap();
    assert!(silent.ends_with(&format!("{turn}<think>\n\n</think>\n\n")), "{silent}");
    let thinking = chat.render(&messages, true).unwrap();
    assert!(thinking.ends_with(turn), "{thinking}");
    let end = tokenizer.id("</think>").unwrap();
    assert!(tokenizer.encode(&silent).unwrap().contains(&end));
}

#[test]
fn trap_13_a_grammar_waits_for_the_end_of_thought() {
    let directory = common::synthetic(Family::Qwen3);
    let description = describe(&directory);
    let think_end = description.tokenizer.id("</think>").unwrap();
    let backbone = Backbone::start(description, &device(), OPTIONS, Default::default()).unwrap();
    assert_eq!(backbone.think_end, Some(think_end));
    let request = Request {
        tokens: tokens(1, 12),
        sampling: Sampling { temperature: 3.0, ..Sampling::default() },
        max_tokens: 120,
        ..Request::default()
    };
    // Noise says `</think>` too seldom: what a free run says in the middle stands for it.
    for seed in 0..5 {
        let request = Request { seed, ..request.clone() };
        let free = complete(&backbone.engine, request.clone()).tokens;
        let end = free[20];
        let at = free.iter().position(|token| *token == end).unwrap();
        let constrained = |after| Request {
            constraint: Some(Constraint {
                grammar: Grammar::Regex("answer: [A-E]{9}".to_owned()),
                after,
            }),
            ..request.clone()
        };
        let completion = complete(&backbone.engine, constrained(Some(end)));
        assert_eq!(completion.tokens[..=at], free[..=at], "thought was constrained");
        let tokenizer = &backbone.description.tokenizer;
        let answer = tokenizer.decode(&completion.tokens[at + 1..]);
        assert!(answer.starts_with("answer: ") && answer.len() == 17, "{answer}");
        assert_eq!(completion.finish_reason, FinishReason::Stop);
        let at_once = complete(&backbone.engine, constrained(None));
        assert!(at_once.text.starts_with("answer: "));
        // Thought that does not end is ended while the answer has room.
        let never = (0..).find(|id| !free.contains(id)).unwrap();
        let cut = complete(&backbone.engine, constrained(Some(never)));
        let at = cut.tokens.iter().position(|token| *token == never).unwrap();
        assert_eq!(cut.tokens[..at], free[..at]);
        let answer = tokenizer.decode(&cut.tokens[at + 1..]);
        assert!(answer.starts_with("answer: ") && answer.len() == 17, "{answer}");
        assert_eq!(cut.finish_reason, FinishReason::Length);
    }
}

#[test]
fn trap_14_qwen_has_two_ends_and_no_beginning() {
    every_eos_ends(Family::Qwen3, &["<|im_end|>", "<|endoftext|>"]);
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_trap_14_qwens_published_files_have_two_ends_and_no_beginning() {
    let (chat, tokenizer) = published_chat(Family::Qwen3);
    let path = common::data().join("configs/qwen3-4b.generation_config.json");
    let config = published("qwen3-4b");
    let generation = Generation::read(Some(&path), &config.eos_ids).unwrap();
    assert_eq!(generation.eos_ids, [151_645, 151_643]);
    let text = chat.render(&[message("user", "Why?")], false).unwrap();
    let ids = tokenizer.encode(&text).unwrap();
    assert_eq!(ids[0], tokenizer.id("<|im_start|>").unwrap());
}
