//! What a call came to, in a few words: the same on pages, in the server's answers and in the terminal.

use super::notes::score_in_words;
use crate::record::{NO_SENTENCE, Reply, Says, found_in_words};
use crate::text::ellipsis;

/// The most characters of a sentence or a correction.
const NAMED_CHARS: usize = 80;

/// `None` where the reply says nothing of the kind, or could not be read.
pub fn reply_in_words(reply: &Reply) -> Option<String> {
    let named = |text: &str| ellipsis(text, NAMED_CHARS);
    match reply.says() {
        Says::Answer(letter) => (!letter.is_empty()).then(|| letter.to_owned()),
        Says::Flag(has_error, id) => has_error.map(|has_error| found_in_words(has_error, id)),
        // A searching agent's.
        Says::Action(Some("search")) => Some("search".to_owned()),
        Says::Action(Some(_)) => Some("answer".to_owned()),
        Says::Action(None) => Some("lost".to_owned()),
        Says::Score(score) => score.map(|score| format!("{} of 5", score_in_words(score))),
        Says::Sentence(Some(NO_SENTENCE)) => Some("no sentence".to_owned()),
        Says::Sentence(text) | Says::Correction(text) => text.map(named),
        Says::Other => None,
    }
}
