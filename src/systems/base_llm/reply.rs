//! Parses a base model's reply on a note: that it is correct, or which sentence is wrong and its correction.

use serde::Serialize;

use crate::record::Parse;
use crate::systems::case::Record;
use crate::systems::reading::correction::corrected;
use crate::systems::reading::verdict::{Verdict, verdict};
use crate::systems::reading::{self, json, without_thinking};
use crate::text::Pattern;

/// A parsed reply: `CORRECT`, or the number of a sentence and its correction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// Whether the note has an error; `None` where the reply does not say.
    pub flag: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentence_id: Option<usize>,
    /// Empty where the reply has the number only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<String>,
}

impl Record for Reading {}

/// Parses a reply on a note of so many sentences: a line that begins with a sentence's number, else whether it says that there is an error.
/// A reply that calls the note correct and corrects a sentence has no flag.
pub fn read(text: &str, sentences: usize, release_compat: bool) -> (Reading, Parse) {
    let text = without_thinking(text).trim();
    if release_compat && text.to_uppercase().contains("CORRECT") {
        return (Reading { flag: Some(false), ..Reading::default() }, Parse::Ok);
    }
    let whole = text;
    let text = &without_right_lines(&with_ascii_digits(text));
    let numbered = match enumeration(text, sentences) {
        Enumeration::Answered(answer) => leading(answer, sentences),
        Enumeration::Unanswered => None,
        Enumeration::None => leading(text, sentences)
            .or_else(|| in_record(text, sentences))
            .or_else(|| numbered_line(text, sentences))
            .or_else(|| named(text, sentences)),
    };
    let verdict =
        verdict(&numbered.as_ref().map_or(text.to_owned(), |line| text.replace(line.whole, " ")));
    let (flag, line) = match (numbered, verdict) {
        (Some(_), Some(Verdict::Correct)) => (None, None),
        (Some(line), _) => (Some(true), Some(line)),
        (None, verdict) => (verdict.map(Verdict::has_error), None),
    };
    let parse = match (flag, &line) {
        (None, _) => Parse::Unread,
        (Some(true), Some(line)) if line.is_plain && line.whole == whole => Parse::Ok,
        (Some(false), _) if text == "CORRECT" => Parse::Ok,
        _ => Parse::Repaired,
    };
    let reading = Reading {
        flag,
        sentence_id: line.as_ref().map(|line| line.sentence_id),
        correction: line.map(|line| corrected(&line.correction).to_owned()),
    };
    (reading, parse)
}

/// A list of all sentences as «3 CORRECT» but one, as that one alone.
fn without_right_lines(text: &str) -> String {
    static RIGHT: Pattern =
        Pattern::new(r"(?i)\A[ \t>*_-]*\d{1,3}[.:)*_]*[ \t]+[*_]*(?:correct|ok)[*_.]*\s*\z");
    static NUMBERED: Pattern = Pattern::new(r"\A[ \t>*_-]*\d{1,3}[.:)*_]*[ \t]+\S");
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let (right, others): (Vec<&str>, Vec<&str>) = lines.partition(|line| RIGHT.is_match(line));
    match others[..] {
        [one] if right.len() > 1 && NUMBERED.is_match(one) => one.trim().to_owned(),
        _ => text.to_owned(),
    }
}

/// Whether a reply goes through the note sentence by sentence.
enum Enumeration<'a> {
    /// It does not.
    None,
    /// It does, and repeats one of the sentences after that: the answer.
    Answered(&'a str),
    /// It does, and gives no answer.
    Unanswered,
}

/// Lines that go through three or more sentences, each with its number, are no answer; a paragraph after them that begins with one of the
/// numbers is.
fn enumeration(text: &str, sentences: usize) -> Enumeration<'_> {
    static LINE: Pattern =
        Pattern::new(r"(?m)^[ \t>*_-]*(?:[Ss]entence )?(\d{1,3})(?:[.:)*_]*[ \t])");
    let lines = LINE.captures_iter(text).filter_map(|line| {
        let number = line.get(1)?;
        Some((number.start(), number.as_str().parse().ok().filter(|id| *id < sentences)?))
    });
    let lines: Vec<(usize, usize)> = lines.collect();
    let rises = lines.windows(2).filter(|pair| pair[0].1 + 1 == pair[1].1).count();
    if rises < 2 {
        return Enumeration::None;
    }
    let (at, id) = lines[lines.len() - 1];
    let is_again = lines[..lines.len() - 1].iter().any(|(_, other)| *other == id);
    match is_again && text[..at].trim_end_matches([' ', '*', '_']).ends_with("\n\n") {
        true => Enumeration::Answered(&text[at..]),
        false => Enumeration::Unanswered,
    }
}

/// The sentence in which a reply says that the error is, and its correction.
fn named(text: &str, sentences: usize) -> Option<Numbered<'_>> {
    static NAMED: Pattern = Pattern::new(
        r"(?i)\b(?:error|mistake|incorrect|wrong|erroneous)\b[^.\n\d]{0,40}\b(?:sentence|line|number|id)(?: (?:id|number|no\.?))?[ \t]*[#:]?[ \t]*(\d{1,3})\b",
    );
    let found = NAMED.captures(text)?;
    let sentence_id = found[1].parse().ok().filter(|id| *id < sentences)?;
    let said = corrected(&text[found.get(0)?.end()..]);
    // Where nothing marks a correction, the rest of the text is none.
    let rest = text[found.get(0)?.end()..].trim();
    let correction = if said == rest { String::new() } else { said.to_owned() };
    Some(Numbered { whole: found.get(0)?.as_str(), sentence_id, correction, is_plain: false })
}

/// The text with ASCII digits in place of Arabic-Indic and full-width ones.
pub fn with_ascii_digits(text: &str) -> String {
    let digit = |c: char| match c {
        '٠'..='٩' => char::from_u32(c as u32 - '٠' as u32 + '0' as u32),
        '０'..='９' => char::from_u32(c as u32 - '０' as u32 + '0' as u32),
        _ => None,
    };
    text.chars().map(|c| digit(c).unwrap_or(c)).collect()
}

/// The sentence whose number the text begins with, which is the format that the prompt asks for.
fn leading(text: &str, sentences: usize) -> Option<Numbered<'_>> {
    let (number, rest) =
        text.split_once(char::is_whitespace).unwrap_or((text, &text[text.len()..]));
    let sentence_id = number.trim_end_matches(['.', ':', ')']).parse().ok();
    let sentence_id = sentence_id.filter(|sentence_id| *sentence_id < sentences)?;
    if number.ends_with(|c: char| c.is_ascii_digit()) && is_amount(rest) {
        return None;
    }
    let paragraph = rest.trim().split("\n\n").next().unwrap_or(rest).trim();
    let end = paragraph.as_ptr() as usize - text.as_ptr() as usize + paragraph.len();
    let whole = &text[..end.min(text.len())];
    Some(Numbered { whole, sentence_id, correction: paragraph.to_owned(), is_plain: true })
}

/// Whether a number is a duration by what follows it, as in «3 weeks», rather than a sentence's number.
fn is_amount(after: &str) -> bool {
    static UNIT: Pattern = Pattern::new(r"^\s*(?:second|minute|hour|day|week|month|year)s\b");
    UNIT.is_match(after)
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

/// A sentence's number, and the rest of its paragraph.
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
        let is_amount = whole.starts_with(&line[1]) && is_amount(after);
        let correction = match line[2].trim() {
            "" => labelled(text).unwrap_or_default().to_owned(),
            said => said.to_owned(),
        };
        let found = Numbered { whole, sentence_id, correction, is_plain: false };
        (!is_decimal && !is_amount).then_some(found)
    });
    found.next()
}

/// The text after `Corrected sentence:` on its line.
fn labelled(text: &str) -> Option<&str> {
    static CORRECTED: Pattern = Pattern::new(
        r"(?im)^[\s>#*_-]*(?:corrected|correct|revised)(?: sentence| version)?[\s*_]*:[\s*_]*(\S.*)$",
    );
    Some(CORRECTED.captures(text)?.get(1)?.as_str())
}
