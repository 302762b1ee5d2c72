//! What a stage looks up in a corpus.

use super::ask::Staged;
use super::schema::Stage;
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
        let Item::Note(note) = case.task.item else { return Ok(None) };
        if !stage.search {
            return Ok(None);
        }
        let sentence = transcript.finding.opinion.sentence_id.map(|id| &note.sentences[id]);
        let longest = || longest_word(sentence.map_or("", String::as_str)).to_owned();
        let query = transcript.words.first().cloned().unwrap_or_else(longest);
        let place = SearchPlace { round: 0, step: transcript.searches };
        let found = case.search(place, &query, 1, 1)?;
        transcript.searches += 1;
        Ok((!found.shown.is_empty()).then(|| Found::new(&found, &self.passage)))
    }
}
