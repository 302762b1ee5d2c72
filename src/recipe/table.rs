//! A recipe's results as text: rows of methods, columns of datasets, the paper's figures beside ours.

use super::file::{Analysis, Recipe};
use super::results::{CellResult, RecipeResults};

/// Markdown: the cells, then what the analyses found, then how it was made.
pub fn markdown(recipe: &Recipe, results: &RecipeResults) -> String {
    let mut text = format!("{}. {}\n\n", recipe.title, recipe.text);
    text += &accuracies(recipe, results);
    text += &net_gains(results);
    text += &paired(results);
    text += &collapse(results);
    if recipe.analyses.contains(&Analysis::Cases) {
        text += &cases(results);
    }
    text += "\n";
    for line in &results.making {
        text += &format!("- {line}\n");
    }
    if results.synthetic {
        text += "- synthetic weights answer noise: these figures mean nothing\n";
    }
    text
}

/// Ours as mean ± standard deviation over the runs; the paper's; ours less the paper's, with the interval of ours over the questions.
fn accuracies(recipe: &Recipe, results: &RecipeResults) -> String {
    let mut text = "| method |".to_owned();
    for dataset in &recipe.dataset {
        text += &format!(
            " {} | paper | difference (95 % over our questions) |",
            dataset.label
        );
    }
    text += "\n| --- |";
    text += &" ---: | ---: | ---: |".repeat(recipe.dataset.len());
    text += "\n";
    let mut group = "";
    for method in &recipe.method {
        if method.group != group {
            group = &method.group;
            text += &format!("| *{group}* |{}\n", " | | |".repeat(recipe.dataset.len()));
        }
        text += &format!("| {} |", method.label);
        for dataset in &recipe.dataset {
            let cell = results
                .cells
                .iter()
                .find(|cell| (&cell.method, &cell.dataset) == (&method.name, &dataset.name));
            text += &cell.map_or(" – | – | – |".to_owned(), |cell| {
                columns(cell, is_best(cell, results))
            });
        }
        text += "\n";
    }
    text
}

fn columns(cell: &CellResult, is_best: bool) -> String {
    let ours = match (cell.mean, cell.std) {
        (None, _) => "no gold".to_owned(),
        (Some(mean), None) => format!("{mean:.4} (n = 1)"),
        (Some(mean), Some(std)) => format!("{mean:.4} ± {std:.4} (n = {})", cell.n_runs),
    };
    let ours = match is_best {
        true => format!("**{ours}**"),
        false => ours,
    };
    let errors = match cell.n_errors {
        0 => String::new(),
        errors => format!(", {errors} errored"),
    };
    let paper = cell.paper.map_or("–".to_owned(), |[mean, std]| {
        format!("{mean:.4} ± {std:.4}")
    });
    let difference = match (cell.paper, &cell.interval) {
        (Some([paper, _]), Some(ours)) => format!(
            "{:+.4} [{:+.4}, {:+.4}]",
            ours.mean - paper,
            ours.low - paper,
            ours.high - paper
        ),
        _ => "–".to_owned(),
    };
    format!(" {ours}{errors} | {paper} | {difference} |")
}

/// Whether no method does better on the dataset; methods that tie for best all do.
fn is_best(cell: &CellResult, results: &RecipeResults) -> bool {
    let others = || {
        results
            .cells
            .iter()
            .filter(|other| other.dataset == cell.dataset)
    };
    cell.mean.is_some() && others().count() > 1 && others().all(|other| other.mean <= cell.mean)
}

fn net_gains(results: &RecipeResults) -> String {
    if results.netgain.is_empty() {
        return String::new();
    }
    let mut text = "\n| NetGain, Round 0 → final | dataset | ours (95 %) | wrong→right, right→wrong | paper |\n| --- | --- | ---: | ---: | ---: |\n".to_owned();
    for row in &results.netgain {
        let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len() as f64;
        text += &format!(
            "| {} | {} | {} | {:.4}, {:.4} | {} |\n",
            row.method,
            row.dataset,
            row.estimate,
            mean(&row.wrong_to_right),
            mean(&row.right_to_wrong),
            row.paper.map_or("–".to_owned(), interval),
        );
    }
    text
}

fn paired(results: &RecipeResults) -> String {
    if results.paired.is_empty() {
        return String::new();
    }
    let mut text = "\n| paired by question | dataset | difference (95 %) | exact McNemar p, by run | paper |\n| --- | --- | ---: | ---: | ---: |\n".to_owned();
    for row in &results.paired {
        let p_values: Vec<String> = row
            .mcnemar
            .iter()
            .map(|test| format!("{:.3}", test.p_value))
            .collect();
        let paper = row
            .paper
            .as_ref()
            .map_or("–".to_owned(), |(baseline, difference)| {
                format!("{} against {baseline}", interval(*difference))
            });
        text += &format!(
            "| {} less {} ({}) | {} | {} | {} | {paper} |\n",
            row.method,
            row.baseline,
            row.comparison,
            row.dataset,
            row.difference,
            p_values.join(", "),
        );
    }
    text
}

fn collapse(results: &RecipeResults) -> String {
    if results.collapse.is_empty() {
        return String::new();
    }
    let mut text = "\n| trajectories | dataset | Agreement@0 | Same-wrong@0 | Same-wrong@final | similarity: initial | first round | last |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n".to_owned();
    let shown = |figure: Option<String>| figure.unwrap_or("–".to_owned());
    for row in &results.collapse {
        let agreement = row.agreement.as_ref();
        let similarity = row.similarity.as_ref();
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
            row.method,
            row.dataset,
            shown(agreement.map(|one| one.agreement_at_0.to_string())),
            shown(agreement.map(|one| one.same_wrong_at_0.to_string())),
            shown(agreement.map(|one| one.same_wrong_at_final.to_string())),
            shown(
                similarity
                    .and_then(|one| one.initial.as_ref())
                    .map(ToString::to_string)
            ),
            shown(
                similarity
                    .and_then(|one| one.first_round.as_ref())
                    .map(ToString::to_string)
            ),
            shown(
                similarity
                    .and_then(|one| one.last.as_ref())
                    .map(ToString::to_string)
            ),
        );
    }
    text
}

fn cases(results: &RecipeResults) -> String {
    let mut text = format!("\n{} cases\n", results.cases.len());
    for case in &results.cases {
        text += &format!("\n{} (run {}, gold {}):\n", case.item, case.run, case.gold);
        for method in &case.methods {
            let rounds: Vec<String> = method.rounds.iter().map(|round| round.join(" ")).collect();
            text += &format!(
                "  {}: {} → {}\n",
                method.method,
                rounds.join(" / "),
                method.answer
            );
        }
    }
    text
}

fn interval([mean, low, high]: [f64; 3]) -> String {
    format!("{mean:+.4} [{low:+.4}, {high:+.4}]")
}
