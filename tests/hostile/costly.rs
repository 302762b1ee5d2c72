//! Grammars that cost much: what a stranger may send to keep a compiler busy. One that is stopped keeps its memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wardround::engine::constraint::Compiler;
use wardround::record::Grammar;
use wardround::tokenizer::Tokenizer;

use crate::common;

fn json_schema(schema: &Value) -> Grammar {
    Grammar::JsonSchema(schema.to_string())
}

fn optional_properties(count: usize) -> Value {
    let properties: serde_json::Map<String, Value> =
        (0..count).map(|index| (format!("field{index}"), json!({"type": "string"}))).collect();
    json!({"type": "object", "properties": properties})
}

/// Each of which may follow each letter.
fn alternatives(count: usize) -> String {
    let one = |index| format!(r#"/[\s\S]/ s "a{index}""#);
    let all: Vec<String> = (0..count).map(one).collect();
    format!("start: s\ns: \"\" | {}", all.join(" | "))
}

/// None of more than 64 KiB.
fn hostile() -> Vec<(&'static str, Grammar)> {
    let object = |index: usize| {
        json!({"type": "object", "required": [format!("a{index}")], "additionalProperties": false,
            "properties": {format!("a{index}"): {"type": "string", "maxLength": 20}, "b": {"enum": ["x", "y"]}}})
    };
    let objects = |count: usize| (0..count).map(object).collect::<Vec<Value>>();
    let pairs: Vec<Value> = (0..24)
        .map(|index| {
            let of = |kind: &str| json!({"type": "object", "properties": {format!("p{index}"): {"type": kind}}});
            json!({"anyOf": [of("string"), of("integer")]})
        })
        .collect();
    let words: Vec<String> = (0..5000).map(|index| format!("word {index}")).collect();
    let patterns = |count: usize| {
        let each = (0..count).map(|index| (format!("^a{index}x+$"), json!({"type": "string"})));
        json!({"type": "object", "patternProperties": serde_json::Map::from_iter(each)})
    };
    let regex = |text: &str| Grammar::Regex(text.to_owned());
    vec![
        ("one of 300 objects", json_schema(&json!({"oneOf": objects(300)}))),
        ("any of 300 objects", json_schema(&json!({"anyOf": objects(300)}))),
        ("2^24 combinations", json_schema(&json!({"allOf": pairs}))),
        ("500 optional properties", json_schema(&optional_properties(500))),
        ("a choice of 5000", json_schema(&json!({"enum": words}))),
        ("60 patterns of properties", json_schema(&patterns(60))),
        ("1500 patterns of properties", json_schema(&patterns(1500))),
        (
            "a long list",
            json_schema(
                &json!({"type": "array", "items": {"type": "string"}, "minItems": 100_000}),
            ),
        ),
        (
            "a long text",
            json_schema(&json!({"type": "string", "minLength": 50_000, "maxLength": 100_000})),
        ),
        ("a regex of regexes", regex("(([a-z]{1,50}){1,50}[0-9]{1,50}){1,50}")),
        ("many optional letters", regex("(a?){300}a{300}")),
        ("a long repetition", regex("a{300000}")),
        ("nested repetitions", regex("((((a{1,20}){1,20}){1,20}){1,20}){1,20}")),
        ("anything and a letter", regex("(.*a){100}")),
        ("letters in two ways", regex("(a|b|ab){1,500}c")),
        ("a letter before", regex("[ab]*a[ab]{30}")),
        ("words of letters", regex(r"(\w{1,200} ){1,200}")),
        (
            "a rule repeated",
            Grammar::Lark("start: word{1,100000}\nword: \"a\" | \"b\" word".to_owned()),
        ),
        ("300 alternatives at each letter", Grammar::Lark(alternatives(300))),
        (
            "ambiguous rules",
            Grammar::Lark("start: start start | \"a\" | start start start".to_owned()),
        ),
    ]
}

/// For how long this thread has computed, whatever else the machine does; where the system does not tell, the time since `start`.
fn busy(start: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_no_grammar_keeps_a_compiler_busy() {
    let path = common::data().join("tokenizers/gemma3/tokenizer.json");
    let tokenizer = Arc::new(Tokenizer::load(&path).unwrap());
    let rows = tokenizer.pieces().len();
    let compiler = Compiler::new(tokenizer, rows, &[1, 106]);
    super::lost();
    compiler.compile(&Grammar::Regex("yes|no".to_owned())).unwrap();
    let mut slow = Vec::new();
    for (name, grammar) in hostile() {
        let start = Instant::now();
        let compiled = compiler.compile(&grammar);
        // By the clock: it is compiled on a thread of its own.
        let took = start.elapsed();
        let first = busy(start);
        let verdict = match compiled {
            Err(error) => error.to_string().chars().take(80).collect(),
            Ok(compiled) => {
                let mut state = compiled.start();
                state.force();
                let allowed = state.allowed(&vec![u32::MAX; rows.div_ceil(32)]).is_some();
                format!("a mask in {:?}: {allowed}", busy(start) - first)
            }
        };
        println!("{name}: {took:?}, {verdict}");
        if took > Duration::from_secs(5) || busy(start) - first > Duration::from_millis(500) {
            slow.push(name);
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}
