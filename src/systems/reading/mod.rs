//! What a reply says, in four stages: the record as it was asked for (`exact`), near to JSON (`repaired`), as lines `key: value` or tags
//! (`labelled`), or announced in words (`announced`); else it is unread. Two readings that differ are unread, and nothing is guessed.

pub mod answer;
pub mod confidence;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod corpus_stages;
#[cfg(test)]
mod corpus_table;
pub mod correction;
pub mod echo;
#[cfg(test)]
mod gold;
pub mod json;
#[cfg(test)]
mod kinds;
pub mod letter;
#[cfg(test)]
mod linear;
pub mod options;
pub mod record;
pub mod reply;
pub mod verdict;
pub mod words;

use itertools::Itertools;
use serde_json::Value;

use crate::text::Pattern;

/// What a reply says after any thinking and before any turn that the model made up.
pub fn said(text: &str) -> &str {
    /// How templates begin or end a turn.
    const TURNS: &str =
        "<|eot_id|> <|start_header_id|> <|im_end|> <|im_start|> <end_of_turn> <start_of_turn>";
    let text = without_thinking(text);
    let turn = TURNS.split(' ').filter_map(|turn| text.find(turn)).min();
    text[..turn.unwrap_or(text.len())].trim()
}

/// What follows the `<think>` section. One that is never closed leaves nothing; one that is only closed was opened by the chat template.
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
    joined(value, "; ")
}

/// A value as text, with this between the parts of one.
fn joined(value: &Value, between: &str) -> String {
    let all = |values: &mut dyn Iterator<Item = &Value>| {
        values.map(|value| joined(value, between)).join(between)
    };
    match value {
        Value::Null => String::new(),
        Value::String(text) if is_placeholder(text) => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => all(&mut list.iter()),
        Value::Object(object) => all(&mut object.values()),
        other => other.to_string(),
    }
}

/// Whether a text only stands where one should: `...`, `<letter>`.
fn is_placeholder(text: &str) -> bool {
    let text = text.trim();
    let is_dots = !text.is_empty() && text.chars().all(|c| c == '.' || c == '…');
    let is_name = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
    let is_word = |c: char| c.is_alphabetic() || c == ' ' || c == '_';
    is_dots || is_name.is_some_and(|name| !name.is_empty() && name.chars().all(is_word))
}

/// Whether words stand for nothing: «N/A», «no error».
pub fn is_nothing(text: &str) -> bool {
    const NOTHING: &str = "na nan none null nomistake nomistakes noerror noerrors nosentence notapplicable nocorrection nocorrectionneeded";
    let letters = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
    let letters: String = letters.collect();
    NOTHING.split(' ').any(|one| one == letters)
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

/// In lower case, words alone, with one space around each.
pub fn plain(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(" ".to_owned(), |plain, word| plain + &word.to_lowercase() + " ")
}

/// The sentences of a text, each with its mark; a line's end ends one too. What has no letter or digit is none.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    // A mark that no space follows, but for quotes, ends none.
    static SENTENCE: Pattern = Pattern::new(
        r"(?mR)(?:[^\n.!?。！？]|[.!?]+[\x22”')*_]*[^\s\x22”')*_.!?。！？])+(?:[.!?]+(?:[\x22”')*_]+$)?|[。！？])?",
    );
    let found = SENTENCE.find_iter(text).map(|sentence| sentence.as_str().trim());
    found.filter(|sentence| sentence.contains(char::is_alphanumeric))
}

/// What all of several say; nothing where they differ.
pub fn agreed<T: PartialEq>(mut said: impl Iterator<Item = T>) -> Option<T> {
    said.all_equal_value().ok()
}

/// Whether a text declines instead of answering.
pub fn refuses(text: &str) -> bool {
    /// The words, a line each.
    const REFUSALS: &str = include_str!("refusals.txt");
    let text = said(text).to_lowercase().replace('\u{2019}', "'");
    let start: String = text.chars().take(120).collect();
    REFUSALS.lines().any(|words| start.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_up_turn_is_not_said() {
        assert_eq!(said("<think>A</think> B<|eot_id|><|start_header_id|>user"), "B");
        assert_eq!(said("<think>A"), "");
    }

    #[test]
    fn sentences_end_at_marks_and_lines() {
        let found: Vec<&str> = sentences("A b.  C is 1.5? \"D.\" e\n- \nF").collect();
        assert_eq!(found, ["A b.", "C is 1.5?", "\"D.", "\" e", "F"]);
        assert_eq!(sentences("**A.**\n\"B?\"\r\n。").collect::<Vec<_>>(), ["**A.**", "\"B?\""]);
    }
}
