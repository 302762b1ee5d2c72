//! Tests of `constraint.rs`.

use super::*;
use crate::model::Family;
use crate::synth::{Recipe, Shape, write_with_our_words};

pub(in crate::engine) fn compiler(eos_ids: &[u32]) -> Compiler {
    let directory = tempfile::tempdir().unwrap();
    let recipe = Recipe { family: Family::Qwen3, shape: Shape::Tiny, seed: 1, tokenizer: None };
    write_with_our_words(&recipe, directory.path()).unwrap();
    let tokenizer = Tokenizer::load(&directory.path().join("tokenizer.json")).unwrap();
    let rows = tokenizer.pieces().len();
    Compiler::new(Arc::new(tokenizer), rows, eos_ids)
}

/// A grammar at its start, and the tokens of `text`, byte by byte.
pub(in crate::engine) fn matcher(top: TopLevelGrammar, text: &str) -> (Matcher, Vec<u32>) {
    let compiler = compiler(&[1]);
    let factory = compiler.build_factory().unwrap();
    (Matcher::new(factory.create_parser(top)), tokens(&compiler, text))
}

fn tokens(compiler: &Compiler, text: &str) -> Vec<u32> {
    let pieces = compiler.tokenizer.pieces();
    let id = |byte: u8| {
        pieces.iter().position(|piece| matches!(piece, Piece::Text(bytes) if bytes == &[byte]))
    };
    text.bytes().map(|byte| id(byte).unwrap() as u32).collect()
}

pub(in crate::engine) fn word(index: usize) -> Grammar {
    Grammar::Regex(format!("word {index}"))
}

#[test]
fn a_grammar_that_many_threads_ask_for_is_compiled_once() {
    let compiler = compiler(&[1]);
    let first = compiler.compile(&word(7)).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let again = compiler.compile(&word(7)).unwrap();
                assert!(Arc::ptr_eq(&first.matcher, &again.matcher));
                // Each state is its own.
                assert!(!again.start().force().is_empty());
                assert!(!again.start().force().is_empty());
            });
        }
    });
}

#[test]
fn a_refusal_is_kept_and_named() {
    let compiler = compiler(&[1]);
    let broken = Grammar::Regex("(".to_owned());
    let refusal = compiler.compile(&broken).err().unwrap();
    assert!(refusal.to_string().starts_with("the grammar does not compile: "), "{refusal}");
    assert_eq!(compiler.compile(&broken).err().unwrap(), refusal);
    assert_eq!(compiler.kept.entries.lock().unwrap().len(), 1);
}

/// The library cuts a long name for its message within a character, and panics.
#[test]
fn a_panic_of_the_library_is_no_answer() {
    let compiler = compiler(&[1]);
    let schema = json!({"type": "object", "required": ["é".repeat(120)]}).to_string();
    if let Err(refusal) = compiler.compile(&Grammar::JsonSchema(schema)) {
        let said = refusal.to_string();
        assert!(!said.contains("panic") && !said.contains("byte index"), "{said}");
    }
    assert_eq!(in_short("panic: byte index 7"), "the compiler of grammars fails on it");
    assert_eq!(in_short(&"é".repeat(400)).chars().count(), PROBLEM_CHARS + 1);
    assert!(compiler.compile(&word(0)).is_ok());
}

#[test]
fn nothing_is_built_before_a_grammar_is_asked_for() {
    let compiler = compiler(&[]);
    assert!(compiler.factory.get().is_none());
    let error = compiler.compile(&word(0)).err().unwrap();
    assert!(error.to_string().contains("end-of-turn"), "{error}");
}
