//! What a stage's replies are: constrained by a grammar, parsed, and shown to later stages.

use serde::Serialize;

use super::form::answer::Reading;
use super::form::{Form, Judgement};
use super::schema::{Is, ReplyKind, Stage};
use super::settings::{Compat, Settings};
use crate::data::{Item, Question};
use crate::panel::Asked;
use crate::record::{FinishReason, Flag, Grammar, Parse};
use crate::systems::base_llm;
use crate::systems::case::{One, Record};
use crate::systems::form;
use crate::systems::mediqa_corr::{Opinion, words};

/// A parsed reply, as the call's log line has it.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum ParsedReply {
    Answer(Reading),
    Judgement(Judgement),
    Medec(base_llm::Reading),
    Word(One<Vec<String>>),
}

impl Record for ParsedReply {
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
    /// Whether a reply that was asked for it says that its agent agrees.
    pub fn agreed(&self) -> Option<bool> {
        match self {
            ParsedReply::Answer(reading) => reading.agreed,
            _ => None,
        }
    }

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
        let joined = |parts: &[&str]| {
            let parts = parts.iter().copied().filter(|part| !part.is_empty());
            parts.collect::<Vec<_>>().join(" ")
        };
        match &asked.value {
            ParsedReply::Word(word) => word.said.join(", "),
            ParsedReply::Answer(reading) => {
                let agreed = match reading.agreed {
                    Some(true) => "Agreed: yes.",
                    Some(false) => "Agreed: no.",
                    None => "",
                };
                let answer = match reading.answer.as_str() {
                    "" => "no answer".to_owned(),
                    letter => format!("Answer: {letter}"),
                };
                joined(&[reading.thought.as_deref().unwrap_or_default(), agreed, &answer])
            }
            ParsedReply::Judgement(said) => {
                let opinion = ParsedReply::opinion(asked).unwrap_or_default();
                joined(&[&said.reason, &opinion.in_words()])
            }
            ParsedReply::Medec(_) => ParsedReply::opinion(asked).unwrap_or_default().in_words(),
        }
    }
}

impl Stage {
    pub fn form(&self) -> Form<'_> {
        Form { style: self.style, fields: &self.fields }
    }

    pub fn shows(&self) -> bool {
        self.exemplars.is_some() || self.nearest
    }

    pub fn is_there(&self, settings: &Settings) -> bool {
        self.only.iter().all(|(choice, word)| settings.word(choice) == *word)
    }

    pub fn asks(&self, agent: &str) -> bool {
        self.agents.is_empty() || self.agents.iter().any(|one| one == agent)
    }

    pub fn answers(&self) -> bool {
        self.reply == ReplyKind::Letter || self.form().key(Is::Answer).is_some()
    }

    /// Whether its replies judge a note, or name a word to look up.
    pub fn judges(&self) -> bool {
        let judges = [Is::Flag, Is::SentenceId, Is::Correction, Is::Word];
        let mut fields = self.fields.iter();
        self.reply == ReplyKind::Medec || fields.any(|field| judges.contains(&field.is))
    }

    pub fn grammar(&self, item: &Item, settings: &Settings) -> Grammar {
        let decoding = &settings.decoding;
        match (self.reply, item, self.form().key(Is::Word)) {
            (ReplyKind::Letter, Item::Question(question), _) => {
                Grammar::Regex(form::letter(question))
            }
            (ReplyKind::Medec, Item::Note(note), _) => base_llm::grammar(note, decoding),
            (_, _, Some(key)) => form::record(vec![(key, decoding.string())]),
            _ => self.form().grammar(item, decoding),
        }
    }

    pub fn read(
        &self,
        text: &str,
        finish_reason: FinishReason,
        item: &Item,
        settings: &Settings,
    ) -> (ParsedReply, Parse) {
        match (item, self.form().key(Is::Word)) {
            (Item::Question(Question { options, .. }), _) => {
                let is_compat = settings.mab_compat == Some(Compat::On);
                let harness = is_compat.then(|| settings.samples.unwrap_or(1));
                let said = self.form().answer(text, finish_reason, options, harness);
                as_reply(said, ParsedReply::Answer)
            }
            (Item::Note(_), Some(key)) => {
                as_reply(One::of("words", words(text, finish_reason, key, 1)), ParsedReply::Word)
            }
            (Item::Note(note), None) if self.reply == ReplyKind::Medec => {
                as_reply(base_llm::read(text, note), ParsedReply::Medec)
            }
            (Item::Note(note), None) => {
                as_reply(self.form().read(text, finish_reason, note), ParsedReply::Judgement)
            }
        }
    }
}

fn as_reply<T>((said, parse): (T, Parse), kind: fn(T) -> ParsedReply) -> (ParsedReply, Parse) {
    (kind(said), parse)
}
