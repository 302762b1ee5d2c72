//! The file of a recipe: TOML, embedded in the binary or a user's own.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::RecipeError;
use super::built_in::{self, ids};
use super::paper::{Paper, PrintedTable, PublishedEntry};
use super::variant::Variant;
use crate::data::Format;
use crate::diagnosis::Failure;
use crate::experiment::spec::MOST_RUNS;
use crate::outside;
use crate::panel::{DecodingMode, SamplingChoice};
use crate::systems::Which;

/// A table or figure: its cells are every method on every dataset. A file that begins with `like = "NAME"` is that recipe in the binary
/// but for the keys that it has itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    pub title: String,
    pub text: String,
    /// Independent runs over the same items.
    pub runs: u32,
    pub decoding: DecodingMode,
    /// The models that methods take theirs from, in the order of the systems' roles.
    pub panel: Vec<String>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<usize>,
    /// The notes that methods with exemplars show, unless others are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exemplars: Option<ExemplarEntry>,
    pub dataset: Vec<DatasetEntry>,
    pub method: Vec<MethodEntry>,
    /// Published figures of other systems, shown for comparison: rows without runs.
    #[serde(default)]
    pub published: Vec<PublishedEntry>,
    /// Tables of the paper as they are printed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<PrintedTable>,
    /// The same under other conditions, run where they are named.
    #[serde(default, rename = "variant")]
    pub variants: Vec<Variant>,
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
    /// How similar the first answers are (Figure 3, left).
    SimilarityInitial,
    /// How similar texts are in the first round of interaction and in the last (Figure 6).
    SimilarityRounds,
    /// Agreement@0, Same-wrong@0, Same-wrong@final (Figures 3 and 7).
    CorrelatedErrors,
    /// Questions to which every other method gives the same wrong answer, and the last method the right one (Figure 4).
    Cases,
    /// Methods of several samples at the price of the first method, in calls and in tokens.
    EqualBudget,
    /// Accuracy over the methods in their order (Figure 5).
    Sweep,
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
    /// Under `--data-dir`: what corrections of these notes must name, as `wardround data keywords` writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

/// The keys of a file, over those of the recipe that it is `like`.
fn table(text: &str, path: &str) -> Result<toml::Table, RecipeError> {
    let own = outside::toml::<toml::Table>(text);
    let mut own = own.map_err(|error| RecipeError::malformed(path, error.message()))?;
    let Some(like) = own.remove("like") else {
        return Ok(own);
    };
    let other = like.as_str().and_then(|name| Some((name, built_in::text(name)?)));
    let unknown = || RecipeError::malformed(path, format!("like = {like}: no such recipe"));
    let (name, other) = other.ok_or_else(unknown)?;
    let mut table = table(other, name)?;
    table.extend(own);
    Ok(table)
}

impl Recipe {
    /// The recipe of this name, or in the file of this path.
    ///
    /// # Errors
    /// A name that no recipe has, or a file that is none.
    pub fn find(name: &str) -> Result<Recipe, Failure> {
        if let Some(text) = built_in::text(name) {
            return Ok(Recipe::parse(text, name)?);
        }
        let path = Path::new(name);
        if !path.is_file() {
            return Err(RecipeError::Unknown { name: name.to_owned() }.into());
        }
        let mut recipe = Recipe::parse(&outside::text(path)?, name)?;
        for method in &mut recipe.method {
            let read = method.system.read_below(path.parent().unwrap_or(Path::new("")));
            read.map_err(|error| error.about(&method.name))?;
        }
        Ok(recipe)
    }

    /// Whether a recipe of the program has this name.
    pub fn is_built_in(name: &str) -> bool {
        built_in::text(name).is_some()
    }

    /// # Errors
    /// What is no recipe, or contradicts itself; `path` says where it stands.
    pub fn parse(text: &str, path: &str) -> Result<Recipe, RecipeError> {
        let malformed = |error: toml::de::Error| RecipeError::malformed(path, error.message());
        let table = table(text, path)?;
        let mut recipe = Recipe::deserialize(table).map_err(malformed)?;
        for (key, value) in std::mem::take(&mut recipe.settings) {
            for method in &mut recipe.method {
                method.settings.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        for reading in &mut recipe.readings {
            if let Some(name) = reading.strip_prefix('@') {
                let text = built_in::reading(name);
                let missing = || RecipeError::malformed(path, format!("no reading @{name}"));
                *reading = text.ok_or_else(missing)?.trim_end().to_owned();
            }
        }
        recipe.check().map_err(|problem| RecipeError::malformed(path, problem))?;
        Ok(recipe)
    }

    /// Whether datasets, methods and variants have names that folders may be called by, each once.
    ///
    /// # Errors
    /// What is wrong, as a sentence.
    pub(super) fn check_names(&self) -> Result<(), String> {
        let datasets: Vec<&str> = self.dataset.iter().map(|one| one.name.as_str()).collect();
        let methods: Vec<&str> = self.method.iter().map(|one| one.name.as_str()).collect();
        let variants: Vec<&str> = self.variants.iter().map(|one| one.name.as_str()).collect();
        for (what, names) in [("dataset", &datasets), ("method", &methods), ("variant", &variants)]
        {
            if names.is_empty() && what != "variant" {
                return Err(format!("there is no [[{what}]]"));
            }
            for (index, name) in names.iter().enumerate() {
                let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                if name.is_empty() || !name.chars().all(is_plain) {
                    return Err(format!(
                        "a {what} is named \"{name}\": names are lower-case letters, digits and -"
                    ));
                }
                if names[..index].contains(name) {
                    return Err(format!("two of [[{what}]] are named {name}"));
                }
            }
        }
        // A recipe may be somebody else's, and what it names may go to an endpoint.
        let files = self.dataset.iter().flat_map(|one| [Some(&one.file), one.keywords.as_ref()]);
        let files = files.chain([self.exemplars.as_ref().map(|one| &one.file)]).flatten();
        for file in files {
            if !outside::is_below(file) {
                return Err(format!("{file} is not below --data-dir"));
            }
        }
        if self.runs > MOST_RUNS {
            return Err(format!("`runs` is {}; {MOST_RUNS} at most are taken", self.runs));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.check_names()?;
        let datasets: Vec<&str> = self.dataset.iter().map(|one| one.name.as_str()).collect();
        let methods: Vec<&str> = self.method.iter().map(|one| one.name.as_str()).collect();
        if self.runs == 0 || self.panel.is_empty() {
            return Err("`runs` and `panel` may not be empty".to_owned());
        }
        if !self.panel_sampling.is_empty() && self.panel_sampling.len() != self.panel.len() {
            return Err("`panel_sampling` has an entry for each of `panel`, or none".to_owned());
        }
        let samplings = self.method.iter().map(|method| method.sampling);
        for sampling in samplings.chain([self.sampling]).chain(self.panel_sampling.iter().copied())
        {
            sampling.check()?;
        }
        for dataset in &self.dataset {
            if let Some(list) = dataset.ids.as_deref().filter(|list| ids(list).is_none()) {
                return Err(format!("dataset {}: no list of ids {list}", dataset.name));
            }
        }
        for method in &self.method {
            if let Some(unknown) =
                method.paper.keys().find(|name| !datasets.contains(&name.as_str()))
            {
                return Err(format!("method {}: no dataset {unknown}", method.name));
            }
            if let Some(other) = &method.against
                && !methods.contains(&other.as_str())
            {
                return Err(format!("method {}: no method {other}", method.name));
            }
        }
        for row in &self.published {
            let mut named = row.figures.keys();
            if let Some(unknown) = named.find(|name| !datasets.contains(&name.as_str())) {
                return Err(format!("{}: no dataset {unknown}", row.label));
            }
            let mut labels = self.published.iter().map(|other| &other.label);
            if let Some(against) = &row.against
                && !labels.any(|label| label == against)
            {
                return Err(format!("{}: no published row {against}", row.label));
            }
        }
        if let Some(problem) = self.printed.iter().find_map(PrintedTable::problem) {
            return Err(problem);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_in_the_binary_is_one() {
        for name in built_in::names() {
            let recipe = Recipe::find(name).unwrap();
            assert!(!recipe.title.is_empty() && matches!(recipe.runs, 1 | 3), "{name}");
            let again = Recipe::parse(&toml::to_string(&recipe).unwrap(), name).unwrap();
            assert_eq!(again, recipe);
        }
    }

    #[test]
    fn files_lie_below_the_folder_of_the_data_and_runs_are_few() {
        let problem = |more: &str| {
            let text = format!("like = \"medguards-table7-api\"\n{more}");
            Recipe::parse(&text, "own.toml").unwrap_err().to_string()
        };
        let recipe = Recipe::find("medguards-table7-api").unwrap();
        for file in ["../notes.csv", "/etc/passwd"] {
            let mut recipe = recipe.clone();
            file.clone_into(&mut recipe.dataset[0].file);
            assert!(recipe.check().unwrap_err().ends_with("is not below --data-dir"));
        }
        assert!(problem("runs = 4294967295\n").contains("10000 at most"));
        assert!(Recipe::is_built_in("medguards-table7-api") && !Recipe::is_built_in("own.toml"));
    }

    #[test]
    fn a_recipe_like_another_has_its_own_keys_alone_instead() {
        let like =
            Recipe::parse("like = \"medguards-table7-api\"\nruns = 1\n", "own.toml").unwrap();
        let other = Recipe::find("medguards-table7-api").unwrap();
        assert_eq!(like, Recipe { runs: 1, ..other.clone() });
        // Which is itself like the recipe of open models.
        assert_eq!(other.dataset, Recipe::find("medguards-table7").unwrap().dataset);
    }

    #[test]
    fn table_one_has_the_papers_figures() {
        let recipe = Recipe::find("table1").unwrap();
        assert_eq!((recipe.dataset.len(), recipe.method.len()), (3, 9));
        assert_eq!(recipe.method[8].paper["mmlu-pro"], [0.5967, 0.0289]);
    }

    #[test]
    fn a_recipe_that_contradicts_itself_is_refused_by_name() {
        let good = toml::to_string(&Recipe::find("table4").unwrap()).unwrap();
        let problem = |from: &str, to: &str| {
            assert!(good.contains(from), "{good}");
            let text = good.replacen(from, to, 1);
            Recipe::parse(&text, "mine.toml").unwrap_err().to_string()
        };
        let cases = [
            ("name = \"medqa\"", "name = \"Med QA\"", "names are lower-case"),
            ("name = \"medqa\"", "name = \"mmlu-pro\"", "two of [[dataset]] are named mmlu-pro"),
            ("ids = \"medqa-100\"", "ids = \"medqa-9\"", "no list of ids medqa-9"),
            ("runs = 3", "runs = 0", "may not be empty"),
            ("decoding = ", "decodin = ", "unknown field"),
            ("title = ", "like = \"table77\"\ntitle = ", "like = \"table77\": no such recipe"),
            ("medqa = [", "medqb = [", "no dataset medqb"),
            ("[sampling]", "[sampling]\ntop_p = 2.0", "top_p is 2: expected a number from 0 to 1"),
        ];
        for (from, to, expected) in cases {
            let problem = problem(from, to);
            assert!(problem.starts_with("mine.toml: ") && problem.contains(expected), "{problem}");
        }
        let error = Recipe::find("table9").unwrap_err();
        assert!(error.hint().unwrap().contains("table1-api, table1, "));
    }
}
