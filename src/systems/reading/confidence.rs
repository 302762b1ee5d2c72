//! How sure a model says it is, from 0 to 1: of a record by the rule of MED-MAD's paper, of prose converted from whatever it wrote.

use serde_json::Value;

use super::number;
use crate::text::Pattern;

/// The confidence that a record's value states: a number is clamped to the range from 0 to 1, and anything else is none (MED-MAD, App. B.2).
pub fn clamped(value: &Value) -> Option<f64> {
    let number = number(value).filter(|number| number.is_finite());
    // Adding 0 turns -0 into 0.
    number.map(|one| one.clamp(0.0, 1.0) + 0.0)
}

/// A confidence in prose converted to a number from 0 to 1.
///
/// From 0 to 1 a number stands for itself; up to 2 it is 1, beyond that up to 100 a percentage, and what is more is 1. A text gives its
/// first number, in percent where it says so, or parts of what it says (`9/10`, `4 out of 5`); without a number, its word: very high 0.95,
/// high 0.85, moderate 0.6, low 0.3, very low 0.1. `None` for anything else.
pub fn converted(text: &str) -> Option<f64> {
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
    of_text(text).or_else(|| in_words(&text.to_lowercase()))
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
            ("0.9", Some(0.9)),
            ("90", Some(0.9)),
            ("1.2", Some(1.0)),
            ("-0.5", Some(0.0)),
            ("1000", Some(1.0)),
            ("90 %", Some(0.9)),
            ("0,9", Some(0.9)),
            ("0.85 (high)", Some(0.85)),
            ("9/10", Some(0.9)),
            ("85/100", Some(0.85)),
            ("High", Some(0.85)),
            ("not sure", None),
            ("NaN", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(converted(text), expected, "{text}");
        }
    }

    #[test]
    fn the_papers_rule_clamps_and_converts_nothing() {
        let clamped = |value: Value| clamped(&value);
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
