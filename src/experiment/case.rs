//! One question or note, worked on by a system whose models are loaded already: nothing is read, loaded or written for it.
//!
//! A case gives the bytes that `wardround run` gives on the same models with the same seed, where the file of items is named
//! [`DATASET`] and the item has the id that [`question`] and [`note`] give it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use serde_json::{Map, Value, json};

use super::exemplars::{ExemplarPlan, Shown};
use super::library::Shared;
use super::plan::{MemberChoice, MemberPlan};
use super::spec::Spec;
use crate::data::{self, Choice, DataError, Item, ItemKind, Question};
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::panel::backbone::Backbone;
use crate::panel::{CallSettings, Member, Panel, PanelError};
use crate::prompts::PromptSet;
use crate::record::{CallLine, ItemLine, Language, SearchLine, Usage};
use crate::retrieval::{Retrieve, Retriever};
use crate::systems::{Parts, System, SystemConfig, Task};

/// What the calls and lines of cases are filed under.
pub const DATASET: &str = "serve";
/// Of the sum of an item's text.
const ID_DIGITS: usize = 16;

/// The question as an item. Its id is the first 16 hexadecimal digits of the SHA-256 of
/// `{"question":"…","options":{"A":"…","B":"…"}}`, without blanks, characters beyond ASCII as they are.
///
/// `options` are a list, or an object whose keys are the letters from A on.
///
/// # Errors
/// An empty text; fewer than 2 options, more than 10, or other letters.
pub fn question(question: &str, options: &Value) -> Result<Item, DataError> {
    let read = data::question(&json!({"question": question, "options": options}))?;
    let letter = |choice: &Choice| (choice.letter.to_string(), Value::from(choice.text.as_str()));
    let options: Map<String, Value> = read.options.iter().map(letter).collect();
    let text = json!({"question": read.question, "options": options}).to_string();
    Ok(Question { id: id_of(&text), ..read }.into())
}

/// The note as an item. Its id is the first 16 hexadecimal digits of the SHA-256 of its text; without a language it has that of
/// its script.
///
/// # Errors
/// An empty text.
pub fn note(text: &str, language: Option<Language>) -> Result<Item, DataError> {
    let id = id_of(text);
    let dataset = data::note(Path::new(&id), text.as_bytes().to_vec())?;
    let note = dataset.items.iter().find_map(Item::note).cloned();
    let (path, kind) = (id.into(), ItemKind::Notes);
    let mut note = note.ok_or(DataError::Empty { path, kind, notices: Vec::new() })?;
    note.language = language.unwrap_or(note.language);
    Ok(note.into())
}

fn id_of(text: &str) -> String {
    sha256(text)[..ID_DIGITS].to_owned()
}

/// A system whose agents have their models. Any number of cases may be worked on at once.
pub struct Seated {
    pub config: SystemConfig,
    /// In panel order.
    pub seats: Vec<AgentModel>,
    /// Over the system's prompts, as they were after any override.
    pub prompts_sha256: String,
    /// The sums of what it searches and shows; none of most.
    pub files: Vec<String>,
    settings: CallSettings,
    system: Box<dyn System>,
    retriever: Option<Arc<dyn Retrieve>>,
}

/// An agent and its model.
pub struct AgentModel {
    pub plan: MemberPlan,
    pub backbone: Arc<Backbone>,
}

/// How a case is worked on.
#[derive(Default)]
pub struct CaseOptions {
    /// Of the run; the seeds of the calls come of it.
    pub seed: u64,
    /// Counted from 1: other runs of an item have other seeds.
    pub run: u32,
    /// Cases share the KV cache of common prompt prefixes only with cases of the same salt.
    pub salt: Option<[u8; 16]>,
    /// Set from outside to stop: calls in flight are dropped.
    pub stop: Arc<AtomicBool>,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Worked {
    /// As a run's `items.jsonl` has it, but for its place in the chain.
    pub line: ItemLine,
    /// In the order in which they finished.
    pub calls: Vec<CallLine>,
    pub searches: Vec<SearchLine>,
    /// Of all calls.
    pub usage: Usage,
}

impl Worked {
    pub fn of(line: ItemLine, calls: Vec<CallLine>, searches: Vec<SearchLine>) -> Worked {
        let usage = calls.iter().fold(Usage::default(), |sum, call| sum.and(call.usage));
        Worked { line, calls, searches, usage }
    }
}

impl Spec {
    /// The prompts of the system's cases, which are known before any model is loaded.
    ///
    /// # Errors
    /// Exemplars where none are shown, none where some are; a directory of prompts that cannot be read.
    pub fn case_prompts(&self) -> Result<PromptSet, Failure> {
        self.refuse_other_exemplars()?;
        Ok(PromptSet::open(self.prompts.as_deref())?)
    }

    /// Gives every slot of the system its model; `model` knows the loaded ones by the names that the spec has for them.
    ///
    /// # Errors
    /// A model that is not loaded; prompts, exemplars or a corpus that cannot be used.
    pub fn seat(
        &self,
        model: impl Fn(&str) -> Option<Arc<Backbone>>,
        library: Option<&Arc<Retriever>>,
        shared: &mut Shared,
    ) -> Result<Seated, Failure> {
        let prompts = self.case_prompts()?;
        let Shown { exemplars, plan } = self.read_exemplars(shared, None)?;
        let searched = library.iter().flat_map(|library| library.searched().corpus.iter().cloned());
        let shown = plan.iter().flat_map(ExemplarPlan::sums);
        let thinking = self.config.decoding.thinking.told();
        let slots = self.config.slots();
        let seats = slots.into_iter().zip(self.slot_models()?).map(|(slot, name)| {
            let backbone = model(name).ok_or_else(|| {
                Failure::usage(format!("{name} is not loaded"), "name a model that is")
            })?;
            let lets_think = backbone.description.chat.lets_think();
            self.config.decoding.check_local(&slot.agent, lets_think)?;
            let sampling = self.sampling_of(&slot);
            let asked = MemberChoice { thinking, sampling };
            let plan = MemberPlan::local(&slot.agent, &backbone.description, asked);
            Ok(AgentModel { plan, backbone })
        });
        Ok(Seated {
            seats: seats.collect::<Result<_, Failure>>()?,
            prompts_sha256: self.config.prompts_sha256(&prompts),
            files: searched.chain(shown).collect(),
            settings: self.config.call_settings(self.decoding),
            system: self.config.build(&prompts, &exemplars)?,
            retriever: library.map(Retriever::loaded).transpose()?,
            config: self.config.clone(),
        })
    }
}

impl Seated {
    /// With models of these fingerprints in its seats: equal ones mean that equal requests get equal bytes.
    pub fn fingerprint(&self, models: &[&str]) -> String {
        let (prompts_sha256, files) = (&self.prompts_sha256, &self.files);
        self.config.fingerprint(&Parts { models, prompts_sha256, files })
    }

    /// Works on an item, and waits until it is done. The seeds of the calls depend on the dataset's name, which is [`DATASET`] where the
    /// item is of no file. `on_call` is told of every finished call.
    ///
    /// # Errors
    /// When a call could not be made; an item of a kind that the system does not take; a stop.
    pub fn work(
        &self,
        dataset: &str,
        item: &Item,
        options: CaseOptions,
        on_call: impl Fn(&CallLine) + Send + Sync + 'static,
    ) -> Result<Worked, PanelError> {
        let ((caller, calls), (searcher, searches)) = (channel(), channel());
        let on_call = move |call: &CallLine| {
            on_call(call);
            // The receiver outlives the calls.
            let _ = caller.send(call.clone());
        };
        let member = |seat: &AgentModel| Member {
            agent: seat.plan.agent.clone(),
            source: seat.backbone.clone(),
            sampling: seat.plan.sampling(),
        };
        let panel = Panel {
            members: self.seats.iter().map(member).collect(),
            recorder: Box::new((on_call, searcher)),
            run_seed: options.seed,
            settings: self.settings.clone(),
            salt: options.salt,
            stop: options.stop,
            retriever: self.retriever.clone(),
        };
        let task = Task { panel: &panel, dataset, item, run: options.run };
        let line = self.system.answer(&task)?;
        Ok(Worked::of(line, calls.try_iter().collect(), searches.try_iter().collect()))
    }
}

#[cfg(test)]
mod tests;
