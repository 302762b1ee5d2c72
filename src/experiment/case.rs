//! One question or note, worked on by a system whose models are loaded already: nothing is read, loaded or written for it.
//!
//! A case gives the bytes that `wardround run` gives on the same models with the same seed, where the file of items is named
//! [`DATASET`] and the item has the id that [`question`] and [`note`] give it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value, json};

use super::exemplars::Shown;
use super::spec::Spec;
use crate::data::{Choice, Item, Note, Question};
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::panel::backbone::Backbone;
use crate::panel::recorder::Telling;
use crate::panel::{CallSettings, Member, Panel, PanelError};
use crate::prompts::PromptSet;
use crate::record::{CallLine, ItemLine, Usage};
use crate::systems::{System, SystemConfig, Task};

/// What the calls and lines of cases are filed under.
pub const DATASET: &str = "serve";
/// Of the sum of an item's text.
const ID_DIGITS: usize = 16;

/// The question as an item. Its id is the first 16 hexadecimal digits of the SHA-256 of
/// `{"question":"…","options":{"A":"…","B":"…"}}`, without blanks, characters beyond ASCII as they are.
pub fn question(question: &str, options: Vec<Choice>) -> Item {
    let letter = |choice: &Choice| (choice.letter.to_string(), Value::from(choice.text.as_str()));
    let texts: Map<String, Value> = options.iter().map(letter).collect();
    let id = id_of(&json!({"question": question, "options": texts}).to_string());
    Question { id, question: question.to_owned(), options, ..Question::default() }.into()
}

/// The note as an item, in the language of its script. Its id is the first 16 hexadecimal digits of the SHA-256 of its text.
pub fn note(text: &str) -> Item {
    Note::new(id_of(text), text).into()
}

fn id_of(text: &str) -> String {
    sha256(text)[..ID_DIGITS].to_owned()
}

/// A system whose agents have their models, which searches no corpus and shows no exemplars. Any number of cases may be worked on at once.
pub struct Seated {
    pub config: SystemConfig,
    /// In panel order.
    members: Vec<Member>,
    /// Whether every model answers noise.
    pub is_synthetic: bool,
    /// Over the system's prompts, as they were after any override.
    prompts_sha256: String,
    settings: CallSettings,
    system: Box<dyn System>,
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
    /// Of all calls.
    pub usage: Usage,
}

impl Worked {
    pub fn of(line: ItemLine, calls: Vec<CallLine>) -> Worked {
        let usage = calls.iter().fold(Usage::default(), |sum, call| sum.and(call.usage));
        Worked { line, calls, usage }
    }
}

impl Spec {
    /// Gives every slot of the system its model; `model` knows the loaded ones by the names that the spec has for them.
    pub fn seat(&self, model: impl Fn(&str) -> Option<Arc<Backbone>>) -> Result<Seated, Failure> {
        let prompts = PromptSet::open(self.prompts.as_deref())?;
        let (slots, mut is_synthetic) = (self.config.slots(), true);
        let members = slots.into_iter().zip(self.slot_models()?).map(|(slot, name)| {
            let backbone = model(name).ok_or_else(|| {
                Failure::usage(format!("{name} is not loaded"), "name a model that is")
            })?;
            let lets_think = backbone.description.chat.lets_think();
            self.config.decoding.check_local(&slot.agent, lets_think)?;
            is_synthetic &= backbone.description.is_synthetic;
            Ok(Member { sampling: self.sampling_of(&slot), agent: slot.agent, source: backbone })
        });
        Ok(Seated {
            members: members.collect::<Result<_, Failure>>()?,
            is_synthetic,
            prompts_sha256: self.config.prompts_sha256(&prompts),
            settings: self.config.call_settings(self.decoding()),
            system: self.config.build(&prompts, &Shown::default().exemplars)?,
            config: self.config.clone(),
        })
    }
}

impl Seated {
    /// With models of these fingerprints in its seats: equal ones mean that equal requests get equal bytes.
    pub fn fingerprint(&self, models: &[&str]) -> String {
        self.config.fingerprint(models, &self.prompts_sha256)
    }

    /// Works on an item, and waits until it is done.
    ///
    /// # Errors
    /// When a call could not be made; an item of a kind that the system does not take; a stop.
    pub fn work(&self, item: &Item, options: CaseOptions) -> Result<Worked, PanelError> {
        let (recorder, calls, _) = Telling::new();
        let panel = Panel {
            members: self.members.clone(),
            recorder: Box::new(recorder),
            run_seed: options.seed,
            settings: self.settings.clone(),
            salt: options.salt,
            stop: options.stop,
            retriever: None,
        };
        let task = Task { panel: &panel, dataset: DATASET, item, run: options.run };
        let line = self.system.answer(&task)?;
        Ok(Worked::of(line, calls.try_iter().collect()))
    }
}

#[cfg(test)]
mod tests;
