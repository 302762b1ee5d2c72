//! What systems on notes that files describe have in common: votes, log lines.

mod votes;

pub use self::votes::{apart, together};
use super::case::Case;
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
    let mut line = case.open();
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
