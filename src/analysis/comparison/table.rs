//! A comparison as text: tables for people, a row a run for spreadsheets.

use std::io;

use super::flips::{Direction, Flip};
use super::row::Row;
use super::{Comparison, Pair};
use crate::analysis::metrics::cost::Spent;
use crate::analysis::table::{self, Cell, Column, Kind, Table};

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
        text += &format!(
            "\n\n{}\n{}",
            self.accuracy().markdown(),
            self.cost().markdown()
        );
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
    pub fn csv(&self) -> io::Result<String> {
        let pairs = std::iter::once(None).chain(self.pairs.iter().map(Some));
        let runs = self.runs.iter().zip(pairs);
        let rows: Vec<_> = runs.map(|(row, pair)| self.fields(row, pair)).collect();
        let names = rows.first().into_iter().flatten();
        let table = Table {
            name: "comparison",
            title: String::new(),
            columns: names
                .map(|(name, _)| Column::new(*name, Kind::Number))
                .collect(),
            rows: rows
                .into_iter()
                .map(|fields| table::Row::new(fields.into_iter().map(|(_, cell)| cell).collect()))
                .collect(),
            notes: Vec::new(),
        };
        table.csv()
    }

    /// What a spreadsheet has of a run, each with its heading.
    fn fields(&self, row: &Row, pair: Option<&Pair>) -> Vec<(&'static str, Cell)> {
        let number =
            |value: Option<f64>| value.map_or(Cell::Nothing, |value| Cell::Number(value, 4));
        let count = |value: Option<usize>| value.map_or(Cell::Nothing, Cell::Count);
        let list = |values: &[f64]| {
            let values: Vec<String> = values.iter().map(f64::to_string).collect();
            Cell::text(values.join(" "))
        };
        let figures = &row.figures;
        let accuracy = figures.accuracy.as_ref();
        let calibration = figures.calibration.as_ref();
        let total = figures.cost.map(|cost| cost.total);
        let per_item = figures.cost.map(|cost| cost.per_item);
        let per_correct = figures.cost.and_then(|cost| cost.per_correct);
        let spent = |spent: Option<Spent>, field: fn(Spent) -> f64| number(spent.map(field));
        let difference = pair.and_then(|pair| pair.difference);
        let p_values = pair.into_iter().flat_map(|pair| &pair.mcnemar);
        let p_values: Vec<f64> = p_values.map(|test| test.p_value).collect();
        let agreement = pair.and_then(|pair| pair.agreement.as_ref());
        let flips = |direction| count(pair.map(|pair| pair.flips_to(direction).len()));
        vec![
            ("run", Cell::text(&row.run)),
            ("system", Cell::text(&row.system)),
            ("runs", Cell::Count(figures.n_runs as usize)),
            ("errored", Cell::Count(figures.n_errors)),
            ("accuracy", number(accuracy.map(|one| one.mean))),
            ("std", number(accuracy.and_then(|one| one.std))),
            ("low", number(figures.interval.map(|one| one.low))),
            ("high", number(figures.interval.map(|one| one.high))),
            (
                "accuracy_per_run",
                list(accuracy.map_or(&[], |one| &one.per_run)),
            ),
            ("brier", number(calibration.map(|one| one.brier))),
            ("ece", number(calibration.map(|one| one.ece))),
            ("calls", spent(total, |one| one.calls)),
            ("prompt_tokens", spent(total, |one| one.prompt_tokens)),
            ("cached_tokens", spent(total, |one| one.cached_tokens)),
            (
                "completion_tokens",
                spent(total, |one| one.completion_tokens),
            ),
            ("call_seconds", spent(total, |one| one.call_seconds)),
            ("calls_per_item", spent(per_item, |one| one.calls)),
            (
                "prompt_tokens_per_item",
                spent(per_item, |one| one.prompt_tokens),
            ),
            (
                "completion_tokens_per_item",
                spent(per_item, |one| one.completion_tokens),
            ),
            (
                "call_seconds_per_item",
                spent(per_item, |one| one.call_seconds),
            ),
            (
                "completion_tokens_per_correct",
                spent(per_correct, |one| one.completion_tokens),
            ),
            (
                "call_seconds_per_correct",
                spent(per_correct, |one| one.call_seconds),
            ),
            ("difference", number(difference.map(|one| one.mean))),
            ("difference_low", number(difference.map(|one| one.low))),
            ("difference_high", number(difference.map(|one| one.high))),
            ("mcnemar_p_per_run", list(&p_values)),
            ("agreement", number(agreement.map(|one| one.mean))),
            ("right_to_wrong", flips(Direction::RightToWrong)),
            ("wrong_to_right", flips(Direction::WrongToRight)),
            ("dataset", Cell::text(&self.dataset)),
            ("questions", Cell::Count(self.n_questions)),
            ("graded", Cell::Count(self.n_graded)),
        ]
    }

    fn accuracy(&self) -> Table {
        let row = |row: &Row| {
            let figures = &row.figures;
            let calibration = figures.calibration.as_ref();
            let accuracy = figures.accuracy.as_ref();
            table::Row::new(vec![
                Cell::text(&row.run),
                Cell::text(&row.system),
                accuracy.map_or(Cell::Missing("no gold"), |one| Cell::over_runs(Some(one))),
                figures.interval.map_or(Cell::Nothing, |one| {
                    Cell::text(format!("[{:.4}, {:.4}]", one.low, one.high))
                }),
                Cell::Count(figures.n_errors),
                Cell::share(calibration.map(|one| one.brier)),
                Cell::share(calibration.map(|one| one.ece)),
            ])
        };
        Table {
            name: "accuracy",
            title: "Accuracy".to_owned(),
            columns: vec![
                Column::new("run", Kind::Text),
                Column::new("system", Kind::Text),
                Column::new("accuracy", Kind::Spread),
                Column::new("95 % over questions", Kind::Number),
                Column::new("errored", Kind::Number),
                Column::new("Brier", Kind::Number),
                Column::new("ECE", Kind::Number),
            ],
            rows: self.runs.iter().map(row).collect(),
            notes: Vec::new(),
        }
    }

    fn cost(&self) -> Table {
        let row = |run: &str, what: &str, spent: &Spent, digits: usize| {
            table::Row::new(vec![
                Cell::text(format!("{run}, {what}")),
                Cell::Number(spent.calls, digits),
                Cell::Number(spent.prompt_tokens, digits),
                Cell::Number(spent.cached_tokens, digits),
                Cell::Number(spent.completion_tokens, digits),
                Cell::Number(spent.call_seconds, 2),
            ])
        };
        let mut rows = Vec::new();
        for Row { run, figures, .. } in &self.runs {
            let Some(cost) = &figures.cost else { continue };
            rows.push(row(run, "all", &cost.total, 0));
            rows.push(row(run, "an item", &cost.per_item, 1));
            let per_correct = cost.per_correct.iter();
            rows.extend(per_correct.map(|spent| row(run, "a right answer", spent, 1)));
        }
        Table {
            name: "cost",
            title: "Cost".to_owned(),
            columns: vec![
                Column::new("run", Kind::Text),
                Column::new("calls", Kind::Number),
                Column::new("prompt tokens", Kind::Number),
                Column::new("of them cached", Kind::Number),
                Column::new("completion tokens", Kind::Number),
                Column::new("seconds of calls", Kind::Number),
            ],
            rows,
            notes: Vec::new(),
        }
    }
}

impl Pair {
    fn flips_to(&self, direction: Direction) -> Vec<&Flip> {
        let flips = self.flips.iter();
        flips.filter(|flip| flip.direction == direction).collect()
    }
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
    for (direction, name) in [
        (Direction::RightToWrong, "right → wrong"),
        (Direction::WrongToRight, "wrong → right"),
    ] {
        text += &format!("\n{}", flips(&pair.flips_to(direction), name).markdown());
    }
    text
}

/// A row a question, with the letters of every run in which it flips.
fn flips(flips: &[&Flip], direction: &str) -> Table {
    let questions = || flips.chunk_by(|one, next| one.item == next.item);
    let letter = |answer: &str| match answer {
        "" => "none".to_owned(),
        letter => letter.to_owned(),
    };
    let row = |question: &[&Flip]| {
        let runs = question.iter().map(|flip| {
            let (from, to) = (letter(&flip.from), letter(&flip.to));
            format!("run {}: {from} → {to}", flip.run)
        });
        let runs: Vec<String> = runs.collect();
        let Flip { item, gold, .. } = question[0];
        table::Row::new(vec![
            Cell::text(item),
            Cell::text(gold),
            Cell::text(runs.join(", ")),
        ])
    };
    Table {
        name: "flips",
        title: format!(
            "{direction}: {} answers to {} questions",
            flips.len(),
            questions().count()
        ),
        columns: vec![
            Column::new("question", Kind::Text),
            Column::new("gold", Kind::Text),
            Column::new("letters", Kind::Text),
        ],
        rows: questions().map(row).collect(),
        notes: Vec::new(),
    }
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
        let text = flips(&all.iter().collect::<Vec<_>>(), "lost").markdown();
        assert_eq!(
            text,
            "**lost: 3 answers to 2 questions**\n\n| question | gold | letters |\n| --- | --- | --- |\n\
             | q1 | B | run 1: B → C, run 3: B → none |\n| q4 | A | run 1: A → D |\n"
        );
        let none = flips(&[], "won").markdown();
        assert!(none.contains("won: 0 answers to 0 questions"), "{none}");
    }
}
