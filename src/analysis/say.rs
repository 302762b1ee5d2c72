//! What a call or a run came to, in a few words: the same on pages, in the server's answers and in the terminal.

use super::notes::score_in_words;
use super::open::OpenFigures;
use super::scale::ScaleFigures;
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
        Says::Action(name) => Some(action_in_words(name).to_owned()),
        Says::Score(score) => score.map(|score| format!("{} of 5", score_in_words(score))),
        Says::Sentence(Some(NO_SENTENCE)) => Some("no sentence".to_owned()),
        Says::Sentence(text) | Says::Correction(text) => text.map(named),
        Says::Other => None,
    }
}

/// A searching agent's action.
fn action_in_words(name: Option<&str>) -> &'static str {
    match name {
        Some("search") => "search",
        Some(_) => "answer",
        None => "lost",
    }
}

/// What a run of answers in words, or of steps of a scale, came to.
pub fn in_words(open: Option<&OpenFigures>, scale: Option<&ScaleFigures>) -> Option<String> {
    let of_open = open.map(|open| {
        let beside = open.rouge_l.as_ref();
        let beside = beside.map_or("no references".to_owned(), |rouge| {
            format!("ROUGE-L {rouge} beside the references")
        });
        format!("{} of {} in words; {beside}", open.answered, open.n)
    });
    let of_scale = scale.map(|scale| {
        let mean = scale.mean.as_ref().map_or("none".to_owned(), ToString::to_string);
        let [lowest, highest] = scale.reach;
        let ScaleFigures { n, without, .. } = scale;
        format!("mean step {mean}, of {lowest} to {highest}; {without} of {n} without a step")
    });
    of_open.or(of_scale)
}
