//! Which system runs, with its settings.

use super::decoding::Decoding;
use super::settings::{SettingsError, set_pairs, set_table};
use super::single_llm::settings::Method;
use super::{
    base_llm, healthcareagent, mdagents, medagents, medguards, medmad, reconcile, single_llm,
};

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

    /// Agents on the panel's models in their order, then others on its first.
    pub fn in_order(agents: impl IntoIterator<Item = String>, others: &[&str]) -> Vec<Seat> {
        let agents = agents.into_iter().enumerate();
        let agents = agents.map(|(model, agent)| Seat::new(agent, model));
        let others = others.iter().map(|agent| Seat::new(*agent, 0));
        agents.chain(others).collect()
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
            Protocol::HealthcareAgent(decoding) => decoding.set(key, value, &Decoding::KEYS),
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
                Seat::in_order(settings.agents(), &[])
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

#[cfg(test)]
mod tests {
    use crate::diagnosis::Diagnosis;
    use std::collections::BTreeSet;

    use super::*;

    /// Every setting of every system, each with another value than its default; those of the decoding come on top.
    const OTHERS: [(&str, &str); 8] = [
        (
            "medmad",
            "t_max=1 confidence=off counterfactual=paper roles=ddx analysis_first=on truncate_chars=80 samples=2",
        ),
        ("cot-sc", "samples=2 mab_compat=on"),
        ("healthcareagent", ""),
        ("medagents", "form=original max_rounds=2"),
        ("mdagents", "truncate_chars=80 mab_compat=on"),
        ("reconcile", "max_rounds=2 truncate_chars=80"),
        (
            "medguards",
            "agents=8 arbitration=vote det_reasoning=off det_confidence=off loc_reasoning=off loc_confidence=off localisation=hard aligner=lcs release_compat=on",
        ),
        ("base-llm", "prompt=2 release_compat=on"),
    ];

    #[test]
    fn plans_name_every_setting_and_give_them_back() {
        for (name, own) in OTHERS {
            let refused = Protocol::parse(name, &["none=1"]).unwrap_err();
            let SettingsError::UnknownKey { known, .. } = refused else {
                panic!("{name}: {refused}");
            };
            let known: BTreeSet<&str> = known.iter().copied().collect();
            let decoding = ["record_chars=32", "thinking=on", "max_tokens=900"];
            let pairs: Vec<&str> = own.split_whitespace().chain(decoding).collect();
            let keys = pairs.iter().map(|pair| pair.split('=').next().unwrap());
            assert_eq!(keys.collect::<BTreeSet<_>>(), known, "{name}");
            for pair in &pairs {
                let changed = Protocol::parse(name, &[pair]).unwrap();
                assert_ne!(changed, Protocol::named(name).unwrap(), "{name}: {pair}");
            }
            let protocol = Protocol::parse(name, &pairs).unwrap();
            let text = toml::to_string(&protocol.to_table()).unwrap();
            let table: toml::Table = text.parse().unwrap();
            let written: BTreeSet<&str> = table.keys().map(String::as_str).collect();
            assert_eq!(written, known, "{name}");
            assert_eq!(Protocol::from_table(protocol.name(), &table), Ok(protocol));
        }
    }

    #[test]
    fn bad_settings_are_refused_by_name() {
        let refused = |name, pair| Protocol::parse(name, &[pair]).unwrap_err();
        for (name, pair, expected) in [
            ("medmad", "t_max=-1", "a whole number from 0 to 100"),
            ("medmad", "counterfactual=off", "on or paper or strict"),
            ("medmad", "roles=sym,ddx", "one role or 3"),
            ("cot", "samples=0", "a whole number from 1 to 100"),
            (
                "healthcareagent",
                "record_chars=0",
                "a whole number from 1 to 2000",
            ),
            ("medagents", "form=paper", "harness or original"),
            ("medagents", "max_rounds=0", "a whole number from 1 to 100"),
            ("mdagents", "mab_compat=yes", "on or off"),
            ("reconcile", "max_rounds=0", "a whole number from 1 to 100"),
            ("medguards", "agents=5", "1 or 2 or 3 or 4 or 7 or 8"),
            ("medguards", "aligner=edit", "sequence-matcher or lcs"),
            ("base-llm", "prompt=3", "a whole number from 1 to 2"),
        ] {
            let (key, value) = pair.split_once('=').unwrap();
            let message = format!("setting {key}: \"{value}\" is not {expected}");
            assert_eq!(refused(name, pair).to_string(), message, "{name}");
        }
        let message = |name, pair| refused(name, pair).to_string();
        assert_eq!(message("medmad", "t_max"), "\"t_max\" is not key=value");
        assert_eq!(
            message("medmad", "roles=sym,ddx,doc"),
            "setting roles: \"doc\" is not sym or ddx or guide"
        );
        assert_eq!(
            message("mdagents", "form=original"),
            "there is no setting form"
        );
        for (name, known) in [
            ("medmad", "t_max, confidence"),
            ("cot", "samples, record_chars"),
            ("healthcareagent", "record_chars, thinking"),
        ] {
            let hint = refused(name, "tmax=1").hint().unwrap();
            assert!(hint.contains(known), "{name}: {hint}");
        }
    }

    #[test]
    fn an_item_takes_so_many_calls_at_most() {
        for (name, pairs, calls) in [
            ("healthcareagent", &[][..], 7),
            ("mdagents", &[], 15),
            ("reconcile", &["max_rounds=2"], 9),
        ] {
            let protocol = Protocol::parse(name, pairs).unwrap();
            assert_eq!(protocol.max_calls(), calls, "{name}");
        }
    }

    #[test]
    fn healthcareagents_doctor_sits_alone() {
        let protocol = Protocol::named("healthcareagent").unwrap();
        let seats = protocol.seats();
        assert_eq!((seats.len(), protocol.models()), (1, 1));
        assert_eq!(seats[0].agent, "doctor");
    }
}
