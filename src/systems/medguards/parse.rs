//! What an agent's text says: its reasons, its confidence, its label or sentence. As the paper's tags have it; or as the published
//! code reads it, mistakes and all (`release_compat`).

use std::sync::LazyLock;

use regex::Regex;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::tags::{is_nan, plain, section, tagged, without, without_thought};
use crate::record::Parse;
use crate::systems::case::Record;
use crate::systems::reading::verdict::{Verdict, verdict};
use crate::systems::reading::{self, json};

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

/// The reasons: what stands in `<think>` tags, and all that stands outside of tags but for a label on a line of its own.
pub fn thought(text: &str) -> String {
    static LABEL: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?m)^\W*(?:IN)?CORRECT\W*$").ok());
    // One that is only closed was opened by the chat template.
    let inside = section(text, "think").or_else(|| Some(text.split_once("</think>")?.0));
    let inside = inside.unwrap_or_default().trim();
    let outside = ["confidence", "result", "correction"]
        .iter()
        .fold(without_thought(text), |text, tag| without(&text, tag));
    let outside = match &*LABEL {
        Some(label) => label.replace_all(&outside, "").into_owned(),
        None => outside,
    };
    let parts = [inside, outside.trim()].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n")
}

/// The number in `<confidence>` tags, from 0 to 100, as a share.
pub fn confidence(text: &str) -> Option<f64> {
    let number = section(text, "confidence")?.trim().trim_end_matches('%');
    let is_short = (1..=3).contains(&number.len()) && !number.starts_with('+');
    let number = number.parse::<u32>().ok().filter(|number| is_short && *number <= 100)?;
    Some(f64::from(number) / 100.0)
}

/// Whether the text says that the note has an error, outside reasons and confidence: in `<result>` tags, else anywhere.
/// The published code searches all of it for the words, so that reasons which mention one flip the label.
pub fn flag(text: &str, release_compat: bool) -> Option<bool> {
    if release_compat {
        let text = text.to_uppercase();
        return match (text.contains("INCORRECT"), text.contains("CORRECT")) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        };
    }
    let text = without(&without_thought(text), "confidence");
    // A label, not a sentence of the note, which can say of anything that it is correct.
    let label = section(&text, "result").filter(|label| label.split_whitespace().count() <= 3);
    let inside = label.and_then(verdict);
    inside.or_else(|| verdict(&text)).map(Verdict::has_error)
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
    let Some(result) = tagged(&text, "result") else {
        return bare_place(&without(&text, "confidence"));
    };
    match plain(&result) {
        "" => Located::Malformed,
        nothing if says_nothing(nothing) => Located::Nothing,
        sentence => Located::Said(sentence.to_owned()),
    }
}

/// A place without tags: NAN, a field of JSON, a quoted sentence that is called the wrong one, or the words that there is none.
fn bare_place(text: &str) -> Located {
    static QUOTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r#"(?is)\b(?:sentence|statement|error)\b[^"“\n]{0,60}["“](.{8,}?)["”](?:\s|[.,;]|$)"#,
        )
        .ok()
    });
    let field = |found: &json::Found| found.object.get("result").map(reading::text);
    let quoted = QUOTED.as_ref().and_then(|quoted| Some(quoted.captures(text)?[1].to_owned()));
    match json::objects(text).iter().find_map(field).or(quoted) {
        Some(said) if says_nothing(&said) => Located::Nothing,
        Some(said) => Located::Said(said),
        None if says_nothing(text) => Located::Nothing,
        None => Located::Malformed,
    }
}

/// Whether a text says that no sentence is wrong; a sentence of the note never does, whatever in it is called correct.
fn says_nothing(text: &str) -> bool {
    static NOTHING: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?i)\A\W*(?:correct\W*\z|(?:there (?:is|are|was|were) )?no (?:medical |factual |clinical )?(?:errors?|mistakes?|erroneous sentences?)\b|the (?:whole |entire )?(?:text|note|report|narrative) (?:is|appears) (?:\w+ )?correct\b)").ok()
    });
    is_nan(text) || NOTHING.as_ref().is_some_and(|nothing| nothing.is_match(text))
}

/// What stands in the tags; where there are none, all that is not reasons or confidence. `None` for nothing, and for NAN.
pub fn correction(text: &str, tag: &str, release_compat: bool) -> Option<String> {
    if release_compat {
        let result = section(text, tag).filter(|result| !result.contains('\n'));
        return result.filter(|result| *result != "NAN").map(str::to_owned);
    }
    let text = without_thought(text);
    let found = match (section(&text, tag), tagged(&text, tag)) {
        (Some(found), _) => found.to_owned(),
        // One that was cut short holds no whole sentence.
        (None, Some(open)) if open.trim_end().ends_with(['.', '。', '!', '?']) => open,
        (None, Some(_)) => String::new(),
        (None, None) => without(&text, "confidence"),
    };
    let found = corrected(&found);
    (!found.is_empty() && !is_nan(found)).then(|| found.to_owned())
}

/// A correction without what announces it: «Corrected Sentence: …», the sentence's number, «old -> new».
fn corrected(text: &str) -> &str {
    static ANNOUNCED: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?i)\A[\s*_>#-]*(?:(?:the\s+)?(?:corrected|correct|revised|fixed)\s+(?:sentence|version|text)|correction)(?:\s+(?:is|should be|would be|reads))?[\s*_]*[:：][\s*_]*").ok()
    });
    let announced = ANNOUNCED.as_ref().and_then(|announced| announced.find(text));
    let text = announced.map_or(text, |announced| &text[announced.end()..]);
    let text = ["->", "→", "=>"]
        .iter()
        .find_map(|arrow| text.split_once(arrow))
        .map_or(text, |(_, new)| new);
    plain(text)
}

/// Reads a text that was to give what is wanted.
pub fn read(wanted: Wanted, text: &str, release_compat: bool) -> (Said, Parse) {
    let (flag_text, tag) = match wanted {
        Wanted::Correction => (text.to_owned(), "result"),
        // A label stands outside the sentences.
        Wanted::Everything => (without(&without(text, "result"), "correction"), "correction"),
        _ => (text.to_owned(), "correction"),
    };
    let located = located(text, release_compat);
    let said = Said {
        wanted,
        thought: thought(text),
        flag: match (wanted, flag(&flag_text, release_compat)) {
            (Wanted::Everything, flag) if !release_compat => flag_beside(flag, &located),
            (_, flag) => flag,
        },
        located,
        correction: correction(text, tag, release_compat),
        confidence: confidence(text),
    };
    let is_placed = said.located != Located::Malformed;
    let (is_read, tag) = match wanted {
        Wanted::Label => (said.flag.is_some(), "think"),
        // Whoever says that nothing is wrong has been read.
        Wanted::Correction => {
            (said.correction.is_some() || said.located == Located::Nothing, "result")
        }
        Wanted::Place | Wanted::PlaceAndCorrection => (is_placed, "result"),
        Wanted::Everything => (said.flag.is_some(), "result"),
    };
    let label = without(&without_thought(text), "confidence");
    let is_plain = wanted != Wanted::Label || matches!(label.trim(), "CORRECT" | "INCORRECT");
    let parse = match (is_read, section(text, tag)) {
        (true, Some(_)) if is_plain => Parse::Ok,
        (true, Some(_)) => Parse::Repaired,
        (true, None) => Parse::Repaired,
        (false, _) => Parse::Unread,
    };
    (said, parse)
}

/// A label beside a place: a place says that there is an error, and no place that there is none; who says both is not read.
fn flag_beside(flag: Option<bool>, located: &Located) -> Option<bool> {
    match (flag, located) {
        (Some(false), Located::Said(_)) => None,
        (None, Located::Said(_)) => Some(true),
        (None, Located::Nothing) => Some(false),
        (flag, _) => flag,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    #[test]
    fn a_label_stands_outside_reasons() {
        let flag = |text| flag(text, false);
        assert_eq!(
            flag("<think>this may be incorrect</think>\nCORRECT\n<confidence>90</confidence>"),
            Some(false)
        );
        assert_eq!(flag("<result>Incorrect.</result>"), Some(true));
        assert_eq!(flag("Is it CORRECT or INCORRECT? **INCORRECT**"), Some(true));
        assert_eq!(flag("INCORRECT\nThe correct agent is S. pyogenes."), Some(true));
        assert_eq!(flag("CORRECT\n…\nINCORRECT"), None);
        assert_eq!(flag("INCORRECT <result>The report is accurate.</result>"), Some(true));
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
    fn reasons_stand_in_their_tags_and_outside_of_all() {
        assert_eq!(thought("<think> a </think>\nINCORRECT\n<confidence>9</confidence>"), "a");
        let prose = "The dose is too high.\n\n**INCORRECT**\n<confidence>90</confidence>";
        assert_eq!(thought(prose), "The dose is too high.");
        assert_eq!(
            thought("a</think>So it is INCORRECT, by the dose."),
            "a\nSo it is INCORRECT, by the dose."
        );
        assert_eq!(thought("It is last.\n<result>He went.</result>"), "It is last.");
        assert_eq!(thought("<think>cut"), "");
        assert_eq!(thought("CORRECT"), "");
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
        assert_eq!(located("<result>It is given.</results>"), said("It is given."));
        assert_eq!(located("<result>\"It is given.\""), said("It is given."));
        assert_eq!(located("The erroneous sentence is: \"It is given.\""), said("It is given."));
        assert_eq!(located("<result>No error found</result>"), Located::Nothing);
        // A sentence of the note that calls something right is a sentence of the note.
        assert_eq!(
            located("<result>This is consistent with gout.</result>"),
            said("This is consistent with gout.")
        );
        assert_eq!(
            located("<result>The report is accurate, he goes home.</result>"),
            said("The report is accurate, he goes home.")
        );
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
    fn what_says_nothing_of_what_was_wanted_is_unread() {
        let parse = |wanted, text| read(wanted, text, false).1;
        assert_eq!(parse(Wanted::Label, "I cannot help with that."), Parse::Unread);
        assert_eq!(parse(Wanted::Place, "It is the third sentence."), Parse::Unread);
        assert_eq!(parse(Wanted::Correction, "<result>cut sho"), Parse::Unread);
        assert_eq!(parse(Wanted::Correction, "<result>NAN</result>"), Parse::Ok);
        assert_eq!(parse(Wanted::Correction, "NAN"), Parse::Repaired);
        assert_eq!(parse(Wanted::Everything, "INCORRECT"), Parse::Repaired);
        assert_eq!(parse(Wanted::Everything, "Hm."), Parse::Unread);
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
