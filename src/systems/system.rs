//! A system, ready to work on items.

use super::base_llm::protocol::BaseLlm;
use super::case::Case;
use super::healthcareagent::protocol::HealthcareAgent;
use super::mdagents::protocol::MdAgents;
use super::medagents::protocol::MedAgents;
use super::medguards::protocol::MedGuards;
use super::medmad::protocol::MedMad;
use super::protocol::Protocol;
use super::reconcile::protocol::Reconcile;
use super::single_llm::protocol::SingleLlm;
use crate::data::Item;
use crate::panel::{Panel, PanelError};
use crate::prompts::{PromptError, PromptSet};
use crate::record::{ItemLine, Message};

/// One system with its settings and prompts.
pub enum System {
    MedMad(MedMad),
    SingleLlm(SingleLlm),
    HealthcareAgent(HealthcareAgent),
    MedAgents(MedAgents),
    MdAgents(Box<MdAgents>),
    Reconcile(Reconcile),
    MedGuards(Box<MedGuards>),
    BaseLlm(BaseLlm),
}

impl System {
    /// # Errors
    /// When an overridden prompt lost what is filled in.
    pub fn new(protocol: &Protocol, prompts: &PromptSet) -> Result<System, PromptError> {
        Ok(match protocol {
            Protocol::MedMad(settings) | Protocol::NoDebate(settings) => {
                System::MedMad(MedMad::new(settings, prompts)?)
            }
            Protocol::SingleLlm(settings) => System::SingleLlm(SingleLlm::new(settings, prompts)?),
            Protocol::HealthcareAgent(settings) => {
                System::HealthcareAgent(HealthcareAgent::new(settings, prompts)?)
            }
            Protocol::MedAgents(settings) => System::MedAgents(MedAgents::new(settings, prompts)?),
            Protocol::MdAgents(settings) => {
                System::MdAgents(Box::new(MdAgents::new(settings, prompts)?))
            }
            Protocol::Reconcile(settings) => System::Reconcile(Reconcile::new(settings, prompts)?),
            Protocol::MedGuards(settings) => {
                System::MedGuards(Box::new(MedGuards::new(settings, prompts)?))
            }
            Protocol::BaseLlm(settings) => System::BaseLlm(BaseLlm::new(settings, prompts)?),
        })
    }

    /// Works on an item of this dataset.
    ///
    /// # Errors
    /// When a call could not be made or recorded; an item of a kind that the system does not take.
    pub fn answer(
        &self,
        panel: &Panel,
        dataset: &str,
        item: &Item,
        run: u32,
    ) -> Result<ItemLine, PanelError> {
        let question = |question| Case::new(panel, dataset, question, run);
        let note = |note| Case::of_note(panel, dataset, note, run);
        Ok(match (self, item) {
            (System::MedMad(system), Item::Question(one)) => system.answer(question(one)?)?.into(),
            (System::SingleLlm(system), Item::Question(one)) => {
                system.answer(question(one)?)?.into()
            }
            (System::HealthcareAgent(system), Item::Question(one)) => {
                system.answer(question(one)?)?.into()
            }
            (System::MedAgents(system), Item::Question(one)) => {
                system.answer(question(one)?)?.into()
            }
            (System::MdAgents(system), Item::Question(one)) => {
                system.answer(question(one)?)?.into()
            }
            (System::Reconcile(system), Item::Question(one)) => {
                system.answer(question(one)?)?.into()
            }
            (System::MedGuards(system), Item::Note(one)) => system.check(note(one))?.into(),
            (System::BaseLlm(system), Item::Note(one)) => system.check(note(one))?.into(),
            (_, item) => {
                return Err(PanelError::OtherItem {
                    item: item.id().to_owned(),
                });
            }
        })
    }

    /// The prompts that are known before anything was answered, on an item of this dataset: the seat, and what it is asked.
    pub fn opening(&self, dataset: &str, item: &Item) -> Vec<(usize, Vec<Message>)> {
        match (self, item) {
            (System::MedMad(system), Item::Question(question)) => system.opening(question),
            (System::SingleLlm(system), Item::Question(question)) => {
                system.opening(dataset, question)
            }
            (System::HealthcareAgent(system), Item::Question(question)) => system.opening(question),
            (System::MedAgents(system), Item::Question(question)) => system.opening(question),
            (System::MdAgents(system), Item::Question(question)) => system.opening(question),
            (System::Reconcile(system), Item::Question(question)) => system.opening(question),
            (System::MedGuards(system), Item::Note(note)) => system.opening(note),
            (System::BaseLlm(system), Item::Note(note)) => system.opening(note),
            _ => Vec::new(),
        }
    }
}
