//! Correction: what should the sentence say? One agent answers; with eight agents, a second checks the answer.

use super::parse::read_correction;
use super::protocol::MedGuards;
use super::settings::Structure;
use crate::data::Note;
use crate::panel::PanelError;
use crate::record::{CallLine, Message, Stage};
use crate::systems::case::Case;
use crate::systems::step::Step;

/// The stage's calls in logs.
pub const PURPOSE: &str = crate::record::NoteStage::Correction.name();

/// The sentence as it should be, and how sure the agent is.
pub struct Corrected {
    pub text: Option<String>,
    pub confidence: Option<f64>,
}

impl MedGuards {
    pub(super) fn correct(
        &self,
        case: &Case<'_, Note>,
        sentence: &str,
    ) -> Result<Corrected, PanelError> {
        let prompt = self.texts.correct(case.item, sentence);
        let call = self.corrector(case, "corr1", prompt)?;
        let first = corrected(&call);
        let (Structure::Eight, Some(proposal)) = (self.settings.structure, &first.text) else {
            return Ok(first);
        };
        let prompt = self.texts.correct_again(case.item, sentence, proposal);
        let second = corrected(&self.corrector(case, "corr2", prompt)?);
        // One who gives nothing leaves what was proposed.
        Ok(if second.text.is_some() { second } else { first })
    }

    fn corrector(
        &self,
        case: &Case<'_, Note>,
        agent: &str,
        prompt: Vec<Message>,
    ) -> Result<CallLine, PanelError> {
        let step = Step {
            stage: Stage::Final,
            round: 0,
            purpose: PURPOSE,
            shape: self.texts.corrected(case.item),
        };
        let compat = self.settings.release_compat;
        case.ask(step.ask(self.seat(agent)?, agent, prompt), &|text, _| {
            read_correction(text, compat)
        })
    }
}

/// What [`read_correction`] kept of a text.
fn corrected(call: &CallLine) -> Corrected {
    Corrected {
        text: call.record["correction"].as_str().map(str::to_owned),
        confidence: call.record["confidence"].as_f64(),
    }
}
