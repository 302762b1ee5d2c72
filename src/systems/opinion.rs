//! An opinion of a note, votes on several, and the log line of what was settled.

use super::case::Case;
use super::vote::most;
use crate::data::Note;
use crate::record::{DetectionLine, Flag, LocalisationLine, NO_SENTENCE, NoteLine, SettledBy};

/// An answer on a note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opinion {
    pub flag: Flag,
    pub sentence_id: Option<usize>,
    pub correction: Option<String>,
}

impl Opinion {
    pub fn in_words(&self) -> String {
        let place = match (self.flag.said(), self.sentence_id) {
            (None, _) => return "no opinion".to_owned(),
            (Some(false), _) => return "no error".to_owned(),
            (Some(true), None) => "an error".to_owned(),
            (Some(true), Some(id)) => format!("an error in sentence {id}"),
        };
        match &self.correction {
            Some(correction) => format!("{place}, which should be: {correction}"),
            None => place,
        }
    }
}

/// A system's result on a note.
#[derive(Clone, Debug, Default)]
pub struct Settled {
    pub opinion: Opinion,
    /// The opinions that it was made of, each with its agent.
    pub heard: Vec<(String, Opinion)>,
}

pub fn note_line(case: &Case<'_, Note>, finding: Settled) -> NoteLine {
    let Settled { opinion, heard } = finding;
    let mut line = case.task.note_line(case.item);
    let source = if heard.len() > 1 { SettledBy::Vote } else { SettledBy::Single };
    let agents: Vec<String> = heard.iter().map(|(agent, _)| agent.clone()).collect();
    let confidences = vec![None; heard.len()];
    line.flag = opinion.flag;
    line.detection = Some(DetectionLine {
        source,
        flags: heard.iter().map(|(_, one)| one.flag.said()).collect(),
        agents: agents.clone(),
        confidences: confidences.clone(),
    });
    if opinion.flag.has_error() {
        line.sentence_id = opinion.sentence_id;
        line.exact_sentence_id = opinion.sentence_id;
        let sentence = opinion.sentence_id.and_then(|id| case.item.sentences.get(id));
        line.sentence = sentence.cloned().unwrap_or_default();
        line.correction = opinion.correction;
        let said = |one: &Opinion| match one.sentence_id {
            Some(id) => id.to_string(),
            None if one.flag.is_clear() => NO_SENTENCE.to_owned(),
            None => String::new(),
        };
        line.localisation = Some(LocalisationLine {
            source,
            agents,
            opinions: heard.iter().map(|(_, one)| said(one)).collect(),
            sentence_ids: heard.iter().map(|(_, one)| one.sentence_id).collect(),
            confidences,
        });
    }
    line.calls = case.calls();
    line
}

/// Votes as knowlab_AIMed's code does: on a tie the flag is 0, and so is the sentence's number.
pub fn apart(said: &[&Opinion]) -> Opinion {
    let read: Vec<&&Opinion> = said.iter().filter(|one| one.flag.is_read()).collect();
    let flags: Vec<Flag> = read.iter().map(|one| one.flag).collect();
    // −1 where there is none.
    let ids: Vec<Option<usize>> = read.iter().map(|one| one.sentence_id).collect();
    let is_tied = |most: usize, all: usize| 2 * most <= all;
    let Some((flag, votes)) = most(&flags) else { return Opinion::default() };
    let has_error = flag.has_error() && !is_tied(votes, flags.len());
    let flag = Flag::on(flag.basis(), Some(has_error));
    let sentence_id = most(&ids).and_then(|(id, votes)| match is_tied(votes, ids.len()) {
        true => Some(0),
        false => id,
    });
    let correction = read.iter().find_map(|one| one.correction.clone());
    match has_error {
        true => Opinion { flag, sentence_id, correction },
        false => Opinion { flag, ..Opinion::default() },
    }
}

/// The most common opinion by flag and sentence, without those that could not be parsed.
pub fn together(said: &[&Opinion]) -> Opinion {
    let read: Vec<&&Opinion> = said.iter().filter(|one| one.flag.is_read()).collect();
    let pairs: Vec<_> = read.iter().map(|one| (one.flag, one.sentence_id)).collect();
    let Some((pair, _)) = most(&pairs) else { return Opinion::default() };
    let same = read.iter().filter(|one| (one.flag, one.sentence_id) == pair);
    let correction = same.filter_map(|one| one.correction.clone()).next();
    Opinion { flag: pair.0, sentence_id: pair.1, correction }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opinion(flag: bool, sentence_id: Option<usize>, correction: &str) -> Opinion {
        let correction = Some(correction.to_owned()).filter(|text| !text.is_empty());
        Opinion { flag: Some(flag).into(), sentence_id, correction }
    }

    #[test]
    fn knowlab_counts_flags_and_sentences_apart_and_a_tie_is_0() {
        let (a, b) = (opinion(true, Some(1), "x"), opinion(true, Some(2), "y"));
        let (none, unread) = (opinion(false, None, ""), Opinion::default());
        assert_eq!(apart(&[&a, &none, &a]), a);
        // Two say that there is an error, and each names another sentence: sentence 0.
        assert_eq!(apart(&[&b, &a, &none]), opinion(true, Some(0), "y"));
        assert_eq!(apart(&[&a, &none, &unread]), none);
        assert_eq!(apart(&[&none, &none, &a]), none);
        assert_eq!(apart(&[&unread, &unread]), unread);
    }

    #[test]
    fn pairs_are_counted_together_and_the_first_wins() {
        let (a, b) = (opinion(true, Some(1), "x"), opinion(true, Some(2), "y"));
        let (c, unread) = (opinion(true, Some(2), "z"), Opinion::default());
        assert_eq!(together(&[&a, &b, &c]), b);
        assert_eq!(together(&[&unread, &a, &b]), a);
        assert_eq!(together(&[&opinion(true, Some(2), ""), &c]), c);
        assert_eq!(together(&[&unread]), unread);
    }
}
