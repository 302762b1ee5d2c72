//! A comparison as text: tables for people, CSV with one row per run for spreadsheets.

use std::io;

use super::compared_run::ComparedRun;
use super::flips::{Direction, Flip};
use super::{Comparison, RunPair};
use crate::analysis::health;
use crate::analysis::table::{Cell, Table};
use crate::data::ItemKind;

/// A row of the spreadsheet: a run, and how the first compares with it.
#[derive(Clone, Copy)]
struct Line<'a> {
    run: &'a ComparedRun,
    pair: Option<&'a RunPair>,
}

impl Comparison {
    /// Markdown: the runs, what they cost, then the first against each other.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "{} runs on {}: {} {}, {} with gold",
            self.runs.len(),
            self.dataset,
            self.n_items,
            self.kind,
            self.n_graded
        );
        if self.n_left_out > 0 {
            text += &format!("; {} left out, which not every run has", self.n_left_out);
        }
        text += &format!("\n\n{}\n{}", self.accuracy().markdown(), self.cost().markdown());
        for pair in &self.pairs {
            text += &against(pair, self.kind);
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
    pub fn csv<'a>(&'a self) -> io::Result<String> {
        let list = |values: &[f64]| {
            let values: Vec<String> = values.iter().map(f64::to_string).collect();
            values.join(" ")
        };
        let accuracy = |row: Line<'a>| row.run.figures.accuracy.as_ref();
        let calibration = |row: Line<'a>| row.run.figures.calibration.as_ref();
        let interval = |row: Line<'_>| row.run.figures.interval;
        let health = |row: Line<'_>| row.run.figures.parse_health;
        let total = |row: Line<'_>| Some(row.run.figures.cost?.total);
        let per_item = |row: Line<'_>| Some(row.run.figures.cost?.per_item);
        let per_correct = |row: Line<'_>| row.run.figures.cost?.per_correct;
        let difference = |row: Line<'_>| row.pair?.difference;
        let flips = |row: Line<'_>, direction| Some(row.pair?.flips_to(direction).len());
        let pairs = std::iter::once(None).chain(self.pairs.iter().map(Some));
        let rows = self.runs.iter().zip(pairs).map(|(run, pair)| Line { run, pair });
        Table::of("comparison", "", rows)
            .text("run", |row| &row.run.run)
            .text("system", |row| &row.run.system)
            .number("runs", |row| row.run.figures.n_runs as usize)
            .number("errored", |row| row.run.figures.n_errors)
            .number("accuracy", |row| Some(accuracy(row)?.mean))
            .number("std", |row| accuracy(row)?.std)
            .number("low", |row| interval(row)?.low)
            .number("high", |row| interval(row)?.high)
            .number("read_ok", |row| Some(health(row)?.ok))
            .number("read_repaired", |row| Some(health(row)?.repaired))
            .number("read_fallback", |row| Some(health(row)?.fallback))
            .number("refused", |row| Some(health(row)?.refused))
            .number("unread", |row| Some(health(row)?.unread))
            .text("accuracy_per_run", |row| Some(list(&accuracy(row)?.per_run)))
            .number("brier", |row| Some(calibration(row)?.brier))
            .number("ece", |row| Some(calibration(row)?.ece))
            .number("calls", |row| Some(total(row)?.calls))
            .number("prompt_tokens", |row| Some(total(row)?.prompt_tokens))
            .number("cached_tokens", |row| Some(total(row)?.cached_tokens))
            .number("completion_tokens", |row| Some(total(row)?.completion_tokens))
            .number("call_seconds", |row| Some(total(row)?.call_seconds))
            .number("calls_per_item", |row| Some(per_item(row)?.calls))
            .number("prompt_tokens_per_item", |row| Some(per_item(row)?.prompt_tokens))
            .number("completion_tokens_per_item", |row| Some(per_item(row)?.completion_tokens))
            .number("call_seconds_per_item", |row| Some(per_item(row)?.call_seconds))
            .number("completion_tokens_per_correct", |row| {
                Some(per_correct(row)?.completion_tokens)
            })
            .number("call_seconds_per_correct", |row| Some(per_correct(row)?.call_seconds))
            .number("difference", |row| Some(difference(row)?.mean))
            .number("difference_low", |row| difference(row)?.low)
            .number("difference_high", |row| difference(row)?.high)
            .text("mcnemar_p_per_run", |row| {
                let tests = row.pair?.mcnemar.iter();
                Some(list(&tests.map(|test| test.p_value).collect::<Vec<_>>()))
            })
            .number("agreement", |row| Some(row.pair?.agreement.as_ref()?.mean))
            .number("right_to_wrong", |row| flips(row, Direction::RightToWrong))
            .number("wrong_to_right", |row| flips(row, Direction::WrongToRight))
            .text("dataset", |_| &self.dataset)
            .number("items", |_| self.n_items)
            .number("graded", |_| self.n_graded)
            .build()
            .csv()
    }

    fn accuracy<'a>(&'a self) -> Table {
        let calibration = |row: &'a ComparedRun| row.figures.calibration.as_ref();
        Table::of("accuracy", "Accuracy", &self.runs)
            .text("run", |row| &row.run)
            .text("system", |row| &row.system)
            .spread("accuracy", |row| {
                row.figures.accuracy.as_ref().map_or(Cell::Missing("no gold"), Cell::from)
            })
            .number(format!("95 % over {}", self.kind), |row| row.figures.interval.map(Cell::Ends))
            .replies(|row| row.figures.parse_health)
            .number("errored", |row| row.figures.n_errors)
            .number("Brier", |row| Some(calibration(row)?.brier))
            .number("ECE", |row| Some(calibration(row)?.ece))
            .note(health::NOTE)
            .notes(self.warnings())
            .notes(self.conditions.clone())
            .build()
    }

    fn cost(&self) -> Table {
        let mut rows = Vec::new();
        for ComparedRun { run, figures, .. } in &self.runs {
            let Some(cost) = figures.cost else { continue };
            let health = figures.parse_health;
            let mut row = |what, spent, digits| {
                rows.push((format!("{run}, {what}"), spent, digits, health));
            };
            row("all", cost.total, 0);
            row("an item", cost.per_item, 1);
            cost.per_correct.into_iter().for_each(|spent| row("a right answer", spent, 1));
        }
        Table::of("cost", "Cost", &rows)
            .text("run", |(label, ..)| label)
            .replies(|(.., health)| *health)
            .number("calls", |(_, spent, digits, _)| Cell::Number(spent.calls, *digits))
            .number("prompt tokens", |(_, spent, digits, _)| {
                Cell::Number(spent.prompt_tokens, *digits)
            })
            .number("of them cached", |(_, spent, digits, _)| {
                Cell::Number(spent.cached_tokens, *digits)
            })
            .number("completion tokens", |(_, spent, digits, _)| {
                Cell::Number(spent.completion_tokens, *digits)
            })
            .number("seconds of calls", |(_, spent, ..)| Cell::Number(spent.call_seconds, 2))
            .notes(self.warnings())
            .notes(self.conditions.clone())
            .build()
    }

    /// Runs of which too many replies could not be read.
    fn warnings(&self) -> Vec<String> {
        let runs = self.runs.iter();
        let of = runs.filter_map(|row| Some((row.run.clone(), row.figures.parse_health?)));
        health::warning(of).into_iter().collect()
    }
}

impl RunPair {
    fn flips_to(&self, direction: Direction) -> Vec<&Flip> {
        let flips = self.flips.iter();
        flips.filter(|flip| flip.direction == direction).collect()
    }
}

fn against(pair: &RunPair, kind: ItemKind) -> String {
    let (item, answer) = match kind {
        ItemKind::Questions => ("question", "option"),
        ItemKind::Notes => ("note", "flag"),
    };
    let mut text = format!("\n## {} against {}\n\n", pair.other, pair.first);
    if let Some(difference) = &pair.difference {
        text += &format!("- accuracy, paired by {item}: {difference} (95 %)\n");
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
        text += &format!("- the same {answer}: {agreement}\n");
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
        text += &format!("\n{}", flips(&pair.flips_to(direction), name, kind).markdown());
    }
    text
}

/// A row a question or a note, with the answers of every run in which it flips.
fn flips(flips: &[&Flip], direction: &str, kind: ItemKind) -> Table {
    let (item, answers) = match kind {
        ItemKind::Questions => ("question", "answers"),
        ItemKind::Notes => ("note", "flags"),
    };
    let items = || flips.chunk_by(|one, next| one.item == next.item);
    let title = format!("{direction}: {} answers to {} {kind}", flips.len(), items().count());
    Table::of("flips", title, items())
        .text(item, |flips| &flips[0].item)
        .text("gold", |flips| flips[0].gold.to_string())
        .text(answers, |flips| {
            let runs =
                flips.iter().map(|flip| format!("run {}: {} → {}", flip.run, flip.from, flip.to));
            runs.collect::<Vec<_>>().join(", ")
        })
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::comparison::flips::Said;
    use crate::analysis::metrics::bootstrap::Estimate;
    use crate::analysis::metrics::over_runs::OverRuns;

    fn flip(item: &str, run: u32, from: &str, to: &str) -> Flip {
        Flip {
            item: item.to_owned(),
            run,
            direction: Direction::RightToWrong,
            gold: said(from),
            from: said(from),
            to: said(to),
        }
    }

    fn said(answer: &str) -> Said {
        let option = ('A'..='D').zip(["iron", "zinc", "lead", "gold"]);
        let mut option = option.filter(|(letter, _)| answer == letter.to_string());
        let option = option.next().map(|(_, option)| option.to_owned());
        Said { answer: answer.to_owned(), option }
    }

    #[test]
    fn a_questions_flips_stand_in_one_row() {
        let all = [flip("q1", 1, "B", "C"), flip("q1", 3, "B", ""), flip("q4", 1, "A", "D")];
        let text = flips(&all.iter().collect::<Vec<_>>(), "lost", ItemKind::Questions).markdown();
        assert_eq!(
            text,
            "**lost: 3 answers to 2 questions**\n\n| question | gold | answers |\n| --- | --- | --- |\n\
             | q1 | B (zinc) | run 1: B (zinc) → C (lead), run 3: B (zinc) → none |\n\
             | q4 | A (iron) | run 1: A (iron) → D (gold) |\n"
        );
        let none = flips(&[], "won", ItemKind::Questions).markdown();
        assert!(none.contains("won: 0 answers to 0 questions"), "{none}");
    }

    #[test]
    fn of_notes_flags_are_compared() {
        let all = [flip("n1", 1, "1", "0"), flip("n1", 2, "1", ""), flip("n7", 1, "0", "1")];
        let text = flips(&all.iter().collect::<Vec<_>>(), "lost", ItemKind::Notes).markdown();
        assert_eq!(
            text,
            "**lost: 3 answers to 2 notes**\n\n| note | gold | flags |\n| --- | --- | --- |\n\
             | n1 | 1 | run 1: 1 → 0, run 2: 1 → none |\n| n7 | 0 | run 1: 0 → 1 |\n"
        );
        let pair = RunPair {
            first: "one".to_owned(),
            other: "two".to_owned(),
            n_runs: 2,
            difference: Some(Estimate {
                mean: -0.5,
                low: Some(-1.0),
                high: Some(0.0),
                exact: false,
                n_questions: 2,
                n_units: 2,
            }),
            mcnemar: Vec::new(),
            agreement: OverRuns::of(vec![0.5, 1.0]),
            plan: Vec::new(),
            flips: all.to_vec(),
        };
        let text = against(&pair, ItemKind::Notes);
        for line in [
            "- accuracy, paired by note: -0.5000 [-1.0000, +0.0000] (95 %)\n",
            "- the same flag: 0.7500 ",
            "**right → wrong: 3 answers to 2 notes**",
        ] {
            assert!(text.contains(line), "no {line:?} in {text}");
        }
        assert!(!text.contains("question") && !text.contains("option"), "{text}");
    }
}
