//! Words beyond ASCII that a byte-level vocabulary holds besides its own: stop strings and grammars find them by their text.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use wardround::engine::constraint::Compiler;
use wardround::engine::{Constraint, FinishReason, Grammar, Request, Stop};
use wardround::model::Family;
use wardround::synth::{Recipe, Shape, write_checkpoint};
use wardround::tokenizer::Tokenizer;

use crate::common::{self, GREEDY, OPTIONS, complete, tokens};

/// In a byte-level vocabulary «é» and «è» also stand for the bytes 0xE9 and 0xE8.
const WORD: &str = "M\u{e9}ni\u{e8}re";

/// A tiny model to whose vocabulary the word was added: its tokenizer, and the word's id.
fn model(directory: &Path) -> (Arc<Tokenizer>, u32) {
    let (own, source) = (common::synthetic(Family::Qwen3), directory.join("source"));
    std::fs::create_dir(&source).unwrap();
    for name in ["tokenizer_config.json", "chat_template.jinja"] {
        std::fs::copy(own.join(name), source.join(name)).unwrap();
    }
    let id = common::tokenizer(&own).pieces().len() as u32;
    let text = std::fs::read_to_string(own.join("tokenizer.json")).unwrap();
    let mut file: Value = serde_json::from_str(&text).unwrap();
    file["added_tokens"].as_array_mut().unwrap().push(json!({
        "id": id, "content": WORD, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
        "special": false,
    }));
    std::fs::write(source.join("tokenizer.json"), file.to_string()).unwrap();
    let recipe =
        Recipe { family: Family::Qwen3, shape: Shape::Tiny, seed: 1, tokenizer: Some(&source) };
    write_checkpoint(&recipe, &directory.join("model")).unwrap();
    let tokenizer = common::tokenizer(&directory.join("model"));
    assert_eq!(tokenizer.encode(WORD).unwrap(), [id]);
    (tokenizer, id)
}

#[test]
fn a_stop_string_is_found_in_an_added_word_and_across_two() {
    let directory = tempfile::tempdir().unwrap();
    let (tokenizer, id) = model(directory.path());
    let engine = common::engine(&directory.path().join("model"), tokenizer, OPTIONS, 2);
    // It says the word over and over.
    let said = |stop: &[&str]| {
        let strings = stop.iter().map(|stop| (*stop).to_owned()).collect();
        let request = Request {
            tokens: tokens(1, 9),
            sampling: GREEDY,
            max_tokens: 3,
            logit_bias: vec![(id, 100.0)],
            stop: Stop { strings, ..Stop::default() },
            ..Request::default()
        };
        let completion = complete(&engine, request);
        (completion.text, completion.tokens, completion.finish_reason)
    };
    assert_eq!(said(&[]), (WORD.repeat(3), vec![id; 3], FinishReason::Length));
    let within = said(&["ni\u{e8}re"]);
    assert_eq!(within, ("M\u{e9}".to_owned(), vec![id], FinishReason::Stop));
    let across = said(&["reM\u{e9}"]);
    assert_eq!(across, ("M\u{e9}ni\u{e8}".to_owned(), vec![id; 2], FinishReason::Stop));
}

#[test]
fn a_grammar_takes_an_added_word_for_its_text() {
    let directory = tempfile::tempdir().unwrap();
    let (tokenizer, id) = model(directory.path());
    let compiler = Compiler::new(tokenizer.clone(), tokenizer.pieces().len(), &[1]);
    let grammar = |text: &str| Grammar::Regex(text.to_owned());
    let mut state = compiler.compile(&grammar(&format!("({WORD}|Herpes)!"))).unwrap().start();
    let present = vec![u32::MAX; 1 << 12];
    let allowed = state.allowed(&present).unwrap();
    assert!(allowed[id as usize / 32] >> (id % 32) & 1 == 1, "the word is one of its tokens");
    assert!(state.accept(id));
    assert_eq!(tokenizer.decode(&state.force()), "!");
    // As the bytes that its characters stand for, it would be no text.
    let mut other = compiler.compile(&grammar("(Meniere|Herpes)!")).unwrap().start();
    let allowed = other.allowed(&present).unwrap();
    assert!(allowed[id as usize / 32] >> (id % 32) & 1 == 0);

    let engine = common::engine(&directory.path().join("model"), tokenizer, OPTIONS, 2);
    let constraint = Constraint { grammar: grammar(&format!(r"It is {WORD}'s\.")), after: None };
    let request = Request {
        tokens: tokens(1, 9),
        max_tokens: 40,
        constraint: Some(constraint),
        ..Request::default()
    };
    let completion = complete(&engine, request);
    assert_eq!(completion.text, format!("It is {WORD}'s."));
    assert!(completion.tokens.contains(&id), "{:?}", completion.tokens);
}
