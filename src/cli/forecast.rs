//! `--dry-run`: calls and memory of what would run, and what is missing. Nothing is fetched, and no weights are loaded.
//!
//! Calls are the most that the systems can make.

use std::collections::BTreeSet;
use std::path::Path;

use super::options::ScorerFlags;
use super::summary::{self, count};
use crate::cli::exit::Failure;
use crate::console;
use crate::data::DEMO_PATH;
use crate::experiment::library::Shared;
use crate::experiment::run::Inputs;
use crate::experiment::spec::Spec;
use crate::hub::{Card, DatasetCard, HubError, resolve};
use crate::panel::remote::Address;
use crate::recipe::Recipe;
use crate::recipe::run::RecipeRun;

/// Every cell of a recipe: what it is called, and its run.
pub fn planned(recipe: &RecipeRun) -> Result<Vec<(String, Spec)>, Failure> {
    let planned = recipe.manifest.recipe.cells().zip(recipe.specs()?);
    Ok(planned.map(|(cell, spec)| (cell.title(), spec)).collect())
}

/// Tells what a recipe would take.
pub fn announce(recipe: &RecipeRun, scorers: &ScorerFlags) -> Result<(), Failure> {
    let Recipe { title, decoding, .. } = &recipe.manifest.recipe;
    console::say(format!("recipe     {title}, {} text", decoding.adjective()))?;
    let outlook = Outlook::of(&planned(recipe)?)?;
    if scorers.keywords.is_none() {
        for path in recipe.manifest.keyword_files().iter().filter(|path| !path.is_file()) {
            let without = "without it KPCS takes the words that gold corrections change";
            console::say(format!("missing    {}; {without}", file(path)))?;
        }
    }
    // What cannot be resolved is told as it would be by the run itself.
    if outlook.is_whole() {
        let local = RecipeRun { hub: recipe.hub.local(), ..recipe.clone() };
        summary::tell_memory(&local.resolve()?.models)?;
    }
    outlook.tell()
}

/// All runs together, which share a machine.
#[derive(Default)]
pub struct Outlook {
    lines: Vec<String>,
    /// Models that are not here.
    models: BTreeSet<String>,
    /// Whether they can be fetched.
    fetches: bool,
    /// What else is not, with what brings it.
    missing: BTreeSet<String>,
}

impl Outlook {
    /// Of runs by what they are called.
    ///
    /// # Errors
    /// A run that could not be.
    pub fn of(runs: &[(String, Spec)]) -> Result<Outlook, Failure> {
        let mut outlook = Outlook::default();
        let mut shared = Shared::default();
        let mut all_calls = 0;
        for (label, spec) in runs {
            outlook.fetches = spec.hub.fetch_refusal().is_none();
            let files = missing_files(spec);
            let inputs = files.is_empty().then(|| spec.read(&mut shared)).transpose();
            // Of several it says which.
            let inputs = inputs.map_err(|error| match runs {
                [_] => error,
                _ => error.about(label),
            })?;
            let share = |items| spec.shard.map_or(items, |shard| shard.share(items));
            let listed = || spec.subset.listed.as_ref().map(|(_, ids)| share(ids.len()));
            let items = inputs.as_ref().map(Inputs::items).or_else(listed);
            let calls = items.unwrap_or(1) as u64
                * u64::from(spec.runs)
                * u64::from(spec.config.max_calls());
            for name in spec.slot_models()? {
                match resolve(name, &spec.hub.local()) {
                    _ if Address::is_meant_by(name) => {}
                    Ok(_) => {}
                    Err(HubError::NotCached { .. } | HubError::NoCache) => {
                        outlook.models.insert(name.clone());
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            outlook.missing.extend(files.into_iter().chain(missing_corpora(spec)));
            let items = match items {
                Some(items) => count(items, "item"),
                None => "an unknown number of items, here as one".to_owned(),
            };
            outlook.lines.push(format!(
                "cell       {label}: {items}, {}, at most {calls} calls",
                count(spec.runs as usize, "run"),
            ));
            all_calls += calls;
        }
        let shared = if runs.len() > 1 { ", less what cells share" } else { "" };
        outlook.lines.push(format!("calls      at most {all_calls}{shared}"));
        Ok(outlook)
    }

    /// Whether everything is on this machine.
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.models.is_empty()
    }

    fn told(&self) -> Vec<String> {
        let model = |name: &String| {
            let bytes = Card::find(name).and_then(Card::size_bytes);
            let size =
                bytes.map_or(String::new(), |bytes| format!(": {:.1} GB", bytes as f64 / 1e9));
            format!(
                "missing    the model {name}{size}, fetched when it runs, or by `wardround models fetch {name}`"
            )
        };
        let missing = self.missing.iter().map(|one| format!("missing    {one}"));
        self.lines.iter().cloned().chain(self.models.iter().map(model)).chain(missing).collect()
    }

    /// Prints all of it.
    pub fn tell(&self) -> Result<(), Failure> {
        self.told().into_iter().try_for_each(console::say)?;
        // Models are fetched when it runs, where they may be.
        match self.missing.len() + if self.fetches { 0 } else { self.models.len() } {
            0 => Ok(()),
            things => Err(Failure::missing(
                format!(
                    "{} {} missing, so it would not start",
                    count(things, "thing"),
                    if things == 1 { "is" } else { "are" }
                ),
                "the lines that begin with `missing` say what brings each",
            )),
        }
    }
}

/// The files of items and exemplars that a run needs and has not.
fn missing_files(spec: &Spec) -> Vec<String> {
    let shown = spec.exemplars.notes.as_ref();
    // A file, a folder of notes, or what is built in.
    let is_there = |path: &Path| path.exists() || path == Path::new(DEMO_PATH);
    let files = std::iter::once(&spec.data).chain(shown).filter(|path| !is_there(path));
    let unnamed = (shown.is_none() && spec.config.entry.exemplars)
        .then(|| "a file of exemplars: --exemplars FILE --exemplars-format medec".to_owned());
    files.map(|path| file(path)).chain(unnamed).collect()
}

/// The corpora that a run needs and has not.
fn missing_corpora(spec: &Spec) -> Vec<String> {
    match (&spec.corpus, spec.config.search()) {
        (None, Some(_)) => vec![
            "a corpus to search: `wardround corpus build` makes one, --corpus DIR names it"
                .to_owned(),
        ],
        (corpus, _) => {
            let named = corpus.iter().flat_map(|corpus| &corpus.directories);
            let absent = named.filter(|folder| !folder.is_dir());
            absent.map(|folder| format!("the corpus {}", folder.display())).collect()
        }
    }
}

/// A file, and the dataset that it is of.
pub fn file(path: &Path) -> String {
    let remedy = DatasetCard::remedy(path).map_or(String::new(), |remedy| format!(": {remedy}"));
    format!("{}{remedy}", path.display())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::recipe::RecipeVerb;
    use super::*;
    use crate::data::Format;
    use crate::hub::HubOptions;
    use crate::recipe::built_in::names;
    use crate::systems::SystemConfig;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        verb: RecipeVerb,
    }

    /// Of a user's machine with nothing on it: no data, no models, no network.
    #[test]
    fn every_recipe_says_what_it_would_take_and_what_is_missing() {
        let empty = tempfile::tempdir().unwrap();
        let cache = Some(empty.path().join("hub"));
        let hub = HubOptions { cache, offline: None, ..HubOptions::capture().unwrap() };
        for name in names() {
            let recipe = Recipe::find(name).unwrap();
            let names_endpoints = recipe.panel.iter().all(|model| model.starts_with("openai:"));
            let data = empty.path().display().to_string();
            let verb = Only::parse_from(["recipe", name, "--data-dir", &data]).verb;
            let run = RecipeRun { hub: hub.clone(), ..verb.recipe().unwrap() };
            let runs = planned(&run).unwrap();
            let outlook = Outlook::of(&runs).unwrap();
            let told = outlook.told().join("\n");
            assert!(told.contains("calls      at most "), "{name}: {told}");
            assert!(told.contains(": `wardround data fetch "), "{name}: {told}");
            let fetches = told.contains(" GB, fetched when it runs");
            assert_eq!(fetches, !names_endpoints, "{name}: {told}");
            if name.starts_with("medreact-") {
                assert!(told.contains("missing    a corpus to search"), "{name}: {told}");
            }
            let left = std::fs::read_dir(empty.path()).unwrap().count();
            assert_eq!(left, 0, "{name}: something was fetched");
        }
    }

    #[test]
    fn calls_of_a_recipe_are_counted_by_cell() {
        let empty = tempfile::tempdir().unwrap();
        let data = empty.path().display().to_string();
        let verb = Only::parse_from(["recipe", "table4", "--data-dir", &data]).verb;
        let runs = planned(&verb.recipe().unwrap()).unwrap();
        let outlook = Outlook::of(&runs).unwrap();
        // 100 questions, 3 runs; three agents answer twice, or once and debate once.
        for label in ["No-Debate Ensemble", "MED-MAD (one round)"] {
            let line =
                format!("cell       {label} on MedQA: 100 items, 3 runs, at most 1800 calls");
            assert!(outlook.lines.contains(&line), "{line}: {:?}", outlook.lines);
        }
    }

    #[test]
    fn a_folder_of_notes_and_the_built_in_questions_are_not_missing() {
        let folder = tempfile::tempdir().unwrap();
        let missing = |system: &str, data: &Path, format| {
            let config = SystemConfig::named(system).unwrap();
            missing_files(&Spec::new(config, data, format).unwrap()).len()
        };
        assert_eq!(missing("medguards", folder.path(), Format::Notes), 0);
        assert_eq!(missing("medmad", Path::new(DEMO_PATH), Format::Mcq), 0);
        assert_eq!(missing("medmad", &folder.path().join("none"), Format::Mcq), 1);
    }
}
