//! What tests of a recipe's tables are made of: results of a recipe in the binary, and runs whose answers are known.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Recipe;
use super::file::MethodEntry;
use super::manifest::RecipeManifest;
use super::results::{CellResult, RecipeResults};
use crate::analysis::table::Table;
use crate::experiment::contents::Contents;
use crate::experiment::exemplars::ExemplarSpec;
use crate::experiment::fixtures;
use crate::experiment::hardware::Hardware;
use crate::panel::SamplingChoice;
use crate::record::{AnswerLine, ItemLine, Schema};

/// Of every method on every dataset, with nothing but the paper's own figures.
pub fn cells(recipe: &Recipe) -> Vec<CellResult> {
    let methods = |dataset: &str| {
        let cell = |method: &MethodEntry| -> CellResult {
            serde_json::from_value(json!({
                "method": method.name, "dataset": dataset, "system": method.system.name(), "accuracy": [], "n_items": 3, "n_runs": 2,
                "n_errors": 0, "head": "", "paper": method.paper.get(dataset),
            }))
            .unwrap()
        };
        recipe.method.iter().map(cell).collect::<Vec<_>>()
    };
    recipe.dataset.iter().flat_map(|dataset| methods(&dataset.name)).collect()
}

/// With these cells, and nothing that the analyses found.
pub fn results(name: &str, recipe: &Recipe, cells: Vec<CellResult>) -> RecipeResults {
    RecipeResults {
        recipe_digest: None,
        schema: Schema,
        recipe: name.to_owned(),
        title: recipe.title.clone(),
        synthetic: false,
        conditions: Vec::new(),
        missing: Vec::new(),
        warnings: Vec::new(),
        keywords: Vec::new(),
        cells,
        netgain: Vec::new(),
        paired: Vec::new(),
        collapse: Vec::new(),
        cases: Vec::new(),
        improvements: Vec::new(),
    }
}

/// Two runs over q1, q2 and q3: q1 right, q2 wrong, q3 without gold.
pub fn run() -> Contents {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("run");
    fixtures::write_finished(&path);
    Contents::read(&path).unwrap()
}

/// The same runs, each answer as `change` leaves it.
pub fn run_with(change: impl Fn(&mut AnswerLine)) -> Contents {
    let mut contents = run();
    for line in &mut contents.items.records {
        if let ItemLine::Answer(answer) = line {
            change(answer);
        }
    }
    contents
}

/// The rows of the table of this name, by their headings.
pub fn rows(tables: &[Table], name: &str) -> Vec<Value> {
    let table = tables.iter().find(|table| table.name == name);
    let table = table.unwrap_or_else(|| panic!("no table {name}"));
    table.json()["rows"].as_array().unwrap().clone()
}

impl RecipeManifest {
    /// A recipe of the binary, with nothing overridden.
    pub fn plain(name: &str) -> RecipeManifest {
        RecipeManifest {
            schema: Schema,
            name: name.to_owned(),
            seed: 42,
            limit: None,
            shard: None,
            data_dir: String::new(),
            data: None,
            prompts: None,
            settings: toml::Table::new(),
            slots: BTreeMap::new(),
            sampling: SamplingChoice::default(),
            slot_sampling: BTreeMap::new(),
            corpus: None,
            exemplars: ExemplarSpec::default(),
            machine: Hardware::default(),
            recipe: Recipe::find(name).expect("a recipe of the binary"),
        }
    }
}
