//! What a stage's replies are: constrained by a grammar, parsed, and shown to later stages.

use serde::Serialize;

use super::schema::{FieldOf, Is, ReplyKind, Stage};
use super::settings::Settings;
use crate::data::{Item, Question};
use crate::panel::Asked;
use crate::record::{FinishReason, Flag, Parse};
use crate::systems::base_llm;
use crate::systems::case::Record;
use crate::systems::decoding::Shape;
use crate::systems::exemplars::Opinion;
use crate::systems::exemplars::reply::{Field, Form, Judgement, Style};
use crate::systems::form;
use crate::systems::mediqa_corr::{Words, choice, words, words_shape};
use crate::systems::reading::reply::Passage;
use crate::systems::single_llm::parse::{Keys, Letter, Reading, parse};

/// A parsed reply, as the call's log line has it.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum ParsedReply {
    Answer(Reading),
    Judgement(Judgement),
    Medec(base_llm::Reading),
    Words(Words),
    Passage(Passage),
}

impl Record for ParsedReply {
    fn answer(&mut self) -> Option<&mut String> {
        match self {
            ParsedReply::Answer(reading) => Some(&mut reading.answer),
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
        let joined = |parts: [&str; 2]| {
            let parts = parts.into_iter().filter(|part| !part.is_empty());
            parts.collect::<Vec<_>>().join(" ")
        };
        match &asked.value {
            ParsedReply::Words(words) => words.words.join(", "),
            ParsedReply::Passage(passage) => passage.text.clone(),
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

/// A reply without fields.
const NO_FIELDS: &Form = &Form { style: Style::Json, fields: &[] };

impl Stage {
    /// Makes the forms of a note's answer. A file is read once, and stays.
    pub fn settle(&mut self) {
        let still = |text: &String| -> &'static str { text.clone().leak() };
        let kind = |field: &FieldOf| match (field.is, &field.words[..]) {
            (Is::Reason, _) => Some(Field::Reason),
            (Is::Flag, [none, error]) => Some(Field::Flag([still(none), still(error)])),
            (Is::SentenceId, _) => Some(Field::Id),
            (Is::Sentence, _) => Some(Field::Sentence),
            (Is::Correction, _) => Some(Field::Correction),
            _ => None,
        };
        self.forms = Some([true, false].map(|is_whole| {
            let fields = self.fields.iter().filter(|one| is_whole || one.unless.is_none());
            let fields = fields.filter_map(|one| Some((still(&one.key), kind(one)?)));
            let fields: Vec<_> = fields.collect();
            &*Box::leak(Box::new(Form { style: self.style, fields: fields.leak() }))
        }));
    }

    pub fn form(&self, settings: &Settings) -> &'static Form {
        let mut unless = self.fields.iter().filter_map(|field| field.unless.as_deref());
        let is_bare = unless.any(|choice| settings.word(choice) == "off");
        self.forms.map_or(NO_FIELDS, |forms| forms[usize::from(is_bare)])
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
        let is_letter = matches!(self.reply, ReplyKind::Letter | ReplyKind::LetterAsWritten);
        is_letter || self.key(Is::Answer).is_some()
    }

    /// The key of the field with this meaning.
    pub fn key(&self, is: Is) -> Option<&str> {
        self.fields.iter().find(|field| field.is == is).map(|field| field.key.as_str())
    }

    /// The grammar of a reply, which may be one of these letters.
    pub fn shape(&self, item: &Item, settings: &Settings, letters: &[&str]) -> Shape {
        let decoding = &settings.decoding;
        let key = self.key(Is::Text).unwrap_or_default();
        match (self.reply, item) {
            (ReplyKind::Letter | ReplyKind::LetterAsWritten, Item::Question(question)) => {
                Shape::regex(form::letter(question))
            }
            (ReplyKind::Fields, Item::Question(question)) => {
                let schema = |is| match is {
                    Is::Answer => form::answer(question),
                    Is::Confidence => form::confidence(),
                    _ => decoding.reasons(),
                };
                let fields = self.fields.iter();
                Shape::record(fields.map(|field| (field.key.as_str(), schema(field.is))).collect())
            }
            (ReplyKind::Fields, Item::Note(note)) => self.form(settings).shape(note, decoding),
            (ReplyKind::Medec, Item::Note(note)) => base_llm::shape(note, decoding),
            (ReplyKind::Words | ReplyKind::Quoted, _) => {
                words_shape(key, self.most as usize, decoding)
            }
            (ReplyKind::Option | ReplyKind::Sentence, _) => {
                Shape::record(vec![(key, form::choice(letters))])
            }
            _ => decoding.passage(),
        }
    }

    pub fn read(
        &self,
        text: &str,
        finish_reason: FinishReason,
        item: &Item,
        settings: &Settings,
        letters: &[&str],
    ) -> (ParsedReply, Parse) {
        let key = self.key(Is::Text).unwrap_or_default();
        match (self.reply, item) {
            (
                ReplyKind::Letter | ReplyKind::LetterAsWritten | ReplyKind::Fields,
                Item::Question(question),
            ) => self.answer(text, finish_reason, question, settings),
            (ReplyKind::Fields, Item::Note(note)) => as_reply(
                self.form(settings).read(text, finish_reason, note),
                ParsedReply::Judgement,
            ),
            (ReplyKind::Medec, Item::Note(note)) => {
                as_reply(base_llm::read(text, note, settings.is_compat()), ParsedReply::Medec)
            }
            (ReplyKind::Words, _) => {
                as_reply(words(text, finish_reason, key, self.most as usize), ParsedReply::Words)
            }
            (ReplyKind::Quoted, Item::Note(note)) => {
                let (words, parse) = words(text, finish_reason, key, 1);
                let is_held = words.first().is_some_and(|one| self.place.find(note, one).is_some());
                (ParsedReply::Words(words), parse.if_read(is_held))
            }
            (ReplyKind::Option | ReplyKind::Sentence, _) => {
                as_reply(choice(text, finish_reason, key, letters), ParsedReply::Words)
            }
            _ => as_reply(Passage::said(text), ParsedReply::Passage),
        }
    }

    fn answer(
        &self,
        text: &str,
        finish_reason: FinishReason,
        question: &Question,
        settings: &Settings,
    ) -> (ParsedReply, Parse) {
        let letter = Letter {
            keys: self.key(Is::Answer).map(|answer| Keys {
                answer,
                reason: self.key(Is::Reason).unwrap_or_default(),
                confidence: self.key(Is::Confidence),
            }),
            mab_compat: settings.is_compat(),
            is_trimmed: self.reply == ReplyKind::Letter,
        };
        as_reply(parse(text, finish_reason, letter, &question.options), ParsedReply::Answer)
    }
}

fn as_reply<T>((said, parse): (T, Parse), kind: fn(T) -> ParsedReply) -> (ParsedReply, Parse) {
    (kind(said), parse)
}
