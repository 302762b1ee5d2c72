//! A comparison as text: tables for people, a row a run for spreadsheets.

use std::io;

use super::compared_run::ComparedRun;
use super::flips::{Direction, Flip};
use super::{Comparison, RunPair};
use crate::analysis::metrics::cost::Spent;
use crate::analysis::table::{Cell, Column, Kind, Table};

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
        text += &format!("\n\n{}\n{}", self.accuracy().markdown(), self.cost().markdown());
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
        let names: Vec<&str> = names.map(|(name, _)| *name).collect();
        let cells = rows.iter().map(|fields| {
            let cells = fields.iter().map(|(_, cell)| cell.clone());
            cells.collect()
        });
        Table::new("comparison", "", Column::numbers(&names), cells).csv()
    }

    /// What a spreadsheet has of a run, each with its heading.
    fn fields(&self, row: &ComparedRun, pair: Option<&RunPair>) -> Vec<(&'static str, Cell)> {
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
            ("accuracy_per_run", list(accuracy.map_or(&[], |one| &one.per_run))),
            ("brier", number(calibration.map(|one| one.brier))),
            ("ece", number(calibration.map(|one| one.ece))),
            ("calls", spent(total, |one| one.calls)),
            ("prompt_tokens", spent(total, |one| one.prompt_tokens)),
            ("cached_tokens", spent(total, |one| one.cached_tokens)),
            ("completion_tokens", spent(total, |one| one.completion_tokens)),
            ("call_seconds", spent(total, |one| one.call_seconds)),
            ("calls_per_item", spent(per_item, |one| one.calls)),
            ("prompt_tokens_per_item", spent(per_item, |one| one.prompt_tokens)),
            ("completion_tokens_per_item", spent(per_item, |one| one.completion_tokens)),
            ("call_seconds_per_item", spent(per_item, |one| one.call_seconds)),
            ("completion_tokens_per_correct", spent(per_correct, |one| one.completion_tokens)),
            ("call_seconds_per_correct", spent(per_correct, |one| one.call_seconds)),
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
        let row = |row: &ComparedRun| {
            let figures = &row.figures;
            let calibration = figures.calibration.as_ref();
            let accuracy = figures.accuracy.as_ref();
            vec![
                Cell::text(&row.run),
                Cell::text(&row.system),
                accuracy.map_or(Cell::Missing("no gold"), |one| Cell::over_runs(Some(one))),
                figures.interval.map_or(Cell::Nothing, |one| {
                    Cell::text(format!("[{:.4}, {:.4}]", one.low, one.high))
                }),
                Cell::Count(figures.n_errors),
                Cell::share(calibration.map(|one| one.brier)),
                Cell::share(calibration.map(|one| one.ece)),
            ]
        };
        let columns = [
            Column::texts(&["run", "system"]),
            vec![Column::new("accuracy", Kind::Spread)],
            Column::numbers(&["95 % over questions", "errored", "Brier", "ECE"]),
        ];
        let rows = self.runs.iter().map(row);
        Table::new("accuracy", "Accuracy", columns.concat(), rows)
    }

    fn cost(&self) -> Table {
        let row = |run: &str, what: &str, spent: &Spent, digits: usize| {
            vec![
                Cell::text(format!("{run}, {what}")),
                Cell::Number(spent.calls, digits),
                Cell::Number(spent.prompt_tokens, digits),
                Cell::Number(spent.cached_tokens, digits),
                Cell::Number(spent.completion_tokens, digits),
                Cell::Number(spent.call_seconds, 2),
            ]
        };
        let mut rows = Vec::new();
        for ComparedRun { run, figures, .. } in &self.runs {
            let Some(cost) = &figures.cost else { continue };
            rows.push(row(run, "all", &cost.total, 0));
            rows.push(row(run, "an item", &cost.per_item, 1));
            let per_correct = cost.per_correct.iter();
            rows.extend(per_correct.map(|spent| row(run, "a right answer", spent, 1)));
        }
        let spent =
            ["calls", "prompt tokens", "of them cached", "completion tokens", "seconds of calls"];
        let columns = [Column::texts(&["run"]), Column::numbers(&spent)];
        Table::new("cost", "Cost", columns.concat(), rows)
    }
}

impl RunPair {
    fn flips_to(&self, direction: Direction) -> Vec<&Flip> {
        let flips = self.flips.iter();
        flips.filter(|flip| flip.direction == direction).collect()
    }
}

fn against(pair: &RunPair) -> String {
    let mut text = format!("\n## {} against {}\n\n", pair.other, pair.first);
    if let Some(difference) = &pair.difference {
        text += &format!("- accuracy, paired by question: {difference} (95 %)\n");
    }
    if !pair.mcnemar.is_empty() {
        let tests = pair.mcnemar.iter();
        let tests = tests.map(|test| {
            let (only_first, only_other) = (test.only_left, test.only_right);
            format!("p = {:.4} ({only_other} won, {only_first} lost)", test.p_value)
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
    for (direction, name) in
        [(Direction::RightToWrong, "right → wrong"), (Direction::WrongToRight, "wrong → right")]
    {
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
        vec![Cell::text(item), Cell::text(gold), Cell::text(runs.join(", "))]
    };
    let (answers, count) = (flips.len(), questions().count());
    let title = format!("{direction}: {answers} answers to {count} questions");
    let columns = Column::texts(&["question", "gold", "letters"]);
    Table::new("flips", title, columns, questions().map(row))
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
        let all = [flip("q1", 1, "B", "C"), flip("q1", 3, "B", ""), flip("q4", 1, "A", "D")];
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
