//! MedAgents in one of its forms, ready to answer.

use super::harness::Harness;
use super::original::Original;
use super::settings::{Form, Settings};
use crate::data::Question;
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet};
use crate::record::{AnswerLine, Message};
use crate::systems::case::Case;

/// Doctors in consultation.
pub enum MedAgents {
    Harness(Box<Harness>),
    Original(Box<Original>),
}

impl MedAgents {
    /// # Errors
    /// When an overridden prompt lost what is filled in.
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<MedAgents, PromptError> {
        Ok(match settings.form {
            Form::Harness => MedAgents::Harness(Box::new(Harness::new(settings, prompts)?)),
            Form::Original => MedAgents::Original(Box::new(Original::new(settings, prompts)?)),
        })
    }

    /// # Errors
    /// When a call could not be made or recorded.
    pub fn answer(&self, case: Case<'_>) -> Result<AnswerLine, PanelError> {
        match self {
            MedAgents::Harness(system) => system.answer(case),
            MedAgents::Original(system) => system.answer(case),
        }
    }

    /// What is asked before anything was answered.
    pub fn opening(&self, question: &Question) -> Vec<(usize, Vec<Message>)> {
        match self {
            MedAgents::Harness(system) => system.opening(question),
            MedAgents::Original(system) => system.opening(question),
        }
    }
}
