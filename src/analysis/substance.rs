//! Whether a reply that could be read says anything: shares that stand beside «ok», which means well-formed alone.

use serde_json::Value;

use crate::record::{CallLine, FinishReason};
use crate::systems::reading::sentences;

/// Characters from which on a text that ends without a mark counts as cut.
const LONG: usize = 80;

/// Bytes at a text's end that are looked at for a repetition, and how many times a part must stand there.
const TAIL: usize = 600;
const TIMES: usize = 4;
/// Bytes that a repetition takes at least, all its times together.
const REPEATED: usize = 60;

/// What is wrong with the words of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Substance {
    /// More than half of the texts in its record have fewer than two words.
    pub is_void: bool,
    /// One of its texts ends in the same words again and again.
    pub is_looping: bool,
    /// It ran out of tokens, or its last text breaks off.
    pub is_cut: bool,
    /// It names one option and writes another's text, or calls a note right and names an error.
    pub is_contradictory: bool,
}

impl Substance {
    /// Of a call, by its reply and its record.
    pub fn of(call: &CallLine) -> Substance {
        let reply = call.text.as_str();
        let record = serde_json::from_str::<Value>(without_fence(reply)).ok();
        let texts = match &record {
            Some(Value::Object(_)) => {
                let mut texts = Vec::new();
                record.iter().for_each(|record| collect(record, &mut texts));
                texts
            }
            _ => between_tags(reply),
        };
        let is_empty = |text: &&&str| words(text) < 2;
        let empty = texts.iter().filter(is_empty).count();
        let whole = [reply.trim_end()];
        let all = if texts.is_empty() { &whole[..] } else { &texts[..] };
        Substance {
            is_void: 2 * empty > texts.len(),
            is_looping: all.iter().any(|text| is_looping(text)) || is_looping(&all.join("\n")),
            is_cut: call.finish_reason == FinishReason::Length
                || !texts.is_empty() && all.iter().any(|text| breaks_off(text)),
            is_contradictory: call.record.is_contradiction(),
        }
    }
}

fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inner.map_or(text, |inner| inner.trim_end_matches('`').trim())
}

/// Keys under which a word or a letter is all that is asked for.
fn is_label(key: &str) -> bool {
    const LABELS: &str = "answer option choice agree error label confidence role hierarchy expertise sentence_id name severity difficulty";
    let key = key.to_ascii_lowercase();
    LABELS.split(' ').any(|label| key.contains(label))
}

/// The texts of a record, but for those under the keys of labels.
fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(list) => list.iter().for_each(|one| collect(one, texts)),
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(key, value)| !(is_label(key) && value.is_string()));
            fields.for_each(|(_, value)| collect(value, texts));
        }
        _ => {}
    }
}

/// What a reply in tags thinks; its other tags hold labels and sentences of the note.
fn between_tags(reply: &str) -> Vec<&str> {
    let thought = reply.split_once("<think>").and_then(|(_, rest)| rest.split_once("</think>"));
    thought.map(|(thought, _)| thought).into_iter().collect()
}

fn words(text: &str) -> usize {
    let is_word = |word: &&str| word.chars().filter(|c| c.is_alphabetic()).nth(1).is_some();
    match text.split_whitespace().filter(is_word).count() {
        // Chinese is written without spaces.
        1 if text.chars().filter(|c| *c as u32 >= 0x2E80).nth(3).is_some() => 2,
        count => count,
    }
}

/// Whether a text ends in the same words again and again: in its last bytes, or by sentences, which lines end too, without the numbers, bullets
/// and marks before and behind them.
pub fn is_looping(text: &str) -> bool {
    let bytes: Vec<u8> = text.bytes().rev().take(TAIL).collect();
    let said = sentences(text).map(|one| one.trim_matches(|c: char| !c.is_alphabetic()));
    let mut said: Vec<&str> = said.filter(|one| !one.is_empty()).collect();
    said.reverse();
    // The last may be cut off.
    let whole = said.get(1..).unwrap_or_default();
    repeats(&bytes, |_| 1) || [&said, whole].into_iter().any(|said| repeats(said, |one| one.len()))
}

/// Whether the first of these parts, of so many bytes each, are the same ones again and again, in linear time.
fn repeats<T: PartialEq>(parts: &[T], bytes: impl Fn(&T) -> usize) -> bool {
    // The failure function of Knuth, Morris and Pratt gives the period of each beginning.
    let (mut borders, mut length) = (vec![0; parts.len()], 0);
    for at in 0..parts.len() {
        let mut border: usize = if at == 0 { 0 } else { borders[at - 1] };
        while border > 0 && parts[border] != parts[at] {
            border = borders[border - 1];
        }
        borders[at] = border + usize::from(at > 0 && parts[border] == parts[at]);
        length += bytes(&parts[at]);
        if length >= REPEATED && at + 1 >= TIMES * (at + 1 - borders[at]) {
            return true;
        }
    }
    false
}

/// Whether a long text ends within a sentence.
fn breaks_off(text: &str) -> bool {
    let text = text.trim_end();
    let is_long = text.chars().nth(LONG).is_some();
    is_long && text.chars().next_back().is_some_and(|last| last.is_alphanumeric() || last == ',')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixtures::call;

    fn of(text: &str, finish_reason: FinishReason) -> Substance {
        let mut line = call("q1", 0, "sym");
        line.text = text.to_owned();
        line.finish_reason = finish_reason;
        Substance::of(&line)
    }

    fn stopped(text: &str) -> Substance {
        of(text, FinishReason::Stop)
    }

    #[test]
    fn a_record_of_digits_and_marks_is_void() {
        for void in [
            r#"{"evidence": ["1", "", "..."], "answer": "B", "confidence": 0.9}"#,
            r#"{"Thought": "7", "Answer": "B"}"#,
            "<think>x</think>\nCORRECT",
        ] {
            assert!(stopped(void).is_void, "{void}");
        }
        for sound in [
            r#"{"evidence": ["fever and cough", "", "a high white count"], "answer": "B"}"#,
            r#"{"answer": "B"}"#,
            "B",
            "The answer is B.",
            r#"{"Thought": "肺炎的可能性最大", "Answer": "B"}"#,
            "<think>Warfarin is given.</think>\nCORRECT",
        ] {
            assert_eq!(stopped(sound), Substance::default(), "{sound}");
        }
    }

    #[test]
    fn what_is_said_again_and_again_loops() {
        let loops =
            format!(r#"{{"Thought": "It is {}", "Answer": "B"}}"#, "the heart, ".repeat(12));
        assert!(stopped(&loops).is_looping);
        assert!(
            is_looping(&"CELLAR_".repeat(20)) && is_looping(&format!("So {}", "肺".repeat(40)))
        );
        let sentence = "The patient was given far more of the drug than the kidneys of a man of his age can bear";
        for (number, word) in [("1. ", "\n"), ("- ", "\n"), ("", ". "), ("12) ", ". ")] {
            let numbered =
                |at: usize| format!("{}{sentence}{word}", number.replace("12", &at.to_string()));
            let said: String = (1..=5).map(numbered).collect();
            assert!(is_looping(&said) && is_looping(&said[..said.len() - 30]), "{said}");
            let two: String = (1..=8)
                .map(|at| {
                    format!("{at}. He has a fever.\n{at}. {} drugs help.\n", ["Two", "No"][at % 2])
                })
                .collect();
            assert!(is_looping(&two), "{two}");
        }
        let list = serde_json::json!({"cot": vec![sentence; 5], "answer": "B"}).to_string();
        assert!(stopped(&list).is_looping);
        for apart in [
            "1. Fever points to it.\n2. Pain points to it.\n3. Age points to it.\n4. Sex points to it.",
            "CORRECT\nCORRECT\nCORRECT\nCORRECT",
        ] {
            assert!(!is_looping(apart), "{apart}");
        }
        let sound = "The patient has pain in the chest, and the pain in the chest came with the fever of the last two days.";
        assert!(!is_looping(sound) && !is_looping("") && !is_looping("aaaa"));
    }

    #[test]
    fn what_breaks_off_is_cut() {
        assert!(of("B", FinishReason::Length).is_cut);
        let reasons = "The patient has pain in the chest, and the fever of the last two days points to an infec";
        assert!(stopped(&format!(r#"{{"Thought": "{reasons}", "Answer": "B"}}"#)).is_cut);
        assert!(stopped(&format!("<think>{reasons}</think>\nCORRECT")).is_cut);
        let whole = format!(r#"{{"Thought": "{reasons}tion.", "Answer": "B"}}"#);
        assert_eq!(stopped(&whole), Substance::default());
        // Prose may end in a list.
        assert_eq!(stopped(reasons), Substance::default());
    }
}
