//! Two methods on the same questions: which pairs a recipe asks for, and their difference beside the paper's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Recipe;
use super::analysis::{CellOutcomes, on_dataset};
use super::file::Analysis;
use super::paper::PapersDifference;
use super::results::RecipeResults;
use super::tables::{dataset, method};
use crate::analysis::metrics::bootstrap::{self, Estimate, differences, p_value};
use crate::analysis::metrics::over_runs::mean;
use crate::analysis::metrics::significance::{detectable, holm};
use crate::analysis::table::Table;

/// The name of the system that the paper compares with all others.
const MEDMAD: &str = "medmad";
/// The folder of the systems of one model, of which the paper chooses its baseline.
const SINGLE_MODEL: &str = "single_llm";

/// Why two methods are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Against {
    /// MED-MAD with the baseline that the paper names.
    Named,
    /// MED-MAD with the best of the other multi-agent systems here.
    Best,
    /// MED-MAD with one single-LLM baseline for all datasets.
    Unified,
    /// Each method with the recipe's first.
    First,
}

impl Against {
    pub fn in_words(self) -> &'static str {
        match self {
            Against::Named => "the baseline that the paper names",
            Against::Best => "best other multi-agent system here",
            Against::Unified => "one single-LLM baseline for all datasets",
            Against::First => "Δ, each method less the recipe's first",
        }
    }
}

/// Two methods on the same questions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedRow {
    pub comparison: Against,
    pub dataset: String,
    pub method: String,
    pub baseline: String,
    /// The method's accuracy less the baseline's.
    #[serde(flatten)]
    pub difference: Estimate,
    /// Two-sided, by bootstrap of the questions; then Holm's, over all rows of the table. `null` in results of earlier versions.
    #[serde(default)]
    pub p_value: Option<f64>,
    #[serde(default)]
    pub p_adjusted: Option<f64>,
    /// The smallest true difference that these questions show in four of five repetitions; `null` where all differences are equal.
    #[serde(default)]
    pub detectable: Option<f64>,
    /// What the paper prints of the same two methods.
    pub paper: Option<PapersDifference>,
}

pub fn paired(recipe: &Recipe, cells: &[CellOutcomes<'_>]) -> Vec<PairedRow> {
    let mut rows = Vec::new();
    let unified = unified(cells);
    for dataset in &recipe.dataset {
        let mut here = on_dataset(cells, &dataset.name);
        here.retain(|cell| !cell.outcomes.items.is_empty());
        let medmad = here.iter().copied().rfind(|cell| cell.is_system(|one| one.name == MEDMAD));
        let cell = |method: &str| here.iter().copied().find(|cell| cell.method() == method);
        let mut compare = |why, method: Option<&CellOutcomes<'_>>, baseline| {
            let both = method.zip(baseline);
            rows.extend(both.and_then(|(method, other)| pair(why, recipe, method, other)));
        };
        for analysis in &recipe.analyses {
            match analysis {
                Analysis::PairedBest => {
                    let paper = recipe.paper.paired.get(&dataset.name);
                    compare(Against::Named, medmad, paper.and_then(|one| cell(&one.baseline)));
                    compare(Against::Best, medmad, best(&here));
                }
                Analysis::PairedUnified => {
                    compare(Against::Unified, medmad, unified.and_then(cell));
                }
                Analysis::PairedFirst => {
                    for other in here.iter().skip(1) {
                        compare(Against::First, Some(*other), Some(here[0]));
                    }
                }
                _ => {}
            }
        }
    }
    // For all rows of the table together.
    let p_values: Vec<f64> = rows.iter().filter_map(|row: &PairedRow| row.p_value).collect();
    for (row, adjusted) in rows.iter_mut().zip(holm(&p_values)) {
        row.p_adjusted = Some(adjusted);
    }
    rows
}

/// The best of the multi-agent systems beside MED-MAD; of equal means the first in the recipe's order.
fn best<'a, 'b>(here: &[&'b CellOutcomes<'a>]) -> Option<&'b CellOutcomes<'a>> {
    let others = here
        .iter()
        .copied()
        .filter(|cell| cell.is_multi_agent() && !cell.is_system(|entry| entry.name == MEDMAD));
    others.reduce(|best, other| if other.mean() > best.mean() { other } else { best })
}

/// The method that App. A.4 chooses as the one baseline of all datasets: of the greatest mean over them; of equal ones the first by the name
/// of its system, then by its own.
fn unified<'a>(cells: &[CellOutcomes<'a>]) -> Option<&'a str> {
    let mut accuracies: BTreeMap<(&str, &'a str), Vec<f64>> = BTreeMap::new();
    let single = cells.iter().filter(|cell| cell.is_system(|one| one.prompts == SINGLE_MODEL));
    for cell in single {
        let of_method = accuracies.entry((&cell.plan().system, cell.method())).or_default();
        of_method.push(cell.mean().unwrap_or(0.0));
    }
    greatest(accuracies).map(|(_, method)| method)
}

/// Means nearer than this are equal: sums of the same accuracies in another order differ in their last bits.
const TIE: f64 = 1e-9;

/// Of the greatest mean; of equal ones the first.
fn greatest<K>(accuracies: BTreeMap<K, Vec<f64>>) -> Option<K> {
    let means = accuracies.into_iter().filter_map(|(name, all)| Some((name, mean(&all)?)));
    let greatest = means.reduce(|best, other| if other.1 > best.1 + TIE { other } else { best });
    greatest.map(|(name, _)| name)
}

fn pair(
    comparison: Against,
    recipe: &Recipe,
    method: &CellOutcomes<'_>,
    baseline: &CellOutcomes<'_>,
) -> Option<PairedRow> {
    let (left, right) = (method.outcomes.right(), baseline.outcomes.right());
    let units = method.outcomes.units();
    let by_question = differences(&left, &right);
    let (dataset, name) = (method.dataset(), method.method());
    let paper = match comparison {
        Against::Named => recipe.paper.paired.get(dataset).map(|pair| pair.difference),
        Against::First => recipe.paper.delta.get(dataset).and_then(|all| all.get(name)).copied(),
        Against::Best | Against::Unified => None,
    };
    Some(PairedRow {
        comparison,
        dataset: dataset.to_owned(),
        method: name.to_owned(),
        baseline: baseline.method().to_owned(),
        difference: bootstrap::mean(&by_question, &units)?,
        p_value: p_value(&by_question, &units),
        p_adjusted: None,
        detectable: detectable(&by_question, &units),
        paper,
    })
}

pub fn table(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let table = Table::of("paired", "Differences, paired by item", &results.paired)
        .grouped_by(|row| {
            format!("{}: {}", dataset(recipe, &row.dataset), row.comparison.in_words())
        })
        .text("method", |row| method(recipe, &row.method))
        .text("less", |row| method(recipe, &row.baseline))
        .interval("ours", |row| &row.difference);
    // Of a recipe without a paper nothing is said of one.
    let has_paper = results.paired.iter().any(|row| row.paper.is_some());
    let table = if has_paper { table.interval("paper", |row| row.paper) } else { table };
    table
        .text("p, Holm", |row| row.p_adjusted.map(|p| format!("{p:.3}")))
        .number("could be seen", |row| row.detectable)
        .note("Each item's correctness, of a note whether its error is found, is averaged over the runs of either method; 95 % percentile intervals over 10 000 resamples of the items, not adjusted. p, Holm: two-sided, by the same resamples, adjusted for all rows of the table. No P-value is below the exact sign test's of as many units that differ. Could be seen: the smallest true difference that as many such items show (0.05 two-sided, before the adjustment) four times in five; a smaller one cannot be told from none here.")
        .unless_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greatest_of(rows: &[(&'static str, [f64; 3])]) -> Option<&'static str> {
        greatest(rows.iter().map(|(name, accuracies)| (*name, accuracies.to_vec())).collect())
    }

    /// Right answers of 300 in MED-MAD's Table 1, open-source models: 454 of 900 for both, and A.4 names CoT.
    #[test]
    fn the_papers_own_tie_goes_to_the_first_name() {
        let rows = [
            ("SingleLLM_cot_sc", [117.0, 130.0, 207.0]),
            ("SingleLLM_cot", [125.0, 120.0, 209.0]),
            ("SingleLLM_self_consistency", [101.0, 112.0, 184.0]),
        ];
        let rows = rows.map(|(name, right)| (name, right.map(|right| right / 300.0)));
        assert_eq!(greatest_of(&rows), Some("SingleLLM_cot"));
    }

    #[test]
    fn the_greatest_mean_wins_wherever_its_name_stands() {
        let with = |last| greatest_of(&[("a", [0.5, 0.5, 0.5]), ("b", [0.9, 0.2, last])]);
        assert_eq!((with(0.41), with(0.39)), (Some("b"), Some("a")));
        assert_eq!(greatest_of(&[]), None);
    }
}
