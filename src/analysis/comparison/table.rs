//! A comparison as text: tables for people, a row a run for spreadsheets.

use serde::Serialize;

use super::flips::{Direction, Flip};
use super::row::Row;
use super::{Comparison, Pair};
use crate::analysis::metrics::cost::Spent;
use crate::bench::output;

impl Comparison {
    /// Markdown: the runs, what they cost, then the first against each other.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "{} runs on {}: {} questions, {} with gold",
            self.runs.len(),
            self.dataset,
            self.n_questions,
            self.n_graded
        );
        if self.n_left_out > 0 {
            text += &format!("; {} left out, which not every run has", self.n_left_out);
        }
        text += "\n\n| run | system | accuracy | 95 % over questions | errored | Brier | ECE |\n";
        text += "| --- | --- | ---: | ---: | ---: | ---: | ---: |\n";
        for row in &self.runs {
            text += &accuracy(row);
        }
        text += "\n| cost | calls | prompt tokens | of them cached | completion tokens | seconds of calls |\n";
        text += "| --- | ---: | ---: | ---: | ---: | ---: |\n";
        for row in &self.runs {
            text += &cost(row);
        }
        for pair in &self.pairs {
            text += &against(pair);
        }
        text += "\nHow they were made:\n\n";
        for row in &self.runs {
            text += &format!("- {}\n", row.run);
            for line in &row.making {
                text += &format!("  - {line}\n");
            }
        }
        if self.synthetic {
            text += "- synthetic weights answer noise: these figures mean nothing\n";
        }
        text
    }

    /// A line a run; what stands against the first is empty in its own.
    ///
    /// # Errors
    /// Never, unless a figure cannot be written.
    pub fn csv(&self) -> std::io::Result<String> {
        #[derive(Serialize)]
        struct Lines<'a> {
            runs: Vec<Line<'a>>,
            dataset: &'a str,
            questions: usize,
            graded: usize,
        }
        let pairs = self.pairs.iter().map(Some);
        let pairs = std::iter::once(None).chain(pairs);
        let lines = Lines {
            runs: self
                .runs
                .iter()
                .zip(pairs)
                .map(|(row, pair)| Line::of(row, pair))
                .collect(),
            dataset: &self.dataset,
            questions: self.n_questions,
            graded: self.n_graded,
        };
        output::csv(&lines, "runs")
    }
}

/// Flat, so that every line has every column.
#[derive(Serialize)]
struct Line<'a> {
    run: &'a str,
    system: &'a str,
    runs: u32,
    errored: usize,
    accuracy: Option<f64>,
    std: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    accuracy_per_run: &'a [f64],
    brier: Option<f64>,
    ece: Option<f64>,
    calls: Option<f64>,
    prompt_tokens: Option<f64>,
    cached_tokens: Option<f64>,
    completion_tokens: Option<f64>,
    call_seconds: Option<f64>,
    calls_per_item: Option<f64>,
    prompt_tokens_per_item: Option<f64>,
    completion_tokens_per_item: Option<f64>,
    call_seconds_per_item: Option<f64>,
    completion_tokens_per_correct: Option<f64>,
    call_seconds_per_correct: Option<f64>,
    difference: Option<f64>,
    difference_low: Option<f64>,
    difference_high: Option<f64>,
    mcnemar_p_per_run: Vec<f64>,
    agreement: Option<f64>,
    right_to_wrong: Option<usize>,
    wrong_to_right: Option<usize>,
}

impl<'a> Line<'a> {
    fn of(row: &'a Row, pair: Option<&Pair>) -> Line<'a> {
        let total = row.figures.cost.as_ref().map(|cost| cost.total);
        let per_item = row.figures.cost.as_ref().map(|cost| cost.per_item);
        let per_correct = row.figures.cost.as_ref().and_then(|cost| cost.per_correct);
        let of = |spent: Option<Spent>, field: fn(Spent) -> f64| spent.map(field);
        let difference = pair.and_then(|pair| pair.difference);
        let flips = |direction| {
            let flips = pair.map(|pair| pair.flips.iter());
            flips.map(|flips| flips.filter(|flip| flip.direction == direction).count())
        };
        Line {
            run: &row.run,
            system: &row.system,
            runs: row.figures.n_runs,
            errored: row.figures.n_errors,
            accuracy: row.figures.accuracy.as_ref().map(|one| one.mean),
            std: row.figures.accuracy.as_ref().and_then(|one| one.std),
            low: row.figures.interval.map(|one| one.low),
            high: row.figures.interval.map(|one| one.high),
            accuracy_per_run: row
                .figures
                .accuracy
                .as_ref()
                .map_or(&[], |one| &one.per_run),
            brier: row.figures.calibration.as_ref().map(|one| one.brier),
            ece: row.figures.calibration.as_ref().map(|one| one.ece),
            calls: of(total, |spent| spent.calls),
            prompt_tokens: of(total, |spent| spent.prompt_tokens),
            cached_tokens: of(total, |spent| spent.cached_tokens),
            completion_tokens: of(total, |spent| spent.completion_tokens),
            call_seconds: of(total, |spent| spent.call_seconds),
            calls_per_item: of(per_item, |spent| spent.calls),
            prompt_tokens_per_item: of(per_item, |spent| spent.prompt_tokens),
            completion_tokens_per_item: of(per_item, |spent| spent.completion_tokens),
            call_seconds_per_item: of(per_item, |spent| spent.call_seconds),
            completion_tokens_per_correct: of(per_correct, |spent| spent.completion_tokens),
            call_seconds_per_correct: of(per_correct, |spent| spent.call_seconds),
            difference: difference.map(|one| one.mean),
            difference_low: difference.map(|one| one.low),
            difference_high: difference.map(|one| one.high),
            mcnemar_p_per_run: pair.map_or(Vec::new(), |pair| {
                pair.mcnemar.iter().map(|test| test.p_value).collect()
            }),
            agreement: pair
                .and_then(|pair| pair.agreement.as_ref())
                .map(|one| one.mean),
            right_to_wrong: flips(Direction::RightToWrong),
            wrong_to_right: flips(Direction::WrongToRight),
        }
    }
}

fn accuracy(row: &Row) -> String {
    let shown = |figure: Option<String>| figure.unwrap_or_else(|| "–".to_owned());
    let calibration = row.figures.calibration.as_ref();
    format!(
        "| {} | {} | {} | {} | {} | {} | {} |\n",
        row.run,
        row.system,
        row.figures
            .accuracy
            .as_ref()
            .map_or_else(|| "no gold".to_owned(), ToString::to_string),
        shown(
            row.figures
                .interval
                .map(|one| format!("[{:.4}, {:.4}]", one.low, one.high))
        ),
        row.figures.n_errors,
        shown(calibration.map(|one| format!("{:.4}", one.brier))),
        shown(calibration.map(|one| format!("{:.4}", one.ece))),
    )
}

fn cost(row: &Row) -> String {
    let Some(cost) = &row.figures.cost else {
        return String::new();
    };
    let line = |what: &str, spent: &Spent, digits: usize| {
        let figures = [
            (spent.calls, digits),
            (spent.prompt_tokens, digits),
            (spent.cached_tokens, digits),
            (spent.completion_tokens, digits),
            (spent.call_seconds, 2),
        ];
        let figures = figures.map(|(figure, digits)| format!("{figure:.digits$}"));
        format!("| {}, {what} | {} |\n", row.run, figures.join(" | "))
    };
    let mut text = line("all", &cost.total, 0);
    text += &line("an item", &cost.per_item, 1);
    if let Some(spent) = &cost.per_correct {
        text += &line("a right answer", spent, 1);
    }
    text
}

fn against(pair: &Pair) -> String {
    let mut text = format!("\n## {} against {}\n\n", pair.other, pair.first);
    if let Some(difference) = &pair.difference {
        text += &format!("- accuracy, paired by question: {difference} (95 %)\n");
    }
    if !pair.mcnemar.is_empty() {
        let tests = pair.mcnemar.iter();
        let tests = tests.map(|test| {
            let (only_first, only_other) = (test.only_left, test.only_right);
            format!(
                "p = {:.4} ({only_other} won, {only_first} lost)",
                test.p_value
            )
        });
        let tests: Vec<String> = tests.collect();
        text += &format!("- exact McNemar, by run: {}\n", tests.join(", "));
    }
    if let Some(agreement) = &pair.agreement {
        text += &format!("- the same option: {agreement}\n");
    }
    if pair.plan.is_empty() {
        text += "- their plans do not differ\n";
    }
    for field in &pair.plan {
        text += &format!("- plan: {field}\n");
    }
    for (direction, title) in [
        (Direction::RightToWrong, "right → wrong"),
        (Direction::WrongToRight, "wrong → right"),
    ] {
        text += &flips(&pair.flips, direction, title);
    }
    text
}

/// A row a question, with the letters of every run in which it flips.
fn flips(flips: &[Flip], direction: Direction, title: &str) -> String {
    let flips = flips.iter().filter(|flip| flip.direction == direction);
    let flips: Vec<&Flip> = flips.collect();
    let questions: Vec<&[&Flip]> = flips.chunk_by(|one, next| one.item == next.item).collect();
    let mut text = format!(
        "\n| {title}: {} answers to {} questions | gold | letters |\n| --- | --- | --- |\n",
        flips.len(),
        questions.len()
    );
    let letter = |answer: &str| match answer {
        "" => "none".to_owned(),
        letter => letter.to_owned(),
    };
    for question in questions {
        let runs = question.iter().map(|flip| {
            let (from, to) = (letter(&flip.from), letter(&flip.to));
            format!("run {}: {from} → {to}", flip.run)
        });
        let runs: Vec<String> = runs.collect();
        let Flip { item, gold, .. } = question[0];
        text += &format!("| {item} | {gold} | {} |\n", runs.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flip(item: &str, run: u32, from: &str, to: &str) -> Flip {
        Flip {
            item: item.to_owned(),
            run,
            direction: Direction::RightToWrong,
            gold: from.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
        }
    }

    #[test]
    fn a_questions_flips_stand_in_one_row() {
        let all = [
            flip("q1", 1, "B", "C"),
            flip("q1", 3, "B", ""),
            flip("q4", 1, "A", "D"),
        ];
        let text = flips(&all, Direction::RightToWrong, "lost");
        assert_eq!(
            text,
            "\n| lost: 3 answers to 2 questions | gold | letters |\n| --- | --- | --- |\n\
             | q1 | B | run 1: B → C, run 3: B → none |\n| q4 | A | run 1: A → D |\n"
        );
        let none = flips(&all, Direction::WrongToRight, "won");
        assert!(none.contains("won: 0 answers to 0 questions"), "{none}");
    }
}
