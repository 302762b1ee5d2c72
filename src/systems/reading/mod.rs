//! What a reply says, as models write it: its record, its letter, its verdict. What a careful person could not tell is not guessed.

pub mod answer;
pub mod confidence;
pub mod contradiction;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod corpus_stages;
#[cfg(test)]
mod corpus_table;
pub mod correction;
pub mod harness;
pub mod json;
pub mod letter;
pub mod option_text;
pub mod order;
pub mod record;
pub mod reply;
pub mod standing;
pub mod verdict;
pub mod words;

use serde_json::Value;

/// What a reply says after any thinking and before any turn that the model made up.
pub fn said(text: &str) -> &str {
    /// How templates begin or end a turn.
    const TURNS: [&str; 6] = [
        "<|eot_id|>",
        "<|start_header_id|>",
        "<|im_end|>",
        "<|im_start|>",
        "<end_of_turn>",
        "<start_of_turn>",
    ];
    let text = without_thinking(text);
    let turn = TURNS.iter().filter_map(|turn| text.find(turn)).min();
    text[..turn.unwrap_or(text.len())].trim()
}

/// What follows the `<think>` section. One that is never closed leaves nothing; one that is only
/// closed was opened by the chat template.
pub fn without_thinking(text: &str) -> &str {
    let trimmed = text.trim_start();
    match (trimmed.split_once("</think>"), trimmed.chars().next()) {
        (_, Some('{')) => trimmed,
        (Some((_, after)), _) => after,
        (None, _) if trimmed.starts_with("<think>") => "",
        (None, _) => trimmed,
    }
}

/// A value as text: lists and the values of objects joined by `; `, nothing for `null`.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(text).collect::<Vec<_>>().join("; "),
        Value::Object(object) => object.values().map(text).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}

/// A number, also one that is written as a text; NaN is none.
pub fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number: &f64| !number.is_nan())
}

/// Whether a text declines instead of answering.
pub fn refuses(text: &str) -> bool {
    const REFUSALS: [&str; 36] = [
        "i am an ai model",
        "i'm an ai model",
        "i can't identify",
        "i cannot identify",
        "i can't change",
        "i cannot change",
        "i can't help",
        "i cannot help",
        "i can't assist",
        "i cannot assist",
        "i can't answer",
        "i cannot answer",
        "i can't provide",
        "i cannot provide",
        "i can't give",
        "i cannot give",
        "i'm not able to",
        "i am not able to",
        "i'm unable to",
        "i am unable to",
        "i won't",
        "i will not",
        "i'm sorry, but",
        "i am sorry, but",
        "i apologize, but",
        "sorry, but i",
        "sorry, i can",
        "i must decline",
        "i have to decline",
        "as an ai",
        "es tut mir leid",
        "lo siento",
        "je suis désolé",
        "抱歉",
        "对不起",
        "عذر",
    ];
    let text = said(text).to_lowercase().replace('\u{2019}', "'");
    let start: String = text.chars().take(120).collect();
    REFUSALS.iter().any(|words| start.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_up_turn_is_not_said() {
        assert_eq!(said("<think>A</think> B<|eot_id|><|start_header_id|>user"), "B");
        assert_eq!(said("<think>A"), "");
    }
}
