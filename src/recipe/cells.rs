//! The cells of a recipe, dataset by dataset: what each runs, and the folder that it runs in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::file::{DatasetEntry, MethodEntry, Recipe};
use super::malformed;
use super::manifest::RecipeManifest;
use crate::data::Format;
use crate::diagnosis::Failure;
use crate::experiment::exemplars::ExemplarSpec;
use crate::experiment::spec::Spec;
use crate::panel::SamplingChoice;
use crate::retrieval::{CorpusSpec, Rerank};
use crate::systems::SystemConfig;

/// The folder of all cells in a recipe's folder.
pub const FOLDER: &str = "cells";

/// A method on a dataset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell<'a> {
    pub method: &'a MethodEntry,
    pub dataset: &'a DatasetEntry,
}

impl Cell<'_> {
    /// What it is called.
    pub fn title(&self) -> String {
        format!("{} on {}", self.method.label, self.dataset.label)
    }

    /// See [`directory`].
    pub fn directory(&self, out: &Path) -> PathBuf {
        directory(&self.method.name, &self.dataset.name, out)
    }
}

/// Where a cell's run lies, under the recipe's folder.
pub fn directory(method: &str, dataset: &str, out: &Path) -> PathBuf {
    out.join(FOLDER).join(format!("{method}-{dataset}"))
}

impl Recipe {
    /// Every cell in the order in which they run: cells of a dataset share calls, so they come one after another.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        let of = |dataset| self.method.iter().map(move |method| Cell { method, dataset });
        self.dataset.iter().flat_map(of)
    }
}

/// What every method runs as, on whatever file and machine. What the manifest overrides holds wherever a method's system has the setting or
/// the agent.
///
/// # Errors
/// A system or setting that does not exist; an override that no method has, or of what the methods differ in.
pub fn methods(manifest: &RecipeManifest) -> Result<Vec<Spec>, Failure> {
    let recipe = &manifest.recipe;
    let overrides = &manifest.settings;
    if let Some(key) = overrides.keys().find(|key| is_varied(recipe, key)) {
        return Err(Failure::usage(
            format!(
                "the recipe's methods differ in {key}: overridden, their labels would be wrong"
            ),
            "leave it out, or change it in a copy of the recipe's file, which `recipe FILE` runs",
        ));
    }
    let methods = recipe.method.iter().map(|method| spec(manifest, method));
    let methods = methods.collect::<Result<Vec<Spec>, Failure>>()?;
    let unknown = |key: &&String| !methods.iter().any(|spec| spec.config.table.contains_key(*key));
    let unseated = |agent: &&String| !methods.iter().any(|spec| seats(spec).contains(agent));
    let agents = manifest.slots.keys().chain(manifest.slot_sampling.keys());
    let unset = agents.filter(unseated).map(|agent| format!("slot.{agent}"));
    match overrides.keys().filter(unknown).cloned().chain(unset).next() {
        Some(key) => Err(Failure::refused(format!("the recipe has no setting {key} to override"))),
        None => Ok(methods),
    }
}

fn spec(manifest: &RecipeManifest, method: &MethodEntry) -> Result<Spec, Failure> {
    let recipe = &manifest.recipe;
    let config = overridden(method, &manifest.settings)?;
    // Of the recipe's models those that the method names, or as many as its system takes.
    let all = 0..recipe.panel.len().min(config.default_models());
    let places = method.panel.clone().unwrap_or(all.collect());
    let panel = places.iter().map(|place| model(recipe, method, *place));
    let own =
        method.slots.iter().map(|(agent, at)| Ok((agent.clone(), model(recipe, method, *at)?)));
    let corpus = config.search().map(|_| corpus(manifest, method)).transpose()?;
    let mut spec = Spec {
        shard: manifest.shard,
        runs: recipe.runs,
        panel: panel.collect::<Result<_, Failure>>()?,
        slots: own.collect::<Result<_, Failure>>()?,
        sampling: manifest.sampling.or(method.sampling).or(recipe.sampling),
        seed: manifest.seed,
        decoding: Some(recipe.decoding),
        prompts: manifest.prompts.clone().map(PathBuf::from),
        corpus: corpus.flatten(),
        exemplars: match config.entry.exemplars {
            true => manifest.exemplars.clone(),
            false => ExemplarSpec::default(),
        },
        ..Spec::new(config, PathBuf::new(), Format::Mcq)?
    };
    let seats = seats(&spec);
    let slots = manifest.slots.clone().into_iter();
    spec.slots.extend(slots.filter(|(agent, _)| seats.contains(agent)));
    let sampled = manifest.slot_sampling.clone().into_iter();
    let mut sampled: BTreeMap<String, SamplingChoice> =
        sampled.filter(|(agent, _)| seats.contains(agent)).collect();
    // What --panel gave in other numbers is not the recipe's, one by one.
    let is_own_panel = recipe.panel.len() == recipe.panel_sampling.len();
    for slot in spec.config.slots().into_iter().filter(|_| is_own_panel) {
        let place = method.slots.get(&slot.agent).or(match &places[..] {
            [only] => Some(only),
            places => places.get(slot.model),
        });
        let own = place.and_then(|place| recipe.panel_sampling.get(*place));
        let Some(own) = own.filter(|_| !manifest.slots.contains_key(&slot.agent)) else {
            continue;
        };
        let sampling = sampled.entry(slot.agent).or_default();
        *sampling = sampling.or(manifest.sampling).or(*own);
    }
    Ok(Spec { slot_sampling: sampled, ..spec })
}

/// Its agents.
fn seats(spec: &Spec) -> Vec<String> {
    spec.config.slots().into_iter().map(|slot| slot.agent).collect()
}

/// What a method searches: the recipe's corpora, or the one and the sources that are its own.
fn corpus(manifest: &RecipeManifest, method: &MethodEntry) -> Result<Option<CorpusSpec>, Failure> {
    let Some(mut spec) = manifest.corpus.clone() else { return Ok(None) };
    if let Some(place) = method.corpus {
        let (name, given) = (&method.name, spec.directories.len());
        let own = spec.directories.get(place).cloned();
        spec.directories = vec![own.ok_or_else(|| {
            let number = place + 1;
            Failure::usage(
                format!("method {name} searches corpus {number} of those given, and {given} were"),
                "name the corpora in the recipe's order: --corpus DIR,DIR,…",
            )
        })?];
    }
    if !method.sources.is_empty() {
        spec.sources.clone_from(&method.sources);
    }
    Ok(Some(spec))
}

/// A method's system with its settings and those that are overridden, where the system has them.
///
/// # Errors
/// A value that a setting cannot have.
fn overridden(method: &MethodEntry, overrides: &toml::Table) -> Result<SystemConfig, Failure> {
    let about = |error: Failure| error.about(&method.label);
    let entry = method.system.entry().map_err(about)?;
    let known = SystemConfig::with(entry, &method.settings).map_err(about)?.table;
    let own = overrides.iter().filter(|(key, _)| known.contains_key(*key));
    let mut settings = method.settings.clone();
    settings.extend(own.map(|(key, value)| (key.clone(), value.clone())));
    SystemConfig::with(entry, &settings).map_err(about)
}

/// Refuses files that no cell takes; the recipes of a paper share their flags, and one of them may not.
///
/// # Errors
/// Corpora where no method searches, a reranker where none reranks by one, exemplars where none shows any; as [`methods`].
pub fn refuse_unused_files(manifest: &RecipeManifest) -> Result<(), Failure> {
    let methods = methods(manifest)?;
    let RecipeManifest { corpus, exemplars, .. } = manifest;
    let mut reranks = methods.iter().filter_map(|one| one.config.search()).peekable();
    let reranker = corpus.as_ref().and_then(|corpus| corpus.reranker.as_ref());
    let shows = methods.iter().any(|one| one.config.entry.exemplars);
    let unused = [
        ("corpus", corpus.is_some() && reranks.peek().is_none()),
        ("reranker", reranker.is_some() && !reranks.any(|one| one == Rerank::CrossEncoder)),
        ("exemplars", !exemplars.is_none() && !shows),
    ];
    match unused.into_iter().find(|(_, is_unused)| *is_unused) {
        Some((flag, _)) => Err(Failure::usage(
            format!("no method of the recipe takes --{flag}"),
            &format!("leave --{flag} out"),
        )),
        None => Ok(()),
    }
}

/// Whether methods differ in a setting: by two values, or, of one system, by a value and none.
fn is_varied(recipe: &Recipe, key: &str) -> bool {
    let methods = &recipe.method;
    methods.iter().any(|one| {
        let Some(value) = one.settings.get(key) else { return false };
        methods.iter().any(|other| match other.settings.get(key) {
            None => other.system == one.system,
            different => different != Some(value),
        })
    })
}

/// The recipe's model at a position; its only one at any.
fn model(recipe: &Recipe, method: &MethodEntry, position: usize) -> Result<String, Failure> {
    let found = match &recipe.panel[..] {
        [only] => Some(only),
        panel => panel.get(position),
    };
    found.cloned().ok_or_else(|| {
        let problem = format!(
            "method {}: `panel` and `slots` count the recipe's {} models from 0",
            method.name,
            recipe.panel.len()
        );
        malformed(&recipe.title, problem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::built_in::names;

    /// Each method's name, and what it runs as.
    fn of_methods(manifest: &RecipeManifest) -> Vec<(String, Spec)> {
        let names = manifest.recipe.method.iter().map(|method| method.name.clone());
        names.zip(methods(manifest).unwrap()).collect()
    }

    fn sampling(manifest: RecipeManifest, method: &str) -> BTreeMap<String, SamplingChoice> {
        let (_, setup) =
            of_methods(&manifest).into_iter().find(|(name, _)| name == method).unwrap();
        assert_eq!(setup.config.decoding.max_tokens, None);
        setup.slot_sampling
    }

    #[test]
    fn each_of_the_papers_models_samples_as_the_paper_has_it_wherever_it_stands() {
        let manifest = RecipeManifest::plain("medguards-table7-api");
        let gpt = SamplingChoice {
            temperature: Some(0.2),
            top_p: Some(1.0),
            max_tokens: Some(512),
            ..SamplingChoice::default()
        };
        let slots = sampling(manifest.clone(), "1p1p1-3");
        for (agent, sampling) in &slots {
            let is_gemini = ["det2", "det3"].contains(&agent.as_str());
            let expected = if is_gemini { SamplingChoice::default() } else { gpt };
            assert_eq!(*sampling, expected, "{agent}");
        }
        assert!(slots.len() == 7 && slots.contains_key("corr1"), "{slots:?}");
        // Flags win over the recipe, one model for all is none of the paper's.
        let cooler = SamplingChoice { temperature: Some(0.0), ..SamplingChoice::default() };
        let flagged = RecipeManifest { sampling: cooler, ..manifest.clone() };
        assert_eq!(sampling(flagged, "3-3")["det1"], cooler.or(gpt));
        let mut other = manifest;
        other.recipe.panel.truncate(1);
        assert!(sampling(other, "3-3").is_empty());
        let alone = RecipeManifest::plain("medguards-table2-api");
        assert!(sampling(alone.clone(), "gpt-medguards").values().all(|one| *one == gpt));
        let gemini = sampling(alone, "gemini-2-0-medguards");
        assert!(gemini.values().all(|one| *one == SamplingChoice::default()));
    }

    #[test]
    fn every_recipe_has_settings_with_an_effect_alone() {
        for name in names() {
            let manifest = RecipeManifest::plain(name);
            for (method, setup) in manifest.recipe.method.iter().zip(methods(&manifest).unwrap()) {
                let again = SystemConfig::with(setup.config.entry, &setup.config.table);
                assert_eq!(again.unwrap(), setup.config, "{name}: {}", method.label);
            }
        }
    }

    fn refused(name: &str, change: impl Fn(&mut RecipeManifest)) -> String {
        let mut manifest = RecipeManifest::plain(name);
        change(&mut manifest);
        refuse_unused_files(&manifest).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn an_override_holds_where_a_system_has_the_setting_and_is_refused_where_none_has() {
        let set = |manifest: &mut RecipeManifest, key: &str, value: &str| {
            manifest.settings.insert(key.to_owned(), value.into());
        };
        let mut manifest = RecipeManifest::plain("table1");
        set(&mut manifest, "peers", "own");
        for (method, setup) in of_methods(&manifest) {
            let peers = setup.config.table.get("peers").and_then(toml::Value::as_str);
            let expected = match setup.config.entry.name {
                "medmad" | "no-debate" => Some("own"),
                _ => None,
            };
            assert_eq!(peers, expected, "{method}");
        }
        assert!(refused("table1", |one| set(one, "none", "3")).contains("no setting none"));
    }

    /// The conditions that docs/recipes.md names.
    #[test]
    fn table_one_runs_under_other_conditions_by_flags() {
        let mut manifest = RecipeManifest::plain("table1");
        for (key, value) in [("thinking", "where-possible"), ("max_tokens", "16384")] {
            manifest.settings.insert(key.to_owned(), value.into());
        }
        for agent in ["decision", "moderator"] {
            manifest.slots.insert(agent.to_owned(), manifest.recipe.panel[2].clone());
        }
        for (method, setup) in of_methods(&manifest) {
            let method = method.as_str();
            let setting = |key: &str| setup.config.table.get(key).map(ToString::to_string);
            assert_eq!(setting("thinking").as_deref(), Some("\"where-possible\""), "{method}");
            assert_eq!(setting("max_tokens").as_deref(), Some("16384"), "{method}");
            let decides = match method {
                "medagents" => Some("decision"),
                "mdagents" => Some("moderator"),
                _ => None,
            };
            assert_eq!(setup.slots.keys().map(String::as_str).next(), decides, "{method}");
        }
    }

    #[test]
    fn a_file_that_no_cell_takes_is_refused() {
        let corpus = || Some(crate::retrieval::CorpusSpec::default());
        let told = refused("table2", |one| one.corpus = corpus());
        assert!(told.contains("--corpus"), "{told}");
        assert_eq!(refused("medreact-table2", |one| one.corpus = corpus()), "");
    }
}
