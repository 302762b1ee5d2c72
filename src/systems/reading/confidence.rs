//! How sure a model says it is, from 0 to 1: by the rule of MED-MAD's paper, or converted from whatever it wrote.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::number;
use crate::text::Pattern;

/// How a stated confidence is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfidenceReading {
    /// A number is clamped to the range from 0 to 1, and anything else counts as 0 (MED-MAD, App. B.2).
    #[default]
    Clamped,
    /// Percentages, parts and words are converted: `90`, `"85 %"`, `"9/10"`, `"high"`, also in a reply without a record.
    Converted,
}

impl ConfidenceReading {
    /// The confidence that a value states; `None` where it states none.
    pub fn read(self, value: &Value) -> Option<f64> {
        let read = match self {
            ConfidenceReading::Clamped => {
                number(value).filter(|number| number.is_finite()).map(|one| one.clamp(0.0, 1.0))
            }
            ConfidenceReading::Converted => converted(value),
        };
        // Adding 0 turns -0 into 0.
        read.map(|share| share + 0.0)
    }
}

/// A confidence converted to a number from 0 to 1.
///
/// From 0 to 1 a number stands for itself; up to 2 it is 1, beyond that up to 100 a percentage, and what is more is 1. A text gives its
/// first number, in percent where it says so, or parts of what it says (`9/10`, `4 out of 5`); without a number, its word: very high 0.95,
/// high 0.85, moderate 0.6, low 0.3, very low 0.1. `None` for anything else.
pub fn converted(value: &Value) -> Option<f64> {
    let scaled = |number: f64| match number {
        number if number <= 2.0 || number > 100.0 => number.clamp(0.0, 1.0),
        percent => percent / 100.0,
    };
    let of_text = |text: &str| {
        static NUMBER: Pattern = Pattern::new(
            r"(-?[.,]?\d[\d.,-]{0,20})\s{0,9}(?:([%％]|percent)|(?:/|out of)\s{0,9}(\d{1,9}))?",
        );
        let found = NUMBER.captures(text)?;
        let number: f64 =
            found[1].trim_end_matches(['.', ',', '-']).replace(',', ".").parse().ok()?;
        let hundred: Option<f64> = found.get(2).map(|_| 100.0);
        let whole = hundred.or_else(|| found.get(3)?.as_str().parse().ok());
        Some(match whole.filter(|whole| *whole > 0.0) {
            Some(whole) => (number / whole).clamp(0.0, 1.0),
            None => scaled(number),
        })
    };
    match value {
        Value::Number(number) => number.as_f64().map(scaled),
        Value::Array(list) => list.first().and_then(converted),
        Value::String(text) => of_text(text).or_else(|| in_words(&text.to_lowercase())),
        _ => None,
    }
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
            assert_eq!(converted(&value), expected, "{value}");
        }
    }

    #[test]
    fn the_papers_rule_clamps_and_converts_nothing() {
        let clamped = |value: Value| ConfidenceReading::Clamped.read(&value);
        assert_eq!(clamped(json!(0.9)), Some(0.9));
        assert_eq!(clamped(json!(" 0.9 ")), Some(0.9));
        assert_eq!(clamped(json!(90)), Some(1.0));
        assert_eq!(clamped(json!(2.5)), Some(1.0));
        assert_eq!(clamped(json!(-0.5)), Some(0.0));
        assert!(clamped(json!(-0.0)).unwrap().is_sign_positive());
        for odd in
            [json!("high"), json!("85 %"), json!("NaN"), json!("inf"), json!(null), json!([0.9])]
        {
            assert_eq!(clamped(odd.clone()), None, "{odd}");
        }
    }
}
