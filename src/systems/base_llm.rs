//! The reply of MEDEC's prompts on a note: that it is correct, or which sentence is wrong and its correction.

use serde::Serialize;

use crate::data::Note;
use crate::record::{FinishReason, Grammar, Parse};
use crate::systems::decoding::Decoding;
use crate::systems::file::form::{CHANGED, most_similar};
use crate::systems::messages::numbers;
use crate::systems::reading::correction::{change, corrected, word_count};
use crate::systems::reading::verdict::verdict;
use crate::systems::reading::{plain, record, said, sentences, text as words};
use crate::text::{Pattern, align};

/// A parsed reply: `CORRECT`, or the number of a sentence and its correction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// Whether the note has an error; `None` where the reply does not say.
    pub flag: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentence_id: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub contradiction: bool,
}

/// `CORRECT`, or a sentence's number and a sentence.
pub fn grammar(note: &Note, decoding: &Decoding) -> Grammar {
    let (ids, chars) = (numbers(note), decoding.sentence_chars(note));
    // One line: a list of the note's sentences names none.
    Grammar::Regex(format!("CORRECT|({ids}) [^\\n]{{1,{chars}}}"))
}

/// Parses a reply on a note: the only line that begins with a sentence's number and changes that sentence, or a verdict. A number before
/// words that are not like its sentence, or more like another, is none of a sentence, and a reply that says both has no flag.
pub fn read(text: &str, note: &Note) -> (Reading, Parse) {
    static LINE: Pattern =
        Pattern::new(r"(?m)^[ \t>#*_`-]*(?:[Ss]entence )?(\d{1,3})[.:)*_]*[ \t]+(\S.*)$");
    let text = said(text);
    let listed = LINE.captures_iter(text).count();
    let kept = note.sentences.iter().filter(|one| text.contains(one.trim())).count();
    let numbered = LINE.captures_iter(text).filter_map(|line| {
        let (id, words): (usize, &str) = (line[1].parse().ok()?, line.get(2)?.as_str());
        let sentence = note.sentences.get(id)?;
        let correction = change(corrected(words), Some(id), note)?;
        let found = align(&[sentence], &correction, note.language);
        let is_like = found.is_some_and(|found| found.ratio >= CHANGED);
        // In the very form that was asked for a sentence may be quite another, but not about the note.
        let is_asked = text == format!("{id} {words}") && is_sentence(&correction, sentence);
        let is_other = most_similar(note, &correction).is_some_and(|like| like != id);
        // A list in one line is one.
        let is_list = sentences(&correction).skip(1).any(is_numbered);
        let is_one = (is_like || is_asked) && !is_other && !is_list;
        is_one.then_some((id, correction))
    });
    let mut changes: Vec<(usize, String)> = numbered.collect();
    changes.extend(labelled(text, note));
    changes.dedup();
    let verdict = verdict(text);
    let contradiction = verdict.contradicts || !changes.is_empty() && verdict.flag == Some(false);
    let (flag, change) = match (changes.len(), verdict.flag) {
        _ if contradiction => (None, None),
        // A list that is not of the whole note goes on, or is about something else.
        _ if listed > 1 && listed != note.sentences.len() => (None, None),
        (0, flag) => (flag, None),
        // The whole note typed again, with others of its sentences lost, corrects none.
        (1, _) if listed < 2 || kept + 1 >= listed => (Some(true), changes.pop()),
        _ => (None, None),
    };
    let is_alone = text.lines().count() == 1;
    let parse = match flag {
        None => Parse::Unread,
        Some(false) if text == "CORRECT" => Parse::Ok,
        Some(true) if is_alone && text.starts_with(|c: char| c.is_ascii_digit()) => Parse::Ok,
        Some(_) => Parse::Fallback,
    };
    let (sentence_id, correction) = change.unzip();
    (Reading { flag, sentence_id, correction, contradiction }, parse)
}

/// Whether a sentence, which may be cut, begins with a number: «2 She went».
fn is_numbered(sentence: &str) -> bool {
    let rest = sentence.trim_start_matches(|c: char| c.is_ascii_digit());
    let words = rest.trim_start_matches(['.', ')', ':']).strip_prefix(' ');
    rest.len() < sentence.len() && words.is_some_and(|words| words.starts_with(char::is_uppercase))
}

/// Whether words are one sentence, whole where the note's own has a mark at its end, and not one about sentences.
fn is_sentence(words: &str, own: &str) -> bool {
    const OF_TEXTS: [&str; 4] = [" sentence ", " statement ", " note ", " text "];
    let is_small = words.starts_with(|c: char| c.is_lowercase() || c.is_ascii_digit());
    let is_about = OF_TEXTS.iter().any(|one| plain(words).contains(one));
    let [is_ended, is_own] =
        [words, own].map(|one| one.trim_end().ends_with(['.', '。', '!', '?']));
    let is_one = (is_ended || !is_own) && sentences(words).count() == 1;
    !is_small && !is_about && is_one && word_count(words) > 1
}

/// The sentence that fields name: `{"sentence_id": 5, "corrected_sentence": "…"}`, or lines of such labels.
fn labelled(text: &str, note: &Note) -> Option<(usize, String)> {
    let fields = |fields: &record::Object| {
        let find = |names: &[&str]| names.iter().find_map(|name| fields.get(*name)).map(words);
        let id: usize = find(&["id", "sentence_id"])?.trim().parse().ok()?;
        let correction = find(&["correction", "corrected_sentence"])?;
        note.sentences.get(id)?;
        Some((id, change(&correction, Some(id), note)?))
    };
    Some(record::read_or_lines(text, FinishReason::Stop, fields)?.0)
}

/// The text with ASCII digits in place of Arabic-Indic and full-width ones.
pub fn with_ascii_digits(text: &str) -> String {
    let value = |c: char, zero: char| (c as u32).checked_sub(zero as u32).filter(|it| *it < 10);
    let digit = |c: char| value(c, '٠').or(value(c, '０')).and_then(|it| char::from_digit(it, 10));
    text.chars().map(|c| digit(c).unwrap_or(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panel::scripted::Script;
    use crate::record::Parse;
    use crate::systems::SystemConfig;
    use crate::systems::scripted::{check, note};

    fn says(text: &str) -> Reading {
        let (reading, parse) = read(text, &note());
        assert_eq!(parse == Parse::Unread, reading.flag.is_none());
        reading
    }

    #[test]
    fn a_number_and_a_sentence_or_one_word() {
        const BETTER: &str = "Beta agonists were given for the attack.";
        let right = Reading { flag: Some(false), ..Reading::default() };
        let correction = Some(BETTER.to_owned());
        let wrong = Reading { sentence_id: Some(1), correction, ..says("INCORRECT") };
        assert_eq!(says("CORRECT"), right);
        assert_eq!(says(" correct. \n"), right);
        assert_eq!(says("The text is correct"), right);
        assert_eq!(says(&format!("1 {BETTER}")), wrong);
        assert_eq!(says(&format!("INCORRECT\n1. {BETTER}")), wrong);
        let note = note();
        let all = format!("0 {}\n1 {BETTER}\n2 {}", note.sentences[0], note.sentences[2]);
        assert_eq!(says(&all), wrong);
        let somewhere = Reading { flag: Some(true), ..Reading::default() };
        assert_eq!(says("INCORRECT"), somewhere);
        for unreadable in [
            "",
            "-1",
            "0",
            "1",
            "1.5 x",
            "2 weeks of B",
            "2 110/70 mm Hg at rest",
            "3 Too far.",
            "1 Beta blockers were given for the attack.",
            "0 The mother of the child is 45.\n1 Her ankle is swollen.\n2 A rash is on both arms.",
            "1 Beta agonists were given for the attack.\n2 She went to a home.",
            "0 She went home.\n1 Beta agonists were given for the attack.\n2 She went home.",
            "1 Beta blockers were given",
            "1 The sentence does not fit the findings of the note.",
            "1 The exam is normal 2 An ultrasound shows nothing 3 A puncture is performed",
            "1 Her tablets are stopped. You are considering a ward. She states,",
            "1. She has asthma.",
            "1 She went to her home.",
            "1 Beta agonists were given for the attack. 2 She went to a",
            "1 A 30-year-old woman came in with some wheezing.",
            "0 A 30-year-old woman came with wheezing.\n1 Beta agonists were given for the attack.",
        ] {
            assert_eq!(says(unreadable), Reading::default(), "{unreadable}");
        }
        for both in
            ["1 Beta agonists were given for the attack.\nCORRECT", "CORRECT\nSentence 1 is wrong."]
        {
            let contradiction = Reading { contradiction: true, ..Reading::default() };
            assert_eq!(says(both), contradiction, "{both}");
        }
    }

    #[test]
    fn the_model_is_asked_again_where_it_cannot_be_read() {
        let config = SystemConfig::parse("base-llm", &[""; 0]).unwrap();
        let ask = |replies: [&'static str; 2]| {
            let script = Script::new(move |key, _| replies[key.sample as usize].to_owned());
            check(&config, &note(), script)
        };
        let (record, calls) = ask(["1 Beta agonists were given.", "never"]);
        assert_eq!((record.flag.said(), record.sentence_id, calls.len()), (Some(true), Some(1), 1));
        assert_eq!(record.correction.as_deref(), Some("Beta agonists were given."));
        assert!(calls[0].messages[0].content.contains("\n1 Beta blockers"));
        // A sentence as it stands corrects nothing.
        let (record, calls) = ask(["1 Beta blockers were given for the attack.", "hm"]);
        assert_eq!((record.flag.said(), record.sentence_id, calls.len()), (None, None, 2));
        let (record, calls) = ask(["hm", "CORRECT"]);
        assert_eq!((record.flag.said(), calls.len()), (Some(false), 2));
        let (record, _) = ask(["hm", "hm"]);
        assert_eq!(record.flag.said(), None);
        assert_eq!(record.detection.unwrap().flags, [None]);
    }
}
