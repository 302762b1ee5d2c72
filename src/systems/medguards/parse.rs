//! Parses an agent's reply: reasons, confidence, label or sentence, by the paper's tags.

use itertools::Itertools;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::tags::{section, tagged, without, without_thought};
use crate::data::Note;
use crate::record::{CONTRADICTION, Parse};
use crate::systems::case::Parsed;
use crate::systems::reading::correction::{corrected, without_marks, without_number};
use crate::systems::reading::verdict::{Verdict, names_error, verdict};
use crate::systems::reading::words::{number_in, said_confidence};
use crate::systems::reading::{self, is_nothing, json, plain, refuses};

/// The task of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Whether the note has an error.
    Label,
    /// The sentence with the error.
    Place,
    /// The corrected sentence.
    Correction,
    PlaceAndCorrection,
    Everything,
}

/// A parsed reply; its record has the fields of its task.
#[derive(Clone, Debug)]
pub struct Said {
    wanted: Wanted,
    pub thought: String,
    /// Whether the note has an error.
    pub flag: Option<bool>,
    /// Whether it says both that the note is right and that something in it is wrong.
    pub contradicts: bool,
    pub located: Located,
    /// The note's sentence that it means; `None` for NAN, and where nothing could be parsed.
    pub sentence_id: Option<usize>,
    pub correction: Option<String>,
    /// From 0 to 1.
    pub confidence: Option<f64>,
}

impl Said {
    /// What agents agree by: one sentence, or that there is none; `None` for a reply that could not be parsed, which agrees with no other.
    pub fn place(&self) -> Option<Option<usize>> {
        (self.located != Located::Malformed).then_some(self.sentence_id)
    }

    /// What an arbiter is shown of it.
    pub fn shown<'a>(&self, note: &'a Note) -> &'a str {
        match (self.sentence_id, &self.located) {
            (Some(id), _) => &note.sentences[id],
            (None, Located::Nothing) => "NAN",
            (None, _) => "(no sentence: the answer could not be read)",
        }
    }
}

/// The location of the error in one agent's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Located {
    /// A sentence, or its number.
    Said(String),
    /// `NAN`: there is no error.
    Nothing,
    /// No result could be parsed.
    Malformed,
}

/// The reasons: the contents of `<think>` tags, and all text outside tags except a label on a line of its own.
pub fn thought(text: &str) -> String {
    let is_label = |line: &&str| matches!(plain(line).trim(), "correct" | "incorrect");
    // Without an opening tag the chat template opened it.
    let inside = section(text, "think").or_else(|| Some(text.split_once("</think>")?.0));
    let inside = inside.unwrap_or_default().trim();
    let outside = ["confidence", "result", "correction"]
        .iter()
        .fold(without_thought(text), |text, tag| without(&text, tag));
    let outside = outside.lines().filter(|line| !is_label(line)).join("\n");
    [inside, outside.trim()].iter().filter(|part| !part.is_empty()).join("\n")
}

/// The number from 0 to 100 in `<confidence>` tags outside the reasons, divided by 100, where no others differ; without such tags the
/// confidence that the text says there.
pub fn confidence(text: &str) -> Option<f64> {
    let text = without_thought(text);
    let Some(_) = section(&text, "confidence") else { return said_confidence(&text) };
    let inside = tagged(&text, "confidence")?;
    let inside = inside.trim_start_matches(|c: char| !c.is_ascii_digit() && !"+-".contains(c));
    let number = inside.trim_end_matches(|c: char| !c.is_alphanumeric());
    let (number, whole) = match number.split_once('/') {
        Some((number, "10")) => (number, 10),
        Some((number, "100")) => (number, 100),
        _ => (number, 100),
    };
    let is_short = (1..=3).contains(&number.len()) && !number.starts_with('+');
    let number = number.parse::<u32>().ok().filter(|number| is_short && *number <= whole)?;
    Some(f64::from(number) / f64::from(whole))
}

/// Whether the text says that the note has an error, outside reasons and confidence: in `<result>` tags or in a sentence of its own.
pub fn flag(text: &str) -> Verdict {
    let text = without(&without_thought(text), "confidence");
    // A label, not a sentence of the note, which may call anything correct.
    let inside = tagged(&text, "result").or_else(|| field_of(&text, "result"));
    let inside = inside.filter(|label| label.split_whitespace().count() <= 3);
    verdict(&format!("{}\n{}", inside.unwrap_or_default(), without(&text, "result")))
}

/// The sentence in `<result>` tags, a JSON field, behind a label, or alone; or NAN.
pub fn located(text: &str) -> Located {
    const LABELS: [&str; 5] =
        ["error sentence", "erroneous sentence", "incorrect sentence", "wrong sentence", "result"];
    let text = without(&without_thought(text), "confidence");
    let is_label = |line: &str| {
        LABELS.contains(&plain(line).trim().trim_start_matches("the ").trim_end_matches(" is"))
    };
    // On the label's line, or below it.
    let labelled = || {
        let mut lines = text.lines();
        let mut values = lines.by_ref().filter_map(|line| line.split_once([':', '：']));
        let (_, value) = values.find(|(label, _)| is_label(label))?;
        let said = std::iter::once(value).chain(lines);
        said.map(|line| line.trim_matches([' ', '*', '_'])).find(|line| !line.is_empty())
    };
    let labelled = || labelled().map(str::to_owned);
    let said = tagged(&text, "result").or_else(|| field_of(&text, "result")).or_else(labelled);
    let is_bare = said.is_none();
    let said = said.unwrap_or_else(|| text.trim().to_owned());
    let said = without_marks(&said);
    match verdict(said).flag {
        _ if is_nothing(said.split(['(', ',', ':']).next().unwrap_or_default()) => Located::Nothing,
        _ if said == "-1" => Located::Nothing,
        Some(false) => Located::Nothing,
        Some(true) => Located::Malformed,
        None if said.is_empty() || refuses(said) => Located::Malformed,
        None if is_bare && said.contains('\n') => Located::Malformed,
        None => Located::Said(said.to_owned()),
    }
}

/// A field of a JSON object, which models write in place of tags.
fn field_of(text: &str, tag: &str) -> Option<String> {
    json::objects(text).iter().find_map(|found| found.object.get(tag).map(reading::text))
}

/// The index of the sentence that a text names by its number, alone or before the sentence, or by the sentence itself.
pub fn place(said: &str, note: &Note) -> Option<usize> {
    let words = plain(said);
    let is_sentence = |(id, sentence): &(usize, &String)| {
        let sentence = plain(sentence);
        words == sentence || words == format!(" {id}{sentence}")
    };
    let named = note.sentences.iter().enumerate().find(is_sentence).map(|(id, _)| id);
    named.or_else(|| number_in(said)).filter(|id| *id < note.sentences.len())
}

/// The contents of the tags, their lines as one; a JSON field, or a text of one line that is nothing else. `None` for an empty text, and
/// for NAN.
pub fn correction(text: &str, tag: &str) -> Option<String> {
    let text = without(&without_thought(text), "confidence");
    let is_whole = |contents: &String| {
        // Without a closing tag the reply may have been cut short within the sentence.
        section(&text, tag).is_some() || contents.trim_end().ends_with(['.', '。', '!', '?'])
    };
    let found = match tagged(&text, tag) {
        None => field_of(&text, tag).unwrap_or_else(|| text.clone()),
        Some(contents) => {
            let whole = Some(contents).filter(is_whole).unwrap_or_default();
            // Lines of one sentence; those behind a label, such as «Corrected:», are several.
            match whole.contains(": ") {
                true => whole,
                false => whole.split_whitespace().join(" "),
            }
        }
    };
    let found = without_marks(without_number(corrected(&found)));
    let is_sentence = !found.contains('\n') && !is_nothing(found) && !refuses(found);
    (!found.is_empty() && is_sentence && verdict(found) == Verdict::default())
        .then(|| found.to_owned())
}

/// Parses the reply of a call with this task.
pub fn read(wanted: Wanted, text: &str) -> (Said, Parse) {
    read_where(wanted, text, |_| true)
}

/// The same, where only such words are a place.
pub fn read_where(wanted: Wanted, text: &str, is_place: impl Fn(&str) -> bool) -> (Said, Parse) {
    let tag = if wanted == Wanted::Correction { "result" } else { "correction" };
    let thought = thought(text);
    let names_error = names_error(&thought);
    let mut located = located(text);
    // Of a sentence that was found wrong NAN says that there is no other.
    let is_denied = located == Located::Nothing && names_error && wanted != Wanted::Correction;
    if is_denied || matches!(&located, Located::Said(words) if !is_place(words)) {
        located = Located::Malformed;
    }
    let flag = match wanted {
        Wanted::Label => flag(text),
        Wanted::Everything => {
            // The label is outside the tags of sentences; without one a place means that there is an error, NAN that there is none.
            let label = flag(&without(&without(text, "result"), "correction"));
            let implied = match located {
                Located::Malformed => None,
                _ if label.contradicts => None,
                ref located => Some(*located != Located::Nothing),
            };
            Verdict { flag: label.flag.or(implied), ..label }
        }
        _ => Verdict::default(),
    };
    let names_one = matches!(located, Located::Said(_)) && tagged(text, "result").is_some();
    let contradicts =
        flag.contradicts || is_denied || flag.flag == Some(false) && (names_error || names_one);
    let said = Said {
        wanted,
        thought,
        flag: flag.flag.filter(|_| !contradicts),
        contradicts,
        located,
        sentence_id: None,
        correction: correction(text, tag),
        confidence: confidence(text),
    };
    let is_placed = said.located != Located::Malformed;
    let (is_read, tag) = match wanted {
        Wanted::Label => (said.flag.is_some(), "think"),
        // A reply that nothing is wrong counts as parsed.
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
        (true, None) => Parse::Fallback,
        (false, _) => Parse::Unread,
    };
    (said, parse)
}

impl Parsed for Said {}

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
        let contradiction = self.contradicts.then(|| (CONTRADICTION.to_owned(), json!(true)));
        fields.chain(contradiction).collect::<Map<String, Value>>().serialize(to)
    }
}

impl Located {
    /// As records have it: empty where nothing could be parsed.
    pub fn words(&self) -> String {
        match self {
            Located::Said(words) => words.clone(),
            Located::Nothing => "NAN".to_owned(),
            Located::Malformed => String::new(),
        }
    }
}

#[cfg(test)]
mod tests;
