//! The tables of a recipe: its cells beside the paper's figures, what the analyses found, calibration and cost.

use itertools::Itertools;

use super::notes;
use super::results::{CellResult, RecipeResults};
use crate::analysis::health::NOTE;
use crate::analysis::metrics::bootstrap::RESAMPLES;
use crate::analysis::metrics::over_runs::{Spread, mean};
use crate::analysis::table::{Cell, Table};
use crate::analysis::tables::{Labelled, calibration_table, cost_table};
use crate::experiment::recipe::Recipe;
use crate::experiment::recipe::file::{Analysis, MethodEntry};
use crate::experiment::recipe::paper::PrintedTable;

/// Every table that has a row.
pub fn all(recipe: &Recipe, results: &RecipeResults) -> Vec<Table> {
    let of_notes = notes::all(recipe, results);
    let mut tables = if of_notes.is_empty() { vec![accuracy(recipe, results)] } else { of_notes };
    let calibrations = by_dataset(recipe, results, |cell| cell.calibration.as_ref());
    let costs = by_dataset(recipe, results, |cell| cell.cost.as_ref());
    let found = [
        net_gain(recipe, results),
        paired(recipe, results),
        budgets(recipe, results),
        collapse(recipe, results),
        cases(recipe, results),
        (!calibrations.is_empty()).then(|| calibration_table(&calibrations)),
        (!costs.is_empty()).then(|| cost_table(&costs)),
    ];
    tables.extend(found.into_iter().flatten());
    for printed in &recipe.printed {
        let beside = tables.iter().position(|table| table.name == printed.beside);
        let place = beside.map_or(tables.len(), |place| {
            let of_it = tables[place + 1..].iter().take_while(|table| table.name == PRINTED);
            place + 1 + of_it.count()
        });
        tables.insert(place, as_printed(printed));
    }
    tables
}

/// What holds of all our figures, and stands once beside the tables: warnings, how the runs were made, what «read» means.
pub fn remarks(results: &RecipeResults) -> Vec<String> {
    let noise = "Synthetic weights: every answer is noise, and these figures mean nothing.";
    let noise = results.synthetic.then(|| noise.to_owned());
    let said = results.warnings.iter().chain(&results.conditions).cloned();
    noise.into_iter().chain(said).chain([NOTE.to_owned()]).collect()
}

/// The name of tables that the paper prints.
pub const PRINTED: &str = "printed";

fn as_printed(printed: &PrintedTable) -> Table {
    let mut table = Table::of(PRINTED, &printed.title, &printed.rows);
    for (place, column) in printed.columns.iter().enumerate() {
        table = table.text(column, |row| row.get(place));
    }
    table.notes(printed.notes.iter().cloned()).build()
}

/// The tables that a recipe is run for: all but calibration and cost.
pub fn markdown(recipe: &Recipe, results: &RecipeResults) -> String {
    let stop = if recipe.title.ends_with(['?', '!']) { "" } else { "." };
    let mut text = format!("{}{stop} {}\n\n", recipe.title, recipe.text);
    for table in all(recipe, results) {
        if !matches!(table.name, "calibration" | "cost") {
            text += &(table.markdown() + "\n");
        }
    }
    for line in remarks(results).iter().chain(&results.making) {
        text += &format!("- {line}\n");
    }
    text
}

/// The label of a method; its name where the recipe does not have it.
pub fn method<'a>(recipe: &'a Recipe, name: &'a str) -> &'a str {
    let entry = recipe.method.iter().find(|method| method.name == name);
    entry.map_or(name, |method| &method.label)
}

/// The label of a dataset; its name where the recipe does not have it.
pub fn dataset<'a>(recipe: &'a Recipe, name: &'a str) -> &'a str {
    let entry = recipe.dataset.iter().find(|dataset| dataset.name == name);
    entry.map_or(name, |dataset| &dataset.label)
}

/// The cell of a method on a dataset, both by name.
pub fn cell<'a>(results: &'a RecipeResults, method: &str, dataset: &str) -> Option<&'a CellResult> {
    let mut cells = results.cells.iter();
    cells.find(|cell| cell.method == method && cell.dataset == dataset)
}

fn accuracy(recipe: &Recipe, results: &RecipeResults) -> Table {
    let failures = results.cells.iter().filter(|cell| cell.n_errors > 0).map(|found| {
        let (method, dataset) = (method(recipe, &found.method), dataset(recipe, &found.dataset));
        format!("{method} on {dataset}: {} failed, and count as wrong.", found.n_errors)
    });
    let mut table = Table::of("accuracy", "Accuracy", &recipe.method)
        .grouped_by(|method| method.group.clone())
        .text("method", |method| &method.label);
    for dataset in &recipe.dataset {
        let found = |method: &MethodEntry| cell(results, &method.name, &dataset.name);
        table = table.under(&dataset.label).spread("ours", |method| {
            found(method).map(|found| ours(found, is_best(found, results)))
        });
        if recipe.method.iter().any(|one| one.paper.contains_key(&dataset.name)) {
            table = table
                .spread("paper", |method| {
                    let [mean, std] = found(method)?.paper?;
                    Some(Spread { mean, std: Some(std), n: None })
                })
                .interval("ours − paper", |method| {
                    let found = found(method)?;
                    let ([paper, _], ours) = (found.paper?, found.interval?);
                    Some(Cell::Estimate(ours.less(paper)))
                });
        }
        table = table.replies(|method| found(method)?.parse_health);
    }
    let has_paper = recipe.method.iter().any(|one| !one.paper.is_empty());
    let of_paper = "The difference has the interval of ours over the questions, 95 % by bootstrap of questions; the paper's own spread is not in it.";
    table
        .note("Mean ± sample standard deviation over the runs; best of a column in bold.")
        .notes(has_paper.then(|| of_paper.to_owned()))
        .notes(failures)
        .build()
}

fn ours(cell: &CellResult, best: bool) -> Cell {
    cell.spread().map_or("no gold".into(), |spread| Cell::Spread(spread, best))
}

/// Whether no method does better on the dataset, once all have run; methods that tie for best all do.
fn is_best(cell: &CellResult, results: &RecipeResults) -> bool {
    let others = || results.cells.iter().filter(|other| other.dataset == cell.dataset);
    let is_whole = results.missing.is_empty();
    is_whole
        && cell.mean.is_some()
        && others().count() > 1
        && others().all(|other| other.mean <= cell.mean)
}

/// The mean of a rate over the runs that have it.
fn rate(by_run: &[Option<f64>]) -> Option<f64> {
    mean(&by_run.iter().flatten().copied().collect::<Vec<_>>())
}

fn net_gain(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let short = results.netgain.iter().filter_map(|row| {
        let n = row.conditional.as_ref()?.n_resamples;
        let (method, dataset) = (method(recipe, &row.method), dataset(recipe, &row.dataset));
        (n < RESAMPLES).then(|| format!("{method} on {dataset}: {n} of {RESAMPLES} resamples hold a question that was wrong at round 0 and one that was right; the others are left out of the first interval."))
    });
    Table::of("netgain", "NetGain from Round 0 to the final answer", &results.netgain)
        .grouped_by(|row| dataset(recipe, &row.dataset).to_owned())
        .text("method", |row| method(recipe, &row.method))
        .under("of those that could turn")
        .interval("ours", |row| row.conditional.as_ref().map(|one| &one.estimate))
        .interval("paper", |row| row.paper)
        .number("P(right at the end, wrong at 0)", |row| rate(&row.conditional.as_ref()?.wrong_to_right))
        .number("P(wrong at the end, right at 0)", |row| rate(&row.conditional.as_ref()?.right_to_wrong))
        .under("of all questions")
        .interval("ours", |row| &row.estimate)
        .number("wrong → right", |row| mean(&row.wrong_to_right))
        .number("right → wrong", |row| mean(&row.right_to_wrong))
        .note("Two readings of one name. Of those that could turn: the share of the questions wrong at round 0 that are right at the end, less the share of those right at round 0 that are wrong at the end, both means over the runs and both taken anew in each resample. Of all questions: the gain in accuracy, over the means of the runs. Intervals are 95 % by bootstrap of questions.")
        .notes(short)
        .unless_empty()
}

fn paired(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
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

/// Two rows a method: at as many calls, and at as many tokens.
fn budgets(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let rows = results.budgets.iter().flat_map(|row| {
        [("calls", &row.calls), ("tokens", &row.tokens)].map(|(paid, at)| (row, paid, at))
    });
    let rows: Vec<_> = rows.collect();
    Table::of("budget", "Independent samples at a debate's price", &rows)
        .grouped_by(|(row, ..)| dataset(recipe, &row.dataset).to_owned())
        .text("method", |(row, ..)| method(recipe, &row.method))
        .text("paid in", |(_, paid, _)| *paid)
        .number("samples", |(.., at)| at.samples)
        .number("accuracy", |(.., at)| at.accuracy)
        .interval("first method less it", |(.., at)| &at.difference)
        .number("of its samples too few", |(.., at)| at.n_exhausted)
        .note("Of each question as many of a method's samples, in their order, as cost no more than what the recipe's first method did with that question in the same run, one at the least; their vote. Tokens are those of prompts and completions, each prompt counted whole. Too few: questions, of all runs, that cost the first method more than all samples.")
        .unless_empty()
}

fn collapse(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
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

/// A row for each method of each case; `None` where the recipe looks for no cases.
fn cases(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let count = match results.cases.len() {
        0 => "No question is such a case.".to_owned(),
        1 => "1 case.".to_owned(),
        count => format!("{count} cases."),
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
            "Questions on which every other method gives one and the same wrong answer and the last one the right one. {count}"
        ));
    recipe.analyses.contains(&Analysis::Cases).then(|| table.build())
}

/// Rounds apart by `/`; a missing letter as a dash.
fn letters(rounds: &[Vec<String>]) -> String {
    let shown = |letter: &String| if letter.is_empty() { "–".to_owned() } else { letter.clone() };
    rounds.iter().map(|round| round.iter().map(shown).join(" ")).join(" / ")
}

/// What cells have of a thing, under the dataset's label with the method's.
fn by_dataset<'a, T>(
    recipe: &'a Recipe,
    results: &'a RecipeResults,
    of: impl Fn(&'a CellResult) -> Option<&'a T>,
) -> Vec<Labelled<'a, T>> {
    let labelled = |cell: &'a CellResult| {
        let (group, label) = (dataset(recipe, &cell.dataset), method(recipe, &cell.method));
        Some(Labelled { group, label, of: of(cell)?, health: cell.parse_health })
    };
    results.cells.iter().filter_map(labelled).collect()
}

#[cfg(test)]
mod tests;
