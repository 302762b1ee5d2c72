//! One model asked once for the error in a note: the rows beside MedGuards, with MEDEC's prompts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::case::{Case, Record, Step};
use super::config::{self, SOLO};
use super::decoding::{Decoding, Shape};
use super::exemplars::Exemplars;
use super::messages::{messages, numbered};
use super::reading::verdict::{Verdict, verdict};
use super::reading::{self, json, without_thinking};
use super::settings::{switch, whole};
use super::{Opening, System, Task};
use crate::data::{Item, Note};
use crate::diagnosis::Failure;
use crate::panel::PanelError;
use crate::prompts::PromptSet;
use crate::record::{DetectionLine, ItemLine, LocalisationLine, Message, Parse, Source, Stage};
use crate::text::Pattern;

/// How often a model is asked where its answer cannot be read.
const TRIES: u32 = 2;

/// How a base model is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// MEDEC's first or second.
    #[serde(deserialize_with = "whole::<1, 2, _, _>")]
    pub prompt: u32,
    /// Whether any output that holds CORRECT, be it INCORRECT, means that there is no error, as in MedGuards' published code.
    #[serde(with = "switch")]
    pub release_compat: bool,
    #[serde(flatten)]
    pub decoding: Decoding,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { prompt: 1, release_compat: false, decoding: Decoding::default() }
    }
}

impl config::Settings for Settings {
    fn max_calls(&self) -> u32 {
        TRIES
    }

    fn build(&self, prompts: &PromptSet, _: &Arc<Exemplars>) -> Result<Box<dyn System>, Failure> {
        let prompt = prompts.get(&format!("base_llm/prompt-{}", self.prompt), &[])?;
        Ok(Box::new(BaseLlm { settings: self.clone(), prompt }))
    }
}

/// A model alone with a note.
struct BaseLlm {
    settings: Settings,
    prompt: String,
}

impl System for BaseLlm {
    /// A note on which the model says nothing readable is unread: neither right nor wrong was said of it.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.note()?;
        let note = case.item;
        let mut line = case.open();
        let mut reading = self.ask(&case, 0)?;
        for sample in 1..TRIES {
            if reading == Reading::default() {
                reading = self.ask(&case, sample)?;
            }
        }
        line.flag = reading.flag;
        line.detection = Some(DetectionLine {
            source: Source::Single,
            agents: vec![SOLO.to_owned()],
            flags: vec![reading.flag],
            confidences: vec![None],
        });
        if let Some(sentence_id) = reading.sentence_id {
            line.sentence = note.sentences[sentence_id].clone();
            line.sentence_id = Some(sentence_id);
            line.exact_sentence_id = Some(sentence_id);
            line.correction = reading.correction.filter(|text| !text.is_empty());
            line.localisation = Some(LocalisationLine {
                source: Source::Single,
                agents: vec![SOLO.to_owned()],
                opinions: vec![sentence_id.to_string()],
                sentence_ids: vec![Some(sentence_id)],
                confidences: vec![None],
            });
        }
        line.calls = case.calls();
        Ok(line.into())
    }

    fn opening(&self, _: &str, item: &Item) -> Option<Vec<Opening>> {
        Some(vec![Opening { member: 0, messages: self.messages(item.note()?) }])
    }
}

impl BaseLlm {
    fn messages(&self, note: &Note) -> Vec<Message> {
        messages("", format!("{}\n\n{}", self.prompt, numbered(note)))
    }

    fn ask(&self, case: &Case<'_, Note>, sample: u32) -> Result<Reading, PanelError> {
        let (note, decoding) = (case.item, &self.settings.decoding);
        let ids: Vec<String> = (0..note.sentences.len()).map(|id| id.to_string()).collect();
        let chars = decoding.sentence_chars(note);
        let regex = format!("CORRECT|({}) (?s:.{{1,{chars}}})", ids.join("|"));
        let step = Step::new(Stage::Final, 0, "answer", Shape::regex(regex));
        let mut call = case.call(&step, 0, SOLO, self.messages(note));
        call.key.sample = sample;
        let compat = self.settings.release_compat;
        Ok(case.ask(call, |text, _| read(text, note.sentences.len(), compat))?.value)
    }
}

/// What a base model says of a note: `CORRECT`, or the number of a sentence and the sentence as it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// Whether the note has an error; `None` where the text says neither.
    pub flag: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentence_id: Option<usize>,
    /// Empty where only the number was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<String>,
}

impl Record for Reading {}

/// Reads a text on a note of so many sentences: a line that begins with a sentence's number, else whether it says that there is an error.
/// One that calls the note right and corrects a sentence says neither.
pub fn read(text: &str, sentences: usize, release_compat: bool) -> (Reading, Parse) {
    let text = without_thinking(text).trim();
    if release_compat && text.to_uppercase().contains("CORRECT") {
        return (Reading { flag: Some(false), ..Reading::default() }, Parse::Ok);
    }
    let text = &with_ascii_digits(text);
    let numbered = leading(text, sentences)
        .or_else(|| in_record(text, sentences))
        .or_else(|| numbered_line(text, sentences));
    let verdict =
        verdict(&numbered.as_ref().map_or(text.to_owned(), |line| text.replace(line.whole, " ")));
    let (flag, line) = match (numbered, verdict) {
        (Some(_), Some(Verdict::Correct)) => (None, None),
        (Some(line), _) => (Some(true), Some(line)),
        (None, verdict) => (verdict.map(Verdict::has_error), None),
    };
    let parse = match (flag, &line) {
        (None, _) => Parse::Unread,
        (Some(true), Some(line)) if line.is_plain && line.whole == text => Parse::Ok,
        (Some(false), _) if text == "CORRECT" => Parse::Ok,
        _ => Parse::Repaired,
    };
    let reading = Reading {
        flag,
        sentence_id: line.as_ref().map(|line| line.sentence_id),
        correction: line.map(|line| line.correction),
    };
    (reading, parse)
}

/// Digits of other scripts as ASCII has them.
pub fn with_ascii_digits(text: &str) -> String {
    let digit = |c: char| match c {
        '٠'..='٩' => char::from_u32(c as u32 - '٠' as u32 + '0' as u32),
        '０'..='９' => char::from_u32(c as u32 - '０' as u32 + '0' as u32),
        _ => None,
    };
    text.chars().map(|c| digit(c).unwrap_or(c)).collect()
}

/// The sentence whose number the text begins with, as it was asked for.
fn leading(text: &str, sentences: usize) -> Option<Numbered<'_>> {
    let (number, rest) =
        text.split_once(char::is_whitespace).unwrap_or((text, &text[text.len()..]));
    let sentence_id = number.trim_end_matches(['.', ':', ')']).parse().ok();
    let sentence_id = sentence_id.filter(|sentence_id| *sentence_id < sentences)?;
    let paragraph = rest.trim().split("\n\n").next().unwrap_or(rest).trim();
    let end = paragraph.as_ptr() as usize - text.as_ptr() as usize + paragraph.len();
    let whole = &text[..end.min(text.len())];
    Some(Numbered { whole, sentence_id, correction: paragraph.to_owned(), is_plain: true })
}

/// The sentence of a JSON object with a field for its number.
fn in_record(text: &str, sentences: usize) -> Option<Numbered<'_>> {
    let field = |found: &json::Found, word: &str, other: &str| {
        let mut fields = found.object.iter();
        let named = fields.find(|(key, _)| {
            let key = key.to_lowercase();
            key.contains(word) && !key.contains(other)
        });
        named.map(|(_, value)| reading::text(value))
    };
    json::objects(text).into_iter().find_map(|found| {
        let number = field(&found, "id", "correct").or_else(|| field(&found, "number", "correct"));
        let number = number.or_else(|| field(&found, "sentence", "correct"))?;
        let sentence_id = number.trim().parse().ok().filter(|one| *one < sentences)?;
        let correction = field(&found, "correct", "incorrect").unwrap_or_default();
        Some(Numbered { whole: &text[found.place], sentence_id, correction, is_plain: false })
    })
}

/// A sentence's number, and what follows it in its paragraph.
struct Numbered<'a> {
    whole: &'a str,
    sentence_id: usize,
    correction: String,
    /// Whether nothing but a space stands between the number and the sentence.
    is_plain: bool,
}

fn numbered_line(text: &str, sentences: usize) -> Option<Numbered<'_>> {
    static LINE: Pattern = Pattern::new(concat!(
        r"(?im)^[ \t>#*_`\x22“(\[]*(?:- )?(?:(?:erroneous |incorrect |wrong |error |corrected |the )*(?:sentence|satz|frase|phrase|oración|line|id)(?: id| number| no\.?)?[ \t]*[#:]?[ \t]*|第)?",
        r"(\d{1,3})(?:[*_`\x22”)\]]*[.:)\]|,*_–—-]*[ \t*_`]+|[*_`)\].:]*[：:句]?[ \t]*|[*_]*$)((?:\S.*(?:\n[^\n]+)*)?)$",
    ));
    let mut found = LINE.captures_iter(text).filter_map(|line| {
        let sentence_id = line[1].parse().ok().filter(|sentence_id| *sentence_id < sentences)?;
        // 1.5 is no sentence's number.
        let after = &text[line.get(1)?.end()..];
        let is_decimal =
            after.starts_with('.') && after[1..].starts_with(|c: char| c.is_ascii_digit());
        let whole = line.get(0)?.as_str();
        let correction = line[2].trim().to_owned();
        let found = Numbered { whole, sentence_id, correction, is_plain: false };
        (!is_decimal).then_some(found)
    });
    found.next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panel::scripted::Script;
    use crate::systems::SystemConfig;
    use crate::systems::scripted::{check, note};

    fn says(text: &str, release_compat: bool) -> Reading {
        let (reading, parse) = read(text, 3, release_compat);
        assert_eq!(parse == Parse::Unread, reading == Reading::default());
        reading
    }

    #[test]
    fn a_number_and_a_sentence_or_one_word() {
        let right = Reading { flag: Some(false), ..Reading::default() };
        let wrong = |sentence_id, correction: &str| Reading {
            flag: Some(true),
            sentence_id: Some(sentence_id),
            correction: Some(correction.to_owned()),
        };
        assert_eq!(says("CORRECT", false), right);
        assert_eq!(says(" correct. \n", false), right);
        assert_eq!(says("2 Give B.", false), wrong(2, "Give B."));
        assert_eq!(says("2. Give\nB.", false), wrong(2, "Give\nB."));
        assert_eq!(says("<think>0 no</think>1 Yes", false), wrong(1, "Yes"));
        assert_eq!(says("0", false), wrong(0, ""));
        assert_eq!(says("The text is correct", false), right);
        let somewhere = Reading { flag: Some(true), ..Reading::default() };
        assert_eq!(says("INCORRECT", false), somewhere);
        for unreadable in ["3 Too far.", "-1", "", "CORRECT\n1 Give B.", "1.5 x"] {
            assert_eq!(says(unreadable, false), Reading::default(), "{unreadable}");
        }
        // The published code takes INCORRECT for CORRECT.
        assert_eq!(says("INCORRECT: 2 Give B.", true), right);
        assert_eq!(says("2 Give B.", true), wrong(2, "Give B."));
    }

    #[test]
    fn the_model_is_asked_again_where_it_cannot_be_read() {
        let config = SystemConfig::parse("base-llm", &["prompt=2"]).unwrap();
        let ask = |replies: [&'static str; 2]| {
            let script = Script::new(move |key, _| replies[key.sample as usize].to_owned());
            check(&config, &note(), script)
        };
        let (record, calls) = ask(["1 Beta agonists were given.", "never"]);
        assert_eq!((record.flag, record.sentence_id, calls.len()), (Some(true), Some(1), 1));
        assert_eq!(record.correction.as_deref(), Some("Beta agonists were given."));
        assert!(calls[0].messages[0].content.contains("\n1 Beta blockers"));
        let (record, calls) = ask(["hm", "CORRECT"]);
        assert_eq!((record.flag, calls.len()), (Some(false), 2));
        let (record, _) = ask(["hm", "hm"]);
        assert_eq!(record.flag, None);
        assert_eq!(record.detection.unwrap().flags, [None]);
    }
}
