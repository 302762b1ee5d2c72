//! What an agent's words mean in a note: which of its sentences they quote, and whether they correct one.

use super::parse::{self, Said, Wanted, read, read_where};
use super::settings::{Localisation, Settings};
use super::tags::tagged;
use crate::data::Note;
use crate::record::Parse;
use crate::systems::exemplars::reply::CHANGED;
use crate::text::{Match, align};

/// How alike a quotation must be to the sentence that it is taken for.
const LIKENESS: f64 = 0.5;

/// The sentence of the note that these words mean: in the published code one of any likeness.
pub fn place(settings: &Settings, note: &Note, words: &str) -> Option<usize> {
    let compat = settings.release_compat;
    match settings.localisation {
        Localisation::Hard => parse::place(words, note),
        // Sentences are named by their words here, so a text without letters names none.
        Localisation::Soft if !words.contains(char::is_alphabetic) && !compat => None,
        Localisation::Soft => {
            let found = align(&note.sentences, words, note.language, settings.aligner);
            let found = found.filter(|found| compat || found.ratio >= LIKENESS);
            found.or(compat.then_some(Match::FIRST)).map(|found| found.index)
        }
    }
}

/// Reads a reply on this note, in which words that mean none of its sentences are no place.
pub fn read_on(settings: &Settings, wanted: Wanted, note: &Note, text: &str) -> (Said, Parse) {
    let compat = settings.release_compat;
    let is_place = |words: &str| compat || place(settings, note, words).is_some();
    read_where(wanted, text, compat, is_place)
}

/// Reads a correction of this sentence: as it stands it is none, and a text without tags must be like it.
pub fn read_correction(
    settings: &Settings,
    note: &Note,
    sentence: &str,
    text: &str,
) -> (Said, Parse) {
    let compat = settings.release_compat;
    let (mut said, parse) = read(Wanted::Correction, text, compat);
    let is_correction = |correction: &String| {
        let is_change = !correction.split_whitespace().eq(sentence.split_whitespace());
        let is_like = || {
            let found = align(&[sentence], correction, note.language, settings.aligner);
            found.is_some_and(|found| found.ratio >= CHANGED)
        };
        compat || is_change && (tagged(text, "result").is_some() || is_like())
    };
    if said.correction.as_ref().is_none_or(is_correction) {
        return (said, parse);
    }
    said.correction = None;
    (said, Parse::Unread)
}
