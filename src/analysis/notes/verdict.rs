//! Which parts of a note's outcome are right.

use crate::record::{LocalisationLine, NO_SENTENCE, NoteLine, Source};

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
    let is_read = note.flag.is_some() && note.error.is_none();
    let wanted = gold.and_then(|gold| gold.sentence_id);
    // A reply that could not be read does not say that there is no error.
    let says_something = match &note.localisation {
        Some(localisation) => note.sentence_id.is_some() || says_none(localisation),
        None => true,
    };
    let locates = |id: Option<usize>| is_read && gold.is_some() && id == wanted && says_something;
    Verdict {
        is_detected: is_read && note.flag == gold.map(|gold| gold.flag),
        is_read,
        is_located: locates(note.sentence_id),
        is_located_exactly: locates(note.exact_sentence_id)
            && note.sentence_id == note.exact_sentence_id,
    }
}

/// Whether a stage that gave no sentence said so.
fn says_none(localisation: &LocalisationLine) -> bool {
    let says = |opinion: &String| opinion == NO_SENTENCE;
    let opinions = &localisation.opinions;
    match localisation.source {
        Source::Vote => {
            opinions.iter().filter(|one| says(one)).count() > 1
                || opinions.first().is_some_and(says)
        }
        _ => opinions.last().is_some_and(says),
    }
}
