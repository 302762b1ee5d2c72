//! Localisation: which sentence has the error? Two agents say so alone; where they mean different ones a third settles it.

use super::detection::majority;
use super::parse::{Located, read_located};
use super::protocol::MedGuards;
use super::settings::{Arbitration, Localisation};
use super::texts::{Prompt, shown};
use crate::data::Note;
use crate::panel::PanelError;
use crate::record::{CallLine, LocalisationLine, Message, Source, Stage};
use crate::systems::case::{Ask, Case};
use crate::systems::step::Step;
use crate::text::{Match, align};

/// The stage's calls in logs.
pub const PURPOSE: &str = crate::record::NoteStage::Localisation.name();

/// An agent's words, and the sentence that they mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Opinion {
    pub located: Located,
    /// `None` for NAN, and where nothing could be read.
    pub sentence_id: Option<usize>,
}

/// What a stage came to.
pub struct Localised {
    pub record: LocalisationLine,
    /// Whose words count.
    pub opinion: Opinion,
}

impl Opinion {
    /// Agents agree where they mean one sentence, or none; who could not be read agrees with nobody.
    fn place(&self) -> Option<Option<usize>> {
        match self.located {
            Located::Malformed => None,
            _ => Some(self.sentence_id),
        }
    }
}

impl MedGuards {
    /// One agent's word.
    pub(super) fn locate_alone(&self, case: &Case<'_, Note>) -> Result<Localised, PanelError> {
        let prompt = self.texts.locate(Prompt::A, case.item);
        let ask = self.locator(case.item, Stage::Final, "loc1", prompt)?;
        let call = self.ask_place(case, ask)?;
        let opinion = self.opinion(case.item, &call);
        Ok(localised(Source::Single, &[call], vec![opinion], 0))
    }

    /// Two agents', and perhaps a third's.
    pub(super) fn locate(&self, case: &Case<'_, Note>) -> Result<Localised, PanelError> {
        let note = case.item;
        let asks = vec![
            self.locator(note, Stage::Initial, "loc1", self.texts.locate(Prompt::A, note))?,
            self.locator(note, Stage::Initial, "loc2", self.texts.locate(Prompt::B, note))?,
        ];
        let compat = self.settings.release_compat;
        let mut calls = case.ask_all(asks, &|text, _| read_located(text, compat))?;
        let opinion = |call: &CallLine| self.opinion(note, call);
        let mut opinions: Vec<Opinion> = calls.iter().map(opinion).collect();
        if opinions[0].place().is_some() && opinions[0].place() == opinions[1].place() {
            return Ok(localised(Source::Agreement, &calls, opinions, 0));
        }
        let (source, stage, prompt) = match self.settings.arbitration {
            Arbitration::Icl => {
                let said = [&calls[0], &calls[1]];
                let meant = [0, 1].map(|agent| {
                    let opinion: &Opinion = &opinions[agent];
                    let sentence = opinion.sentence_id.map(|id| note.sentences[id].as_str());
                    shown(&opinion.located, sentence)
                });
                let prompt = self.texts.arbitrate_localisation(note, said, meant);
                (Source::Arbitration, Stage::Final, prompt)
            }
            Arbitration::Vote => {
                let prompt = self.texts.locate(Prompt::A, note);
                (Source::Vote, Stage::Initial, prompt)
            }
        };
        let ask = self.locator(note, stage, "loc3", prompt)?;
        calls.push(self.ask_place(case, ask)?);
        opinions.push(self.opinion(note, &calls[2]));
        let chosen = match source {
            Source::Vote => {
                let places: Vec<_> = opinions.iter().map(Opinion::place).collect();
                let shared = majority(&places).flatten();
                places.iter().position(|place| place.is_some() && *place == shared)
            }
            _ => Some(2),
        };
        Ok(localised(source, &calls, opinions, chosen.unwrap_or(0)))
    }

    /// What a call means in the note.
    pub(super) fn opinion(&self, note: &Note, call: &CallLine) -> Opinion {
        let compat = self.settings.release_compat;
        let mut located = Located::of(call);
        let sentence_id = match (&located, self.settings.localisation) {
            (Located::Said(words), Localisation::Soft) => {
                let found = align(&note.sentences, words, note.language, self.settings.aligner);
                found.or(compat.then_some(Match::FIRST)).map(|found| found.index)
            }
            (Located::Said(number), Localisation::Hard) => {
                let number = number.trim_end_matches('.').parse().ok();
                number.filter(|id| *id < note.sentences.len())
            }
            _ => None,
        };
        if sentence_id.is_none() && located != Located::Nothing {
            located = Located::Malformed;
        }
        Opinion { located, sentence_id }
    }

    fn locator(
        &self,
        note: &Note,
        stage: Stage,
        agent: &str,
        prompt: Vec<Message>,
    ) -> Result<Ask, PanelError> {
        let step = Step { stage, round: 0, purpose: PURPOSE, shape: self.texts.result(note) };
        Ok(step.ask(self.seat(agent)?, agent, prompt))
    }

    fn ask_place(&self, case: &Case<'_, Note>, ask: Ask) -> Result<CallLine, PanelError> {
        let compat = self.settings.release_compat;
        case.ask(ask, &|text, _| read_located(text, compat))
    }
}

/// The stage's record; `chosen` is whose opinion counts.
pub(super) fn localised(
    source: Source,
    calls: &[CallLine],
    opinions: Vec<Opinion>,
    chosen: usize,
) -> Localised {
    Localised {
        record: LocalisationLine {
            source,
            agents: calls.iter().map(|call| call.agent.clone()).collect(),
            opinions: opinions.iter().map(|one| one.located.words()).collect(),
            sentence_ids: opinions.iter().map(|one| one.sentence_id).collect(),
            confidences: calls.iter().map(|call| call.record["confidence"].as_f64()).collect(),
        },
        opinion: opinions[chosen].clone(),
    }
}
