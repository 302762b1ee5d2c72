//! Which letters were answered and which are gold: a model that prefers a place answers it more often than it is gold.

use std::collections::BTreeMap;

use crate::analysis::table::{Cell, Table};
use crate::record::AnswerLine;

/// A letter over the graded questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Position {
    letter: String,
    gold: usize,
    answered: usize,
    right: usize,
}

/// The letters of the graded questions, and of those without an answer a row with an empty letter; `None` without any.
fn positions<'a>(answers: impl IntoIterator<Item = &'a AnswerLine>) -> Vec<Position> {
    let mut positions: BTreeMap<&str, Position> = BTreeMap::new();
    for answer in answers {
        let Some(gold) = answer.gold.as_deref() else { continue };
        positions.entry(gold).or_default().gold += 1;
        let answered = positions.entry(&answer.answer).or_default();
        answered.answered += 1;
        answered.right += usize::from(answer.answer == gold);
    }
    let mut positions: Vec<Position> = positions
        .into_iter()
        .map(|(letter, position)| Position { letter: letter.to_owned(), ..position })
        .collect();
    // Those without an answer come last.
    positions.sort_by_key(|position| position.letter.is_empty());
    positions
}

/// `None` where no question has gold.
pub fn table<'a>(answers: impl IntoIterator<Item = &'a AnswerLine>) -> Option<Table> {
    let positions = positions(answers);
    let all: usize = positions.iter().map(|position| position.gold).sum();
    if all == 0 {
        return None;
    }
    let share = |count: usize, of: usize| match of {
        0 => Cell::Nothing,
        _ => Cell::Number(100.0 * count as f64 / of as f64, 1),
    };
    let table = Table::of("positions", "Answers by position", &positions)
        .text("option", |row| match row.letter.as_str() {
            "" => "no answer",
            letter => letter,
        })
        .number("gold", |row| row.gold)
        .number("answered", |row| row.answered)
        .number("gold, %", |row| share(row.gold, all))
        .number("answered, %", |row| share(row.answered, all))
        .number("right where it is gold, %", |row| share(row.right, row.gold))
        .note("Over the graded questions of all runs. A panel that answers a letter much more often than it is gold chooses by its place and not by its text.")
        .build();
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(gold: Option<&str>, answer: &str) -> AnswerLine {
        AnswerLine {
            gold: gold.map(str::to_owned),
            answer: answer.to_owned(),
            ..AnswerLine::default()
        }
    }

    #[test]
    fn a_preferred_letter_shows() {
        let answers = [
            answer(Some("A"), "A"),
            answer(Some("B"), "A"),
            answer(Some("B"), ""),
            answer(None, "C"),
        ];
        let rows: Vec<_> = positions(&answers)
            .into_iter()
            .map(|row| (row.letter, row.gold, row.answered, row.right))
            .collect();
        let row = |letter: &str, gold, answered, right| (letter.to_owned(), gold, answered, right);
        assert_eq!(rows, [row("A", 1, 2, 1), row("B", 2, 0, 0), row("", 0, 1, 0)]);
        assert_eq!(table(&answers).unwrap().rows.len(), 3);
        assert!(table(&answers[3..]).is_none());
    }
}
