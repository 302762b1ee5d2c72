//! The table of all systems, with one entry each.

use std::fmt;
use std::sync::LazyLock;

use itertools::Itertools;

use super::config::SystemConfig;
use super::file::{SystemFile, SystemText};
use super::{healthcareagent, mdagents, medagents, medguards, medmad, medreflex, reconcile};
use crate::data::ItemKind;
use crate::diagnosis::Failure;

/// The origin of a system's prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// Printed in a paper, at this place.
    Paper(&'static str),
    /// Written for this project, after this source.
    Ours(&'static str),
}

impl fmt::Display for Wording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wording::Paper(place) => write!(f, "the paper's ({place})"),
            Wording::Ours(after) => write!(f, "ours, after {after}"),
        }
    }
}

pub struct SystemEntry {
    pub name: &'static str,
    /// The name in plans and logs: for single-model baselines MedAgentBoard's. The command line accepts it too.
    pub plan_name: &'static str,
    pub takes: ItemKind,
    /// The folder of its prompts under `prompts/`.
    pub prompts: &'static str,
    pub wording: Wording,
    /// The origin of the few-shot examples in its prompts; `None` where they have none.
    pub examples: Option<&'static str>,
    /// Whether its prompts show notes of a file of exemplars.
    pub exemplars: bool,
    /// The number of models of a panel that names none; `None`: one for each agent that has its own.
    pub default_models: Option<usize>,
    /// Settings whose defaults differ from those of the settings' type.
    pub defaults: &'static [(&'static str, &'static str)],
    pub configure: Configure,
    /// The file that describes it; `None`: it is a program.
    pub file: Option<&'static SystemFile>,
}

/// Makes a system of the settings that a plan or `--set` gives; the others have their defaults.
pub type Configure = fn(&'static SystemEntry, toml::Table) -> Result<SystemConfig, Failure>;

/// MED-MAD's prompts are printed in full.
const MEDMAD: Wording = Wording::Paper("MED-MAD, App. C");

const MEDGUARDS: Wording = Wording::Paper(
    "MedGuards, Table 15; those of agents with several tasks, of the second corrector and of sentences by number are ours",
);

/// Its prompts are not published, only the fields of its replies.
const MEDREFLEX: Wording = Wording::Ours("the description of MedReAct'N'MedReFlex and its release");

/// In which `systems ls` has them; others follow.
const ORDER: &str = "medmad no-debate zero-shot few-shot cot self-consistency cot-sc healthcareagent \
    medagents mdagents reconcile medguards base-llm medreflex medreact medprompt \
    knowlab knowlab-cot knowlab-reason em-mixers medifact";

/// All systems. Every built-in file describes one, as a test sees to.
pub static SYSTEMS: LazyLock<Vec<SystemEntry>> = LazyLock::new(|| {
    let files = SystemFile::embedded().filter_map(|(name, text)| {
        let source =
            SystemText { name: name.to_owned(), text: text.to_owned(), ..SystemText::default() };
        SystemFile::of_source(&source).ok().map(SystemFile::entry)
    });
    let mut systems: Vec<SystemEntry> = files.chain(programs()).collect();
    let place = |name: &str| ORDER.split(' ').position(|one| one == name);
    systems.sort_by_key(|entry| place(entry.name).unwrap_or(usize::MAX));
    systems
});

/// Those with protocols of their own.
fn programs() -> [SystemEntry; 9] {
    let question = SystemEntry::question;
    let medmad = |name| SystemEntry {
        wording: MEDMAD,
        ..question(name, "medmad", SystemConfig::new::<medmad::settings::Settings>)
    };
    // In the papers all agents have the same model.
    let note = |name, prompts, wording, configure: Configure| SystemEntry {
        takes: ItemKind::Notes,
        wording,
        default_models: Some(1),
        ..question(name, prompts, configure)
    };
    let medguards = SystemConfig::new::<medguards::settings::Settings>;
    let medreflex = SystemConfig::new::<medreflex::settings::Settings>;
    let medreact = SystemConfig::new::<medreflex::settings::ReactSettings>;
    let healthcareagent = SystemConfig::new::<healthcareagent::Settings>;
    [
        medmad("medmad"),
        // Two independent answers of each agent, the same vote over all of them, no debate (MED-MAD, App. A.3).
        SystemEntry { defaults: &[("t_max", "0"), ("samples", "2")], ..medmad("no-debate") },
        question("healthcareagent", "healthcareagent", healthcareagent),
        question("medagents", "medagents", SystemConfig::new::<medagents::Settings>),
        question("mdagents", "mdagents", SystemConfig::new::<mdagents::Settings>),
        question("reconcile", "reconcile", SystemConfig::new::<reconcile::Settings>),
        note("medguards", "medguards", MEDGUARDS, medguards),
        SystemEntry {
            defaults: &[("react_turns", "4")],
            ..note("medreflex", "medreflex", MEDREFLEX, medreflex)
        },
        note("medreact", "medreflex", MEDREFLEX, medreact),
    ]
}

impl SystemEntry {
    pub(super) fn question(
        name: &'static str,
        prompts: &'static str,
        configure: Configure,
    ) -> SystemEntry {
        SystemEntry {
            name,
            plan_name: name,
            takes: ItemKind::Questions,
            prompts,
            wording: Wording::Ours("the descriptions in MedAgentBoard"),
            examples: None,
            exemplars: false,
            default_models: None,
            defaults: &[],
            configure,
            file: None,
        }
    }

    /// The system with this name on the command line or in plans.
    pub fn named(name: &str) -> Result<&'static SystemEntry, Failure> {
        let mut entries = SYSTEMS.iter();
        let found = entries.find(|entry| entry.name == name || entry.plan_name == name);
        found.ok_or_else(|| {
            let known = SYSTEMS.iter().map(|entry| entry.name).join(", ");
            let hint = format!("the systems are {known}; or give a TOML file of your own");
            Failure::usage(format!("there is no system {name}"), &hint)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Item;
    use crate::panel::scripted::Script;
    use crate::prompts::PromptSet;
    use crate::record::ItemLine;
    use crate::systems::scripted::{note, question, work};

    /// What suits every call: a letter, a level, a yes; for notes a label, a sentence, a correction.
    const SAID: &str = "<think>so</think>\nINCORRECT\n<result>She went home.</result>\n<confidence>80</confidence>\nAnswer: B";

    #[test]
    fn every_system_answers_an_item_of_its_kind_and_logs_its_calls() {
        let named = |name| SYSTEMS.iter().filter(|entry| entry.name == name).count();
        assert!(ORDER.split(' ').all(|name| named(name) == 1), "a system twice, or none");
        for (name, text) in SystemFile::embedded() {
            let (name, text) = (name.to_owned(), text.to_owned());
            let source = SystemText { name, text, ..SystemText::default() };
            SystemFile::of_source(&source).unwrap();
        }
        for entry in SYSTEMS.iter() {
            let config = SystemConfig::parse::<&str>(entry.name, &[]).unwrap();
            let (item, words): (Item, &str) = match entry.takes {
                ItemKind::Questions => (question(5).into(), "Which one"),
                ItemKind::Notes => (note().into(), "Beta blockers"),
            };
            let (line, calls) = work(&config, &item, Script::new(|_, _| SAID.to_owned()));
            let is_kind = match line {
                ItemLine::Answer(_) => entry.takes == ItemKind::Questions,
                ItemLine::Note(_) => entry.takes == ItemKind::Notes,
            };
            assert!(is_kind && line.error().is_none(), "{}", entry.name);
            assert!((1..=config.max_calls() as usize).contains(&calls.len()));
            assert!(calls.iter().all(|call| call.text == SAID));

            let user = &calls[0].messages.last().unwrap().content;
            assert!(user.contains(words), "{}: {user}", entry.name);
            let prompts = PromptSet::embedded();
            assert!(prompts.texts(entry.prompts).next().is_some(), "{}", entry.name);
        }
    }
}
