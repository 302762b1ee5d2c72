//! What a recipe computes from its cells besides their accuracy: the rows that its results keep of it, and their tables.

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use super::cells::Cell;
use super::file::{Analysis, Recipe};
use super::paper::PapersDifference;
use super::results::RecipeResults;
use super::tables::{dataset, method};
use crate::analysis::facts::Facts;
use crate::analysis::metrics::agreement::{Agreement, mean_pairwise_cosine};
use crate::analysis::metrics::bootstrap::RESAMPLES;
use crate::analysis::metrics::net_gain::{NetGain, net_gain};
use crate::analysis::metrics::over_runs::{OverRuns, mean};
use crate::analysis::outcomes::{Outcomes, When};
use crate::analysis::table::Table;
use crate::diagnosis::Failure;
use crate::encoder::Encoder;
use crate::experiment::contents::Contents;
use crate::experiment::plan::Plan;
use crate::record::{ItemLine, count};
use crate::systems::SYSTEMS;
use crate::systems::table::SystemEntry;

/// What debate changes (Table 2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetGainRow {
    pub method: String,
    pub dataset: String,
    #[serde(flatten)]
    pub gain: NetGain,
    /// The paper's mean and interval, which fit the conditional reading alone.
    pub paper: Option<PapersDifference>,
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

/// A question to which the other methods give the same wrong answer, and the last one the right answer (Figure 4).
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

/// A cell of the recipe, and what its run came to.
pub struct CellOutcomes<'a> {
    pub cell: Cell<'a>,
    pub outcomes: Outcomes<'a>,
}

impl<'a> CellOutcomes<'a> {
    pub fn of((cell, contents): &'a (Cell<'a>, Contents)) -> CellOutcomes<'a> {
        CellOutcomes { cell: *cell, outcomes: Outcomes::of(contents) }
    }

    pub(super) fn method(&self) -> &'a str {
        &self.cell.method.name
    }

    pub(super) fn dataset(&self) -> &'a str {
        &self.cell.dataset.name
    }

    pub(super) fn plan(&self) -> &'a Plan {
        &self.outcomes.contents.plan
    }

    /// `None` where nothing has gold.
    pub(super) fn mean(&self) -> Option<f64> {
        self.outcomes.accuracy().map(|accuracy| accuracy.mean)
    }

    /// Whether an entry of the table of systems with the run's name in plans is such a one.
    pub(super) fn is_system(&self, is: fn(&SystemEntry) -> bool) -> bool {
        SYSTEMS.iter().any(|entry| entry.plan_name == self.plan().system && is(entry))
    }

    /// Whether the run put several agents to work.
    pub(super) fn is_multi_agent(&self) -> bool {
        self.plan().panel.len() > 1
    }
}

pub fn net_gains(recipe: &Recipe, cells: &[CellOutcomes<'_>]) -> Vec<NetGainRow> {
    let has_questions = |cell: &CellOutcomes<'_>| cell.outcomes.answers().iter().next().is_some();
    let debating = cells.iter().filter(|cell| cell.is_multi_agent() && has_questions(cell));
    let row = |cell: &CellOutcomes<'_>| {
        let (method, dataset, outcomes) = (cell.method(), cell.dataset(), &cell.outcomes);
        Some(NetGainRow {
            method: method.to_owned(),
            dataset: dataset.to_owned(),
            gain: net_gain(&outcomes.round0(), &outcomes.right(), &outcomes.units())?,
            paper: recipe.paper.netgain.get(dataset).and_then(|all| all.get(method)).copied(),
        })
    };
    debating.filter_map(row).collect()
}

/// The mean of a value over those that have it.
fn rate(by_run: &[Option<f64>]) -> Option<f64> {
    mean(&by_run.iter().flatten().copied().collect::<Vec<_>>())
}

pub fn net_gain_table(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let short = results.netgain.iter().filter_map(|row| {
        let n = row.gain.conditional.as_ref()?.n_resamples;
        let (method, dataset) = (method(recipe, &row.method), dataset(recipe, &row.dataset));
        (n < RESAMPLES).then(|| format!("{method} on {dataset}: {n} of {RESAMPLES} resamples hold a question that was wrong at round 0 and one that was right; the others are left out of the first interval."))
    });
    Table::of("netgain", "NetGain from Round 0 to the final answer", &results.netgain)
        .grouped_by(|row| dataset(recipe, &row.dataset).to_owned())
        .text("method", |row| method(recipe, &row.method))
        .under("of those that could turn")
        .interval("ours", |row| row.gain.conditional.as_ref().map(|one| &one.estimate))
        .interval("paper", |row| row.paper)
        .number("P(right at the end, wrong at 0)", |row| rate(&row.gain.conditional.as_ref()?.wrong_to_right))
        .number("P(wrong at the end, right at 0)", |row| rate(&row.gain.conditional.as_ref()?.right_to_wrong))
        .under("of all questions")
        .interval("ours", |row| &row.gain.estimate)
        .number("wrong → right", |row| mean(&row.gain.wrong_to_right))
        .number("right → wrong", |row| mean(&row.gain.right_to_wrong))
        .note("Two readings of one name. Of those that could turn: the share of the questions wrong at round 0 that are right at the end, less the share of those right at round 0 that are wrong at the end, both means over the runs and both taken anew in each resample. Of all questions: the gain in accuracy, over the means of the runs. Intervals are 95 % by bootstrap of questions.")
        .notes(short)
        .unless_empty()
}

/// Agreement, and similarity where there is an encoder to measure it by.
///
/// # Errors
/// Texts that cannot be embedded.
pub fn collapse(
    recipe: &Recipe,
    cells: &[CellOutcomes<'_>],
    encoder: Option<&Encoder>,
) -> Result<Vec<CollapseRow>, Failure> {
    let asks = |analysis| recipe.analyses.contains(&analysis);
    if !asks(Analysis::Similarity) && !asks(Analysis::CorrelatedErrors) {
        return Ok(Vec::new());
    }
    let encoder = encoder.filter(|_| asks(Analysis::Similarity));
    let row = |cell: &CellOutcomes<'_>| {
        Ok(CollapseRow {
            method: cell.method().to_owned(),
            dataset: cell.dataset().to_owned(),
            agreement: Agreement::of(&cell.outcomes.trajectories()),
            similarity: encoder.map(|encoder| similarity(&cell.outcomes, encoder)).transpose()?,
        })
    };
    cells.iter().map(row).collect()
}

fn similarity(outcomes: &Outcomes<'_>, encoder: &Encoder) -> Result<Similarity, Failure> {
    let over_runs = |cosines: &Facts<Option<f64>>| {
        OverRuns::of(cosines.0.iter().filter_map(|run| rate(run)).collect())
    };
    let initial = cosines(outcomes, When::Initial, encoder)?;
    let questions = 0..initial.0.first().map_or(0, Vec::len);
    let of_question =
        |question: usize| rate(&initial.0.iter().map(|run| run[question]).collect::<Vec<_>>());
    Ok(Similarity {
        initial_by_question: questions.filter_map(of_question).collect(),
        first_round: over_runs(&cosines(outcomes, When::FirstRound, encoder)?),
        last: over_runs(&cosines(outcomes, When::Last, encoder)?),
        initial: over_runs(&initial),
    })
}

/// Each question's mean pairwise cosine; `None` where fewer than two trajectories say anything.
fn cosines(
    outcomes: &Outcomes<'_>,
    when: When,
    encoder: &Encoder,
) -> Result<Facts<Option<f64>>, Failure> {
    let of_question = |texts: &Vec<String>| {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        Ok(mean_pairwise_cosine(&encoder.embed(&texts)?))
    };
    let texts = outcomes.texts(when);
    let runs = texts.0.iter().map(|run| run.iter().map(of_question).collect());
    Ok(Facts(runs.collect::<Result<_, Failure>>()?))
}

pub fn collapse_table(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let wants_similarity = recipe.analyses.contains(&Analysis::Similarity);
    let has_none = results.collapse.iter().all(|row| row.similarity.is_none());
    let unmeasured = "No encoder was given, so similarity was not measured.".to_owned();
    Table::of("collapse", "How alike trajectories are", &results.collapse)
        .grouped_by(|row| dataset(recipe, &row.dataset).to_owned())
        .text("method", |row| method(recipe, &row.method))
        .under("correlated errors")
        .spread("Agreement@0", |row| Some(&row.agreement.as_ref()?.agreement_at_0))
        .spread("Same-wrong@0", |row| Some(&row.agreement.as_ref()?.same_wrong_at_0))
        .spread("Same-wrong@final", |row| Some(&row.agreement.as_ref()?.same_wrong_at_final))
        .spread("left out @0", |row| Some(&row.agreement.as_ref()?.lone_at_0))
        .spread("left out @final", |row| Some(&row.agreement.as_ref()?.lone_at_final))
        .under("similarity")
        .spread("initial", |row| row.similarity.as_ref()?.initial.as_ref())
        .spread("first round", |row| row.similarity.as_ref()?.first_round.as_ref())
        .spread("last round", |row| row.similarity.as_ref()?.last.as_ref())
        .note("Agreement@0: the share of questions on which all first answers are one option; Same-wrong: one option, and not the gold one. Left out are questions with one answer or none, such as those that MDAgents gives to one agent. Similarity: the mean cosine between the texts of a question's trajectories, averaged over the questions of a run.")
        .notes((wants_similarity && has_none).then_some(unmeasured))
        .unless_empty()
}

/// Those of a dataset, in the order of the recipe's methods.
pub(super) fn on_dataset<'a, 'b>(
    cells: &'b [CellOutcomes<'a>],
    dataset: &str,
) -> Vec<&'b CellOutcomes<'a>> {
    let cells = cells.iter();
    cells.filter(|cell| cell.dataset() == dataset).collect()
}

/// The questions of Figure 4, in the order of runs and questions.
pub fn cases(recipe: &Recipe, cells: &[CellOutcomes<'_>]) -> Vec<CaseRow> {
    let mut rows = Vec::new();
    for dataset in &recipe.dataset {
        let here = on_dataset(cells, &dataset.name);
        let Some(last) = here.last() else { continue };
        for (run, lines) in last.outcomes.graded.0.iter().enumerate() {
            for at in 0..lines.len() {
                let lines =
                    here.iter().map(|cell| cell.outcomes.graded.0.get(run)?.get(at).copied());
                let methods: Option<Vec<&ItemLine>> = lines.collect();
                let found = methods.filter(|methods| is_case(methods));
                rows.extend(found.map(|methods| case(&here, &methods)));
            }
        }
    }
    rows
}

/// Whether the last method alone is right, and the others give the same wrong answer.
fn is_case(methods: &[&ItemLine]) -> bool {
    let Some((last, others @ [first, ..])) = methods.split_last() else { return false };
    let wrong = first.says();
    last.correct() == Some(true)
        && others.iter().all(|other| other.says() == wrong)
        && !wrong.is_empty()
        && Some(wrong) != last.gold()
}

fn case(cells: &[&CellOutcomes<'_>], lines: &[&ItemLine]) -> CaseRow {
    let methods = cells.iter().zip(lines).map(|(cell, line)| {
        let rounds = line.answer().map_or(&[][..], |answer| &answer.rounds[..]);
        CaseMethod {
            method: cell.method().to_owned(),
            rounds: rounds.iter().map(|round| round.answers.clone()).collect(),
            answer: line.says().to_owned(),
        }
    });
    CaseRow {
        dataset: cells[0].dataset().to_owned(),
        item: lines[0].item().to_owned(),
        run: lines[0].run(),
        gold: lines[0].gold().unwrap_or_default().to_owned(),
        methods: methods.collect(),
    }
}

/// A row for each method of each case; `None` where the recipe looks for no cases.
pub fn case_table(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let told = match results.cases.len() {
        0 => "No question is such a case.".to_owned(),
        several => format!("{}.", count(several, "case")),
    };
    let cases = results.cases.iter();
    let rows = cases.flat_map(|case| case.methods.iter().map(move |method| (case, method)));
    let table = Table::of("cases", "Questions that the last method alone gets right", rows)
        .grouped_by(|(case, _)| {
            let dataset = dataset(recipe, &case.dataset);
            format!("{dataset} {}, run {}, gold {}", case.item, case.run, case.gold)
        })
        .text("method", |(_, one)| method(recipe, &one.method))
        .text("letters, round by round", |(_, one)| letters(&one.rounds))
        .text("answer", |(_, one)| &one.answer)
        .note(format!(
            "Questions on which every other method gives one and the same wrong answer and the last one the right one. {told}"
        ));
    recipe.analyses.contains(&Analysis::Cases).then(|| table.build())
}

/// Rounds apart by `/`; a missing letter as a dash.
fn letters(rounds: &[Vec<String>]) -> String {
    let shown = |letter: &String| if letter.is_empty() { "–".to_owned() } else { letter.clone() };
    rounds.iter().map(|round| round.iter().map(shown).join(" ")).join(" / ")
}

#[cfg(test)]
mod tests;
