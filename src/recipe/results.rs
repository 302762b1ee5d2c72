//! `results.json` of a recipe: a figure for every cell, and what the analyses found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::analysis::{self, CaseRow, CellOutcomes, CollapseRow, NetGainRow};
use super::cells::{Cell, directory};
use super::file::Analysis;
use super::improvement::{ImprovementRow, improvements};
use super::notes::full;
use super::paired::{PairedRow, paired};
use super::tables::{dataset, method};
use super::{Recipe, malformed};
use crate::analysis::conditions;
use crate::analysis::figures::RunFigures;
use crate::analysis::health::{self, ParseHealth};
use crate::analysis::metrics::bootstrap::Estimate;
use crate::analysis::metrics::cost::Cost;
use crate::analysis::metrics::over_runs::Spread;
use crate::analysis::notes::{CorrectionScorer, KeywordFile, NoteFigures};
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::encoder::Encoder;
use crate::experiment::compare::{ABSENT, FieldDifference, as_json, differences};
use crate::experiment::contents::Contents;
use crate::experiment::error::RunError;
use crate::experiment::results::{self, Results};
use crate::experiment::whole_file;
use crate::outside;
use crate::record::{Schema, count};

/// The file's name in the recipe's folder.
pub const FILE: &str = "results.json";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecipeResults {
    pub schema: Schema,
    pub recipe: String,
    pub title: String,
    /// Of the recipe itself, as `recipe.toml` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe_digest: Option<String>,
    /// Whether every answer is noise of synthetic weights.
    pub synthetic: bool,
    /// Sentences for every table: runs, whose prompts and examples, decoding, bounds, thinking, seats.
    #[serde(default)]
    pub conditions: Vec<String>,
    /// Cells that have not run yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// That cells are missing; cells of which too many replies could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The files of keywords that KPCS takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<KeywordFile>,
    pub cells: Vec<CellResult>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub netgain: Vec<NetGainRow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paired: Vec<PairedRow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collapse: Vec<CollapseRow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<CaseRow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub improvements: Vec<ImprovementRow>,
}

/// A method on a dataset. Accuracies are fractions of 1; an item that errored is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    pub method: String,
    pub dataset: String,
    pub system: String,
    /// Those that the agents have, each once, in the order of the seats.
    #[serde(default)]
    pub models: Vec<String>,
    /// One a run.
    pub accuracy: Vec<f64>,
    /// `null` where no question has gold.
    pub mean: Option<f64>,
    /// Over the runs, with n − 1 in the denominator; `null` for a single run.
    pub std: Option<f64>,
    /// Over the questions, by bootstrap; `null` without gold.
    pub interval: Option<Estimate>,
    /// How the replies of all calls were read; `null` without calls.
    pub parse_health: Option<ParseHealth>,
    /// The paper's mean and standard deviation.
    pub paper: Option<[f64; 2]>,
    pub n_items: usize,
    pub n_runs: u32,
    pub n_errors: usize,
    pub cost: Option<Cost>,
    /// Of a cell on notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<NoteFigures>,
    /// The last hash of the run's results, which fixes all its bytes.
    pub head: String,
}

impl CellResult {
    /// `None` where no question has gold.
    pub fn spread(&self) -> Option<Spread> {
        Some(Spread { mean: self.mean?, std: self.std, n: Some(self.n_runs as usize) })
    }

    fn of(cell: &CellOutcomes<'_>, scorer: &CorrectionScorer) -> Result<CellResult, Failure> {
        let CellOutcomes { cell, outcomes } = cell;
        let contents = outcomes.contents;
        let figures = RunFigures::of(outcomes);
        let accuracy = figures.accuracy;
        let has_notes = contents.items.records.iter().any(|record| record.note().is_some());
        let of_notes = || NoteFigures::of(outcomes, scorer);
        Ok(CellResult {
            method: cell.method.name.clone(),
            dataset: cell.dataset.name.clone(),
            system: contents.plan.system.clone(),
            models: outcomes.models(),
            mean: accuracy.as_ref().map(|accuracy| accuracy.mean),
            std: accuracy.as_ref().and_then(|accuracy| accuracy.std),
            accuracy: accuracy.map_or(Vec::new(), |accuracy| accuracy.per_run),
            interval: figures.interval,
            parse_health: figures.parse_health,
            paper: cell.method.paper.get(&cell.dataset.name).copied(),
            n_items: contents.plan.dataset.items.len(),
            n_runs: figures.n_runs,
            n_errors: figures.n_errors,
            cost: figures.cost,
            notes: has_notes.then(of_notes),
            head: read_json::<Results>(&contents.path.join(results::FILE))?.head,
        })
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let results = serde_json::from_slice(&outside::file(path)?);
    results.map_err(|error| malformed(path.display(), error))
}

impl RecipeResults {
    /// From the finished runs of cells, in the order of `cells`. While some are missing no method is compared with all others.
    ///
    /// # Errors
    /// A run without results; texts that cannot be embedded.
    pub fn of(
        name: &str,
        recipe: &Recipe,
        cells: &[(Cell<'_>, Contents)],
        encoder: Option<&Encoder>,
        scorer: &CorrectionScorer,
    ) -> Result<RecipeResults, Failure> {
        let cells: &[CellOutcomes<'_>] = &cells.iter().map(CellOutcomes::of).collect::<Vec<_>>();
        let results = cells.iter().map(|cell| CellResult::of(cell, scorer));
        let results = results.collect::<Result<Vec<_>, _>>()?;
        let is_missing = |cell: &Cell<'_>| !cells.iter().any(|other| other.cell == *cell);
        let missing = recipe.cells().filter(is_missing).map(|cell| cell.title());
        let missing: Vec<String> = missing.collect();
        let all = if missing.is_empty() { cells } else { &[] };
        let asks = |analysis| recipe.analyses.contains(&analysis);
        Ok(RecipeResults {
            schema: Schema,
            recipe: name.to_owned(),
            title: recipe.title.clone(),
            recipe_digest: Some(digest(recipe)?),
            synthetic: cells.iter().all(|cell| cell.plan().synthetic),
            conditions: conditions(recipe, cells),
            warnings: warnings(recipe, &missing, &results),
            missing,
            keywords: scorer.keywords.files.clone(),
            cells: results,
            netgain: analysis::net_gains(recipe, if asks(Analysis::Netgain) { cells } else { &[] }),
            paired: paired(recipe, all),
            collapse: analysis::collapse(recipe, cells, encoder)?,
            cases: analysis::cases(recipe, if asks(Analysis::Cases) { all } else { &[] }),
            improvements: improvements(recipe, cells, scorer),
        })
    }

    /// What these results, and the recipe behind them, would say otherwise if this version wrote them from the same runs; and of this apart what
    /// may be due to an encoder or a scorer that was given by hand.
    ///
    /// # Errors
    /// See [`RecipeResults::of`].
    pub fn check(
        &self,
        recipe: &Recipe,
        cells: &[(Cell<'_>, Contents)],
    ) -> Result<[Vec<FieldDifference>; 2], Failure> {
        let scorer = CorrectionScorer::default();
        let own = RecipeResults::of(&self.recipe, recipe, cells, None, &scorer)?;
        let unloggable = |error| RunError::unloggable(FILE, error);
        let [stored, own] =
            [as_json(self).map_err(unloggable)?, as_json(&own).map_err(unloggable)?];
        let given = |one: &FieldDifference| {
            let parts = ["keywords", "collapse", "improvements"];
            parts.iter().any(|part| one.field.starts_with(part))
                || one.field.contains(".notes.correction.")
                    && [ABSENT, "null"].contains(&&*one.right)
        };
        let (wrong, by_hand) = differences(&stored, &own).into_iter().partition(|one| !given(one));
        Ok([wrong, by_hand])
    }

    /// The file in the recipe's folder; `None` where no command has come to its end.
    ///
    /// # Errors
    /// A file that is none.
    pub fn read(out: &Path) -> Result<Option<RecipeResults>, Failure> {
        let path = out.join(FILE);
        fs_err::exists(&path)?.then(|| read_json(&path)).transpose()
    }

    /// The last hash of the run of every cell, by the cell's folder in `out`.
    pub fn heads(&self, out: &Path) -> BTreeMap<PathBuf, String> {
        let head =
            |cell: &CellResult| (directory(&cell.method, &cell.dataset, out), cell.head.clone());
        self.cells.iter().map(head).collect()
    }

    /// Writes the file into the recipe's folder.
    ///
    /// # Errors
    /// A disk that does not take it.
    pub fn write(&self, out: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| RunError::unloggable(FILE, error))?;
        Ok(whole_file::write_private(&out.join(FILE), (text + "\n").as_bytes())?)
    }
}

fn digest(recipe: &Recipe) -> Result<String, Failure> {
    let json = serde_json::to_vec(recipe).map_err(|error| RunError::unloggable(FILE, error))?;
    Ok(sha256(&json))
}

/// That cells are missing.
fn unfinished(n: usize, missing: &[String]) -> Option<String> {
    (!missing.is_empty()).then(|| {
        let (all, names) = (n + missing.len(), missing.join("; "));
        format!("Not finished: {n} of {all} cells have run, and no method is compared with all others.\nMissing: {names}.")
    })
}

/// That cells are missing, and of which cells too many replies could not be read.
fn warnings(recipe: &Recipe, missing: &[String], cells: &[CellResult]) -> Vec<String> {
    let health = |cell: &CellResult| {
        let (label, dataset) = (method(recipe, &cell.method), dataset(recipe, &cell.dataset));
        // Several models may stand under one label.
        let row = match recipe.method.iter().filter(|one| one.label == label).count() {
            0..2 => label.to_owned(),
            _ => full(recipe, cell),
        };
        Some((format!("{row} on {dataset}"), cell.parse_health?))
    };
    let unfinished = unfinished(cells.len(), missing);
    let of_health = health::warnings(cells.iter().filter_map(health), "cells");
    unfinished.into_iter().chain(of_health).collect()
}

/// Runs and items, then what all methods have in common, then what differs.
fn conditions(recipe: &Recipe, cells: &[CellOutcomes<'_>]) -> Vec<String> {
    let rows = cells.iter().map(|one| {
        let conditions = conditions::of(one.plan());
        let mut of_method = cells.iter().filter(|other| other.cell.method == one.cell.method);
        match of_method.all(|other| conditions::of(other.plan()) == conditions) {
            true => (one.cell.method.label.clone(), conditions),
            false => (one.cell.title(), conditions),
        }
    });
    let said = conditions::say(&rows.collect::<Vec<_>>());
    let items = recipe.dataset.iter().filter_map(|dataset| {
        let cell = cells.iter().find(|cell| cell.dataset() == dataset.name)?;
        Some(format!("{} of {}", cell.plan().dataset.items.len(), dataset.label))
    });
    let items = items.collect::<Vec<_>>().join(", ");
    let runs = cells.first().map(|cell| {
        let plan = cell.plan();
        let (runs, seed, version) = (count(plan.runs, "run"), plan.seed, &plan.version);
        let kind = &plan.device_kind;
        format!("{runs} over the same items ({items}), seed {seed}, wardround {version} on {kind}.")
    });
    runs.into_iter().chain(said).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_warning_tells_the_models_of_one_label_apart() {
        let recipe = Recipe::find("medguards-table2").unwrap();
        let mut cells = fixtures::cells(&recipe);
        cells[0].models = vec!["gemma3-4b".to_owned()];
        let health = serde_json::json!({"ok": 0.0, "repaired": 0.0, "fallback": 0.0, "refused": 0.0, "unread": 1.0});
        cells[0].parse_health = Some(serde_json::from_value(health).unwrap());
        let warned = warnings(&recipe, &[], &cells).concat();
        assert!(warned.ends_with(".\ngemma3-4b: alone on MEDEC (unread 100.0 %)"), "{warned}");
    }
}
