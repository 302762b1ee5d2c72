//! How many answers of broken records each way of repairing JSON gives, and how many of them with the confidence that was written.

#[allow(dead_code)]
#[path = "../../../src/systems/reading/json.rs"]
mod json;

use std::panic::catch_unwind;
use std::path::Path;

use serde_json::Value;

/// A way to read a text that has a record in it, from its first brace on.
type Reader = fn(&str) -> Option<Value>;

const READERS: [(&str, Reader); 5] = [
    ("serde_json", |text| serde_json::from_str(text).ok()),
    ("llm_json", |text| llm_json::loads(text, &Default::default()).ok()),
    ("jsonrepair", |text| {
        let repaired = jsonrepair::repair_json(text, &Default::default()).ok()?;
        serde_json::from_str(&repaired).ok()
    }),
    ("jsonrepair-rs", |text| serde_json::from_str(&jsonrepair_rs::jsonrepair(text).ok()?).ok()),
    ("ours", |text| {
        let objects = json::objects(text).into_iter();
        Some(Value::Array(objects.map(|found| Value::Object(found.object)).collect()))
    }),
];

/// The last object with an answer, wherever it stands.
fn record(value: &Value) -> Option<&Value> {
    match value {
        Value::Array(list) => list.iter().rev().find_map(record),
        Value::Object(object) if field(value, "answer").is_some() => Some(value).filter(|_| !object.is_empty()),
        Value::Object(object) => object.values().rev().find_map(record),
        _ => None,
    }
}

fn field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let mut fields = value.as_object()?.iter();
    fields.find(|(key, _)| key.trim().to_lowercase().ends_with(name)).map(|(_, value)| value)
}

/// The letter that an answer begins with, or of the option whose text it is.
fn letter(answer: &Value, options: &Value) -> Option<String> {
    let text = answer.as_str().map_or(answer.to_string(), str::to_owned);
    let same = options.as_object()?.iter().find(|(_, option)| option.as_str() == Some(text.trim()));
    let first = || text.chars().find(|c| c.is_alphanumeric()).map(|c| c.to_ascii_uppercase().to_string());
    same.map(|(letter, _)| letter.clone()).or_else(first)
}

fn main() {
    // What a reader panics of is its own business.
    std::panic::set_hook(Box::new(|_| {}));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/replies");
    let mut replies = 0;
    let mut counts = [[0; 2]; READERS.len()];
    for system in ["medmad", "single_llm", "healthcareagent", "medagents", "mdagents", "reconcile"] {
        let text = std::fs::read_to_string(folder.join(format!("{system}.jsonl"))).expect("replies");
        for line in text.lines() {
            let reply: Value = serde_json::from_str(line).expect("a reply");
            let said = reply["text"].as_str().expect("a text");
            let said = said.rsplit("</think>").next().unwrap_or(said);
            let (Some(meant), Some(start)) = (reply["means"]["answer"].as_str(), said.find('{')) else {
                continue;
            };
            if !said[start..].to_lowercase().contains("answer") {
                continue;
            }
            replies += 1;
            for ((_, read), count) in READERS.iter().zip(&mut counts) {
                let value = catch_unwind(|| read(&said[start..])).ok().flatten();
                let Some(found) = value.as_ref().and_then(record) else {
                    continue;
                };
                let answer = field(found, "answer").and_then(|answer| letter(answer, &reply["options"]));
                if answer.as_deref() == Some(meant) {
                    count[0] += 1;
                    let written = field(found, "confidence").map(Value::to_string);
                    count[1] += usize::from(written == reply["means"].get("confidence").map(Value::to_string));
                }
            }
        }
    }
    println!("{replies} replies with a record");
    for ((name, _), [answers, confidences]) in READERS.iter().zip(counts) {
        println!("{name:<14} {answers:>4} answers {confidences:>4} confidences");
    }
}
