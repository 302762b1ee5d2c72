//! The cells of a recipe, dataset by dataset: what each runs, and the folder that it runs in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::RecipeError;
use super::file::{DatasetEntry, MethodEntry, Recipe};
use super::manifest::RecipeManifest;
use super::variant::{self, Form};
use crate::diagnosis::Failure;
use crate::experiment::spec::{MEMBER, member_name};
use crate::panel::{DecodingMode, SamplingChoice};
use crate::retrieval::Rerank;
use crate::systems::settings::SettingsError;
use crate::systems::{Slot, SystemConfig};

/// The folder of all cells in a recipe's folder.
pub const FOLDER: &str = "cells";

/// A method on a dataset.
#[derive(Clone, Debug)]
pub struct Cell<'a> {
    /// The recipe's variant that it belongs to.
    pub variant: Option<&'a str>,
    pub method: &'a MethodEntry,
    pub dataset: &'a DatasetEntry,
    pub config: SystemConfig,
    /// The models, in the order of the system's roles; one for all where it is one.
    pub panel: Vec<String>,
    /// Agents with a model of their own.
    pub slots: BTreeMap<String, String>,
    pub sampling: SamplingChoice,
    /// Agents with a sampling of their own.
    pub slot_sampling: BTreeMap<String, SamplingChoice>,
    pub decoding: DecodingMode,
}

impl Cell<'_> {
    /// What it is called, its recipe's variant included.
    pub fn title(&self) -> String {
        let variant = self.variant.map_or(String::new(), |variant| format!("{variant}: "));
        format!("{variant}{} on {}", self.method.label, self.dataset.label)
    }

    /// See [`directory`].
    pub fn directory(&self, out: &Path) -> PathBuf {
        directory(self.variant, &self.method.name, &self.dataset.name, out)
    }
}

/// Where a cell's run lies, under the recipe's folder.
pub fn directory(variant: Option<&str>, method: &str, dataset: &str, out: &Path) -> PathBuf {
    variant::directory(variant, out).join(FOLDER).join(format!("{method}-{dataset}"))
}

/// Where the runs of a recipe and its variants lie, whether they are there or not, and what systems are gone since.
pub fn directories(manifest: &RecipeManifest, out: &Path) -> Vec<PathBuf> {
    let RecipeManifest { recipe, variants, .. } = manifest;
    let forms = std::iter::once(None).chain(variants.iter().map(|name| Some(name.as_str())));
    let cells = forms.flat_map(|variant| {
        let of = move |dataset: &'_ DatasetEntry| {
            let methods = recipe.method.iter();
            let cells = methods.map(|one| directory(variant, &one.name, &dataset.name, out));
            cells.collect::<Vec<_>>()
        };
        recipe.dataset.iter().flat_map(of).collect::<Vec<_>>()
    });
    cells.collect()
}

/// Every cell of every form, in the order in which they run: cells of a dataset share calls, so they come one after another. What the
/// manifest overrides holds wherever a method's system has the setting or the agent.
///
/// # Errors
/// A system or setting that does not exist; an override that no method has, or of what the methods differ in.
pub fn cells(forms: &[Form]) -> Result<Vec<Cell<'_>>, Failure> {
    let mut all = Vec::new();
    for form in forms {
        all.extend(cells_of(form)?);
    }
    let place = |cell: &Cell<'_>| {
        let mut datasets = forms.iter().flat_map(|form| &form.manifest.recipe.dataset);
        datasets.position(|dataset| dataset.name == cell.dataset.name)
    };
    all.sort_by_cached_key(place);
    Ok(all)
}

fn cells_of(form: &Form) -> Result<Vec<Cell<'_>>, Failure> {
    let manifest = &form.manifest;
    let recipe = &manifest.recipe;
    let overrides = &manifest.settings;
    if let Some(key) = overrides.keys().find(|key| is_varied(recipe, key)) {
        return Err(RecipeError::Varied { key: key.clone() }.into());
    }
    let overrides = overrides.iter().map(|(key, value)| (key.clone(), value.clone().into()));
    let overrides: toml::Table = overrides.collect();
    let (mut configs, mut idle) = (Vec::new(), Vec::new());
    for method in &recipe.method {
        let (settings, without) = overridden(method, &overrides)?;
        let config = SystemConfig::with(method.system.entry()?, &settings)?;
        let panel = panel(recipe, method, &config)?;
        configs.push((config, panel));
        idle.push(without);
    }
    for key in overrides.keys() {
        let with = configs.iter().zip(&idle);
        let mut with = with.filter(|((config, _), _)| config.table.contains_key(key));
        let Some((_, first)) = with.next() else {
            return Err(RecipeError::NoSetting { key: key.clone() }.into());
        };
        // Where one method has it to an effect, the others go without.
        if let Some(error) = first.get(key)
            && with.all(|(_, idle)| idle.contains_key(key))
        {
            return Err(error.clone().into());
        }
    }
    let seats = |(system, panel): &(SystemConfig, Vec<String>), agent: &String| {
        let is_member = (0..panel.len()).any(|model| member_name(model) == *agent);
        is_member || system.slots().iter().any(|slot| slot.agent == *agent)
    };
    let mut agents = manifest.slots.keys().chain(manifest.slot_sampling.keys());
    if let Some(agent) = agents.find(|agent| !configs.iter().any(|one| seats(one, agent))) {
        let slot = if agent.starts_with(MEMBER) { "" } else { "slot." };
        return Err(RecipeError::NoSetting { key: format!("{slot}{agent}") }.into());
    }
    // What --panel gave in other numbers is not the recipe's, one by one.
    let is_other_panel = recipe.panel.len() != recipe.panel_sampling.len();
    let mut cells = Vec::new();
    for dataset in &recipe.dataset {
        for (method, seated) in recipe.method.iter().zip(&configs) {
            let (config, panel) = seated;
            let is_seated = |agent: &String| seats(seated, agent);
            let mut slots = slots(recipe, method)?;
            let seated = manifest.slots.iter().filter(|(agent, _)| is_seated(agent));
            slots.extend(seated.map(|(agent, model)| (agent.clone(), model.clone())));
            let sampled = manifest.slot_sampling.iter();
            let sampled = sampled.filter(|(agent, _)| is_seated(agent));
            let mut slot_sampling: BTreeMap<String, SamplingChoice> =
                sampled.map(|(agent, one)| (agent.clone(), *one)).collect();
            for slot in config.slots() {
                let has_other_model = manifest.slots.contains_key(&slot.agent);
                let position = position(method, config, &slot);
                let own = recipe.panel_sampling.get(position);
                let Some(own) = own.filter(|_| !has_other_model && !is_other_panel) else {
                    continue;
                };
                let model = if panel.len() == 1 { 0 } else { slot.model };
                let member = slot_sampling.get(&member_name(model)).copied();
                let flags = member.unwrap_or_default().or(manifest.sampling);
                let sampling = slot_sampling.entry(slot.agent).or_default();
                *sampling = sampling.or(flags).or(*own);
            }
            cells.push(Cell {
                variant: form.variant.as_deref(),
                method,
                dataset,
                panel: panel.clone(),
                slots,
                sampling: manifest.sampling.or(method.sampling).or(recipe.sampling),
                slot_sampling,
                config: config.clone(),
                decoding: recipe.decoding,
            });
        }
    }
    Ok(cells)
}

/// A method's settings with those that are overridden, where its system has them and they have an effect beside the others; and why not, of
/// those that have none.
///
/// # Errors
/// A value that a setting cannot have; a setting of the method's own that the others leave without effect.
pub(super) fn overridden(
    method: &MethodEntry,
    overrides: &toml::Table,
) -> Result<(toml::Table, BTreeMap<String, SettingsError>), Failure> {
    let about = |error: SettingsError| Failure::from(error).about(&method.label);
    let entry = method.system.entry()?;
    let known = SystemConfig::with(entry, &method.settings).map_err(about)?.table;
    let mut left = overrides.clone();
    left.retain(|key, _| known.contains_key(key));
    let mut idle = BTreeMap::new();
    loop {
        let mut settings = method.settings.clone();
        settings.extend(left.clone());
        match SystemConfig::with(entry, &settings) {
            Ok(_) => return Ok((settings, idle)),
            Err(SettingsError::Idle { key, value, needs }) if left.remove(&key).is_some() => {
                idle.insert(key.clone(), SettingsError::Idle { key, value, needs });
            }
            Err(error) => return Err(about(error)),
        }
    }
}

/// Refuses files that no cell takes; the recipes of a paper share their flags, and one of them may not.
///
/// # Errors
/// Corpora where no method searches, a reranker where none reranks by one, exemplars where none shows any; as [`cells`].
pub fn refuse_unused_files(forms: &[Form]) -> Result<(), Failure> {
    let cells = cells(forms)?;
    let rerank = |cell: &Cell<'_>| cell.config.search().map(|search| search.rerank);
    let any = |is_wanted: &dyn Fn(&Cell<'_>) -> bool| cells.iter().any(is_wanted);
    for RecipeManifest { corpus, exemplars, .. } in forms.iter().map(|form| &form.manifest) {
        let reranker = corpus.as_ref().and_then(|corpus| corpus.reranker.as_ref());
        let is_cross = |cell: &Cell<'_>| rerank(cell) == Some(Rerank::CrossEncoder);
        for (flag, is_unused) in [
            ("corpus", corpus.is_some() && !any(&|cell| rerank(cell).is_some())),
            ("reranker", reranker.is_some() && !any(&is_cross)),
            ("exemplars", exemplars.is_some() && !any(&|cell| cell.config.entry.exemplars)),
        ] {
            if is_unused {
                return Err(RecipeError::Unused { flag }.into());
            }
        }
    }
    Ok(())
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

/// The method's models: the ones it names, or as many of the recipe's as its system takes; one for all where there is one.
fn panel(
    recipe: &Recipe,
    method: &MethodEntry,
    config: &SystemConfig,
) -> Result<Vec<String>, Failure> {
    let Some(positions) = &method.panel else {
        let models = recipe.panel.len().min(config.default_models());
        return Ok(recipe.panel[..models].to_vec());
    };
    let model = |position: &usize| model(recipe, method, *position);
    positions.iter().map(model).collect()
}

/// Which of the recipe's models a slot of a method has.
fn position(method: &MethodEntry, config: &SystemConfig, slot: &Slot) -> usize {
    let own = method.slots.get(&slot.agent).copied();
    own.unwrap_or_else(|| match method.panel.as_deref() {
        Some([only]) => *only,
        Some(positions) => positions.get(slot.model).copied().unwrap_or(slot.model),
        None if config.default_models() == 1 => 0,
        None => slot.model,
    })
}

fn slots(recipe: &Recipe, method: &MethodEntry) -> Result<BTreeMap<String, String>, Failure> {
    let slots = method.slots.iter();
    slots.map(|(agent, position)| Ok((agent.clone(), model(recipe, method, *position)?))).collect()
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
        RecipeError::malformed(&recipe.title, problem).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::recipe::built_in::names;

    fn sampling(manifest: RecipeManifest, method: &str) -> BTreeMap<String, SamplingChoice> {
        let form = Form { variant: None, manifest };
        let cells = cells(std::slice::from_ref(&form)).unwrap();
        let cell = cells.into_iter().find(|cell| cell.method.name == method).unwrap();
        assert_eq!(cell.config.decoding.max_tokens, crate::systems::decoding::MaxTokens::Provider);
        cell.slot_sampling
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
    fn every_recipe_and_variant_has_settings_with_an_effect_alone() {
        for name in names() {
            let mut manifest = RecipeManifest::plain(name);
            let variants = manifest.recipe.variants.iter();
            manifest.variants = variants.map(|variant| variant.name.clone()).collect();
            let forms = Form::all(manifest).unwrap();
            for cell in cells(&forms).unwrap() {
                let again = SystemConfig::from_table(cell.method.system.name(), &cell.config.table);
                assert_eq!(again, Ok(cell.config.clone()), "{name}: {}", cell.title());
            }
        }
    }

    fn refused(name: &str, change: impl Fn(&mut RecipeManifest)) -> String {
        let mut manifest = RecipeManifest::plain(name);
        change(&mut manifest);
        let form = Form { variant: None, manifest };
        let refused = refuse_unused_files(std::slice::from_ref(&form));
        refused.map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn an_override_holds_where_it_has_an_effect_and_is_refused_where_it_has_none_anywhere() {
        let set = |manifest: &mut RecipeManifest, key: &str, value: &str| {
            manifest.settings.insert(key.to_owned(), value.to_owned());
        };
        let mut manifest = RecipeManifest::plain("table1");
        set(&mut manifest, "peers", "own");
        let form = Form { variant: None, manifest };
        for cell in cells(std::slice::from_ref(&form)).unwrap() {
            let peers = cell.config.table.get("peers").and_then(toml::Value::as_str);
            let expected = match cell.method.system.name() {
                "medmad" => Some("own"),
                "no-debate" => Some("all"),
                _ => None,
            };
            assert_eq!(peers, expected, "{}", cell.title());
        }
        let idle = refused("table1", |manifest| set(manifest, "passages", "3"));
        assert!(idle.contains("passages: \"3\" has no effect here"), "{idle}");
        assert!(refused("table1", |one| set(one, "none", "3")).contains("no setting none"));
    }

    #[test]
    fn one_model_is_the_first_member_wherever_it_sits() {
        let cooler = SamplingChoice { temperature: Some(0.1), ..SamplingChoice::default() };
        let mut manifest = RecipeManifest::plain("table4");
        manifest.recipe.panel.truncate(1);
        manifest.slot_sampling.insert("panel.1".to_owned(), cooler);
        let form = Form { variant: None, manifest: manifest.clone() };
        for cell in cells(std::slice::from_ref(&form)).unwrap() {
            assert_eq!(cell.slot_sampling.get("panel.1"), Some(&cooler), "{}", cell.title());
        }
        let other = refused("table4", |one| {
            one.recipe.panel.truncate(1);
            one.slot_sampling.insert("panel.2".to_owned(), cooler);
        });
        assert!(other.contains("no setting panel.2"), "{other}");
    }

    #[test]
    fn a_file_that_no_cell_takes_is_refused() {
        let corpus = || Some(crate::retrieval::CorpusSpec::default());
        let told = refused("table2", |one| one.corpus = corpus());
        assert!(told.contains("--corpus"), "{told}");
        assert_eq!(refused("medreact-table2", |one| one.corpus = corpus()), "");
    }
}
