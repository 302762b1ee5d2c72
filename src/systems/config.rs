//! A system by name with every setting resolved: what a plan names, and what is known of it before a prompt is read.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::System;
use super::decoding::Decoding;
use super::exemplars::Exemplars;
use super::settings::{SettingsError, pairs, replace};
use super::table::{Entry, SYSTEMS};
use crate::data::ItemKind;
use crate::diagnosis::Failure;
use crate::prompts::{PromptError, PromptSet};
use crate::retrieval::Rerank;

/// The agent of a system with one.
pub const SOLO: &str = "solo";

/// The settings of one system. `serde` reads and writes them; a plan lists every one.
pub trait Settings: Send + Sync {
    /// The agents, in panel order; one alone where a system does not say.
    fn slots(&self) -> Vec<Slot> {
        vec![Slot::new(SOLO, 0)]
    }

    /// Calls on an item, at most.
    fn max_calls(&self) -> u32;

    /// What the system searches for in a corpus; `None` where it searches none.
    fn search(&self) -> Option<SearchSettings> {
        None
    }

    /// # Errors
    /// When an overridden prompt lost what is filled in; exemplars that the settings need and that are not there.
    fn build(
        &self,
        prompts: &PromptSet,
        exemplars: &Arc<Exemplars>,
    ) -> Result<Box<dyn System>, Failure>;
}

/// How a system searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchSettings {
    pub rerank: Rerank,
    /// Whether prompts label passages, so that a model can name those it relies on.
    pub labels: bool,
}

/// An agent of a system, and which of the panel's models it has by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    pub agent: String,
    pub model: usize,
}

impl Slot {
    pub fn new(agent: impl Into<String>, model: usize) -> Slot {
        let agent = agent.into();
        Slot { agent, model }
    }

    /// Agents on the panel's models in their order, then others on its first.
    pub fn in_order(agents: impl IntoIterator<Item = String>, others: &[&str]) -> Vec<Slot> {
        let agents = agents.into_iter().enumerate();
        let agents = agents.map(|(model, agent)| Slot::new(agent, model));
        let others = others.iter().map(|agent| Slot::new(*agent, 0));
        agents.chain(others).collect()
    }
}

/// What the answers of a system depend on beside its settings.
pub struct Parts<'a> {
    /// The fingerprints of the models in its seats.
    pub models: &'a [&'a str],
    pub prompts_sha256: &'a str,
    /// The sums of the corpora and exemplars that it reads.
    pub files: &'a [String],
}

/// A system with its settings.
#[derive(Clone)]
pub struct SystemConfig {
    pub entry: &'static Entry,
    /// How the system's texts are bounded.
    pub decoding: Decoding,
    /// Every setting, as [`SystemConfig::from_table`] reads it.
    pub table: toml::Table,
    settings: Arc<dyn Settings>,
}

impl SystemConfig {
    /// The system of this name with its defaults.
    ///
    /// # Errors
    /// A name that no system has.
    pub fn named(name: &str) -> Result<SystemConfig, SettingsError> {
        SystemConfig::from_table(name, &toml::Table::new())
    }

    /// The system's defaults, changed by `key=value` pairs in order; the last of a key wins.
    ///
    /// # Errors
    /// An unknown name, and the first pair that is no setting of the system with an allowed value.
    pub fn parse<S: AsRef<str>>(name: &str, given: &[S]) -> Result<SystemConfig, SettingsError> {
        let entry = Entry::named(name)?;
        let given = pairs(given)?.into_iter();
        let given = given.map(|(key, value)| (key, value.into()));
        (entry.configure)(entry, given.collect())
    }

    /// The system of a plan; a key that is left out keeps its default.
    ///
    /// # Errors
    /// An unknown name, and the first entry that is no setting of the system with an allowed value.
    pub fn from_table(name: &str, table: &toml::Table) -> Result<SystemConfig, SettingsError> {
        let entry = Entry::named(name)?;
        let entries = table.iter().map(|(key, value)| (key.clone(), value.clone()));
        (entry.configure)(entry, entries.collect())
    }

    /// `settings` changed by the table's defaults for this name and by what is given.
    ///
    /// # Errors
    /// A key that is none, or a value that it cannot have.
    pub fn new<S>(
        entry: &'static Entry,
        given: Vec<(String, toml::Value)>,
        finish: impl FnOnce(S) -> S,
    ) -> Result<SystemConfig, SettingsError>
    where
        S: Settings + Default + Serialize + DeserializeOwned + 'static,
    {
        let unusable = |error: &dyn std::fmt::Display| SettingsError::BadValue {
            key: entry.name.to_owned(),
            value: String::new(),
            expected: error.to_string(),
        };
        let table = toml::Table::try_from(S::default()).map_err(|error| unusable(&error))?;
        let own = entry.defaults.iter();
        let own = own.map(|(key, value)| ((*key).to_owned(), (*value).into()));
        let table = replace::<S>(table, own.chain(given))?;
        let settings = table.try_into::<S>().map_err(|error| unusable(&error))?;
        // As serde spells it, whatever the spelling that was given.
        let table = toml::Table::try_from(&settings).map_err(|error| unusable(&error))?;
        // Of all settings, those that every system has.
        let decoding = table.clone().try_into().map_err(|error| unusable(&error))?;
        Ok(SystemConfig { entry, decoding, table, settings: Arc::new(finish(settings)) })
    }

    /// The name in plans.
    #[expect(
        clippy::misnamed_getters,
        reason = "plans and logs name a system so; `entry.name` is the command line's"
    )]
    pub fn name(&self) -> &'static str {
        self.entry.plan_name
    }

    /// Equal ones mean that equal requests get equal bytes.
    pub fn fingerprint(&self, parts: &Parts<'_>) -> String {
        let Parts { models, prompts_sha256, files } = parts;
        let mut whole = vec![json!(models), json!(prompts_sha256), json!(self.table)];
        // Most systems read none, and have the fingerprint of three parts.
        whole.extend((!files.is_empty()).then(|| json!(files)));
        let sum = crate::digest::sha256(format!("{} {}", self.name(), json!(whole)));
        format!("wr_{}", &sum[..16])
    }

    /// The folder of the system's prompts.
    pub fn prompts(&self) -> &'static str {
        self.entry.prompts
    }

    /// Whether it works on notes; else it answers questions.
    pub fn takes_notes(&self) -> bool {
        self.entry.takes == ItemKind::Notes
    }

    /// The agents, in panel order.
    pub fn slots(&self) -> Vec<Slot> {
        self.settings.slots()
    }

    /// How many models the panel has at most.
    pub fn models(&self) -> usize {
        let models = self.slots().into_iter().map(|slot| slot.model + 1);
        models.max().unwrap_or(0)
    }

    /// How many models it has where none are named.
    pub fn default_models(&self) -> usize {
        self.entry.default_models.unwrap_or_else(|| self.models())
    }

    /// Calls on an item, at most.
    pub fn max_calls(&self) -> u32 {
        self.settings.max_calls()
    }

    /// How it searches; `None` where it searches nothing.
    pub fn search(&self) -> Option<SearchSettings> {
        self.settings.search()
    }

    /// How its prompts quote a passage: `passage.txt`, without the line of the label where nothing is labelled.
    ///
    /// # Errors
    /// When an overridden prompt lost what is filled in.
    pub fn passage(&self, prompts: &PromptSet) -> Result<String, PromptError> {
        let is_labelled = self.search().is_some_and(|search| search.labels);
        passage(prompts, self.prompts(), is_labelled)
    }

    /// The system, ready to work on items.
    ///
    /// # Errors
    /// When an overridden prompt lost what is filled in; exemplars that the settings need and that are not there.
    pub fn build(
        &self,
        prompts: &PromptSet,
        exemplars: &Arc<Exemplars>,
    ) -> Result<Box<dyn System>, Failure> {
        self.settings.build(prompts, exemplars)
    }

    /// The names of the systems that work on items of this kind.
    pub fn names(kind: ItemKind) -> Vec<&'static str> {
        let systems = SYSTEMS.iter().filter(|entry| entry.takes == kind);
        systems.map(|entry| entry.name).collect()
    }
}

/// `passage.txt` of a folder of prompts, without the line of the label where nothing is labelled.
///
/// # Errors
/// When an overridden prompt lost what is filled in.
pub fn passage(
    prompts: &PromptSet,
    folder: &str,
    is_labelled: bool,
) -> Result<String, PromptError> {
    let template = prompts.get(&format!("{folder}/passage"), &["label", "text"])?;
    let is_kept = |line: &&str| is_labelled || !line.contains("{label}");
    Ok(template.lines().filter(is_kept).collect::<Vec<_>>().join("\n"))
}

impl std::fmt::Debug for SystemConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name(), self.table)
    }
}

impl PartialEq for SystemConfig {
    fn eq(&self, other: &SystemConfig) -> bool {
        self.name() == other.name() && self.table == other.table
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::diagnosis::Diagnosis;

    /// Every setting of every system, each with another value than its default; those of the decoding come on top.
    const OTHERS: [(&str, &str); 17] = [
        (
            "medmad",
            "t_max=1 always_debate=on confidence=off counterfactual=paper roles=ddx analysis_first=on truncate_chars=80 samples=2 letters=a-j",
        ),
        ("cot-sc", "samples=2 mab_compat=on"),
        ("healthcareagent", "mab_compat=on"),
        ("medagents", "form=original max_rounds=2 mab_compat=on"),
        ("mdagents", "truncate_chars=80 mab_compat=on"),
        ("reconcile", "max_rounds=2 truncate_chars=80 mab_compat=on"),
        (
            "medguards",
            "agents=8 arbitration=vote det_reasoning=off det_confidence=off loc_reasoning=off loc_confidence=off localisation=hard aligner=lcs release_compat=on",
        ),
        ("base-llm", "prompt=2 release_compat=on"),
        (
            "medreflex",
            "react_turns=2 reflexion_turns=2 reviewers=3 avg_threshold=4 min_threshold=2.5 on_exhaustion=last-answer retrieve_top_k=9 rerank_top_k=3 rerank=off results_kept=last cite=on temperatures=model release_compat=on",
        ),
        (
            "medreact",
            "react_turns=2 retrieve_top_k=9 rerank_top_k=3 rerank=embedding results_kept=last cite=on temperatures=model release_compat=on",
        ),
        (
            "edinburgh",
            "cot=off type_hint=off span=model filter=bertscore role=nurse shots=2 choice=tfidf temperatures=model",
        ),
        ("edinburgh-mcq", "options=2 shots=2 choice=tfidf temperatures=model"),
        ("knowlab", "shots=2 choice=tfidf temperatures=model"),
        ("promptmind", "samples=2 members=3 shots=2 choice=tfidf temperatures=model"),
        ("em-mixers", "evidence=off shots=2 choice=tfidf temperatures=model"),
        ("ikim", "candidate=asked clusters=on shots=1 choice=tfidf temperatures=model"),
        ("hse-nlp", "ensemble=and shots=2 choice=tfidf temperatures=model"),
    ];

    #[test]
    fn plans_name_every_setting_and_give_them_back() {
        for (name, own) in OTHERS {
            let refused = SystemConfig::parse(name, &["none=1"]).unwrap_err();
            let SettingsError::UnknownKey { known, .. } = refused else {
                panic!("{name}: {refused}");
            };
            let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
            let decoding = ["record_chars=32", "thinking=on", "max_tokens=900"];
            let pairs: Vec<&str> = own.split_whitespace().chain(decoding).collect();
            let keys = pairs.iter().map(|pair| pair.split('=').next().unwrap());
            assert_eq!(keys.collect::<BTreeSet<_>>(), known, "{name}");
            for pair in &pairs {
                let changed = SystemConfig::parse(name, &[pair]).unwrap();
                assert_ne!(changed, SystemConfig::named(name).unwrap(), "{name}: {pair}");
            }
            let system = SystemConfig::parse(name, &pairs).unwrap();
            let text = toml::to_string(&system.table).unwrap();
            let table: toml::Table = text.parse().unwrap();
            let written: BTreeSet<&str> = table.keys().map(String::as_str).collect();
            assert_eq!(written, known, "{name}");
            assert_eq!(SystemConfig::from_table(system.name(), &table), Ok(system));
        }
    }

    #[test]
    fn bad_settings_are_refused_by_name() {
        let refused = |name, pair| SystemConfig::parse(name, &[pair]).unwrap_err();
        for (name, pair, expected) in [
            ("medmad", "t_max=-1", "a whole number from 0 to 100"),
            ("medmad", "counterfactual=off", "on or paper or strict"),
            ("medmad", "roles=sym,ddx", "one or 3 of sym, ddx, guide"),
            ("cot", "samples=0", "a whole number from 1 to 100"),
            ("healthcareagent", "record_chars=0", "a whole number from 1 to 2000"),
            ("medagents", "form=paper", "harness or original"),
            ("medagents", "max_rounds=0", "a whole number from 1 to 100"),
            ("mdagents", "mab_compat=yes", "on or off"),
            ("reconcile", "max_rounds=0", "a whole number from 1 to 100"),
            ("medguards", "agents=5", "1 or 2 or 3 or 4 or 7 or 8"),
            ("medguards", "aligner=edit", "sequence-matcher or lcs"),
            ("base-llm", "prompt=3", "a whole number from 1 to 2"),
            ("edinburgh", "shots=65", "a whole number from 0 to 64"),
            (
                "edinburgh",
                "role=doctor",
                "clinician or assistant or nurse or student or verifier or none",
            ),
            ("edinburgh-mcq", "options=5", "a whole number from 2 to 4"),
        ] {
            let (key, value) = pair.split_once('=').unwrap();
            let message = format!("setting {key}: \"{value}\" is not {expected}");
            assert_eq!(refused(name, pair).to_string(), message, "{name}");
        }
        let message = |name, pair| refused(name, pair).to_string();
        assert_eq!(message("medmad", "t_max"), "\"t_max\" is not key=value");
        assert_eq!(
            message("medmad", "roles=sym,ddx,doc"),
            "setting roles: \"sym,ddx,doc\" is not one or 3 of sym, ddx, guide"
        );
        assert_eq!(message("mdagents", "form=original"), "there is no setting form");
        for (name, known) in [
            ("medmad", "samples, t_max"),
            ("cot", "record_chars, samples"),
            ("healthcareagent", "record_chars, thinking"),
        ] {
            let hint = refused(name, "tmax=1").hint().unwrap();
            assert!(hint.contains(known), "{name}: {hint}");
        }
    }

    #[test]
    fn switches_are_on_or_off_true_or_false() {
        for (pair, spelled) in [("thinking=true", "on"), ("thinking=off", "off")] {
            let table = SystemConfig::parse("cot", &[pair]).unwrap().table;
            assert_eq!(table["thinking"].as_str(), Some(spelled));
        }
    }

    #[test]
    fn the_last_of_a_key_wins() {
        let system = SystemConfig::parse("medmad", &["t_max=0", "t_max=2"]).unwrap();
        assert_eq!(system.table["t_max"].as_integer(), Some(2));
    }

    #[test]
    fn an_item_takes_so_many_calls_at_most() {
        for (name, pairs, calls) in [
            ("healthcareagent", &[][..], 7),
            ("mdagents", &[], 15),
            ("reconcile", &["max_rounds=2"], 9),
        ] {
            let system = SystemConfig::parse(name, pairs).unwrap();
            assert_eq!(system.max_calls(), calls, "{name}");
        }
    }

    #[test]
    fn healthcareagents_doctor_is_alone() {
        let system = SystemConfig::named("healthcareagent").unwrap();
        let slots = system.slots();
        assert_eq!((slots.len(), system.models()), (1, 1));
        assert_eq!(slots[0].agent, "doctor");
    }
}
