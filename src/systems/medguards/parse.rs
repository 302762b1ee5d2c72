//! What an agent's text says: its reasons, its confidence, its label or sentence. As the paper's tags have it; or as the published
//! code reads it, mistakes and all (`release_compat`).

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::record::Parse;
use crate::systems::case::Record;

/// What an agent is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Whether the note has an error.
    Label,
    /// The sentence that has it.
    Place,
    /// What a sentence should say.
    Correction,
    PlaceAndCorrection,
    Everything,
}

/// What one agent said; its record has what was wanted.
#[derive(Clone, Debug)]
pub struct Said {
    wanted: Wanted,
    pub thought: String,
    /// Whether the note has an error.
    pub flag: Option<bool>,
    pub located: Located,
    pub correction: Option<String>,
    /// From 0 to 1.
    pub confidence: Option<f64>,
}

/// One agent's words about where the error is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Located {
    /// A sentence, or its number.
    Said(String),
    /// `NAN`: there is no error.
    Nothing,
    /// No result could be read.
    Malformed,
}

/// The reasons in `<think>` tags; empty where there are none.
pub fn thought(text: &str) -> String {
    section(text, "think").map_or(String::new(), |thought| thought.trim().to_owned())
}

/// The number in `<confidence>` tags, from 0 to 100, as a share.
pub fn confidence(text: &str) -> Option<f64> {
    let number = section(text, "confidence")?.trim().trim_end_matches('%');
    let is_short = (1..=3).contains(&number.len()) && !number.starts_with('+');
    let number = number.parse::<u32>().ok().filter(|number| is_short && *number <= 100)?;
    Some(f64::from(number) / 100.0)
}

/// Whether the text says that the note has an error: by the last of the words INCORRECT and CORRECT outside reasons and confidence.
/// The published code searches all of it, so that reasons which mention the word flip the label.
pub fn flag(text: &str, release_compat: bool) -> Option<bool> {
    if release_compat {
        let text = text.to_uppercase();
        return match (text.contains("INCORRECT"), text.contains("CORRECT")) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        };
    }
    let text = without(&without_thought(text), "confidence").to_uppercase();
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.rev().find_map(|word| match word {
        "INCORRECT" => Some(true),
        "CORRECT" => Some(false),
        _ => None,
    })
}

/// The sentence in `<result>` tags, or NAN, in them or bare. The published code finds no result that goes over a line's end, and no
/// bare NAN.
pub fn located(text: &str, release_compat: bool) -> Located {
    if release_compat {
        return match section(text, "result").filter(|result| !result.contains('\n')) {
            Some("NAN") => Located::Nothing,
            Some(result) => Located::Said(result.to_owned()),
            None => Located::Malformed,
        };
    }
    let text = without_thought(text);
    let Some(result) = section(&text, "result") else {
        return match is_nan(&without(&text, "confidence")) {
            true => Located::Nothing,
            false => Located::Malformed,
        };
    };
    match result.trim() {
        "" => Located::Malformed,
        nothing if is_nan(nothing) => Located::Nothing,
        sentence => Located::Said(sentence.to_owned()),
    }
}

/// What stands in the tags; where there are none, all that is not reasons or confidence. `None` for nothing, and for NAN.
pub fn correction(text: &str, tag: &str, release_compat: bool) -> Option<String> {
    if release_compat {
        let result = section(text, tag).filter(|result| !result.contains('\n'));
        return result.filter(|result| *result != "NAN").map(str::to_owned);
    }
    let text = without_thought(text);
    let found = match section(&text, tag) {
        Some(found) => found.trim().to_owned(),
        // One that was cut short holds no whole sentence.
        None if text.to_ascii_lowercase().contains(&format!("<{tag}>")) => String::new(),
        None => without(&text, "confidence").trim().to_owned(),
    };
    (!found.is_empty() && !is_nan(&found)).then_some(found)
}

/// Reads a text that was to give what is wanted.
pub fn read(wanted: Wanted, text: &str, release_compat: bool) -> (Said, Parse) {
    let (flag_text, tag) = match wanted {
        Wanted::Correction => (text.to_owned(), "result"),
        // A label stands outside the sentences.
        Wanted::Everything => (without(&without(text, "result"), "correction"), "correction"),
        _ => (text.to_owned(), "correction"),
    };
    let said = Said {
        wanted,
        thought: thought(text),
        flag: flag(&flag_text, release_compat),
        located: located(text, release_compat),
        correction: correction(text, tag, release_compat),
        confidence: confidence(text),
    };
    let is_placed = said.located != Located::Malformed;
    let (is_read, tag) = match wanted {
        Wanted::Label => (said.flag.is_some(), "think"),
        Wanted::Correction => (said.correction.is_some(), "result"),
        Wanted::Place | Wanted::PlaceAndCorrection => (is_placed, "result"),
        Wanted::Everything => (is_placed && said.flag.is_some(), "result"),
    };
    let parse = match (is_read, section(text, tag)) {
        (true, Some(_)) => Parse::Ok,
        (true, None) => Parse::Repaired,
        (false, _) => Parse::Fallback,
    };
    (said, parse)
}

impl Record for Said {}

impl Serialize for Said {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let keys: &[&str] = match self.wanted {
            Wanted::Label => &["thought", "flag", "confidence"],
            Wanted::Place => &["thought", "result", "confidence"],
            Wanted::Correction => &["thought", "correction", "confidence"],
            Wanted::PlaceAndCorrection => &["thought", "result", "confidence", "correction"],
            Wanted::Everything => &["thought", "flag", "result", "correction", "confidence"],
        };
        let value = |key: &str| match key {
            "thought" => json!(self.thought),
            "flag" => json!(self.flag),
            "result" => json!(self.located.words()),
            "correction" => json!(self.correction),
            _ => json!(self.confidence),
        };
        let fields = keys.iter().map(|key| ((*key).to_owned(), value(key)));
        fields.collect::<Map<String, Value>>().serialize(to)
    }
}

impl Located {
    /// As records have it: empty where nothing could be read.
    pub fn words(&self) -> String {
        match self {
            Located::Said(words) => words.clone(),
            Located::Nothing => "NAN".to_owned(),
            Located::Malformed => String::new(),
        }
    }
}

fn is_nan(text: &str) -> bool {
    let around = |c: char| c.is_whitespace() || matches!(c, '.' | '"' | '\'' | '*' | '`');
    text.trim_matches(around).eq_ignore_ascii_case("nan")
}

/// What the first pair of these tags holds, whatever their case.
pub fn section<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    // ASCII lower case keeps every byte's place.
    let lower = text.to_ascii_lowercase();
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let start = lower.find(&open)? + open.len();
    let length = lower[start..].find(&close)?;
    Some(&text[start..start + length])
}

/// The text without any pair of these tags and what they hold.
fn without(text: &str, tag: &str) -> String {
    let mut rest = text.to_owned();
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    while let Some(held) = section(&rest, tag) {
        let start = held.as_ptr() as usize - rest.as_ptr() as usize;
        let end = start + held.len() + close.len();
        rest.replace_range(start - open.len()..end, " ");
    }
    rest
}

/// What follows the reasons. Where they are never closed, nothing does; where they are only closed, the chat template opened them.
fn without_thought(text: &str) -> String {
    let rest = without(text, "think");
    let lower = rest.to_ascii_lowercase();
    match (lower.rfind("</think>"), lower.find("<think>")) {
        (Some(close), _) => rest[close + "</think>".len()..].to_owned(),
        (None, Some(open)) => rest[..open].to_owned(),
        (None, None) => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    #[test]
    fn a_label_is_the_last_word_outside_reasons() {
        let flag = |text| flag(text, false);
        assert_eq!(
            flag("<think>this may be incorrect</think>\nCORRECT\n<confidence>90</confidence>"),
            Some(false)
        );
        assert_eq!(flag("<result>Incorrect.</result>"), Some(true));
        assert_eq!(flag("CORRECT? No: **INCORRECT**"), Some(true));
        assert_eq!(flag("I cannot help with that."), None);
        assert_eq!(flag("incorrectly, uncorrected, correctness"), None);
        assert_eq!(flag("<think>INCORRECT, and then it was cut"), None);
        assert_eq!(flag("opened elsewhere: INCORRECT</think> CORRECT"), Some(false));
        assert_eq!(flag("<confidence>CORRECT</confidence>"), None);
        assert_eq!(flag(""), None);
    }

    #[test]
    fn the_published_code_searches_reasons_too() {
        let flag = |text| flag(text, true);
        let text = "<think>this may be incorrect</think>\nCORRECT";
        assert_eq!(flag(text), Some(true));
        assert_eq!(flag("uncorrected"), Some(false));
        assert_eq!(flag("no label"), None);
    }

    #[test]
    fn confidence_is_a_number_up_to_100() {
        let confidence =
            |inside: &str| super::confidence(&format!("<confidence>{inside}</confidence>"));
        assert_eq!(confidence("95"), Some(0.95));
        assert_eq!(confidence(" 80% "), Some(0.8));
        assert_eq!(confidence("100"), Some(1.0));
        for none in ["101", "0.9", "high", "", "0095", "+5", "-5"] {
            assert_eq!(confidence(none), None, "{none}");
        }
        assert_eq!(super::confidence("95"), None);
        assert_eq!(super::confidence("<CONFIDENCE>7</Confidence>"), Some(0.07));
    }

    #[test]
    fn a_sentence_may_go_over_lines_and_nan_may_stand_bare() {
        let located = |text| located(text, false);
        let said = |words: &str| Located::Said(words.to_owned());
        assert_eq!(
            located("<think>x</think><result>\nHe was\ngiven it.\n</result>"),
            said("He was\ngiven it.")
        );
        assert_eq!(
            located("<think>the <result>first</result></think> <result>second</result>"),
            said("second")
        );
        assert_eq!(located("<result>nan</result>"), Located::Nothing);
        assert_eq!(
            located("<think>fine</think>\nNAN\n<confidence>80</confidence>"),
            Located::Nothing
        );
        assert_eq!(located("It is the third sentence."), Located::Malformed);
        assert_eq!(located("<result></result>"), Located::Malformed);
        assert_eq!(located("<result>cut"), Located::Malformed);
    }

    #[test]
    fn the_published_code_loses_both() {
        let located = |text| located(text, true);
        assert_eq!(located("<result>a\nb</result>"), Located::Malformed);
        assert_eq!(located("NAN"), Located::Malformed);
        assert_eq!(located("<result>NAN</result>"), Located::Nothing);
        assert_eq!(located("<result>nan</result>"), Located::Said("nan".to_owned()));
    }

    #[test]
    fn a_correction_may_lack_its_tags() {
        let correction = |text| correction(text, "result", false);
        assert_eq!(
            correction("<think>x</think><result> Give B. </result>"),
            Some("Give B.".to_owned())
        );
        assert_eq!(correction("Give B.\n<confidence>70</confidence>"), Some("Give B.".to_owned()));
        assert_eq!(correction("<result>NAN</result>"), None);
        assert_eq!(correction("<result>cut sho"), None);
        assert_eq!(correction(""), None);
        assert_eq!(super::correction("Give B.", "result", true), None);
    }

    #[test]
    fn hostile_text_never_panics() {
        const PIECES: [&str; 12] = [
            "<think>",
            "</think>",
            "<result>",
            "</result>",
            "<confidence>",
            "</confidence>",
            "NAN",
            "CORRECT",
            "İ",
            "ß",
            "9",
            "\n",
        ];
        let mut random = SplitMix64::new(5);
        for _ in 0..20_000 {
            let text: String = (0..random.below(12))
                .map(|_| PIECES[random.below(PIECES.len() as u64) as usize])
                .collect();
            for compat in [false, true] {
                flag(&text, compat);
                located(&text, compat);
                correction(&text, "result", compat);
            }
            assert!(confidence(&text).is_none_or(|share| (0.0..=1.0).contains(&share)));
        }
    }
}
