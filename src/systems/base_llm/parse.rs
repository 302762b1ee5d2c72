//! `CORRECT`, or the number of a sentence and the sentence as it should be.

use serde_json::{Value, json};

use crate::record::Parse;
use crate::systems::json_object::without_thinking;

/// What a base model says of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    Correct,
    Wrong {
        sentence_id: usize,
        /// Empty where only the number was given.
        correction: String,
    },
    Unreadable,
}

/// Reads a text on a note of so many sentences.
pub fn read(text: &str, sentences: usize, release_compat: bool) -> Reading {
    let text = without_thinking(text).trim();
    let upper = text.to_uppercase();
    let is_correct = match release_compat {
        true => upper.contains("CORRECT"),
        false => upper.trim_matches(|c: char| !c.is_alphanumeric()) == "CORRECT",
    };
    if is_correct {
        return Reading::Correct;
    }
    let (number, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let number = number.trim_end_matches(['.', ':', ')']);
    match number.parse() {
        Ok(sentence_id) if sentence_id < sentences => {
            Reading::Wrong { sentence_id, correction: rest.trim().to_owned() }
        }
        _ => Reading::Unreadable,
    }
}

impl Reading {
    /// What a call's line keeps.
    pub fn record(&self) -> (Value, Parse) {
        match self {
            Reading::Correct => (json!({"flag": false}), Parse::Ok),
            Reading::Wrong { sentence_id, correction } => {
                let record = json!({
                    "flag": true,
                    "sentence_id": sentence_id,
                    "correction": correction,
                });
                (record, Parse::Ok)
            }
            Reading::Unreadable => (json!({"flag": null}), Parse::Fallback),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_sentence_or_one_word() {
        let wrong = |sentence_id, correction: &str| Reading::Wrong {
            sentence_id,
            correction: correction.to_owned(),
        };
        assert_eq!(read("CORRECT", 3, false), Reading::Correct);
        assert_eq!(read(" correct. \n", 3, false), Reading::Correct);
        assert_eq!(read("2 Give B.", 3, false), wrong(2, "Give B."));
        assert_eq!(read("2. Give\nB.", 3, false), wrong(2, "Give\nB."));
        assert_eq!(read("<think>0 no</think>1 Yes", 3, false), wrong(1, "Yes"));
        assert_eq!(read("0", 3, false), wrong(0, ""));
        for unreadable in ["3 Too far.", "-1", "", "The text is correct", "INCORRECT", "1.5 x"] {
            assert_eq!(read(unreadable, 3, false), Reading::Unreadable, "{unreadable}");
        }
    }

    #[test]
    fn the_published_code_takes_incorrect_for_correct() {
        assert_eq!(read("INCORRECT: 2 Give B.", 3, true), Reading::Correct);
        assert_eq!(read("2 Give B.", 3, true), read("2 Give B.", 3, false));
    }
}
