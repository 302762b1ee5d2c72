//! Exemplars for few-shot prompts: notes with gold, and how they are chosen for a note.

pub mod choice;
mod terms;

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

pub use choice::{Kinds, Ranking, Selection};

use self::terms::TfIdf;
use crate::data::Note;
use crate::record::GoldLine;

const GRAM: usize = 8;

pub struct Exemplar {
    pub note: Note,
    /// Why the note is right or wrong, in a model's words.
    pub reason: Option<String>,
    grams: HashSet<u64>,
}

impl Exemplar {
    pub fn error(&self) -> Option<&GoldLine> {
        self.note.error()
    }
}

/// The contents of `--exemplars` and related flags; empty where they were not given.
#[derive(Default)]
pub struct Exemplars {
    /// Notes with gold, in their file's order.
    pub notes: Vec<Exemplar>,
    tfidf: OnceLock<TfIdf>,
    wrong_sentences: OnceLock<TfIdf>,
}

impl Exemplars {
    /// The notes with gold, except those of MEDEC-UW, which its data-use agreement does not allow to show.
    pub fn new(
        notes: impl IntoIterator<Item = Note>,
        reasons: &BTreeMap<String, String>,
    ) -> Exemplars {
        let usable = |note: &Note| note.gold.is_some() && !note.id.starts_with("uw-");
        let exemplar = |note: Note| Exemplar {
            reason: reasons.get(&note.id).cloned(),
            grams: grams(&note.text),
            note,
        };
        let notes = notes.into_iter().filter(usable).map(exemplar).collect();
        Exemplars { notes, ..Exemplars::default() }
    }

    /// The places of the exemplars that may be shown with a note, in ascending order: those that share less than half of their n-grams with
    /// it, so that no copy of the note itself is shown.
    fn shown_beside(&self, note: &Note) -> Vec<usize> {
        let own = grams(&note.text);
        let is_other = |exemplar: &Exemplar| {
            let shared = exemplar.grams.intersection(&own).count();
            2 * shared < exemplar.grams.len()
        };
        let places = 0..self.notes.len();
        places.filter(|place| is_other(&self.notes[*place])).collect()
    }

    /// For every exemplar, the TF-IDF cosine of its wrong sentence and the note's sentence most similar to it; 0 where it has none.
    fn sentence_scores(&self, note: &Note) -> Vec<f64> {
        let wrong = self.notes.iter().map(Exemplar::error);
        let wrong = wrong.map(|error| error.and_then(|error| error.sentence.as_deref()));
        let index =
            self.wrong_sentences.get_or_init(|| TfIdf::new(wrong.map(Option::unwrap_or_default)));
        let mut best = vec![0.0; self.notes.len()];
        for sentence in &note.sentences {
            for (best, score) in best.iter_mut().zip(index.scores(sentence)) {
                *best = f64::max(*best, score);
            }
        }
        best
    }
}

/// Hashes of all n-grams of a text's words in lower case; a shorter text is one n-gram.
fn grams(text: &str) -> HashSet<u64> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    let hash = |gram: &[&str]| {
        let mut hasher = DefaultHasher::new();
        gram.hash(&mut hasher);
        hasher.finish()
    };
    match words.len() < GRAM {
        true => HashSet::from([hash(&words)]),
        false => words.windows(GRAM).map(hash).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::scripted::note;

    fn named(id: &str, text: &str) -> Note {
        Note { id: id.to_owned(), text: text.to_owned(), ..note() }
    }

    fn of(notes: impl IntoIterator<Item = Note>) -> Exemplars {
        Exemplars::new(notes, &BTreeMap::new())
    }

    #[test]
    fn a_note_that_shares_half_its_grams_is_not_shown() {
        let long = "one two three four five six seven eight nine ten eleven twelve";
        let half = "one two three four five six seven eight nine a";
        let less = "one two three four five six seven eight a b";
        let exemplars = of([named("same", long), named("half", half), named("less", less)]);
        assert_eq!(exemplars.shown_beside(&named("item", long)), [2]);
        // What is shared is counted over the exemplar's own grams: a short one may be part of a long note.
        let part = named("item", "One two, three four five six seven EIGHT nine a");
        assert_eq!(exemplars.shown_beside(&part), [0, 2]);
        let short = of([named("short", "Well.")]);
        assert!(short.shown_beside(&named("item", "well")).is_empty());
        assert_eq!(short.shown_beside(&named("item", "ill")), [0]);
    }

    #[test]
    fn notes_without_gold_and_those_of_medec_uw_are_none() {
        let without = Note { gold: None, ..note() };
        let exemplars = of([without, named("uw-val-3", "x"), note()]);
        let ids: Vec<&str> = exemplars.notes.iter().map(|one| one.note.id.as_str()).collect();
        assert_eq!(ids, ["ms-1"]);
    }
}
