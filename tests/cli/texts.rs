//! `generate` and its verb: one model, one text, JSON out.

use serde_json::{Value, json};
use wardround::model::Family;

use crate::binary::{Outcome, Scratch};

const FAMILIES: [Family; 3] = [Family::Gemma3, Family::Llama, Family::Qwen3];

fn value(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.succeeded().stdout).unwrap()
}

fn list(tokens: &[u64]) -> String {
    let tokens: Vec<String> = tokens.iter().map(u64::to_string).collect();
    tokens.join(",")
}

fn numbers(list: &Value) -> Vec<f64> {
    serde_json::from_value(list.clone()).unwrap()
}

/// Ids that have a token: those below this.
fn vocabulary(scratch: &Scratch, model: &str) -> usize {
    let text = std::fs::read(scratch.path(model).join("tokenizer.json")).unwrap();
    let tokenizer: Value = serde_json::from_slice(&text).unwrap();
    tokenizer["model"]["vocab"].as_object().unwrap().len()
}

/// The place of the greatest, the first of equals.
fn greatest(logits: &[f64]) -> u64 {
    let mut best = 0;
    for (id, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = id;
        }
    }
    best as u64
}

#[test]
fn greedy_tokens_are_the_greatest_logits_and_come_out_the_same_twice() {
    let scratch = Scratch::new();
    for family in FAMILIES {
        scratch.model(family);
        let model = family.name();
        let prompt: Vec<u64> = (40..70).collect();
        let given = list(&prompt);
        let generate = format!(
            "generate --model {model} --tokens {given} --temperature 0 --max-tokens 8 --json"
        );
        let made = value(&scratch.wardround(&generate));
        assert_eq!(made, value(&scratch.wardround(&generate)));
        let tokens: Vec<u64> = serde_json::from_value(made["tokens"].clone()).unwrap();
        let usage = json!({
            "prompt_tokens": 30, "cached_tokens": 0, "completion_tokens": tokens.len(), "forced_tokens": 0,
        });
        assert_eq!(made["usage"], usage);

        let all = [&prompt[..], &tokens[..tokens.len() - 1]].concat();
        let logits = format!("generate --logits --model {model} --tokens {}", list(&all));
        let shown = value(&scratch.wardround(&logits));
        assert_eq!(shown, value(&scratch.wardround(format!("{logits} --rows 3"))));
        assert_eq!(shown["tokens"], json!(all));
        let rows = shown["logits"].as_array().unwrap();
        assert_eq!(rows.len(), all.len());
        let generated: Vec<Vec<f64>> = rows[prompt.len() - 1..].iter().map(numbers).collect();
        // Embeddings beyond the vocabulary have no token, and are not drawn.
        let known = vocabulary(&scratch, model);
        let likeliest: Vec<u64> = generated.iter().map(|row| greatest(&row[..known])).collect();
        assert_eq!(likeliest, tokens, "{model}");
    }
}

#[test]
fn sampling_follows_its_seed_and_filters() {
    let scratch = Scratch::new();
    scratch.model(Family::Qwen3);
    let generate = |more: &str| {
        let run = format!("generate --model qwen3 --prompt hello --max-tokens 12 --json {more}");
        value(&scratch.wardround(run))["tokens"].clone()
    };
    let hot = "--temperature 2 --top-k 0 --top-p 1";
    let three = generate(&format!("{hot} --seed 3"));
    assert_eq!(three, generate(&format!("{hot} --seed 3")));
    assert_ne!(three, generate(&format!("{hot} --seed 4")));
    let greedy = generate("--temperature 0");
    assert_eq!(greedy, generate("--temperature 2 --top-k 1"));
    assert_eq!(greedy, generate("--temperature 2 --top-k 0 --top-p 0"));
    let refused = |flag: &str, said: &[&str]| {
        let run = format!("generate --model qwen3 --prompt hello {flag}");
        scratch.wardround(run).refused(2, said);
    };
    refused("--temperature -1", &["'-1'", "expected a number of at least 0"]);
    refused("--top-p 1.5", &["'1.5'", "expected a number from 0 to 1"]);
}

#[test]
fn tokens_that_do_not_fit_are_refused() {
    let scratch = Scratch::new();
    scratch.model(Family::Llama);
    for verb in ["generate", "generate --logits"] {
        let given =
            |tokens: &str| scratch.wardround(format!("{verb} --model llama --tokens {tokens}"));
        let unknown = "token id 99999 is beyond the model's 960 embeddings";
        given("1,99999").refused(2, &[unknown]);
        given("1,x").refused(2, &["invalid value 'x' for '--tokens"]);
        let counts = "a prompt of 16385 tokens leaves no room in the context of 16384";
        given(&list(&[7; 16_385])).refused(2, &[counts]);
    }
}
