//! Variants of a recipe: the same table under other conditions, each a recipe of its own in a folder of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::RecipeError;
use super::cells::overridden;
use super::file::Recipe;
use super::manifest::RecipeManifest;
use crate::diagnosis::Failure;
use crate::panel::DecodingMode;
use crate::systems::SystemConfig;

/// The folder of all variants in a recipe's folder.
const FOLDER: &str = "variants";

/// What a variant changes, in every method that has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    pub name: String,
    pub label: String,
    pub decoding: Option<DecodingMode>,
    #[serde(default)]
    pub settings: toml::Table,
    /// Agents that have one of the recipe's models of their own, by position.
    #[serde(default)]
    pub slots: BTreeMap<String, usize>,
    /// What it stands for; sentences for the page.
    pub readings: Vec<String>,
}

/// A recipe as it runs: itself, or one of its variants.
#[derive(Clone, Debug)]
pub struct Form {
    /// The variant's name; `None` for the recipe itself.
    pub variant: Option<String>,
    /// With the recipe as it runs.
    pub manifest: RecipeManifest,
}

impl Form {
    /// What a manifest asks for: its recipe, and after it the variants that it names.
    ///
    /// # Errors
    /// A name that no variant has; a variant that changes nothing of any method.
    pub fn all(manifest: RecipeManifest) -> Result<Vec<Form>, Failure> {
        let mut variants = Vec::new();
        for name in &manifest.variants {
            let recipe = manifest.recipe.variant(name)?;
            let manifest = RecipeManifest { recipe, variants: Vec::new(), ..manifest.clone() };
            variants.push(Form { variant: Some(name.clone()), manifest });
        }
        variants.insert(0, Form { variant: None, manifest });
        Ok(variants)
    }

    /// Where it runs, in the recipe's folder.
    pub fn directory(&self, out: &Path) -> PathBuf {
        directory(self.variant.as_deref(), out)
    }
}

/// Where a variant runs, in the recipe's folder; the recipe itself where there is none.
pub fn directory(variant: Option<&str>, out: &Path) -> PathBuf {
    match variant {
        Some(name) => folder(out).join(name),
        None => out.to_owned(),
    }
}

/// Where all variants lie, in the recipe's folder.
pub fn folder(out: &Path) -> PathBuf {
    out.join(FOLDER)
}

impl Recipe {
    /// The recipe under the variant of this name.
    ///
    /// # Errors
    /// A name that no variant has; a variant that changes nothing of any method.
    pub fn variant(&self, name: &str) -> Result<Recipe, Failure> {
        let mut variants = self.variants.iter();
        let found = variants.find(|one| one.name == name).ok_or_else(|| RecipeError::NoVariant {
            name: name.to_owned(),
            known: self.variants.iter().map(|one| one.name.clone()).collect(),
        });
        self.under(found?)
    }

    fn under(&self, variant: &Variant) -> Result<Recipe, Failure> {
        let mut recipe = self.clone();
        recipe.variants.clear();
        recipe.title = format!("{}: {}", self.title, variant.label);
        recipe.decoding = variant.decoding.unwrap_or(self.decoding);
        recipe.readings.splice(0..0, variant.readings.iter().cloned());
        let mut is_changed = recipe.decoding != self.decoding;
        for method in &mut recipe.method {
            let (settings, _) = overridden(method, &variant.settings)?;
            let agents = SystemConfig::with(method.system.entry()?, &settings)?.slots();
            let slots = variant
                .slots
                .iter()
                .filter(|(agent, _)| agents.iter().any(|slot| slot.agent == **agent));
            let before = (method.settings.clone(), method.slots.clone());
            method.settings = settings;
            method.slots.extend(slots.map(|(agent, model)| (agent.clone(), *model)));
            is_changed |= before != (method.settings.clone(), method.slots.clone());
        }
        match is_changed {
            true => Ok(recipe),
            false => {
                let problem = format!("variant {} changes nothing of any method", variant.name);
                Err(RecipeError::malformed(&self.title, problem).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_of_every_recipe_changes_something_and_says_what() {
        for name in super::super::built_in::names() {
            let recipe = Recipe::find(name).unwrap();
            for variant in &recipe.variants {
                assert_ne!(recipe.variant(&variant.name).unwrap().readings, recipe.readings);
            }
            assert!(recipe.variants.iter().all(|one| !one.readings.is_empty()), "{name}");
        }
    }

    #[test]
    fn table_one_has_its_twins() {
        let recipe = Recipe::find("table1").unwrap();
        let names = ["harness", "constrained", "thinking", "qwen-decides"];
        let variants = names.map(|name| recipe.variant(name).unwrap());
        let method = |variant: usize, name: &str| {
            let mut methods = variants[variant].method.iter();
            methods.find(|method| method.name == name).unwrap().clone()
        };
        for name in ["few-shot", "cot", "healthcareagent", "medagents", "mdagents", "reconcile"] {
            assert_eq!(method(0, name).settings["mab_compat"].as_str(), Some("on"), "{name}");
        }
        assert!(!method(0, "medmad").settings.contains_key("mab_compat"));
        assert_eq!(variants[1].decoding, DecodingMode::Grammar);
        assert_eq!(method(2, "medmad").settings["thinking"].as_str(), Some("where-possible"));
        // Thoughts count towards the bound: four times the usual one, in every method.
        for thinking in &variants[2].method {
            let bound = thinking.settings["max_tokens"].as_integer();
            assert_eq!(bound, Some(16_384), "{}", thinking.name);
        }
        assert!(!recipe.method.iter().any(|one| one.settings.contains_key("max_tokens")));
        assert_eq!(method(3, "medagents").slots["decision"], 2);
        assert_eq!(method(3, "mdagents").slots["moderator"], 2);
        assert!(method(3, "reconcile").slots.is_empty());
        let unknown = recipe.variant("none").unwrap_err();
        assert_eq!(unknown.to_string(), "the recipe has no variant none");
    }
}
