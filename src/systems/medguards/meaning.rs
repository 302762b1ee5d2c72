//! What an agent's words mean in a note: which of its sentences they quote, and whether they correct one.

use super::parse::{self, Located, Said, Wanted, read, read_where};
use super::settings::Localisation;
use super::tags::tagged;
use crate::data::Note;
use crate::record::Parse;
use crate::systems::file::form::{CHANGED, alike};
use crate::systems::reading::correction::{change, is_cut_off};
use crate::text::align;

/// How alike a quotation must be to the sentence that it is taken for.
const LIKENESS: f64 = 0.5;

/// The sentence of the note that these words mean.
fn place(localisation: Localisation, note: &Note, words: &str) -> Option<usize> {
    match localisation {
        Localisation::Hard => parse::place(words, note),
        // A text without letters is of none.
        Localisation::Soft if !words.contains(char::is_alphabetic) => None,
        Localisation::Soft => alike(note, words, LIKENESS),
        // Of sentences that are all as unlike, the first.
        Localisation::Likest => {
            let found = align(&note.sentences, words, note.language);
            let likest = found.map_or(0, |found| found.index);
            (likest < note.sentences.len()).then_some(likest)
        }
    }
}

/// Reads a reply on this note, in which words that mean none of its sentences are no place; nor, outside the tags, are words unlike all.
pub fn read_on(
    localisation: Localisation,
    wanted: Wanted,
    note: &Note,
    text: &str,
) -> (Said, Parse) {
    // Likest words are of some sentence always.
    let by = match localisation {
        Localisation::Likest if tagged(text, "result").is_none() => Localisation::Soft,
        other => other,
    };
    let (mut said, parse) = read_where(wanted, text, |words| place(by, note, words).is_some());
    if let Located::Said(words) = &said.located {
        said.sentence_id = place(localisation, note, words);
    }
    (said, parse)
}

/// Reads a correction of this sentence of a note; a text without tags must be like it.
pub fn read_correction(note: &Note, id: usize, text: &str) -> (Said, Parse) {
    let (mut said, parse) = read(Wanted::Correction, text);
    let is_correction = |correction: &String| {
        let is_like = || {
            let sentence = &note.sentences[id..=id];
            let found = align(sentence, correction, note.language);
            found.is_some_and(|found| found.ratio >= CHANGED)
        };
        change(correction, Some(id), note).is_some()
            && !is_cut_off(correction, note)
            && (tagged(text, "result").is_some() || is_like())
    };
    if said.correction.as_ref().is_none_or(is_correction) {
        return (said, parse);
    }
    said.correction = None;
    (said, Parse::Unread)
}
