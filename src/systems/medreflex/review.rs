//! Parses a review, and decides by several reviews whether an answer is accepted.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::settings::{Settings, in_hundredths};
use crate::record::{FinishReason, Parse, TurnLine};
use crate::systems::case::Parsed;
use crate::systems::reading::{self, record};

/// The criteria that a review scores, in the order of its fields; only the last decides.
pub const CRITERIA: [&str; 6] =
    ["validity", "preciseness", "confidence", "relevance", "completeness", "final"];

/// A review. Scores are hundredths from 100 to 500, in the order of [`CRITERIA`]; `None` where none could be parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Review {
    pub scores: [Option<u32>; 6],
    pub reasons: [String; 6],
}

impl Parsed for Review {}

impl Review {
    /// The score that decides; without it a review is dropped.
    pub fn final_score(&self) -> Option<u32> {
        self.scores[5]
    }

    /// As the next agent reads it: the final reasons and all scores.
    pub fn shown(&self) -> Value {
        let mut shown = Map::new();
        shown.insert("final_reasoning".to_owned(), self.reasons[5].clone().into());
        for (name, score) in CRITERIA.iter().zip(self.scores) {
            let score = score.map(|hundredths| match hundredths % 100 {
                0 => Value::from(hundredths / 100),
                _ => Value::from(f64::from(hundredths) / 100.0),
            });
            shown.insert(format!("{name}_score"), score.unwrap_or(Value::Null));
        }
        Value::Object(shown)
    }
}

pub fn read(text: &str, finish_reason: FinishReason) -> (Review, Parse) {
    let found = record::read_or_lines(text, finish_reason, |object| {
        let review = of_object(object);
        review.final_score().map(|_| review)
    });
    found.unwrap_or((Review::default(), Parse::Unread))
}

fn of_object(object: &Map<String, Value>) -> Review {
    let letters = |key: &str| -> String { key.chars().filter(|c| c.is_alphabetic()).collect() };
    let field = |name: &str, what: &str| {
        let wanted = format!("{name}{what}");
        object.iter().find(|(key, _)| letters(key) == wanted).map(|(_, value)| value)
    };
    let mut review = Review::default();
    for (place, name) in CRITERIA.iter().enumerate() {
        let whole = field(name, "");
        // `"final": {"reasoning": "…", "score": 4}`.
        let inner = |what: &str| whole.and_then(|value| value.get(what));
        let score = field(name, "score").or_else(|| inner("score")).or(whole);
        review.scores[place] = score.and_then(hundredths);
        let reasons = field(name, "reasoning").or_else(|| inner("reasoning"));
        review.reasons[place] = reasons.map(reading::text).unwrap_or_default();
    }
    review
}

/// A score in hundredths, from 1 to 5: a number, or a text that begins with one, as `4/5` and `4 (good)` do.
fn hundredths(value: &Value) -> Option<u32> {
    match value {
        Value::Number(number) => clamped(&number.to_string()),
        Value::String(text) => leading(text),
        _ => None,
    }
}

fn leading(text: &str) -> Option<u32> {
    let text =
        text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | ':' | '`' | '"'));
    let length = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-')));
    let number = text[..length.unwrap_or(text.len())].trim_end_matches('.');
    clamped(number)
}

fn clamped(number: &str) -> Option<u32> {
    let number = number.parse().ok().filter(|number: &f64| !number.is_nan())?;
    Some(in_hundredths(number.clamp(1.0, 5.0)))
}

/// Decides whether an answer is accepted; `scores` are the final ones that could be parsed, in the reviewers' order.
pub fn decide(reviewing: &Settings, scores: Vec<u32>, turn: &mut TurnLine) {
    let (n, sum) = (scores.len() as u32, scores.iter().sum::<u32>());
    turn.min = scores.iter().min().copied();
    let is_least_enough = turn.min.is_some_and(|least| least >= reviewing.minimum);
    turn.accepted = sum >= reviewing.average * n && is_least_enough;
    // Rounded half up.
    turn.mean_hundredths = (n > 0).then(|| (2 * sum + n) / (2 * n));
    turn.scores = scores;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn final_score(text: &str) -> Option<u32> {
        read(text, FinishReason::Stop).0.final_score()
    }

    #[test]
    fn scores_are_read_as_models_write_them() {
        for (written, hundredths) in [
            (json!(4), Some(400)),
            (json!(4.5), Some(450)),
            (json!(3.75), Some(375)),
            (json!("4"), Some(400)),
            (json!("4/5"), Some(400)),
            (json!("4 (good)"), Some(400)),
            (json!(0), Some(100)),
            (json!(-2), Some(100)),
            (json!(9), Some(500)),
            (json!(900), Some(500)),
            (json!("high"), None),
            (json!(null), None),
        ] {
            let text = json!({"final_reasoning": "r", "final_score": written}).to_string();
            assert_eq!(final_score(&text), hundredths, "{written}");
        }
        for (text, hundredths) in [
            (r#"{"finalScore": 3, "validity": {"score": 2, "reasoning": "no"}}"#, Some(300)),
            ("Validity: 4\n**Final score:** 3.5/5 because of the dose", Some(350)),
            ("OUTPUT: ```json\n{\"final score\": 5}\n```", Some(500)),
            (r#"{"validity_score": 4}"#, None),
            ("I accept it.", None),
        ] {
            assert_eq!(final_score(text), hundredths, "{text}");
        }
        let (review, _) = read(
            r#"{"validity": {"score": 2, "reasoning": "no"}, "final_score": 4.5}"#,
            FinishReason::Stop,
        );
        let shown = review.shown();
        assert_eq!((&shown["validity_score"], &shown["final_score"]), (&json!(2), &json!(4.5)));
        assert_eq!(shown["relevance_score"], json!(null));
    }

    #[test]
    fn mean_and_minimum_decide_in_whole_hundredths() {
        let reviewing = Settings::default();
        let decided = |scores: &[u32]| {
            let mut turn = TurnLine::default();
            decide(&reviewing, scores.to_vec(), &mut turn);
            (turn.accepted, turn.mean_hundredths, turn.min)
        };
        assert_eq!(decided(&[400, 400, 400, 400, 300]), (true, Some(380), Some(300)));
        assert_eq!(decided(&[400, 400, 400, 390, 300]), (false, Some(378), Some(300)));
        // Five 3.75 are no 3.8.
        assert_eq!(decided(&[375; 5]), (false, Some(375), Some(375)));
        assert_eq!(decided(&[500, 500, 500, 500, 200]), (false, Some(440), Some(200)));
        assert_eq!(decided(&[]), (false, None, None));
    }
}
