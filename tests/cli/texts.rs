//! `generate` and its verbs: one model, one text, JSON out.

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
        let logprobs = format!("generate logprobs --model {model} --tokens {}", list(&all));
        let shown = value(&scratch.wardround(format!("{logprobs} --full")));
        assert_eq!(shown["tokens"], json!(all));
        let rows = shown["logits"].as_array().unwrap();
        assert_eq!(rows.len(), all.len());
        let generated: Vec<Vec<f64>> = rows[prompt.len() - 1..].iter().map(numbers).collect();
        // Embeddings beyond the vocabulary have no token, and are not drawn.
        let known = vocabulary(&scratch, model);
        let likeliest: Vec<u64> = generated.iter().map(|row| greatest(&row[..known])).collect();
        assert_eq!(likeliest, tokens, "{model}");

        let shown = value(&scratch.wardround(logprobs));
        let rows = shown["logprobs"].as_array().unwrap();
        assert_eq!(rows.len(), all.len());
        assert_eq!(rows[prompt.len() - 1][0]["token"], tokens[0]);
        let next = shown["next"].as_array().unwrap();
        assert_eq!(next.len(), all.len() - 1);
        for ((row, next), token) in rows.iter().zip(next).zip(&all[1..]) {
            assert_eq!(next["token"], *token);
            let place = next["rank"].as_u64().unwrap() as usize - 1;
            let likely = row.get(place);
            assert!(likely.is_none_or(|one| one["logprob"] == next["logprob"]), "{next}");
            assert_eq!(likely.is_some_and(|one| one["token"] == *token), place < 10);
        }
        // What was generated greedily was the likeliest each time.
        for ((next, row), token) in next[prompt.len() - 1..].iter().zip(&generated).zip(&tokens) {
            let above = row[known..].iter().filter(|logit| **logit > row[*token as usize]);
            assert_eq!(next["rank"], 1 + above.count());
        }
        for row in rows {
            let entries = row.as_array().unwrap().iter();
            let row: Vec<f64> = entries.map(|entry| entry["logprob"].as_f64().unwrap()).collect();
            assert_eq!(row.len(), 10);
            assert!(row.is_sorted_by(|one, next| one >= next), "{row:?}");
            let mass: f64 = row.iter().map(|logprob| logprob.exp()).sum();
            assert!(row[0] <= 0.0 && mass <= 1.0 + 1e-4, "{row:?}");
        }
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
}

#[test]
fn a_form_is_kept_to_and_broken_ones_are_refused() {
    let scratch = Scratch::new();
    scratch.model(Family::Llama);
    let schema = json!({
        "type": "object", "properties": {"answer": {"enum": ["A", "B"]}}, "required": ["answer"],
        "additionalProperties": false,
    });
    scratch.write("schema.json", schema.to_string());
    scratch.write("broken.json", "{");
    let generate = |form: &str| {
        scratch.wardround(format!("generate --model llama --prompt hello --json {form}"))
    };
    let made = value(&generate("--schema schema.json"));
    let record: Value = serde_json::from_str(made["text"].as_str().unwrap()).unwrap();
    assert!(["A", "B"].contains(&record["answer"].as_str().unwrap()));
    assert!(made["usage"]["forced_tokens"].as_u64().unwrap() > 0, "{made}");
    assert_eq!(made["finish_reason"], "stop");
    let made = value(&generate("--regex [0-9]{3}-[a-z]"));
    let text = made["text"].as_str().unwrap();
    assert!(text.len() == 5 && text.as_bytes()[3] == b'-', "{text}");

    let uncompiled = "the grammar does not compile";
    generate("--schema broken.json").refused(2, &[uncompiled]);
    generate("--schema nowhere.json").refused(2, &["nowhere.json", "No such file"]);
    generate("--regex [0-9").refused(2, &[uncompiled, "[0-9"]);
    generate("--regex a --schema schema.json").refused(2, &["cannot be used with"]);
    generate("--temperature -1").refused(2, &["'-1'", "expected a number of at least 0"]);
    generate("--top-p 1.5").refused(2, &["'1.5'", "expected a number from 0 to 1"]);
}

#[test]
fn a_prompt_is_a_chat_of_one_message() {
    let scratch = Scratch::new();
    scratch.write("chat.json", r#"[{"role": "user", "content": "hello"}]"#);
    for family in FAMILIES {
        scratch.model(family);
        let generate = format!("generate --model {} --max-tokens 4 --json", family.name());
        let by_prompt = scratch.wardround(format!("{generate} --prompt hello"));
        let by_messages = scratch.wardround(format!("{generate} --messages chat.json"));
        assert_eq!(value(&by_messages), value(&by_prompt));
    }
}

#[test]
fn what_is_no_chat_is_refused() {
    let scratch = Scratch::new();
    scratch.model(Family::Llama);
    scratch.write("one.json", r#"{"role": "user"}"#);
    scratch
        .wardround("generate --model llama --messages one.json")
        .refused(2, &["one.json is not a list of messages", "hint: write ["]);
    scratch
        .wardround("generate --model llama")
        .refused(2, &["--prompt <TEXT>|--messages <FILE>|--tokens <ID,ID>"]);
}

#[test]
fn tokens_that_do_not_fit_are_refused() {
    let scratch = Scratch::new();
    scratch.model(Family::Llama);
    for verb in ["generate", "generate logprobs"] {
        let given =
            |tokens: &str| scratch.wardround(format!("{verb} --model llama --tokens {tokens}"));
        let unknown = "token id 99999 is beyond the model's 960 embeddings";
        given("1,99999").refused(2, &[unknown]);
        given("1,x").refused(2, &["invalid value 'x' for '--tokens"]);
        let counts = "a prompt of 16385 tokens leaves no room in the context of 16384";
        given(&list(&[7; 16_385])).refused(2, &[counts]);
    }
}

#[test]
fn a_form_that_cannot_be_followed_to_its_end_is_said_and_fails() {
    let scratch = Scratch::new();
    scratch.model(Family::Qwen3);
    let properties: serde_json::Map<String, Value> =
        (0..500).map(|index| (format!("field{index}"), json!({"type": "string"}))).collect();
    let schema = json!({"type": "object", "properties": properties});
    scratch.write("many.json", schema.to_string());
    let ends = "the text ends before the schema or the regular expression is matched: ";
    for form in ["--schema many.json", "--regex (a?){300}a{300}"] {
        for json in ["", "--json"] {
            let generate = format!("generate --model qwen3 --prompt hello {form} {json}");
            let outcome = scratch.wardround(generate);
            outcome.refused(2, &[ends, "hint: simplify it"]);
            assert_eq!(
                outcome.stdout.contains(r#""finish_reason":"constraint""#),
                !json.is_empty()
            );
        }
    }
}
