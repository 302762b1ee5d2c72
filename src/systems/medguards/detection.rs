//! Detection: does the note have an error? Two agents say so alone; where they differ a third settles it.

use super::parse::read_flag;
use super::protocol::MedGuards;
use super::settings::Arbitration;
use super::texts::Prompt;
use crate::data::Note;
use crate::panel::PanelError;
use crate::record::{CallLine, DetectionLine, Message, Source, Stage};
use crate::systems::case::{Ask, Case};
use crate::systems::step::Step;

/// The stage's calls in logs.
pub const PURPOSE: &str = crate::record::NoteStage::Detection.name();

impl MedGuards {
    /// One agent's word.
    pub(super) fn detect_alone(&self, case: &Case<'_, Note>) -> Result<DetectionLine, PanelError> {
        let ask = self.detector(Stage::Final, "det1", self.texts.detect(Prompt::A, case.item))?;
        let call = self.ask_flag(case, ask)?;
        Ok(self.detection(Source::Single, &[call]))
    }

    /// Two agents', and perhaps a third's.
    pub(super) fn detect(&self, case: &Case<'_, Note>) -> Result<DetectionLine, PanelError> {
        let note = case.item;
        let asks = vec![
            self.detector(Stage::Initial, "det1", self.texts.detect(Prompt::A, note))?,
            self.detector(Stage::Initial, "det2", self.texts.detect(Prompt::B, note))?,
        ];
        let compat = self.settings.release_compat;
        let mut calls = case.ask_all(asks, &|text, _| read_flag(text, compat))?;
        let flags: Vec<Option<bool>> =
            calls.iter().map(|call| call.record["flag"].as_bool()).collect();
        if flags[0].is_some() && flags[0] == flags[1] {
            return Ok(self.detection(Source::Agreement, &calls));
        }
        let (source, stage, prompt) = match self.settings.arbitration {
            Arbitration::Icl => {
                let said = [&calls[0], &calls[1]];
                let prompt = self.texts.arbitrate_detection(note, said);
                (Source::Arbitration, Stage::Final, prompt)
            }
            Arbitration::Vote => {
                let prompt = self.texts.detect(Prompt::A, note);
                (Source::Vote, Stage::Initial, prompt)
            }
        };
        calls.push(self.ask_flag(case, self.detector(stage, "det3", prompt)?)?);
        Ok(self.detection(source, &calls))
    }

    fn detector(&self, stage: Stage, agent: &str, prompt: Vec<Message>) -> Result<Ask, PanelError> {
        let step = Step { stage, round: 0, purpose: PURPOSE, shape: self.texts.label() };
        Ok(step.ask(self.seat(agent)?, agent, prompt))
    }

    fn ask_flag(&self, case: &Case<'_, Note>, ask: Ask) -> Result<CallLine, PanelError> {
        let compat = self.settings.release_compat;
        case.ask(ask, &|text, _| read_flag(text, compat))
    }

    fn detection(&self, source: Source, calls: &[CallLine]) -> DetectionLine {
        DetectionLine {
            source,
            agents: calls.iter().map(|call| call.agent.clone()).collect(),
            flags: calls.iter().map(|call| call.record["flag"].as_bool()).collect(),
            confidences: calls.iter().map(|call| call.record["confidence"].as_f64()).collect(),
        }
    }
}

/// What a detection came to: the last word, or of a vote the majority; where there is none, the first agent's.
pub fn verdict(detection: &DetectionLine) -> Option<bool> {
    let flags = &detection.flags;
    match detection.source {
        Source::Vote => majority(flags).unwrap_or(flags[0]),
        _ => *flags.last()?,
    }
}

/// What at least two of three say; who says nothing agrees with nobody.
pub fn majority<T: PartialEq + Clone>(said: &[Option<T>]) -> Option<Option<T>> {
    let given = said.iter().filter(|one| one.is_some());
    let is_shared = |one: &&Option<T>| said.iter().filter(|other| other == one).count() > 1;
    given.clone().find(is_shared).cloned()
}
