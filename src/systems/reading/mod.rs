//! What a reply says, as models write it: its record, its letter, its verdict. What a careful person could not tell is not guessed.

pub mod answer;
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

/// How sure a model says it is, from 0 to 1.
///
/// From 0 to 1 a number stands for itself; up to 2 it is 1, beyond that up to 100 a percentage, and what is more is 1. A text gives its
/// first number, in percent where it says so, or parts of what it says (`9/10`, `4 out of 5`); without a number, its word: very high 0.95,
/// high 0.85, moderate 0.6, low 0.3, very low 0.1. `None` for anything else.
pub fn confidence(value: &Value) -> Option<f64> {
    let scaled = |number: f64| match number {
        number if number <= 2.0 || number > 100.0 => number.clamp(0.0, 1.0),
        percent => percent / 100.0,
    };
    match value {
        Value::Number(number) => number.as_f64().map(scaled),
        Value::Array(list) => list.first().and_then(confidence),
        Value::String(text) => {
            let text = text.trim().replace(',', ".");
            let is_digit = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
            let start = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
            let start = start - usize::from(text[..start].ends_with(['-', '.']));
            let length = text[start..].find(|c| !is_digit(c)).unwrap_or(text.len() - start);
            let number = text[start..start + length].trim_end_matches(['.', '-']).parse::<f64>();
            let after = text[start + length..].trim_start();
            match number {
                Ok(number) if after.starts_with(['%', '％']) || after.starts_with("percent") => {
                    Some((number / 100.0).clamp(0.0, 1.0))
                }
                Ok(number) => Some(match whole(after) {
                    Some(whole) => (number / whole).clamp(0.0, 1.0),
                    None => scaled(number),
                }),
                Err(_) => in_words(&text.to_lowercase()),
            }
        }
        _ => None,
    }
}

/// What a number is a part of: `/10`, `out of 5`.
fn whole(after: &str) -> Option<f64> {
    let whole = after.strip_prefix('/').or_else(|| after.strip_prefix("out of"))?.trim_start();
    let end = whole.find(|c: char| !c.is_ascii_digit()).unwrap_or(whole.len());
    whole[..end].parse().ok().filter(|whole| *whole > 0.0)
}

fn in_words(text: &str) -> Option<f64> {
    const WORDS: [(&str, f64); 8] = [
        ("very high", 0.95),
        ("very low", 0.1),
        ("high", 0.85),
        ("moderate", 0.6),
        ("medium", 0.6),
        ("low", 0.3),
        ("certain", 0.95),
        ("sure", 0.85),
    ];
    let says = |word: &str| text.contains(word);
    let denied = says("not ") || says("uncertain") || says("unsure");
    WORDS.iter().find(|(word, _)| says(word) && !denied).map(|(_, confidence)| *confidence)
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
    use serde_json::json;

    use super::*;

    #[test]
    fn confidence_is_a_share_however_it_is_written() {
        let cases = [
            (json!(0.9), Some(0.9)),
            (json!(90), Some(0.9)),
            (json!(1.2), Some(1.0)),
            (json!(-0.5), Some(0.0)),
            (json!(1000), Some(1.0)),
            (json!("90 %"), Some(0.9)),
            (json!("0,9"), Some(0.9)),
            (json!("0.85 (high)"), Some(0.85)),
            (json!("9/10"), Some(0.9)),
            (json!("85/100"), Some(0.85)),
            (json!("High"), Some(0.85)),
            (json!([0.85]), Some(0.85)),
            (json!("not sure"), None),
            (json!("NaN"), None),
            (json!(null), None),
            (json!(true), None),
        ];
        for (value, expected) in cases {
            assert_eq!(confidence(&value), expected, "{value}");
        }
    }

    #[test]
    fn a_made_up_turn_is_not_said() {
        assert_eq!(said("<think>A</think> B<|eot_id|><|start_header_id|>user"), "B");
        assert_eq!(said("<think>A"), "");
    }
}
