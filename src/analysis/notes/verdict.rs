//! Which parts of a note's outcome are right.

use crate::record::{LocalisationLine, NO_SENTENCE, NoteLine, SettledBy};

/// Of an item that errored nothing is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the flag is right; what could not be read is not.
    pub is_detected: bool,
    /// Whether the flag could be read.
    pub is_read: bool,
    /// Whether the sentence is, or its absence; by likeness.
    pub is_located: bool,
    /// The same where the system's words must equal the sentence.
    pub is_located_exactly: bool,
}

pub fn verdict(note: &NoteLine) -> Verdict {
    let gold = note.gold.as_ref();
    let is_read = note.flag.is_read() && note.error.is_none();
    let wanted = gold.and_then(|gold| gold.sentence_id);
    // What could not be read does not say that no sentence is wrong.
    let says_something = note.sentence_id.is_some() || says_no_sentence(note);
    let locates = |id: Option<usize>| is_read && gold.is_some() && id == wanted && says_something;
    Verdict {
        is_detected: is_read && note.flag.said() == gold.map(|gold| gold.flag),
        is_read,
        is_located: locates(note.sentence_id),
        is_located_exactly: locates(note.exact_sentence_id)
            && note.sentence_id == note.exact_sentence_id,
    }
}

/// Whether it was said that no sentence is wrong: that there is no error, or that no sentence has it.
pub fn says_no_sentence(note: &NoteLine) -> bool {
    match &note.localisation {
        Some(localisation) => says_none(localisation),
        None => note.flag.is_clear(),
    }
}

/// Whether a stage that gave no sentence said so.
fn says_none(localisation: &LocalisationLine) -> bool {
    let says = |opinion: &String| opinion == NO_SENTENCE;
    let opinions = &localisation.opinions;
    match localisation.source {
        // Of a vote, the majority, else the first that could be read.
        SettledBy::Vote => {
            opinions.iter().filter(|one| says(one)).count() > 1
                || opinions.iter().find(|one| !one.is_empty()).is_some_and(says)
        }
        _ => opinions.last().is_some_and(says),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::notes::{Pairing, pairing};
    use crate::record::GoldLine;

    /// What was found in a sound note.
    fn sound(flag: Option<bool>, opinions: Option<&[&str]>) -> NoteLine {
        let localisation = opinions.map(|opinions| LocalisationLine {
            source: SettledBy::Single,
            agents: vec!["loc1".to_owned(); opinions.len()],
            opinions: opinions.iter().map(|one| (*one).to_owned()).collect(),
            sentence_ids: vec![None; opinions.len()],
            confidences: vec![None; opinions.len()],
        });
        let gold = GoldLine {
            flag: false,
            sentence_id: None,
            sentence: None,
            correction: None,
            kind: None,
            keywords: Vec::new(),
        };
        NoteLine { flag: flag.into(), localisation, gold: Some(gold), ..NoteLine::default() }
    }

    #[test]
    fn only_what_was_said_earns_the_point_of_a_sound_note() {
        for (flag, opinions, earns) in [
            (Some(false), None, true),
            // «INCORRECT» without a sentence.
            (Some(true), None, false),
            (Some(true), Some(&[""][..]), false),
            (Some(true), Some(&[NO_SENTENCE]), true),
            (None, None, false),
        ] {
            let note = sound(flag, opinions);
            assert_eq!(verdict(&note).is_located, earns, "{note:?}");
            let is_nothing = matches!(pairing(&note), Pairing::BothNothing);
            assert_eq!(is_nothing, earns, "{note:?}");
        }
    }
}
