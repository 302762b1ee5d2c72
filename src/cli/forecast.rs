//! `--dry-run`: calls and memory of what would run, and what is missing. Nothing is fetched, and no weights are loaded.
//!
//! Calls are the most that the systems can make.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::options::ScorerFlags;
use super::summary;
use crate::analysis::metrics::significance::foreseen;
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
use crate::record::count;

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
    if outlook.is_whole {
        let local = RecipeRun { hub: recipe.hub.local(), ..recipe.clone() };
        summary::tell_memory(&local.resolve()?.models)?;
    }
    outlook.tell()
}

/// All runs together, which share a machine.
pub struct Outlook {
    lines: Vec<String>,
    /// Whether everything is on this machine.
    pub is_whole: bool,
    /// How much is not, and is not fetched when it runs.
    lacking: usize,
}

impl Outlook {
    /// Of runs by what they are called.
    ///
    /// # Errors
    /// A run that could not be.
    pub fn of(runs: &[(String, Spec)]) -> Result<Outlook, Failure> {
        let (mut lines, mut models, mut missing) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let (mut shared, mut all_calls, mut fetches) = (Shared::default(), 0, false);
        let mut told = BTreeSet::new();
        for (label, spec) in runs {
            fetches = spec.hub.fetch_refusal().is_none();
            let files = missing_files(spec);
            let inputs = files.is_empty().then(|| spec.read(&mut shared)).transpose();
            let inputs = inputs.map_err(|error| error.about(label))?;
            let share = |items| spec.shard.map_or(items, |shard| shard.share(items));
            let listed = || spec.subset.listed.as_ref().map(|(_, ids)| share(ids.len()));
            let dataset = inputs.as_ref().map(Inputs::dataset);
            let items = dataset.map(|dataset| dataset.items.len()).or_else(listed);
            let most = spec.runs * spec.config.max_calls();
            let calls = items.unwrap_or(1) as u64 * u64::from(most);
            for name in spec.slot_models()?.into_iter().filter(|name| !Address::is_meant_by(name)) {
                match resolve(name, &spec.hub.local()) {
                    Err(HubError::NotCached { .. } | HubError::NoCache) => {
                        models.insert(name.clone());
                    }
                    found => drop(found?),
                }
            }
            missing.extend(files.into_iter().chain(missing_corpora(spec)));
            let items = match items {
                Some(items) => count(items, "item"),
                None => "an unknown number of items, here as one".to_owned(),
            };
            let (times, most) = (count(spec.runs, "run"), count(calls, "call"));
            lines.push(format!("cell       {label}: {items}, {times}, at most {most}"));
            // One run is compared with none.
            let is_compared = runs.len() > 1 && spec.shard.is_none() && told.insert(&spec.data);
            let compared = dataset.filter(|_| is_compared);
            lines.extend(compared.map(|one| foreseen(&one.name, &one.items)));
            all_calls += calls;
        }
        let less = if runs.len() > 1 { ", less what cells share" } else { "" };
        lines.push(format!("calls      at most {all_calls}{less}"));
        let is_whole = missing.is_empty() && models.is_empty();
        let lacking = missing.len() + if fetches { 0 } else { models.len() };
        lines.extend(models.iter().map(|name| {
            let bytes = Card::find(name).and_then(Card::size_bytes);
            let size = bytes.map(|bytes| format!(": {:.1} GB", bytes as f64 / 1e9));
            let size = size.unwrap_or_default();
            format!(
                "missing    the model {name}{size}, fetched when it runs, or by `wardround models fetch {name}`"
            )
        }));
        lines.extend(missing.iter().map(|one| format!("missing    {one}")));
        Ok(Outlook { lines, is_whole, lacking })
    }

    /// Prints all of it.
    pub fn tell(&self) -> Result<(), Failure> {
        self.lines.iter().try_for_each(console::say)?;
        match self.lacking {
            0 => Ok(()),
            things => Err(Failure::missing(
                format!("{} missing, so it would not start", count(things, "thing")),
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
    let named: Vec<&PathBuf> = spec.corpus.iter().flat_map(|corpus| &corpus.directories).collect();
    if named.is_empty() && spec.config.search().is_some() {
        let what = "a corpus to search: `wardround corpus build` makes one, --corpus DIR names it";
        return vec![what.to_owned()];
    }
    let absent = named.into_iter().filter(|folder| !folder.is_dir());
    absent.map(|folder| format!("the corpus {}", folder.display())).collect()
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
            let told = outlook.lines.join("\n");
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
            let config = SystemConfig::parse::<&str>(system, &[]).unwrap();
            missing_files(&Spec::new(config, data, format).unwrap()).len()
        };
        assert_eq!(missing("medguards", folder.path(), Format::Notes), 0);
        assert_eq!(missing("medmad", Path::new(DEMO_PATH), Format::Mcq), 0);
        assert_eq!(missing("medmad", &folder.path().join("none"), Format::Mcq), 1);
    }
}
