//! The file of a recipe: TOML, embedded in the binary or a user's own.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use itertools::Itertools;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

use super::built_in;
use super::paper::{Paper, PrintedTable, PublishedEntry};
use crate::data::Format;
use crate::diagnosis::Failure;
use crate::outside;
use crate::panel::{DecodingMode, SamplingChoice};
use crate::systems::Which;
use crate::systems::file::unparsed;

/// The page of docs/ on it.
pub(super) const PAGE: &str = "recipes.md";

/// A table or figure: its cells are every method on every dataset. A file that begins with `like = "NAME"` is that recipe in the binary
/// but for the keys that it has itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    pub title: String,
    #[serde(default)]
    pub text: String,
    /// Independent runs over the same items.
    pub runs: u32,
    #[serde(default)]
    pub decoding: DecodingMode,
    /// The models that methods take theirs from, in the order of the systems' roles.
    pub panel: Vec<String>,
    #[serde(default)]
    pub analyses: Vec<Analysis>,
    /// What the paper leaves open or contradicts, and what is done here; sentences for the page, or `@NAME` of one in the binary.
    #[serde(default)]
    pub readings: Vec<String>,
    #[serde(default)]
    pub paper: Paper,
    /// How every agent samples, over its model's defaults.
    #[serde(default)]
    pub sampling: SamplingChoice,
    /// How each of `panel` samples, before what its methods say; in its order, none or all. It is passed over where `--panel` gives
    /// another number of models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panel_sampling: Vec<SamplingChoice>,
    /// Settings of every method, unless it has its own; each method holds them once the file is read.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    pub settings: toml::Table,
    /// Tokens of a prompt and its completion together, unless flags say; fewer where a model takes fewer.
    pub context: Option<usize>,
    /// The notes that methods with exemplars show, unless others are given.
    pub exemplars: Option<ExemplarEntry>,
    pub dataset: Vec<DatasetEntry>,
    pub method: Vec<MethodEntry>,
    /// Published figures of other systems, shown for comparison: rows without runs.
    #[serde(default)]
    pub published: Vec<PublishedEntry>,
    /// Tables of the paper as they are printed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<PrintedTable>,
}

/// What is computed from the cells besides their accuracy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Analysis {
    /// From Round 0 to the final answer: flips, and their difference (§4.2.2).
    Netgain,
    /// `medmad` against the best of the other multi-agent systems, for each dataset (Table A1).
    PairedBest,
    /// `medmad` against one single-LLM baseline for all datasets (App. A.4).
    PairedUnified,
    /// The first method against every other.
    PairedFirst,
    /// How similar texts are at first, in the first round of interaction and in the last (Figures 3 and 6).
    #[serde(alias = "similarity-initial", alias = "similarity-rounds")]
    Similarity,
    /// Agreement@0, Same-wrong@0, Same-wrong@final (Figures 3 and 7).
    CorrelatedErrors,
    /// Questions to which every other method gives the same wrong answer, and the last method the right one (Figure 4).
    Cases,
}

/// A dataset of the recipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetEntry {
    pub name: String,
    pub label: String,
    /// Under `--data-dir`.
    pub file: String,
    pub format: Format,
    /// A list of ids in the binary; without one, all items run.
    pub ids: Option<String>,
    /// So many of its items at most, drawn at random by a fixed seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<usize>,
    /// Under `--data-dir`: what corrections of these notes must name, a JSON object from note id to a list.
    pub keywords: Option<String>,
}

/// A file of exemplars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExemplarEntry {
    /// Under `--data-dir`.
    pub file: String,
    pub format: Format,
}

/// A method of the recipe: a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodEntry {
    pub name: String,
    pub label: String,
    /// The heading that it stands under.
    pub group: String,
    /// In the file its name, or the path of a file beside.
    pub system: Which,
    /// Which of the recipe's models it takes, by position; without it, as many as the system takes.
    pub panel: Option<Vec<usize>>,
    /// Agents that have one of the recipe's models of their own, by position.
    #[serde(default)]
    pub slots: BTreeMap<String, usize>,
    #[serde(default)]
    pub settings: toml::Table,
    /// How its agents sample, before what the recipe says.
    #[serde(default)]
    pub sampling: SamplingChoice,
    /// The sources that it searches, by label or group; all where none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The one corpus that it searches, by its place among those given; all where none is named.
    pub corpus: Option<usize>,
    /// The method that it is set against, on notes.
    pub against: Option<String>,
    /// The paper's mean and standard deviation, by dataset.
    #[serde(default)]
    pub paper: BTreeMap<String, [f64; 2]>,
}

/// The keys of a file, each with its place there, over those of the recipe that it is `like`.
fn keys(text: &str) -> Result<Spanned<DeTable<'_>>, Failure> {
    let mut own = outside::toml_keys(text).map_err(|error| unparsed(error, PAGE))?;
    let Some(like) = own.get_mut().remove("like") else {
        return Ok(own);
    };
    let name = like.get_ref().as_str().unwrap_or_default();
    let unknown = || {
        let problem = format!("like = {name:?}: no such recipe");
        Failure::usage(problem, "`wardround recipe ls` lists the recipes")
    };
    let other = keys(built_in::text(name).ok_or_else(unknown)?)?;
    for (key, value) in other.into_inner() {
        own.get_mut().entry(key).or_insert(value);
    }
    Ok(own)
}

impl Recipe {
    /// The recipe of this name, or in the file of this path.
    ///
    /// # Errors
    /// A name that no recipe has, or a file that is none.
    pub fn find(name: &str) -> Result<Recipe, Failure> {
        if let Some(text) = built_in::text(name) {
            return Recipe::parse(text, name);
        }
        let path = Path::new(name);
        if !path.is_file() {
            return Err(Recipe::unknown(name));
        }
        let text = outside::text(path)?;
        let mut recipe = Recipe::parse(&text, name)?;
        for method in &mut recipe.method {
            let read = method.system.read_below(path.parent().unwrap_or(Path::new("")));
            read.map_err(|error| error.about(&method.name))?;
        }
        Ok(recipe)
    }

    /// Puts a file of one's own in place of the recipe's datasets, with what the paper prints of those.
    pub fn put(&mut self, file: &Path, format: Format) {
        let last = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let label = last(file.file_stem());
        self.readings.insert(0, format!(
            "The items are those of {label}, in place of the recipe's: what is said here of its datasets and their ids does not hold."
        ));
        let (ids, sample, keywords) = (None, None, None);
        let (name, file) = ("own".to_owned(), last(file.file_name()));
        self.dataset = vec![DatasetEntry { name, label, file, format, ids, sample, keywords }];
        self.printed.clear();
    }

    /// That there is no recipe of this name.
    pub fn unknown(name: &str) -> Failure {
        let (recipes, papers) = (built_in::names().join(", "), built_in::papers().join(", "));
        let hint = format!("the recipes are {recipes}, of whole papers {papers}; or give a file");
        Failure::usage(format!("there is no recipe {name}"), &hint)
    }

    /// # Errors
    /// What is no recipe, or contradicts itself; `path` says where it stands.
    pub fn parse(text: &str, path: &str) -> Result<Recipe, Failure> {
        Recipe::read(text).map_err(|error| error.about(path))
    }

    fn read(text: &str) -> Result<Recipe, Failure> {
        let read = Recipe::deserialize(Deserializer::from(keys(text)?));
        let mut recipe = read.map_err(|error| unparsed(outside::with_line(&error, text), PAGE))?;
        for (key, value) in std::mem::take(&mut recipe.settings) {
            for method in &mut recipe.method {
                method.settings.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        for reading in &mut recipe.readings {
            if let Some(name) = reading.strip_prefix('@') {
                let hint = "write the sentence itself, or the name of a file in recipes/readings";
                let problem = format!("readings: no reading @{name}");
                let missing = || Failure::usage(problem, hint);
                let text = built_in::reading(name).ok_or_else(missing)?;
                *reading = text.trim_end().to_owned();
            }
        }
        recipe.check()?;
        Ok(recipe)
    }
}

#[cfg(test)]
mod tests;
