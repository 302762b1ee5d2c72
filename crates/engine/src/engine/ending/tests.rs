//! Tests of `ending.rs`.

use serde_json::{Value, json};

use super::*;
use crate::engine::Grammar;
use crate::engine::constraint::Compiler;
use crate::model::Family;
use crate::random::SplitMix64;
use crate::synth::{Recipe, Shape, write_with_our_words};

fn tokenizer() -> Arc<Tokenizer> {
    let directory = tempfile::tempdir().unwrap();
    let recipe = Recipe { family: Family::Qwen3, shape: Shape::Tiny, seed: 1, tokenizer: None };
    write_with_our_words(&recipe, directory.path()).unwrap();
    Arc::new(Tokenizer::load(&directory.path().join("tokenizer.json")).unwrap())
}

fn grammars() -> Vec<Grammar> {
    let text = json!({"type": "string", "maxLength": 400});
    let part = json!({
        "type": "object",
        "properties": {"option": text, "why": text},
        "required": ["option", "why"],
        "additionalProperties": false,
    });
    let record = json!({
        "type": "object",
        "properties": {
            "reasons": {"type": "array", "items": text, "maxItems": 8},
            "ruled_out": {"type": "array", "items": part, "minItems": 1, "maxItems": 6},
            "answer": {"enum": ["A", "B"]},
            "confidence": {"enum": [0, 0.25, 0.5, 0.75, 1]},
        },
        "required": ["reasons", "ruled_out", "answer", "confidence"],
        "additionalProperties": false,
    });
    let thought = "<think>(?s:[^<]|<[^/]){1,2000}</think>\n<result>([1-9]|NAN)</result>";
    vec![
        Grammar::JsonSchema(record.to_string()),
        Grammar::Regex(thought.to_owned()),
        Grammar::Regex("(?s:.{1,2000})".to_owned()),
        Grammar::JsonObject,
    ]
}

/// What a model says that draws any token that is allowed: the text, whether it was cut, and whether it is whole.
fn babble(
    compiler: &Compiler,
    grammar: &Grammar,
    most: usize,
    seed: u64,
) -> (Vec<u32>, bool, bool) {
    const EOS: u32 = 1;
    let mut random = SplitMix64::new(seed);
    let mut state = compiler.compile(grammar).unwrap().start();
    let mut tokens = state.force();
    let present = vec![u32::MAX; 1 << 12];
    while tokens.len() < most && !state.is_complete() {
        let allowed = state.allowed(&present, most - tokens.len()).unwrap();
        let ids: Vec<u32> =
            (0..32 * allowed.len() as u32).filter(|id| has(&allowed, *id)).collect();
        let mut token = ids[random.below(ids.len() as u64) as usize];
        if let Some(allowed) = state.instead(token, most - tokens.len()) {
            token = first(&allowed).unwrap();
        }
        tokens.push(token);
        if token == EOS {
            return (tokens, state.is_cut(), true);
        }
        assert!(state.accept(token));
        tokens.extend(state.force());
    }
    let is_whole = state.is_complete() && tokens.len() <= most;
    (tokens, state.is_cut(), is_whole)
}

#[test]
fn what_fits_within_its_tokens_ends_whole_whatever_the_model_draws() {
    let tokenizer = tokenizer();
    let rows = tokenizer.pieces().len();
    let compiler = Compiler::new(tokenizer.clone(), rows, &[1]);
    for grammar in grammars() {
        let start = compiler.compile(&grammar).unwrap().start();
        let shortest = start.shortest().unwrap_or_else(|| panic!("{grammar:?}"));
        for most in (shortest + MARGIN..shortest + 300).step_by(23) {
            for seed in 0..4 {
                let (tokens, is_cut, is_whole) = babble(&compiler, &grammar, most, seed);
                let text: Vec<u8> =
                    tokens.iter().flat_map(|id| tokenizer.bytes(*id).to_vec()).collect();
                let text = String::from_utf8_lossy(&text);
                assert!(is_whole, "{most} tokens, cut: {is_cut}: {text}");
            }
        }
    }
}

/// What a model says within `most` tokens that would say `wanted`: the text, its tokens, whether it was cut, and whether it is whole.
fn write(compiler: &Compiler, wanted: &Wanted, most: usize) -> (String, usize, bool, bool) {
    const EOS: u32 = 1;
    let tokenizer = &wanted.tokenizer;
    let mut state = compiler.compile(&wanted.grammar).unwrap().start();
    let mut tokens = state.force();
    let present = vec![u32::MAX; 1 << 12];
    let said = |tokens: &[u32]| -> Vec<u8> {
        tokens.iter().flat_map(|id| tokenizer.bytes(*id).to_vec()).collect()
    };
    let next = |said: &[u8], allowed: &[u32]| {
        let rest = wanted.text.as_bytes().strip_prefix(said);
        let ids = (0..32 * allowed.len() as u32).filter(|id| has(allowed, *id));
        let goes_on = |id: &u32| {
            let bytes = tokenizer.bytes(*id);
            rest.is_some_and(|rest| !bytes.is_empty() && rest.starts_with(bytes))
        };
        let longest = ids.filter(goes_on).max_by_key(|id| tokenizer.bytes(*id).len());
        longest.or_else(|| Some(EOS).filter(|eos| has(allowed, *eos)))
    };
    while tokens.len() < most && !state.is_complete() {
        let allowed = state.allowed(&present, most - tokens.len()).unwrap();
        let next = |allowed: &[u32]| next(&said(&tokens), allowed).or_else(|| first(allowed));
        let mut token = next(&allowed).unwrap();
        if let Some(allowed) = state.instead(token, most - tokens.len()) {
            token = next(&allowed).unwrap();
        }
        tokens.push(token);
        if token == EOS {
            break;
        }
        assert!(state.accept(token));
        tokens.extend(state.force());
    }
    let is_whole = tokens.last() == Some(&EOS) || state.is_complete();
    let text = String::from_utf8(said(&tokens)).unwrap();
    (text, tokens.len(), state.is_cut(), is_whole && tokens.len() <= most)
}

struct Wanted {
    tokenizer: Arc<Tokenizer>,
    grammar: Grammar,
    text: String,
}

/// Whether a value holds nothing but what `whole` begins with.
fn begins(cut: &Value, whole: &Value) -> bool {
    match (cut, whole) {
        (Value::String(cut), Value::String(whole)) => whole.starts_with(cut),
        (Value::Number(cut), Value::Number(whole)) => {
            whole.to_string().starts_with(&cut.to_string())
        }
        (Value::Array(cut), Value::Array(whole)) => {
            cut.len() <= whole.len() && cut.iter().zip(whole).all(|(cut, whole)| begins(cut, whole))
        }
        (Value::Object(cut), Value::Object(whole)) => {
            cut.iter().all(|(name, cut)| whole.get(name).is_some_and(|whole| begins(cut, whole)))
        }
        (cut, whole) => cut == whole,
    }
}

/// A blank before a digit is a token of its own in published vocabularies.
#[test]
fn a_text_is_what_the_model_says_or_marked_and_its_beginning() {
    let tokenizer = tokenizer();
    let compiler = Compiler::new(tokenizer.clone(), tokenizer.pieces().len(), &[1]);
    let schema = |schema: Value| Grammar::JsonSchema(schema.to_string());
    let one = |name: &str, schema: Value| json!({"type": "object", "properties": {name: schema}, "required": [name], "additionalProperties": false});
    let text = json!({"type": "string"});
    let listed = one("doses", json!({"type": "array", "items": text}));
    let long = "aspirin 81 mg at 8 pm, heparin 5000 units, warfarin [1],[2] 5 mg \\n 2 mg";
    let third = format!("0.{}", "9".repeat(60));
    let number = json!({"type": "number", "minimum": 0, "exclusiveMaximum": 1});
    let numbers = json!({"type": "array", "items": {"type": "integer"}});
    let any = Grammar::Regex("(?s:.{1,2000})".to_owned());
    // A further item of a list is not begun where it would just fit.
    for (grammar, text, spare) in [
        (schema(one("dose", text.clone())), format!("{{\"dose\": \"{long}\"}}"), MARGIN),
        (schema(one("dose", text.clone())), format!("{{\n  \"dose\":\n\"{long}\"  \n}}"), MARGIN),
        (any, format!("Plan:\n\n{long}\n\n 81 mg, \"a\", \"b\""), MARGIN),
        (schema(number), third, MARGIN),
        (schema(listed), format!("{{\"doses\": [\"1 mg\", \"{long}\", \"3 mg\"]}}"), APPROACH),
        (schema(numbers), "[11, 22, 333, 4444, 55555, 6, 7, 8, 9, 10, 11]".to_owned(), APPROACH),
    ] {
        let wanted = Wanted { tokenizer: tokenizer.clone(), grammar, text };
        let (text, tokens, ..) = write(&compiler, &wanted, 10_000);
        assert_eq!(text, wanted.text);
        let shortest = compiler.compile(&wanted.grammar).unwrap().start().shortest().unwrap();
        let mut cut = 0;
        for most in shortest + MARGIN..tokens + 40 {
            let (text, _, is_cut, is_whole) = write(&compiler, &wanted, most);
            assert!(is_whole, "{most}: {text}");
            cut += usize::from(is_cut);
            match is_cut {
                true => assert!(most <= tokens + spare, "{most}: {text}"),
                false => assert_eq!(text, wanted.text, "{most}"),
            }
            let value = |text: &str| serde_json::from_str::<Value>(text);
            let is_beginning = wanted.text.starts_with(&text)
                || value(&wanted.text).is_ok_and(|whole| begins(&value(&text).unwrap(), &whole));
            assert!(is_beginning, "{most}: {text}");
        }
        assert!(cut > 0, "{}", wanted.text);
    }
}

#[test]
fn what_has_room_is_not_cut() {
    let tokenizer = tokenizer();
    let compiler = Compiler::new(tokenizer.clone(), tokenizer.pieces().len(), &[1]);
    for grammar in grammars() {
        let (tokens, is_cut, is_whole) = babble(&compiler, &grammar, 100_000, 5);
        assert!(is_whole && !is_cut, "{} tokens", tokens.len());
    }
}
