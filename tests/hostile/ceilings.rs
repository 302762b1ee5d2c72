//! Files of a model that would take all memory or all time: an error that names them, within the ceiling, from `models verify` too.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use wardround::chat::{ChatTemplate, Message};
use wardround::model::{Config, Family};
use wardround::record::Grammar;
use wardround::tokenizer::Tokenizer;

use crate::common::synthetic;

/// What the whole process may take here, in KiB: three times the largest ceiling.
const LIMIT: &str = "3145728";

/// `wardround models verify` on a copy of a model with this file, in a process of little memory: it ends with 3 and says so.
fn refused(file: &str, content: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    super::checkpoints::copy(&synthetic(Family::Llama), folder.path());
    std::fs::write(folder.path().join(file), content).unwrap();
    let mut command = Command::new("sh");
    let script = format!("ulimit -v {LIMIT}; exec \"$0\" models verify ./model");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_wardround")]);
    let parent = tempfile::tempdir().unwrap();
    std::fs::rename(folder.path(), parent.path().join("model")).unwrap();
    let output = command.current_dir(parent.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{file} {content:.200}: {said}");
    said
}

/// What a template writes to variables and filters make of it, none of which the bounds on loops and output see.
const TEMPLATES: &[&str] = &[
    "{{ 'x' | indent(99999999999) }}",
    "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
    "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(60) %}{% set ns.s = ns.s.replace('x', 'xxxxxxxx') %}{% endfor %}",
    "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(60) %}{% set ns.s = ns.s | replace('x', 'xxxxxxxx') %}{% endfor %}",
    "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s, ns.s] | join(ns.s) %}{% endfor %}",
    "{% set ns = namespace(s=['xxxxxxxx']) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
    "{{ '%999999999999d' | format(1) }}",
    "{{ 'x' * 999999999999 }}",
    "{% set kept %}{% for x in range(99999) %}{{ 'x' * 9999999 }}{% endfor %}{% endset %}",
    "{% macro m() %}{{ 'x' * 9999999 }}{% endmacro %}{% set ns = namespace(s='') %}{% for x in range(99) %}{% set ns.s = ns.s ~ m() %}{% endfor %}",
    "{{ messages[0].content.rjust(99999999999) if messages[0].content.rjust else 'x' | indent(99999999999) }}",
];

#[test]
fn templates_that_grow_are_refused_by_models_verify_within_the_ceiling() {
    // Constants are computed where it is compiled.
    let constants = "{{ 'x' * 99999999 }}".repeat(2000);
    for template in TEMPLATES.iter().copied().chain([constants.as_str()]) {
        let said = refused("chat_template.jinja", template);
        assert!(said.contains("chat_template.jinja"), "{template}: {said}");
        assert!(!said.contains("memory allocation of"), "{template}: {said}");
    }
}

/// Otherwise each chat would lose what the first one did.
#[test]
fn a_template_that_was_stopped_is_not_rendered_again() {
    let folder = tempfile::tempdir().unwrap();
    let doubled = TEMPLATES[1].replace("60", "messages[0].content | length");
    std::fs::write(folder.path().join("chat_template.jinja"), doubled).unwrap();
    let before = super::lost();
    let chat = ChatTemplate::load(folder.path()).unwrap();
    let user = [Message::new("user", "?".repeat(60))];
    let first = chat.render(&user, false).unwrap_err().to_string();
    assert!(first.contains("would need more than") && first.contains("was stopped"), "{first}");
    let lost = super::lost() - before;
    for _ in 0..50 {
        assert_eq!(chat.render(&user, false).unwrap_err().to_string(), first);
    }
    // Others are stopped beside it.
    assert!(lost > 0);
}

fn tokenizer(change: impl Fn(&mut Value)) -> String {
    let path = synthetic(Family::Llama).join("tokenizer.json");
    let mut value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    change(&mut value);
    value.to_string()
}

#[test]
fn tokenizers_that_make_texts_longer_are_refused() {
    let ten = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaa"});
    let other = json!({"type": "Replace", "pattern": {"Regex": ""}, "content": "aaaaaaaaaa"});
    let prepend = json!({"type": "Prepend", "prepend": "a".repeat(100)});
    let sequence = |parts: Vec<Value>| json!({"type": "Sequence", "normalizers": parts});
    let nested = sequence(vec![sequence(vec![ten.clone(); 7]), sequence(vec![ten.clone(); 7])]);
    let all =
        [sequence(vec![ten; 14]), sequence(vec![other; 14]), sequence(vec![prepend; 14]), nested];
    for normalizer in all {
        let said =
            refused("tokenizer.json", &tokenizer(|file| file["normalizer"] = normalizer.clone()));
        assert!(said.contains("its normalizers may make a text"), "{said}");
    }
}

/// A text of 30 kB of one word. At each letter of it the pattern is tried in a quarter of a million ways, none of which fits: few enough for the
/// library's own limit, which is one a match.
#[test]
fn a_tokenizer_that_takes_all_time_is_stopped() {
    let pattern = "(?:a|aa(?!c)){18}b|a";
    let split = json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, tokenizer(|file| file["pre_tokenizer"] = split.clone())).unwrap();
    super::lost();
    let tokenizer = Tokenizer::load(&path).unwrap();
    assert!(!tokenizer.encode("aaa").unwrap().is_empty());
    let text = "a".repeat(30_000);
    let said = tokenizer.encode(&text).unwrap_err().to_string();
    assert!(said.starts_with("tokenising was not done after 30 s"), "{said}");
    assert!(said.ends_with(", and was stopped"), "{said}");
    // It is barred from then on, and takes no more time.
    let began = std::time::Instant::now();
    assert_eq!(tokenizer.encode(&text).unwrap_err().to_string(), said);
    assert!(began.elapsed().as_secs() < 20);
}

#[test]
fn configurations_that_describe_what_no_machine_holds_are_refused() {
    let path = synthetic(Family::Llama).join("config.json");
    let whole: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let fields = ["num_hidden_layers", "hidden_size", "vocab_size", "num_attention_heads"];
    for field in fields {
        let mut config = whole.clone();
        config[field] = json!(1_000_000_000_u64);
        let said = refused("config.json", &config.to_string());
        assert!(said.contains(field) && said.contains("1000000000"), "{said}");
    }
    let numbers = format!("{{\"layer_types\": [{}0]}}", "0,".repeat(20 << 20));
    let said = refused("config.json", &numbers);
    assert!(said.contains("longer than 8388608 bytes"), "{said}");
    // Published ones are far below.
    for family in [Family::Gemma3, Family::Llama, Family::Qwen3] {
        Config::read(&synthetic(family).join("config.json")).unwrap();
    }
}

#[test]
fn grammars_that_grow_are_errors() {
    let path = synthetic(Family::Llama).join("tokenizer.json");
    let tokenizer = std::sync::Arc::new(Tokenizer::load(&path).unwrap());
    let rows = tokenizer.pieces().len();
    let compiler = wardround::engine::constraint::Compiler::new(tokenizer, rows, &[1]);
    super::lost();
    let nested = (0..14).fold("a".to_owned(), |inner, _| format!("({inner}|{inner}b){{1,9}}"));
    let hostile = [
        Grammar::Regex("(((a{1,1000}){1,1000}){1,1000}){1,1000}".to_owned()),
        Grammar::Regex(nested),
        Grammar::Regex("(?s).{0,99999999}x".to_owned()),
        Grammar::Lark(format!("start: {}", "\"a\"? ".repeat(200_000))),
        Grammar::JsonSchema(
            json!({"type": "array", "minItems": 100_000_000, "items": {"type": "string"}})
                .to_string(),
        ),
        Grammar::JsonSchema(json!({"type": "string", "minLength": 900_000_000}).to_string()),
    ];
    for grammar in hostile {
        let start = std::time::Instant::now();
        // Some of them compile.
        let _ = compiler.compile(&grammar);
        assert!(start.elapsed().as_secs() < 60);
    }
    let small = compiler.compile(&Grammar::Regex("[ab]+".to_owned())).unwrap();
    assert!((1_000..10_000_000).contains(&small.bytes), "{}", small.bytes);
}

/// Not a file, and one that never ends: a model's folder may have either.
#[test]
fn what_is_no_file_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    assert!(Config::read(Path::new(&path)).unwrap_err().to_string().contains("it is no file"));
}
