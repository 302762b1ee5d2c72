//! What a stage looks up in a corpus.

use super::ask::Staged;
use super::schema::{Query, Stage};
use super::transcript::Transcript;
use crate::data::Item;
use crate::panel::PanelError;
use crate::record::SearchPlace;
use crate::systems::case::Case;
use crate::systems::quote::Found;

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
}
