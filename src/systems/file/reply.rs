//! What a stage's replies are: constrained by a grammar, parsed, and shown to later stages.

use serde::Serialize;

use super::form::Judgement;
use super::form::answer::Reading;
use super::schema::{Is, ReplyKind, StageEntry};
use crate::data::{Item, Question};
use crate::panel::Asked;
use crate::record::{FinishReason, Flag, Parse};
use crate::systems::base_llm;
use crate::systems::case::Parsed;
use crate::systems::opinion::Opinion;

/// A parsed reply, as the call's log line has it.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum ParsedReply {
    Answer(Reading),
    Judgement(Judgement),
    Medec(base_llm::Reading),
}

impl Parsed for ParsedReply {
    fn answer(&mut self) -> Option<&mut String> {
        match self {
            ParsedReply::Answer(reading) => Some(&mut reading.answer),
            _ => None,
        }
    }

    fn correction(&mut self) -> Option<&mut Option<String>> {
        match self {
            ParsedReply::Judgement(said) => Some(&mut said.correction),
            ParsedReply::Medec(said) => Some(&mut said.correction),
            _ => None,
        }
    }
}

impl ParsedReply {
    /// Flag, sentence and correction, of a reply that gives any.
    pub fn opinion(asked: &Asked<ParsedReply>) -> Option<Opinion> {
        let (flag, sentence_id, correction) = match &asked.value {
            ParsedReply::Judgement(said) => (said.flag, said.sentence_id, &said.correction),
            ParsedReply::Medec(said) => (said.flag, said.sentence_id, &said.correction),
            _ => return None,
        };
        let flag = Flag::on(asked.call.basis(), flag);
        Some(Opinion { flag, sentence_id, correction: correction.clone() })
    }

    /// As later prompts quote it.
    pub fn shown(asked: &Asked<ParsedReply>) -> String {
        let joined = |[reason, said]: [&str; 2]| match reason {
            "" => said.to_owned(),
            _ => format!("{reason} {said}"),
        };
        match &asked.value {
            ParsedReply::Answer(reading) => {
                let answer = match reading.answer.as_str() {
                    "" => "no answer".to_owned(),
                    letter => format!("Answer: {letter}"),
                };
                joined([reading.thought.as_deref().unwrap_or_default(), &answer])
            }
            ParsedReply::Judgement(said) => {
                let opinion = ParsedReply::opinion(asked).unwrap_or_default();
                joined([&said.reason, &opinion.in_words()])
            }
            ParsedReply::Medec(_) => ParsedReply::opinion(asked).unwrap_or_default().in_words(),
        }
    }
}

impl StageEntry {
    pub fn asks(&self, agent: &str) -> bool {
        self.agents.is_empty() || self.agents.iter().any(|one| one == agent)
    }

    pub fn answers(&self) -> bool {
        self.reply == ReplyKind::Letter || self.field(Is::Answer).is_some()
    }

    /// Whether its replies judge a note.
    pub fn judges(&self) -> bool {
        let judges = [Is::Flag, Is::SentenceId, Is::Correction];
        self.reply == ReplyKind::Medec || judges.iter().any(|is| self.field(*is).is_some())
    }

    pub fn read(
        &self,
        text: &str,
        finish_reason: FinishReason,
        item: &Item,
    ) -> (ParsedReply, Parse) {
        match item {
            Item::Question(Question { options, .. }) => {
                let (said, parse) = self.read_answer(text, finish_reason, options);
                (ParsedReply::Answer(said), parse)
            }
            Item::Note(note) if self.reply == ReplyKind::Medec => {
                let (said, parse) = base_llm::read(text, note);
                (ParsedReply::Medec(said), parse)
            }
            Item::Note(note) => {
                let (said, parse) = self.read_fields(text, finish_reason, note);
                (ParsedReply::Judgement(said), parse)
            }
        }
    }
}
