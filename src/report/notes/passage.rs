//! The text of a note, taken back out of the first prompt about it, with the sentences that were named marked in it.

use std::ops::Range;

use serde::Serialize;

use crate::prompts::PromptSet;
use crate::record::{CallLine, NoteLine};
use crate::report::prompts::user_message;

/// The prompts of a run's system, as this build has them.
pub struct Instructions {
    texts: Vec<String>,
}

/// What a note's card shows of its text.
#[derive(Serialize)]
pub struct Passage<'a> {
    #[serde(skip)]
    pub text: &'a str,
    pub segments: Vec<Segment<'a>>,
    /// Whether the prompt's instructions could not be told from the note, as where others were given.
    pub is_prompt: bool,
    /// Whether a sentence was named that the text does not hold word for word; likewise the gold one.
    pub lacks_located: bool,
    pub lacks_gold: bool,
}

/// Part of a text that one mark, both or none is on.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Segment<'a> {
    pub text: &'a str,
    pub located: bool,
    pub gold: bool,
}

impl Instructions {
    pub fn of(system: &str) -> Instructions {
        let prompts = PromptSet::embedded();
        Instructions {
            texts: prompts.texts(system).map(str::to_owned).collect(),
        }
    }

    /// What follows the instructions and an empty line; `None` where a message begins with none of them.
    fn cut<'m>(&self, message: &'m str) -> Option<&'m str> {
        let texts = self.texts.iter().filter(|text| !text.is_empty());
        let begun = texts.filter(|text| message.starts_with(text.as_str()));
        let longest = begun.map(String::len).max()?;
        // With sentences by number, a line more of instructions follows before the note.
        let (_, note) = message[longest..].split_once("\n\n")?;
        Some(note.trim())
    }
}

impl<'a> Passage<'a> {
    /// `None` where no call was made. The calls are in the order in which they were made.
    pub fn of(
        note: &NoteLine,
        calls: &[&'a CallLine],
        instructions: &Instructions,
    ) -> Option<Passage<'a>> {
        let message = calls.iter().find_map(|call| user_message(call))?;
        let cut = instructions.cut(message);
        let text = cut.unwrap_or(message);
        let gold = note.gold.as_ref();
        let gold = gold.and_then(|gold| gold.sentence.as_deref());
        let located = note.sentence_id.map(|_| note.sentence.as_str());
        let places = [located, gold].map(|sentence| find(text, sentence?));
        Some(Passage {
            text,
            is_prompt: cut.is_none(),
            lacks_located: located.is_some() && places[0].is_none(),
            lacks_gold: gold.is_some() && places[1].is_none(),
            segments: segments(text, places),
        })
    }
}

/// Where a sentence stands in a text, whatever blanks are between its words; `None` too for one without words.
fn find(text: &str, sentence: &str) -> Option<Range<usize>> {
    let black = |text: &str| -> Vec<(usize, char)> {
        let places = text.char_indices();
        places.filter(|(_, one)| !one.is_whitespace()).collect()
    };
    let (text, sentence) = (black(text), black(sentence));
    if sentence.is_empty() {
        return None;
    }
    let mut windows = text.windows(sentence.len());
    let is_same = |window: &[(usize, char)]| {
        let pairs = window.iter().zip(&sentence);
        pairs.into_iter().all(|((_, one), (_, other))| one == other)
    };
    let window = windows.find(|window| is_same(window))?;
    let (first, (last, character)) = (window.first()?.0, *window.last()?);
    Some(first..last + character.len_utf8())
}

/// The text cut at both ends of both places; joined, the segments are the text.
fn segments<'a>(text: &'a str, places: [Option<Range<usize>>; 2]) -> Vec<Segment<'a>> {
    let mut cuts = vec![0, text.len()];
    cuts.extend(places.iter().flatten().flat_map(|one| [one.start, one.end]));
    cuts.sort_unstable();
    cuts.dedup();
    let covers = |place: &Option<Range<usize>>, start: usize| {
        place.as_ref().is_some_and(|one| one.contains(&start))
    };
    let segment = |ends: &[usize]| Segment {
        text: &text[ends[0]..ends[1]],
        located: covers(&places[0], ends[0]),
        gold: covers(&places[1], ends[0]),
    };
    cuts.windows(2).map(segment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str, located: &str, gold: &str) -> String {
        let segments = segments(text, [located, gold].map(|one| find(text, one)));
        let joined: String = segments.iter().map(|one| one.text).collect();
        assert_eq!(joined, text);
        let told = segments.iter().map(|one| match (one.located, one.gold) {
            (true, true) => format!("<{}>", one.text),
            (true, false) => format!("[{}]", one.text),
            (false, true) => format!("({})", one.text),
            (false, false) => one.text.to_owned(),
        });
        told.collect()
    }

    #[test]
    fn sentences_are_marked_wherever_they_stand() {
        let text = "First one. Second\n one. Last.";
        assert_eq!(
            marked(text, "Second one.", "Last."),
            "First one. [Second\n one.] (Last.)"
        );
        assert_eq!(
            marked(text, "Last.", "Last."),
            "First one. Second\n one. <Last.>"
        );
        assert_eq!(
            marked(text, "one. Second", "Second one."),
            "First [one. ]<Second>(\n one.) Last."
        );
        assert_eq!(marked(text, "Third.", " "), text);
        assert_eq!(marked("", "x", "y"), "");
        assert_eq!(
            marked("发热三天。诊断肺炎。", "诊断肺炎。", "发热三天。"),
            "(发热三天。)[诊断肺炎。]"
        );
    }

    #[test]
    fn instructions_are_cut_off_where_they_are_known() {
        let prompts = PromptSet::embedded();
        let prompt = prompts.get("medguards/detection-a.txt", &[]).unwrap();
        let instructions = Instructions::of("medguards");
        let cut = |message: &str| instructions.cut(message).map(str::to_owned);
        let note = "He is 29.\n\nHe has a fever.";
        assert_eq!(cut(&format!("{prompt}\n\n{note}")).as_deref(), Some(note));
        assert_eq!(
            cut(&format!("{prompt} More.\n\n{note}")).as_deref(),
            Some(note)
        );
        assert_eq!(cut(prompt), None);
        assert_eq!(cut(note), None);
    }
}
