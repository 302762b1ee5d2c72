//! What some stages do with an item: look something up, and with a note: quote words of it, blank them out, and doubt a correction.

use super::ask::Staged;
use super::schema::{Place, Query, Stage};
use super::settings::Settings;
use super::transcript::Transcript;
use crate::data::{Item, Note};
use crate::diagnosis::Failure;
use crate::panel::PanelError;
use crate::record::{Flag, SearchPlace};
use crate::systems::case::Case;
use crate::systems::exemplars::vectors::no_encoder;
use crate::systems::exemplars::{Exemplars, Opinion};
use crate::systems::quote::Found;

/// What stands in a prompt for words that were blanked out.
const BLANK: &str = "____";
/// BERTScore F1 of a correction and its sentence, at least.
const LEAST_LIKENESS: f64 = 0.85;

/// Words of a note.
pub struct Quoted {
    pub words: String,
    /// The sentence that they were quoted from.
    pub id: usize,
    place: Place,
    /// The note without them.
    pub blanked: Note,
}

impl Place {
    /// The sentence that holds the words, and the words as it spells them.
    pub fn find(self, note: &Note, words: &str) -> Option<(usize, String)> {
        let holds = |sentence: &String| sentence.contains(words);
        let exact = match self {
            Place::First => note.sentences.iter().position(holds),
            Place::Last => {
                return Some((note.sentences.iter().rposition(holds)?, words.to_owned()));
            }
        };
        exact.map(|id| (id, words.to_owned())).or_else(|| in_any_case(note, words))
    }

    fn replace(self, sentence: &str, old: &str, new: &str) -> String {
        match self {
            Place::First => sentence.replacen(old, new, 1),
            Place::Last => sentence.replace(old, new),
        }
    }
}

/// The first sentence that holds the words without regard to case, and the words as it spells them.
fn in_any_case(note: &Note, words: &str) -> Option<(usize, String)> {
    let found = note.sentences.iter().enumerate().find_map(|(id, sentence)| {
        // Where lower case changes the length, positions in both would differ.
        let lower = sentence.to_lowercase();
        let at = lower.find(&words.to_lowercase()).filter(|_| lower.len() == sentence.len())?;
        Some((id, sentence.get(at..at + words.len())?.to_owned()))
    });
    found.filter(|(_, words)| !words.is_empty())
}

impl Quoted {
    /// `None` where the note does not hold the words.
    pub fn of(note: &Note, words: &str, place: Place) -> Option<Quoted> {
        let (id, words) = place.find(note, words)?;
        let mut blanked = note.clone();
        for (at, sentence) in blanked.sentences.iter_mut().enumerate() {
            if at == id || place == Place::Last {
                *sentence = place.replace(sentence, &words, BLANK);
            }
        }
        Some(Quoted { words, id, place, blanked })
    }

    /// The opinion of who fills these words in: others are an error and its correction.
    pub fn filled(&self, note: &Note, words: &str) -> Opinion {
        let is_other = words.to_lowercase() != self.words.to_lowercase();
        let correct = || self.place.replace(&note.sentences[self.id], &self.words, words);
        Opinion {
            flag: Flag::UNREAD,
            sentence_id: is_other.then_some(self.id),
            correction: is_other.then(correct),
        }
    }
}

/// The longest word of a sentence, the first of several.
pub fn longest_word(sentence: &str) -> &str {
    let words = sentence.split(|c: char| !(c.is_alphanumeric() || c == '-'));
    let length = |word: &str| word.chars().count();
    words.fold("", |best, word| if length(word) > length(best) { word } else { best })
}

impl Staged {
    /// What a stage's search finds; `None` where it finds nothing, or there is none.
    pub(super) fn look_up<T>(
        &self,
        case: &Case<'_, T>,
        stage: &Stage,
        transcript: &mut Transcript,
    ) -> Result<Option<Found>, PanelError> {
        let query = match (self.query(stage), case.task.item) {
            (Some(Query::Question), Item::Question(question)) => question.question.clone(),
            (Some(Query::Note), Item::Note(note)) => {
                let shown = transcript.quoted.as_ref().map_or(note, |quoted| &quoted.blanked);
                shown.sentences.join(" ").replace(BLANK, " ")
            }
            (Some(Query::Words), Item::Note(note)) => {
                let sentence = transcript.finding.opinion.sentence_id.map(|id| &note.sentences[id]);
                let longest = || longest_word(sentence.map_or("", String::as_str)).to_owned();
                transcript.words.first().cloned().unwrap_or_else(longest)
            }
            _ => return Ok(None),
        };
        let chunks = stage.passages as usize;
        // What was looked up in an earlier round is known.
        let known = transcript.found.iter().find(|(one, of, _)| (&query, chunks) == (one, *of));
        if let Some((.., found)) = known {
            return Ok(found.clone());
        }
        let place = SearchPlace { round: 0, step: transcript.found.len() as u32 };
        let found = case.search(place, &query, chunks, chunks)?;
        // Who answers a question is told that nothing was found.
        let is_told = !found.shown.is_empty() || stage.search == Some(Query::Question);
        let found = is_told.then(|| Found::new(&found, &self.passage));
        transcript.found.push((query, chunks, found.clone()));
        Ok(found)
    }

    /// An opinion under the filter: where the correction is too unlike its sentence, there is no error.
    pub(super) fn doubt(&self, transcript: &mut Transcript, note: &Note) -> Result<(), PanelError> {
        let opinion = &transcript.finding.opinion;
        let sentence = opinion.sentence_id.and_then(|id| note.sentences.get(id));
        if let ("bertscore", Some(likeness), Some(sentence), Some(correction)) = (
            self.settings.word("filter").as_str(),
            &self.exemplars.likeness,
            sentence,
            &opinion.correction,
        ) && likeness(sentence, correction).map_err(PanelError::Exemplars)? < LEAST_LIKENESS
        {
            let flag = Flag::on(opinion.flag.basis(), Some(false));
            transcript.finding.opinion = Opinion { flag, ..Opinion::default() };
            for (_, heard) in &mut transcript.finding.heard {
                *heard = transcript.finding.opinion.clone();
            }
        }
        Ok(())
    }
}

/// Refuses settings that need what was not given.
pub fn refuse_missing(
    settings: &Settings,
    stages: &[Stage],
    exemplars: &Exemplars,
) -> Result<(), Failure> {
    let shows = stages.iter().any(Stage::shows);
    let is = |choice: &str, word: &str| settings.word(choice) == word;
    let encodes = shows && is("choice", "embedding");
    let is_scored = is("candidate", "scorer");
    if (encodes || is_scored || is("clusters", "on")) && exemplars.vectors.is_none() {
        return Err(no_encoder());
    }
    if is_scored && exemplars.scorer.is_none() {
        return Err(Failure::usage(
            "candidate=scorer weighs vectors by a file, and none was given",
            "give --sentence-scorer FILE, or --set candidate=position",
        ));
    }
    if is("span", "file") && exemplars.spans.is_none() {
        return Err(Failure::usage(
            "span=file reads suspicious words of a file, and none was given",
            "give --spans FILE, or --set span=model",
        ));
    }
    if is("filter", "bertscore") && exemplars.likeness.is_none() {
        return Err(Failure::usage(
            "filter=bertscore compares corrections with their sentences, and there is nothing to do so by",
            "give --filter-scorer the folder of deberta-xlarge-mnli, or --set filter=off",
        ));
    }
    if is("leak", "medqa") && exemplars.leak.is_none() {
        return Err(Failure::usage(
            "leak=medqa shows questions of MedQA, and none were given",
            "give --leak-questions FILE, or --set leak=off",
        ));
    }
    // Exemplars without reasons get some made of their gold.
    let choices =
        stages.iter().flat_map(|stage| &stage.fields).filter_map(|one| one.unless.as_ref());
    for choice in choices {
        let wanted = settings.word(choice);
        if let Some(style) =
            exemplars.style.as_ref().filter(|style| **style != wanted && wanted != "off")
        {
            return Err(Failure::usage(
                format!(
                    "the exemplars' reasons are in the style {style}, and {choice}={wanted} was asked for"
                ),
                "make others with `wardround reasons --style`, or --set it to that style",
            ));
        }
    }
    Ok(())
}
