//! What a recipe reads off its cells beside their accuracy.

use serde::{Deserialize, Serialize};

use super::reading::{Reading, When};
use super::results::CellResult;
use crate::analysis::metrics::agreement::Agreement;
use crate::analysis::metrics::baseline::unified_baseline;
use crate::analysis::metrics::bootstrap::{Estimate, paired_difference};
use crate::analysis::metrics::mcnemar::{McNemar, mcnemar};
use crate::analysis::metrics::net_gain::net_gain;
use crate::analysis::metrics::over_runs::OverRuns;
use crate::analysis::metrics::similarity::mean_pairwise_cosine;
use crate::encoder::Encoder;
use crate::experiment::recipe::RecipeError;
use crate::experiment::recipe::file::{Analysis, Recipe};

/// What debate changes (Table 2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetGainRow {
    pub method: String,
    pub dataset: String,
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Shares of all questions, one a run; their difference is the run's net gain.
    pub wrong_to_right: Vec<f64>,
    pub right_to_wrong: Vec<f64>,
    /// The paper's mean and interval.
    pub paper: Option<[f64; 3]>,
}

/// Two methods on the same questions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedRow {
    /// Why these two: `best`, `unified` or `first`.
    pub comparison: String,
    pub dataset: String,
    pub method: String,
    pub baseline: String,
    /// The method's accuracy less the baseline's.
    #[serde(flatten)]
    pub difference: Estimate,
    /// Exact McNemar of each run both have.
    pub mcnemar: Vec<McNemar>,
    /// The paper's baseline, and its mean and interval.
    pub paper: Option<(String, [f64; 3])>,
}

/// How far trajectories fall together (Figures 3, 6, 7).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollapseRow {
    pub method: String,
    pub dataset: String,
    /// `null` where a method has one trajectory a question, or none.
    pub agreement: Option<Agreement>,
    /// `null` unless the recipe asks for it and an encoder was given.
    pub similarity: Option<Similarity>,
}

/// Mean pairwise cosines of trajectories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Similarity {
    /// A value a question, averaged over the runs that have one; questions without are left out.
    pub initial_by_question: Vec<f64>,
    pub initial: Option<OverRuns>,
    pub first_round: Option<OverRuns>,
    pub last: Option<OverRuns>,
}

/// A question that the other methods get wrong alike, and the last one right (Figure 4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseRow {
    pub dataset: String,
    pub item: String,
    /// Counted from 1, as in the logs.
    pub run: u32,
    pub gold: String,
    /// The letters of every method, round by round.
    pub methods: Vec<CaseMethod>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseMethod {
    pub method: String,
    pub rounds: Vec<Vec<String>>,
    pub answer: String,
}

/// Cells of one recipe with what they say, in the order of the results.
pub type Readings<'a> = [(&'a CellResult, Reading<'a>)];

/// Whether the run put several agents to work.
fn is_multi_agent(reading: &Reading<'_>) -> bool {
    reading.contents.plan.panel.len() > 1
}

/// # Errors
/// Runs over different questions.
pub fn net_gains(recipe: &Recipe, cells: &Readings<'_>) -> Result<Vec<NetGainRow>, RecipeError> {
    if !recipe.analyses.contains(&Analysis::Netgain) {
        return Ok(Vec::new());
    }
    let debating = cells.iter().filter(|(_, reading)| is_multi_agent(reading));
    let row = |(cell, reading): &(&CellResult, Reading<'_>)| {
        let gain = net_gain(&reading.round0(), &reading.verdicts(), None)?;
        let share = |count: usize, of: usize| count as f64 / of as f64;
        let runs = || gain.per_run.iter();
        Ok(NetGainRow {
            method: cell.method.clone(),
            dataset: cell.dataset.clone(),
            wrong_to_right: runs()
                .map(|run| share(run.wrong_to_right, run.n_questions))
                .collect(),
            right_to_wrong: runs()
                .map(|run| share(run.right_to_wrong, run.n_questions))
                .collect(),
            estimate: gain.estimate,
            paper: recipe
                .paper
                .netgain
                .get(&cell.dataset)
                .and_then(|methods| methods.get(&cell.method))
                .copied(),
        })
    };
    debating.map(row).collect()
}

/// # Errors
/// Runs over different questions.
pub fn paired(recipe: &Recipe, cells: &Readings<'_>) -> Result<Vec<PairedRow>, RecipeError> {
    let mut rows = Vec::new();
    let unified = unified(cells)?;
    for dataset in &recipe.dataset {
        let here: Vec<_> = cells
            .iter()
            .filter(|(cell, _)| cell.dataset == dataset.name)
            .collect();
        let Some(medmad) = here.iter().rfind(|(cell, _)| cell.system == "medmad") else {
            continue;
        };
        for analysis in &recipe.analyses {
            match analysis {
                Analysis::PairedBest => {
                    let others = here.iter().filter(|(cell, reading)| {
                        is_multi_agent(reading) && cell.method != medmad.0.method
                    });
                    // The first of equal means, in the recipe's order.
                    let best = others.reduce(|best, other| match other.0.mean > best.0.mean {
                        true => other,
                        false => best,
                    });
                    if let Some(best) = best {
                        rows.push(pair("best", recipe, medmad, best)?);
                    }
                }
                Analysis::PairedUnified => {
                    let baseline = here
                        .iter()
                        .find(|(cell, _)| Some(&cell.method) == unified.as_ref());
                    if let Some(baseline) = baseline {
                        rows.push(pair("unified", recipe, medmad, baseline)?);
                    }
                }
                Analysis::PairedFirst => {
                    for other in &here[1..] {
                        rows.push(pair("first", recipe, here[0], other)?);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(rows)
}

/// The method that App. A.4 chooses as the one baseline of all datasets.
fn unified(cells: &Readings<'_>) -> Result<Option<String>, RecipeError> {
    let mut accuracies: std::collections::BTreeMap<String, _> = std::collections::BTreeMap::new();
    for (cell, _) in cells {
        // The method's name tells apart two methods of one system.
        let name = format!("{} {}", cell.system, cell.method);
        let datasets: &mut std::collections::BTreeMap<String, f64> =
            accuracies.entry(name).or_default();
        datasets.insert(cell.dataset.clone(), cell.mean.unwrap_or(0.0));
    }
    let best = unified_baseline(&accuracies)?;
    Ok(best.and_then(|(name, _)| Some(name.split_once(' ')?.1.to_owned())))
}

fn pair(
    comparison: &str,
    recipe: &Recipe,
    (method, left): &(&CellResult, Reading<'_>),
    (baseline, right): &(&CellResult, Reading<'_>),
) -> Result<PairedRow, RecipeError> {
    let (left, right) = (left.verdicts(), right.verdicts());
    let tests = left
        .iter()
        .zip(&right)
        .map(|(left, right)| mcnemar(left, right));
    let paper = recipe.paper.paired.get(&method.dataset);
    Ok(PairedRow {
        comparison: comparison.to_owned(),
        dataset: method.dataset.clone(),
        method: method.method.clone(),
        baseline: baseline.method.clone(),
        difference: paired_difference(&left, &right, None)?,
        mcnemar: tests.collect::<Result<_, _>>()?,
        paper: paper
            .filter(|_| comparison == "best")
            .map(|pair| (pair.baseline.clone(), pair.difference)),
    })
}

/// Agreement, and similarity where there is an encoder to measure it by.
///
/// # Errors
/// Texts that cannot be embedded.
pub fn collapse(
    recipe: &Recipe,
    cells: &Readings<'_>,
    encoder: Option<&Encoder>,
) -> Result<Vec<CollapseRow>, RecipeError> {
    let asks = |analysis| recipe.analyses.contains(&analysis);
    let wants_similarity = asks(Analysis::SimilarityInitial) || asks(Analysis::SimilarityRounds);
    if !wants_similarity && !asks(Analysis::CorrelatedErrors) {
        return Ok(Vec::new());
    }
    let encoder = encoder.filter(|_| wants_similarity);
    let row = |(cell, reading): &(&CellResult, Reading<'_>)| {
        Ok(CollapseRow {
            method: cell.method.clone(),
            dataset: cell.dataset.clone(),
            agreement: Agreement::over_runs(&reading.trajectories()),
            similarity: encoder
                .map(|encoder| similarity(reading, encoder))
                .transpose()?,
        })
    };
    cells.iter().map(row).collect()
}

fn similarity(reading: &Reading<'_>, encoder: &Encoder) -> Result<Similarity, RecipeError> {
    let initial = cosines(reading, When::Initial, encoder)?;
    let questions = initial.first().map_or(0, Vec::len);
    let by_question = (0..questions).filter_map(|question| {
        let values: Vec<f64> = initial.iter().filter_map(|run| run[question]).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    });
    let over_runs = |runs: &[Vec<Option<f64>>]| {
        let means = runs.iter().map(|run| {
            let values: Vec<f64> = run.iter().flatten().copied().collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        });
        OverRuns::of(means.flatten().collect())
    };
    Ok(Similarity {
        initial_by_question: by_question.collect(),
        first_round: over_runs(&cosines(reading, When::FirstRound, encoder)?),
        last: over_runs(&cosines(reading, When::Last, encoder)?),
        initial: over_runs(&initial),
    })
}

/// Each question's mean pairwise cosine, run by run; `None` where fewer than two trajectories say anything.
fn cosines(
    reading: &Reading<'_>,
    when: When,
    encoder: &Encoder,
) -> Result<Vec<Vec<Option<f64>>>, RecipeError> {
    let runs = reading.texts(when).into_iter();
    runs.map(|run| {
        let questions = run.into_iter().map(|texts| {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            Ok(mean_pairwise_cosine(&encoder.embed(&texts)?)?)
        });
        questions.collect()
    })
    .collect()
}

/// The questions of Figure 4, in the order of runs and questions.
pub fn cases(recipe: &Recipe, cells: &Readings<'_>) -> Vec<CaseRow> {
    if !recipe.analyses.contains(&Analysis::Cases) {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for dataset in &recipe.dataset {
        let here: Vec<_> = cells
            .iter()
            .filter(|(cell, _)| cell.dataset == dataset.name)
            .collect();
        let Some(((_, last), others)) = here.split_last() else {
            continue;
        };
        let runs = here.iter().map(|(cell, _)| cell.n_runs).min().unwrap_or(0);
        for run in 0..runs as usize {
            for (question, name) in last.questions.iter().enumerate() {
                let right = last.item(run, question);
                let item = |reading: &Reading<'_>| {
                    let same = reading.questions.iter().position(|other| other == name);
                    same.map(|question| reading.item(run, question).says().to_owned())
                };
                let answers: Vec<Option<String>> =
                    others.iter().map(|(_, reading)| item(reading)).collect();
                let shared = answers.iter().all(|answer| *answer == answers[0]);
                let wrong = answers.first().and_then(Option::as_deref);
                let is_wrong =
                    wrong.is_some_and(|wrong| !wrong.is_empty() && Some(wrong) != right.gold());
                if right.correct() == Some(true) && shared && is_wrong {
                    rows.push(case(&dataset.name, run, question, &here));
                }
            }
        }
    }
    rows
}

fn case(
    dataset: &str,
    run: usize,
    question: usize,
    cells: &[&(&CellResult, Reading<'_>)],
) -> CaseRow {
    let methods = cells.iter().map(|(cell, reading)| {
        let rounds = reading.answer(run, question).map(|one| one.rounds.iter());
        let rounds = rounds.into_iter().flatten();
        CaseMethod {
            method: cell.method.clone(),
            rounds: rounds.map(|round| round.answers.clone()).collect(),
            answer: reading.item(run, question).says().to_owned(),
        }
    });
    let item = cells[0].1.item(run, question);
    CaseRow {
        dataset: dataset.to_owned(),
        item: item.item().to_owned(),
        run: item.run(),
        gold: item.gold().unwrap_or_default().to_owned(),
        methods: methods.collect(),
    }
}
