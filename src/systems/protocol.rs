//! Which system runs, with its settings; and the system itself, ready to answer.

use super::base_llm::protocol::BaseLlm;
use super::case::Case;
use super::decoding::Decoding;
use super::healthcareagent::protocol::HealthcareAgent;
use super::mdagents::protocol::MdAgents;
use super::medagents::protocol::MedAgents;
use super::medguards::protocol::MedGuards;
use super::medmad::protocol::MedMad;
use super::reconcile::protocol::Reconcile;
use super::settings::{SettingsError, set_pairs, set_table};
use super::single_llm::protocol::SingleLlm;
use super::single_llm::settings::Method;
use super::{
    base_llm, healthcareagent, mdagents, medagents, medguards, medmad, reconcile, single_llm,
};
use crate::data::Item;
use crate::panel::{Panel, PanelError};
use crate::prompts::{PromptError, PromptSet};
use crate::run::records::{ItemRecord, Message};

/// A system with every switch resolved: what a plan names.
#[derive(Clone, Debug, PartialEq)]
pub enum Protocol {
    MedMad(medmad::settings::Settings),
    /// MED-MAD's panel without its debate.
    NoDebate(medmad::settings::Settings),
    /// One model alone.
    SingleLlm(single_llm::settings::Settings),
    HealthcareAgent(Decoding),
    MedAgents(medagents::settings::Settings),
    MdAgents(mdagents::settings::Settings),
    Reconcile(reconcile::settings::Settings),
    MedGuards(medguards::settings::Settings),
    /// One model alone with a note.
    BaseLlm(base_llm::settings::Settings),
}

/// A seat of a system: who sits there, and which of the panel's models by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    pub agent: String,
    pub model: usize,
}

impl Seat {
    pub fn new(agent: impl Into<String>, model: usize) -> Seat {
        let agent = agent.into();
        Seat { agent, model }
    }
}

impl Protocol {
    /// Every system's name, as the command line takes it.
    pub const NAMES: [&str; 13] = [
        "medmad",
        "no-debate",
        "zero-shot",
        "few-shot",
        "cot",
        "self-consistency",
        "cot-sc",
        "healthcareagent",
        "medagents",
        "mdagents",
        "reconcile",
        "medguards",
        "base-llm",
    ];

    /// The system of this name, or of an alias, with its defaults.
    ///
    /// # Errors
    /// A name that no system has.
    pub fn named(name: &str) -> Result<Protocol, SettingsError> {
        Ok(match name {
            "medmad" => Protocol::MedMad(medmad::settings::Settings::default()),
            "no-debate" => Protocol::NoDebate(medmad::settings::Settings::no_debate()),
            "healthcareagent" => Protocol::HealthcareAgent(Default::default()),
            "medagents" => Protocol::MedAgents(Default::default()),
            "mdagents" => Protocol::MdAgents(Default::default()),
            "reconcile" => Protocol::Reconcile(Default::default()),
            "medguards" => Protocol::MedGuards(Default::default()),
            "base-llm" => Protocol::BaseLlm(Default::default()),
            _ => match Method::named(name) {
                Some(method) => Protocol::SingleLlm(single_llm::settings::Settings::new(method)),
                None => {
                    return Err(SettingsError::UnknownSystem {
                        name: name.to_owned(),
                        known: Protocol::NAMES.to_vec(),
                    });
                }
            },
        })
    }

    /// The system's defaults, changed by `key=value` pairs in order; the last of a key wins.
    ///
    /// # Errors
    /// An unknown name, and the first pair that is no setting of the system with an allowed value.
    pub fn parse<S: AsRef<str>>(name: &str, pairs: &[S]) -> Result<Protocol, SettingsError> {
        let mut protocol = Protocol::named(name)?;
        set_pairs(pairs, |key, value| protocol.set(key, value))?;
        Ok(protocol)
    }

    /// The system of a plan; a key that is left out keeps its default.
    ///
    /// # Errors
    /// As [`Protocol::parse`].
    pub fn from_table(name: &str, table: &toml::Table) -> Result<Protocol, SettingsError> {
        let mut protocol = Protocol::named(name)?;
        set_table(table, |key, value| protocol.set(key, value))?;
        Ok(protocol)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), SettingsError> {
        match self {
            Protocol::MedMad(settings) | Protocol::NoDebate(settings) => settings.set(key, value),
            Protocol::SingleLlm(settings) => settings.set(key, value),
            Protocol::HealthcareAgent(decoding) => match decoding.set(key, value)? {
                true => Ok(()),
                false => Err(SettingsError::unknown(key, &Decoding::KEYS)),
            },
            Protocol::MedAgents(settings) => settings.set(key, value),
            Protocol::MdAgents(settings) => settings.set(key, value),
            Protocol::Reconcile(settings) => settings.set(key, value),
            Protocol::MedGuards(settings) => settings.set(key, value),
            Protocol::BaseLlm(settings) => settings.set(key, value),
        }
    }

    /// Every setting, spelled as [`Protocol::parse`] reads it.
    pub fn to_table(&self) -> toml::Table {
        match self {
            Protocol::MedMad(settings) | Protocol::NoDebate(settings) => settings.to_table(),
            Protocol::SingleLlm(settings) => settings.to_table(),
            Protocol::HealthcareAgent(settings) => settings.to_table(),
            Protocol::MedAgents(settings) => settings.to_table(),
            Protocol::MdAgents(settings) => settings.to_table(),
            Protocol::Reconcile(settings) => settings.to_table(),
            Protocol::MedGuards(settings) => settings.to_table(),
            Protocol::BaseLlm(settings) => settings.to_table(),
        }
    }

    /// The name in plans.
    pub fn name(&self) -> &'static str {
        match self {
            Protocol::MedMad(_) => "medmad",
            Protocol::NoDebate(_) => "no-debate",
            Protocol::SingleLlm(settings) => settings.method.name(),
            Protocol::HealthcareAgent(_) => "healthcareagent",
            Protocol::MedAgents(_) => "medagents",
            Protocol::MdAgents(_) => "mdagents",
            Protocol::Reconcile(_) => "reconcile",
            Protocol::MedGuards(_) => "medguards",
            Protocol::BaseLlm(_) => "base-llm",
        }
    }

    /// The directory of the system's prompts.
    pub fn prompts(&self) -> &'static str {
        match self {
            Protocol::MedMad(_) | Protocol::NoDebate(_) => "medmad",
            Protocol::SingleLlm(_) => "single_llm",
            Protocol::HealthcareAgent(_) => "healthcareagent",
            Protocol::MedAgents(_) => "medagents",
            Protocol::MdAgents(_) => "mdagents",
            Protocol::Reconcile(_) => "reconcile",
            Protocol::MedGuards(_) => "medguards",
            Protocol::BaseLlm(_) => "base_llm",
        }
    }

    /// The agents, in panel order.
    pub fn seats(&self) -> Vec<Seat> {
        match self {
            Protocol::MedMad(settings) | Protocol::NoDebate(settings) => {
                let agents = settings.agents().into_iter().enumerate();
                agents
                    .map(|(model, agent)| Seat::new(agent, model))
                    .collect()
            }
            Protocol::SingleLlm(_) => vec![Seat::new(single_llm::protocol::AGENT, 0)],
            Protocol::HealthcareAgent(_) => vec![Seat::new(healthcareagent::protocol::AGENT, 0)],
            Protocol::MedAgents(_) => medagents::settings::Settings::seats(),
            Protocol::MdAgents(_) => mdagents::settings::Settings::seats(),
            Protocol::Reconcile(_) => reconcile::settings::Settings::seats(),
            Protocol::MedGuards(settings) => settings.seats(),
            Protocol::BaseLlm(_) => vec![Seat::new(base_llm::protocol::AGENT, 0)],
        }
    }

    /// How many models the panel has at most.
    pub fn models(&self) -> usize {
        let models = self.seats().into_iter().map(|seat| seat.model + 1);
        models.max().unwrap_or(0)
    }

    /// How the system's texts are bounded.
    pub fn decoding(&self) -> &Decoding {
        match self {
            Protocol::MedMad(settings) | Protocol::NoDebate(settings) => &settings.decoding,
            Protocol::SingleLlm(settings) => &settings.decoding,
            Protocol::HealthcareAgent(decoding) => decoding,
            Protocol::MedAgents(settings) => &settings.decoding,
            Protocol::MdAgents(settings) => &settings.decoding,
            Protocol::Reconcile(settings) => &settings.decoding,
            Protocol::MedGuards(settings) => &settings.decoding,
            Protocol::BaseLlm(settings) => &settings.decoding,
        }
    }

    /// Whether it works on notes; else it answers questions.
    pub fn takes_notes(&self) -> bool {
        matches!(self, Protocol::MedGuards(_) | Protocol::BaseLlm(_))
    }

    /// How many models it has where none are named: MedGuards fills every slot with one, as its paper does.
    pub fn default_models(&self) -> usize {
        match self {
            Protocol::MedGuards(_) => 1,
            _ => self.models(),
        }
    }

    /// Calls on an item, at most.
    pub fn max_calls(&self) -> u32 {
        match self {
            Protocol::MedMad(settings) | Protocol::NoDebate(settings) => settings.max_calls(),
            Protocol::SingleLlm(settings) => settings.samples,
            Protocol::HealthcareAgent(_) => healthcareagent::protocol::MAX_CALLS,
            Protocol::MedAgents(settings) => settings.max_calls(),
            Protocol::MdAgents(settings) => settings.max_calls(),
            Protocol::Reconcile(settings) => settings.max_calls(),
            Protocol::MedGuards(settings) => settings.max_calls(),
            Protocol::BaseLlm(_) => base_llm::protocol::TRIES,
        }
    }
}

/// A system, ready to work on items.
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
    ) -> Result<ItemRecord, PanelError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn healthcareagents_plan_names_every_setting_and_gives_them_back() {
        let pairs = ["record_chars=32", "thinking=on", "max_tokens=900"];
        let protocol = Protocol::parse("healthcareagent", &pairs).unwrap();
        let table = protocol.to_table();
        assert_eq!(table.len(), Decoding::KEYS.len());
        assert_eq!(Protocol::from_table(protocol.name(), &table), Ok(protocol));
        let error = Protocol::parse("healthcareagent", &["samples=2"]).unwrap_err();
        assert!(error.hint().unwrap().contains("record_chars, thinking"));
    }

    #[test]
    fn healthcareagents_doctor_sits_alone_and_speaks_seven_times_at_most() {
        let protocol = Protocol::named("healthcareagent").unwrap();
        let seats = protocol.seats();
        assert_eq!((seats.len(), protocol.models()), (1, 1));
        assert_eq!(seats[0].agent, "doctor");
        assert_eq!(protocol.max_calls(), 7);
    }
}
