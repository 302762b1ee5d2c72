//! What a run will take, and what it needs that is not on this machine: told before anything is fetched or loaded.
//!
//! Calls are the most that the system can make. Tokens are estimates: four characters a token of the first prompts, and the usual length
//! of a system's replies.

use std::path::Path;

use super::models::Models;
use super::run::{Inputs, Run};
use super::spec::Spec;
use crate::data::DEMO_PATH;
use crate::diagnosis::Failure;
use crate::hub::{Card, DatasetCard, HubError, resolve};
use crate::ops::PAGE;
use crate::panel::remote::Address;
use crate::systems::SystemConfig;

const CHARS_PER_TOKEN: usize = 4;
/// A prompt beside its item, where the item cannot be read yet.
const FRAME_TOKENS: usize = 400;
const ITEM_TOKENS: usize = 300;

/// The tokens of a usual reply of the system: a record of MED-MAD has 700 to 1,500, an answer of one letter ten. The paper of MedGuards
/// counts some 500 a detection, others were counted here on small models.
pub fn reply_tokens(config: &SystemConfig) -> usize {
    let usual = match config.entry.name {
        "medmad" | "no-debate" => 1_100,
        "zero-shot" | "few-shot" | "self-consistency" => 10,
        "cot" | "cot-sc" => 350,
        "medguards" => 450,
        "base-llm" => 120,
        "medreact" | "medreflex" => 350,
        _ => 300,
    };
    config.decoding.max_tokens.map_or(usual, |most| usual.min(most))
}

/// Of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// `None` where the file of the items is missing, and no list names them.
    pub items: Option<usize>,
    /// At most; of one item where their number is not known.
    pub calls: u64,
    pub prompt_tokens: u64,
    pub reply_tokens: u64,
}

impl Spec {
    /// From what was read of it; `None` where something of that is missing.
    ///
    /// # Errors
    /// An overridden prompt that lost what is filled in.
    pub fn forecast(&self, inputs: Option<&Inputs>) -> Result<Forecast, Failure> {
        let (items, prompt) = match inputs {
            Some(inputs) => {
                let (items, chars) = inputs.first_prompts(&self.config)?;
                (Some(items), chars / CHARS_PER_TOKEN)
            }
            None => {
                let share = |items| self.shard.map_or(items, |shard| shard.share(items));
                (self.subset.listed().map(share), FRAME_TOKENS + ITEM_TOKENS)
            }
        };
        let reply = reply_tokens(&self.config);
        let each = self.config.max_calls();
        let calls = items.unwrap_or(1) as u64 * u64::from(self.runs) * u64::from(each);
        // Later prompts quote replies: of three agents, or of steps so far.
        let quoted = if each > 1 { 2 * reply } else { 0 };
        Ok(Forecast {
            items,
            calls,
            prompt_tokens: calls * (prompt + quoted) as u64,
            reply_tokens: calls * reply as u64,
        })
    }

    /// The models on this machine that it names, each once, and where they lie; `None` of those that are not here.
    ///
    /// # Errors
    /// A panel that is not the system's size; a name that no model has.
    pub fn local_models(&self) -> Result<Vec<(String, Option<std::path::PathBuf>)>, Failure> {
        let mut found: Vec<(String, Option<std::path::PathBuf>)> = Vec::new();
        for name in self.slot_models()? {
            if !Address::is_meant_by(name) && found.iter().all(|(other, _)| other != name) {
                let directory = match resolve(name, &self.hub.local()) {
                    Ok(checkpoint) => Some(checkpoint.directory),
                    Err(HubError::NotCached(_) | HubError::NoCache) => None,
                    Err(error) => return Err(error.into()),
                };
                found.push((name.clone(), directory));
            }
        }
        Ok(found)
    }

    /// What the run needs besides its models and has not, each with what brings it.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if !is_there(&self.data) {
            missing.push(file(&self.data));
        }
        match (&self.exemplars, self.config.entry.exemplars) {
            (None, true) => missing
                .push("a file of exemplars: --exemplars FILE --exemplars-format medec".to_owned()),
            (Some(spec), true) if !is_there(&spec.notes) => missing.push(file(&spec.notes)),
            _ => {}
        }
        match (&self.corpus, self.config.search()) {
            (None, Some(_)) => missing.push(
                "a corpus to search: `wardround corpus build` makes one, --corpus DIR names it"
                    .to_owned(),
            ),
            (Some(spec), Some(_)) => {
                let absent = spec.directories.iter().filter(|folder| !folder.is_dir());
                missing.extend(absent.map(|folder| format!("the corpus {}", folder.display())));
            }
            _ => {}
        }
        missing
    }
}

impl Run {
    /// Refuses a KV cache that does not hold a first prompt and its completion, before anything is loaded: only --kv-tokens makes one that does
    /// not hold a whole context.
    ///
    /// # Errors
    /// The first item with such a prompt; one whose prompt cannot be written.
    pub(super) fn refuse_small_pools(&self, models: &Models) -> Result<(), Failure> {
        let pool = |model: usize| Some(models.memory.get(model)?.options.pages * PAGE);
        let is_small = |&model: &usize| {
            let description = models.descriptions.get(model);
            description.zip(pool(model)).is_some_and(|(one, pool)| pool < one.context)
        };
        if !self.models.iter().any(is_small) {
            return Ok(());
        }
        let system = self.config.build(&self.prompts, &self.exemplars)?;
        let thinking = self.config.decoding.thinking.is_on();
        for item in &self.items {
            for opening in system.opening(&self.plan.dataset.name, item).into_iter().flatten() {
                let model = self.models[opening.member];
                let described = models.descriptions.get(model).zip(pool(model));
                let Some((description, pool)) = described else { continue };
                let prompt = description.tokenise(&opening.messages, thinking)?.len();
                let room = description.context.saturating_sub(prompt);
                let own = self.plan.panel[opening.member].sampling().max_tokens;
                let limit = [self.config.decoding.max_tokens, own].into_iter().flatten().min();
                let needed = prompt + limit.map_or(room, |limit| limit.min(room));
                if needed > pool {
                    let message = format!(
                        "item {}: a prompt of {prompt} tokens and its completion can come to {needed}, and the KV cache of {} has {pool}",
                        item.id(),
                        description.checkpoint.name
                    );
                    let hint =
                        format!("give --kv-tokens {needed} or more, or lower --set max_tokens");
                    return Err(Failure::usage(message, &hint));
                }
            }
        }
        Ok(())
    }
}

/// Whether items are there: a file, a folder of notes, or what is built in.
pub fn is_there(path: &Path) -> bool {
    path.exists() || path == Path::new(DEMO_PATH)
}

/// A file, and the dataset that it is of.
pub fn file(path: &Path) -> String {
    let mut cards = DatasetCard::all().iter();
    let card = cards.find(|card| card.files().any(|(_, file)| path.ends_with(&file.path)));
    let remedy = card.map_or(String::new(), |card| {
        format!(": `wardround data fetch {} --to DIR` brings it", card.name)
    });
    format!("{}{remedy}", path.display())
}

/// The bytes of a model's weights: of its files where they are here, else by its card; `None` where neither is known.
pub fn weight_bytes(name: &str, directory: Option<&Path>) -> Option<u64> {
    let is_weights = |file: &str| file.ends_with(".safetensors");
    let Some(directory) = directory else {
        let files = Card::find(name)?.files.iter();
        return files.filter(|file| is_weights(&file.name)).map(|file| file.size_bytes).sum();
    };
    let files = fs_err::read_dir(directory).ok()?.flatten();
    let weights = files.filter(|file| is_weights(&file.file_name().to_string_lossy()));
    Some(weights.filter_map(|file| fs_err::metadata(file.path()).ok()).map(|data| data.len()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Format;

    #[test]
    fn a_folder_of_notes_and_the_built_in_questions_are_not_missing() {
        let folder = tempfile::tempdir().unwrap();
        let missing = |system: &str, data: &Path, format| {
            let config = SystemConfig::named(system).unwrap();
            Spec::new(config, data, format).unwrap().missing()
        };
        assert!(missing("medguards", folder.path(), Format::Notes).is_empty());
        assert!(missing("medmad", Path::new(DEMO_PATH), Format::Mcq).is_empty());
        assert_eq!(missing("medmad", &folder.path().join("none"), Format::Mcq).len(), 1);
    }
}
