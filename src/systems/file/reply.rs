//! What a stage's replies are: constrained by a grammar, parsed, and shown to later stages.

use serde::Serialize;

use super::form::answer::Reading;
use super::form::{Form, Judgement};
use super::schema::{Is, ReplyKind, Stage};
use super::settings::Settings;
use crate::data::{Item, Question};
use crate::panel::Asked;
use crate::record::{FinishReason, Flag, Grammar, Parse};
use crate::systems::base_llm;
use crate::systems::case::{One, Record};
use crate::systems::form;
use crate::systems::mediqa_corr::{Opinion, words, words_grammar};
use crate::systems::reading::reply::passage;

/// A parsed reply, as the call's log line has it.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum ParsedReply {
    Answer(Reading),
    Judgement(Judgement),
    Medec(base_llm::Reading),
    Words(One<Vec<String>>),
    Passage(One<String>),
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
            ParsedReply::Words(words) => words.said.join(", "),
            ParsedReply::Passage(passage) => passage.said.clone(),
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
    /// The form of an answer.
    pub fn form(&self) -> Form<'_> {
        Form { style: self.style, fields: &self.fields }
    }

    /// Whether it shows exemplars.
    pub fn shows(&self) -> bool {
        self.exemplars.is_some() || self.nearest
    }

    /// Whether the settings have it.
    pub fn is_there(&self, settings: &Settings) -> bool {
        self.only.iter().all(|(choice, word)| settings.word(choice) == *word)
    }

    pub fn asks(&self, agent: &str) -> bool {
        self.agents.is_empty() || self.agents.iter().any(|one| one == agent)
    }

    /// Whether its replies answer a question.
    pub fn answers(&self) -> bool {
        self.reply == ReplyKind::Letter || self.form().key(Is::Answer).is_some()
    }

    /// The grammar of a reply.
    pub fn grammar(&self, item: &Item, settings: &Settings) -> Grammar {
        let decoding = &settings.decoding;
        let key = self.form().key(Is::Text).unwrap_or_default();
        match (self.reply, item) {
            (ReplyKind::Letter, Item::Question(question)) => Grammar::Regex(form::letter(question)),
            (ReplyKind::Fields, _) => self.form().grammar(item, decoding),
            (ReplyKind::Medec, Item::Note(note)) => base_llm::grammar(note, decoding),
            (ReplyKind::Words, _) => words_grammar(key, self.most as usize, decoding),
            _ => decoding.passage(),
        }
    }

    pub fn read(
        &self,
        text: &str,
        finish_reason: FinishReason,
        item: &Item,
        settings: &Settings,
    ) -> (ParsedReply, Parse) {
        let key = self.form().key(Is::Text).unwrap_or_default();
        match (self.reply, item) {
            (ReplyKind::Letter | ReplyKind::Fields, Item::Question(Question { options, .. })) => {
                let harness = settings.is_compat().then(|| settings.number("samples").unwrap_or(1));
                let said = self.form().answer(text, finish_reason, options, harness);
                as_reply(said, ParsedReply::Answer)
            }
            (ReplyKind::Fields, Item::Note(note)) => {
                as_reply(self.form().read(text, finish_reason, note), ParsedReply::Judgement)
            }
            (ReplyKind::Medec, Item::Note(note)) => {
                as_reply(base_llm::read(text, note), ParsedReply::Medec)
            }
            (ReplyKind::Words, _) => {
                let words = words(text, finish_reason, key, self.most as usize);
                as_reply(One::of("words", words), ParsedReply::Words)
            }
            _ => as_reply(passage(text), ParsedReply::Passage),
        }
    }
}

fn as_reply<T>((said, parse): (T, Parse), kind: fn(T) -> ParsedReply) -> (ParsedReply, Parse) {
    (kind(said), parse)
}
