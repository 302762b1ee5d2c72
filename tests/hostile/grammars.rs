//! Schemas, patterns and grammars of clients: compiled, and followed for some tokens.

use std::sync::Arc;

use proptest::prelude::*;
use wardround::engine::constraint::Compiler;
use wardround::model::Family;
use wardround::record::Grammar;
use wardround::tokenizer::Tokenizer;

use super::damage::{damaged_text, withstands};
use crate::common::synthetic;

const SCHEMAS: &[&str] = &[
    r##"{"type": "object", "properties": {"is_error": {"type": "boolean"}, "sentence_id": {"type": "integer", "minimum": -1, "maximum": 40}, "reason": {"type": "string", "minLength": 1, "maxLength": 200}}, "required": ["is_error", "sentence_id"], "additionalProperties": false}"##,
    r##"{"type": "object", "properties": {"answer": {"enum": ["A", "B", "C"]}, "confidence": {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.01}}, "patternProperties": {"^x-[a-z]{1,8}$": {"type": ["string", "null"]}}, "required": ["answer"]}"##,
    r##"{"$defs": {"node": {"type": "object", "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["value", "next"]}}, "$ref": "#/$defs/node"}"##,
    r##"{"type": "array", "minItems": 1, "maxItems": 5, "items": {"oneOf": [{"type": "string", "pattern": "^[A-Z][0-9]{2,4}$"}, {"type": "string", "format": "date"}, {"const": {"a": [1, 2.5e3, null]}}]}}"##,
    r##"{"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"properties": {"b": {"not": {}}}, "minProperties": 1}], "dependentRequired": {"a": ["b"]}, "x-guidance": {"whitespace_flexible": false}}"##,
];

const PATTERNS: &[&str] = &[
    r"(?:CORRECT|INCORRECT)\n<confidence>[0-9]{1,3}</confidence>",
    r"\d{4}-(?:0[1-9]|1[0-2])-\d{2}(?:T\d\d:\d\d(?:\.\d+)?Z)?",
    r"(?i)(?P<word>[\p{L}\p{N}'’-]+)(?:\s+[^\s,;.!?]{1,40}){0,20}[.!?]",
    r"(a|b(c|d(e|f)*)+){2,9}(?=x)",
];

const LARK: &[&str] = &[
    "start: sentence+\nsentence: WORD (\" \" WORD)* \".\"\nWORD: /[A-Za-z]{1,12}/\n",
    "start: \"<think>\" thought \"</think>\" answer\nthought[capture]: /(?s:.{0,200})/\nanswer: %json {\"type\": \"object\", \"properties\": {\"answer\": {\"enum\": [\"A\", \"B\"]}}}\n",
    "%llguidance {}\nstart: expression\nexpression: term ((\"+\" | \"-\") term)*\nterm: NUMBER | \"(\" expression \")\"\nNUMBER: /[0-9]+/ & ~/0[0-9]*/\n%ignore /[ \\t]+/\n",
    "start: text\ntext[stop=\"\\n\", max_tokens=12, temperature=0.5]: /.*/\n%import common.INT\n",
];

/// How many tokens of a text are followed.
const FOLLOWED: usize = 12;

fn grammars() -> BoxedStrategy<Grammar> {
    prop_oneof![
        damaged_text(SCHEMAS).prop_map(Grammar::JsonSchema),
        damaged_text(PATTERNS).prop_map(Grammar::Regex),
        damaged_text(LARK).prop_map(Grammar::Lark),
    ]
    .boxed()
}

/// Every compiled grammar is kept, as a server keeps its clients'.
#[test]
fn schemas_patterns_and_grammars() {
    let path = synthetic(Family::Llama).join("tokenizer.json");
    let tokenizer = Arc::new(Tokenizer::load(&path).unwrap());
    let rows = tokenizer.pieces().len();
    let compiler = Compiler::new(tokenizer, rows, &[1]);
    let present = vec![u32::MAX; rows.div_ceil(32)];
    withstands("grammar", (grammars(), any::<u32>()).boxed(), |(grammar, choice)| {
        let Ok(compiled) = compiler.compile(&grammar) else { return };
        let mut state = compiled.start();
        for _ in 0..FOLLOWED {
            state.force();
            let Some(allowed) = state.allowed(&present) else {
                assert!(state.problem().is_some(), "a grammar that failed says why");
                return;
            };
            let is_allowed = |token: &u32| allowed[*token as usize / 32] >> (token % 32) & 1 == 1;
            let tokens: Vec<u32> = (0..rows as u32).filter(is_allowed).collect();
            let Some(token) = tokens.get(choice as usize % tokens.len().max(1)) else { return };
            if !state.accept(*token) || state.is_complete() {
                return;
            }
        }
    });
}
