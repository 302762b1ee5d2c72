//! Two methods on the same questions: which pairs a recipe asks for, and their difference beside the paper's.

use std::collections::BTreeMap;

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use super::Recipe;
use super::analysis::{CellOutcomes, on_dataset};
use super::file::Analysis;
use super::paper::PapersDifference;
use super::results::RecipeResults;
use super::tables::{dataset, method};
use crate::analysis::metrics::bootstrap::{self, Estimate, differences, p_values};
use crate::analysis::metrics::over_runs::mean;
use crate::analysis::metrics::significance::{McNemar, detectable, holm, mcnemar};
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
    /// Exact McNemar of each run both have.
    pub mcnemar: Vec<McNemar>,
    /// What the paper prints of the same two methods.
    pub paper: Option<PapersDifference>,
}

pub fn paired(recipe: &Recipe, cells: &[CellOutcomes<'_>]) -> Vec<PairedRow> {
    let (mut rows, mut unshown) = (Vec::new(), Vec::new());
    let unified = unified(cells);
    for dataset in &recipe.dataset {
        let mut here = on_dataset(cells, &dataset.name);
        here.retain(|cell| !cell.outcomes.items.is_empty());
        let medmad = here.iter().rfind(|cell| cell.is_system(|entry| entry.name == MEDMAD));
        let cell = |method: &str| here.iter().find(|cell| cell.method() == method);
        for analysis in &recipe.analyses {
            match (analysis, medmad) {
                (Analysis::PairedBest, Some(medmad)) => {
                    let paper = recipe.paper.paired.get(&dataset.name);
                    let named = paper.and_then(|paper| cell(&paper.baseline));
                    if let Some(named) = named {
                        rows.extend(pair(Against::Named, recipe, medmad, named));
                    }
                    if let Some(best) = best(&here, medmad) {
                        let row = pair(Against::Best, recipe, medmad, best);
                        let is_named = named.is_some_and(|named| named.method() == best.method());
                        if is_named { &mut unshown } else { &mut rows }.extend(row);
                    }
                }
                (Analysis::PairedUnified, Some(medmad)) => {
                    if let Some(baseline) = unified.as_deref().and_then(cell) {
                        rows.extend(pair(Against::Unified, recipe, medmad, baseline));
                    }
                }
                (Analysis::PairedFirst, _) => {
                    for other in here.iter().skip(1) {
                        rows.extend(pair(Against::First, recipe, other, here[0]));
                    }
                }
                _ => {}
            }
        }
    }
    adjust(&mut rows, &unshown);
    rows
}

/// For all rows of the table together, and those that the data left out of it: a family that shrank with the data would prove too much.
fn adjust(rows: &mut [PairedRow], unshown: &[PairedRow]) {
    let all = rows.iter().chain(unshown);
    let p_values: Vec<f64> = all.filter_map(|row| row.p_value).collect();
    for (row, adjusted) in rows.iter_mut().zip(holm(&p_values)) {
        row.p_adjusted = Some(adjusted);
    }
}

/// The best of the other multi-agent systems; of equal means the first in the recipe's order.
fn best<'a, 'b>(
    here: &[&'b CellOutcomes<'a>],
    medmad: &CellOutcomes<'_>,
) -> Option<&'b CellOutcomes<'a>> {
    let others = here
        .iter()
        .copied()
        .filter(|cell| cell.is_multi_agent() && cell.method() != medmad.method());
    others.reduce(|best, other| if other.mean() > best.mean() { other } else { best })
}

/// The method that App. A.4 chooses as the one baseline of all datasets.
fn unified(cells: &[CellOutcomes<'_>]) -> Option<String> {
    let mut accuracies: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    let is_candidate =
        |cell: &&CellOutcomes<'_>| cell.is_system(|entry| entry.prompts == SINGLE_MODEL);
    for cell in cells.iter().filter(is_candidate) {
        // The method's name tells apart two methods of one system.
        let name = format!("{} {}", cell.plan().system, cell.method());
        let datasets = accuracies.entry(name).or_default();
        datasets.insert(cell.dataset().to_owned(), cell.mean().unwrap_or(0.0));
    }
    let (name, _) = unified_baseline(&accuracies)?;
    Some(name.split_once(' ')?.1.to_owned())
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
    let tests = left.0.iter().zip(&right.0).map(|(left, right)| mcnemar(left, right, &units));
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
        p_value: Some(p_values(&by_question, &units)?.two_sided),
        p_adjusted: None,
        detectable: detectable(&by_question, &units),
        mcnemar: tests.collect(),
        paper,
    })
}

/// Means nearer than this are equal: sums of the same accuracies in another order differ in their last bits.
const TIE: f64 = 1e-9;

/// The candidate of the greatest mean over all datasets, with that mean; of equal ones the first by name. `accuracies` are by candidate and
/// dataset, of which each has the same. `None` where no candidate has a dataset.
fn unified_baseline(accuracies: &BTreeMap<String, BTreeMap<String, f64>>) -> Option<(&str, f64)> {
    let means = accuracies.iter().filter_map(|(name, datasets)| {
        Some((name.as_str(), mean(&datasets.values().copied().collect_vec())?))
    });
    means.reduce(|best, other| if other.1 > best.1 + TIE { other } else { best })
}

pub fn table(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let table = Table::of("paired", "Differences, paired by question", &results.paired)
        .grouped_by(|row| {
            format!("{}: {}", dataset(recipe, &row.dataset), row.comparison.in_words())
        })
        .text("method", |row| method(recipe, &row.method))
        .text("less", |row| method(recipe, &row.baseline))
        .interval("ours", |row| &row.difference);
    // Of a recipe without a paper nothing is said of one.
    let has_paper = results.paired.iter().any(|row| row.paper.is_some());
    let table = if has_paper { table.interval("paper", |row| row.paper) } else { table };
    let best =
        ", and for a best system that is the one the paper names, which has no row of its own";
    let of_paper = if has_paper { best } else { "" };
    table
        .text("p, Holm", |row| row.p_adjusted.map(|p| format!("{p:.3}")))
        .number("could be seen", |row| row.detectable)
        .text("exact McNemar p, by run", |row| {
            row.mcnemar.iter().map(|test| format!("{:.3}", test.p_value)).join(", ")
        })
        .note(format!("Each question's correctness is averaged over the runs of either method; 95 % percentile intervals over 10 000 resamples of the questions, not adjusted. p, Holm: two-sided, by the same resamples, adjusted for all rows of the table{of_paper}. No P-value is below the exact sign test's of as many units that differ. Could be seen: the smallest true difference that as many such questions show (0.05 two-sided, before the adjustment) four times in five; a smaller one cannot be told from none here."))
        .unless_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, &[f64])]) -> BTreeMap<String, BTreeMap<String, f64>> {
        let datasets = ["medqa", "mmlu_pro", "pubmedqa"];
        let row = |accuracies: &[f64]| {
            let named = datasets.iter().map(|name| (*name).to_owned());
            named.zip(accuracies.iter().copied()).collect()
        };
        rows.iter().map(|(name, accuracies)| ((*name).to_owned(), row(accuracies))).collect()
    }

    /// Right answers of 300 in MED-MAD's Table 1, open-source models: 454 of 900 for both, and A.4 names CoT.
    #[test]
    fn the_papers_own_tie_goes_to_the_first_name() {
        let rows: [(&str, &[f64]); 3] = [
            ("SingleLLM_cot_sc", &[117.0 / 300.0, 130.0 / 300.0, 207.0 / 300.0]),
            ("SingleLLM_cot", &[125.0 / 300.0, 120.0 / 300.0, 209.0 / 300.0]),
            ("SingleLLM_self_consistency", &[101.0 / 300.0, 112.0 / 300.0, 184.0 / 300.0]),
        ];
        let table = table(&rows);
        let (name, mean) = unified_baseline(&table).unwrap();
        assert_eq!(name, "SingleLLM_cot");
        assert!((mean - 454.0 / 900.0).abs() < 1e-12);
    }

    #[test]
    fn the_greatest_mean_wins_wherever_its_name_stands() {
        let better =
            table(&[("SingleLLM_a", &[0.5, 0.5, 0.5]), ("SingleLLM_b", &[0.9, 0.2, 0.41])]);
        assert_eq!(unified_baseline(&better).unwrap().0, "SingleLLM_b");
        let worse = table(&[("SingleLLM_a", &[0.5, 0.5, 0.5]), ("SingleLLM_b", &[0.9, 0.2, 0.39])]);
        assert_eq!(unified_baseline(&worse).unwrap().0, "SingleLLM_a");
    }

    #[test]
    fn without_candidates_there_is_none() {
        assert_eq!(unified_baseline(&BTreeMap::new()), None);
        assert_eq!(unified_baseline(&table(&[("SingleLLM_cot", &[])])), None);
    }
}
