//! The tables of a recipe: its cells beside the paper's figures, what the analyses found, calibration and cost.

use crate::analysis::recipe::analysis::{CaseRow, CollapseRow, NetGainRow, PairedRow};
use crate::analysis::recipe::results::{CellResult, RecipeResults};
use crate::experiment::recipe::Recipe;
use crate::experiment::recipe::file::{Analysis, MethodEntry};
use crate::report::table::{Cell, Column, Kind, Row, Table};
use crate::report::tables::{calibration as reliability, costs};

/// Every table that has a row, each with the conditions of the runs under it.
pub fn all(recipe: &Recipe, results: &RecipeResults) -> Vec<Table> {
    let of_notes = super::notes::all(recipe, results);
    let mut tables = match of_notes.is_empty() {
        true => vec![accuracy(recipe, results)],
        false => of_notes,
    };
    tables.extend(net_gain(recipe, results));
    tables.extend(paired(recipe, results));
    tables.extend(collapse(recipe, results));
    tables.extend(cases(recipe, results));
    tables.extend(calibration(recipe, results));
    tables.extend(cost(recipe, results));
    for table in &mut tables {
        table.notes.extend(conditions(results));
    }
    tables
}

/// The tables that a recipe is run for: all but calibration and cost.
pub fn markdown(recipe: &Recipe, results: &RecipeResults) -> String {
    let mut text = format!("{}. {}\n\n", recipe.title, recipe.text);
    for table in all(recipe, results) {
        if !matches!(table.name, "calibration" | "cost") {
            text += &(table.markdown() + "\n");
        }
    }
    for line in &results.making {
        text += &format!("- {line}\n");
    }
    text
}

/// What must be said beside every table.
fn conditions(results: &RecipeResults) -> Vec<String> {
    let noise = "Synthetic weights: every answer is noise, and these figures mean nothing.";
    let conditions = (!results.conditions.is_empty()).then(|| results.conditions.clone());
    let noise = results.synthetic.then(|| noise.to_owned());
    conditions.into_iter().chain(noise).collect()
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
    let mut columns = vec![Column::new("method", Kind::Text)];
    let has_paper = |name: &String| recipe.method.iter().any(|one| one.paper.contains_key(name));
    for dataset in &recipe.dataset {
        columns.push(Column::under(&dataset.label, "ours", Kind::Spread));
        if has_paper(&dataset.name) {
            columns.push(Column::under(&dataset.label, "paper", Kind::Spread));
            columns.push(Column::under(&dataset.label, "ours − paper", Kind::Interval));
        }
    }
    let row = |method: &MethodEntry| {
        let mut cells = vec![Cell::text(&method.label)];
        for dataset in &recipe.dataset {
            let found = cell(results, &method.name, &dataset.name);
            let best = found.is_some_and(|found| is_best(found, results));
            cells.push(found.map_or(Cell::Nothing, |found| ours(found, best)));
            if has_paper(&dataset.name) {
                cells.extend(paper(found));
            }
        }
        Row { group: method.group.clone(), cells }
    };
    let mut notes = vec![
        "Mean ± sample standard deviation over n runs; best of a column in bold. The difference has the interval of ours over the questions, 95 % by bootstrap of questions; the paper's own spread is not in it.".to_owned(),
    ];
    for found in results.cells.iter().filter(|cell| cell.n_errors > 0) {
        let (method, dataset) = (method(recipe, &found.method), dataset(recipe, &found.dataset));
        notes
            .push(format!("{method} on {dataset}: {} failed, and count as wrong.", found.n_errors));
    }
    Table {
        name: "accuracy",
        title: "Accuracy".to_owned(),
        columns,
        rows: recipe.method.iter().map(row).collect(),
        notes,
    }
}

fn ours(cell: &CellResult, best: bool) -> Cell {
    let Some(mean) = cell.mean else {
        return Cell::text("no gold");
    };
    Cell::Spread { mean, std: cell.std, n: Some(cell.n_runs as usize), best }
}

/// The paper's figure, and ours less it.
fn paper(cell: Option<&CellResult>) -> [Cell; 2] {
    let Some([mean, std]) = cell.and_then(|cell| cell.paper) else {
        return [Cell::Nothing, Cell::Nothing];
    };
    let difference = cell.and_then(|cell| cell.interval).map(|ours| Cell::Interval {
        mean: ours.mean - mean,
        low: ours.low - mean,
        high: ours.high - mean,
    });
    let paper = Cell::Spread { mean, std: Some(std), n: None, best: false };
    [paper, difference.unwrap_or(Cell::Nothing)]
}

/// Whether no method does better on the dataset; methods that tie for best all do.
fn is_best(cell: &CellResult, results: &RecipeResults) -> bool {
    let others = || results.cells.iter().filter(|other| other.dataset == cell.dataset);
    cell.mean.is_some() && others().count() > 1 && others().all(|other| other.mean <= cell.mean)
}

fn interval([mean, low, high]: [f64; 3]) -> Cell {
    Cell::Interval { mean, low, high }
}

fn mean(values: &[f64]) -> Cell {
    let n = values.len() as f64;
    Cell::share((n > 0.0).then(|| values.iter().sum::<f64>() / n))
}

fn net_gain(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let row = |row: &NetGainRow| Row {
        group: dataset(recipe, &row.dataset).to_owned(),
        cells: vec![
            Cell::text(method(recipe, &row.method)),
            Cell::estimate(&row.estimate),
            mean(&row.wrong_to_right),
            mean(&row.right_to_wrong),
            row.paper.map_or(Cell::Nothing, interval),
        ],
    };
    Table {
        name: "netgain",
        title: "NetGain from Round 0 to the final answer".to_owned(),
        columns: vec![
            Column::new("method", Kind::Text),
            Column::new("ours", Kind::Interval),
            Column::new("wrong → right", Kind::Number),
            Column::new("right → wrong", Kind::Number),
            Column::new("paper", Kind::Interval),
        ],
        rows: results.netgain.iter().map(row).collect(),
        notes: vec![
            "Flips as shares of all questions; their difference is the NetGain, with its 95 % interval by bootstrap of questions over the means of the runs.".to_owned(),
        ],
    }
    .unless_empty()
}

/// Why two methods are compared, in words.
fn comparison(name: &str) -> &str {
    match name {
        "best" => "best other multi-agent system",
        "unified" => "one single-LLM baseline for all datasets",
        "first" => "first of the recipe against the others",
        other => other,
    }
}

fn paired(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let row = |row: &PairedRow| {
        let tests = row.mcnemar.iter();
        let p_values: Vec<String> = tests.map(|test| format!("{:.3}", test.p_value)).collect();
        let against = row.paper.as_ref().map(|(baseline, _)| method(recipe, baseline));
        Row {
            group: format!("{}: {}", dataset(recipe, &row.dataset), comparison(&row.comparison)),
            cells: vec![
                Cell::text(method(recipe, &row.method)),
                Cell::text(method(recipe, &row.baseline)),
                Cell::estimate(&row.difference),
                Cell::text(p_values.join(", ")),
                against.map_or(Cell::Nothing, Cell::text),
                row.paper.as_ref().map_or(Cell::Nothing, |(_, paper)| interval(*paper)),
            ],
        }
    };
    Table {
        name: "paired",
        title: "Differences, paired by question".to_owned(),
        columns: vec![
            Column::new("method", Kind::Text),
            Column::new("less", Kind::Text),
            Column::new("difference", Kind::Interval),
            Column::new("exact McNemar p, by run", Kind::Text),
            Column::under("paper", "against", Kind::Text),
            Column::under("paper", "difference", Kind::Interval),
        ],
        rows: results.paired.iter().map(row).collect(),
        notes: vec![
            "Each question's correctness is averaged over the runs of either method; 95 % percentile intervals over 10 000 resamples of the questions.".to_owned(),
        ],
    }
    .unless_empty()
}

fn collapse(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let row = |row: &CollapseRow| {
        let agreement = row.agreement.as_ref();
        let similarity = row.similarity.as_ref();
        Row {
            group: dataset(recipe, &row.dataset).to_owned(),
            cells: vec![
                Cell::text(method(recipe, &row.method)),
                Cell::over_runs(agreement.map(|one| &one.agreement_at_0)),
                Cell::over_runs(agreement.map(|one| &one.same_wrong_at_0)),
                Cell::over_runs(agreement.map(|one| &one.same_wrong_at_final)),
                Cell::over_runs(similarity.and_then(|one| one.initial.as_ref())),
                Cell::over_runs(similarity.and_then(|one| one.first_round.as_ref())),
                Cell::over_runs(similarity.and_then(|one| one.last.as_ref())),
            ],
        }
    };
    let spread = |over: &str, label: &str| Column::under(over, label, Kind::Spread);
    let mut notes = vec![
        "Agreement@0: the share of questions on which all first answers are one option; Same-wrong: one option, and not the gold one. Similarity: the mean cosine between the texts of a question's trajectories, averaged over the questions of a run.".to_owned(),
    ];
    let asks = |analysis| recipe.analyses.contains(&analysis);
    let wants_similarity = asks(Analysis::SimilarityInitial) || asks(Analysis::SimilarityRounds);
    if wants_similarity && results.collapse.iter().all(|row| row.similarity.is_none()) {
        notes.push("No encoder was given, so similarity was not measured.".to_owned());
    }
    Table {
        name: "collapse",
        title: "How alike trajectories are".to_owned(),
        columns: vec![
            Column::new("method", Kind::Text),
            spread("correlated errors", "Agreement@0"),
            spread("correlated errors", "Same-wrong@0"),
            spread("correlated errors", "Same-wrong@final"),
            spread("similarity", "initial"),
            spread("similarity", "first round"),
            spread("similarity", "last round"),
        ],
        rows: results.collapse.iter().map(row).collect(),
        notes,
    }
    .unless_empty()
}

/// A row for each method of each case; `None` where the recipe looks for no cases.
fn cases(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    if !recipe.analyses.contains(&Analysis::Cases) {
        return None;
    }
    let rows = |case: &CaseRow| {
        let group = format!(
            "{} {}, run {}, gold {}",
            dataset(recipe, &case.dataset),
            case.item,
            case.run,
            case.gold
        );
        let rows = case.methods.iter().map(move |one| Row {
            group: group.clone(),
            cells: vec![
                Cell::text(method(recipe, &one.method)),
                Cell::text(letters(&one.rounds)),
                Cell::text(&one.answer),
            ],
        });
        rows.collect::<Vec<_>>()
    };
    let count = match results.cases.len() {
        0 => "No question is such a case.".to_owned(),
        1 => "1 case.".to_owned(),
        count => format!("{count} cases."),
    };
    Some(Table {
        name: "cases",
        title: "Questions that the last method alone gets right".to_owned(),
        columns: vec![
            Column::new("method", Kind::Text),
            Column::new("letters, round by round", Kind::Text),
            Column::new("answer", Kind::Text),
        ],
        rows: results.cases.iter().flat_map(rows).collect(),
        notes: vec![format!(
            "Questions on which every other method gives one and the same wrong answer and the last one the right one. {count}"
        )],
    })
}

/// Rounds apart by `/`; a missing letter as a dash.
pub fn letters(rounds: &[Vec<String>]) -> String {
    let shown = |letter: &String| match letter.as_str() {
        "" => "–".to_owned(),
        letter => letter.to_owned(),
    };
    let round = |round: &Vec<String>| round.iter().map(shown).collect::<Vec<_>>().join(" ");
    rounds.iter().map(round).collect::<Vec<_>>().join(" / ")
}

fn calibration(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let rows: Vec<_> = by_dataset(recipe, results, |cell| cell.calibration.as_ref());
    (!rows.is_empty()).then(|| reliability::table(&rows))
}

fn cost(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let rows: Vec<_> = by_dataset(recipe, results, |cell| cell.cost.as_ref());
    (!rows.is_empty()).then(|| costs::table(&rows))
}

/// What cells have of a thing, under the dataset's label with the method's.
fn by_dataset<'a, T>(
    recipe: &Recipe,
    results: &'a RecipeResults,
    of: impl Fn(&'a CellResult) -> Option<&'a T>,
) -> Vec<(String, String, &'a T)> {
    let cells = results.cells.iter().filter_map(|cell| {
        let (dataset, method) = (dataset(recipe, &cell.dataset), method(recipe, &cell.method));
        Some((dataset.to_owned(), method.to_owned(), of(cell)?))
    });
    cells.collect()
}
