//! Which letters were answered and which are gold: a model that prefers a place answers it more often than it is gold.

use std::collections::BTreeMap;

use super::percent;
use crate::analysis::table::Table;
use crate::record::AnswerLine;

/// `None` where no question has gold.
pub fn table<'a>(answers: impl IntoIterator<Item = &'a AnswerLine>) -> Option<Table> {
    // How often each letter is gold, answered, and answered rightly; those without an answer come last.
    let mut counts: BTreeMap<(bool, &str), [usize; 3]> = BTreeMap::new();
    for answer in answers {
        let Some(gold) = answer.gold.as_deref() else { continue };
        let said = answer.answer.as_str();
        counts.entry((gold.is_empty(), gold)).or_default()[0] += 1;
        let answered = counts.entry((said.is_empty(), said)).or_default();
        answered[1] += 1;
        answered[2] += usize::from(said == gold);
    }
    let all: usize = counts.values().map(|[gold, ..]| gold).sum();
    Table::of("positions", "Answers by position", &counts)
        .text("option", |((is_none, letter), _)| if *is_none { "no answer" } else { *letter })
        .number("gold", |(_, [gold, ..])| *gold)
        .number("answered", |(_, [_, answered, _])| *answered)
        .number("gold, %", |(_, [gold, ..])| percent(*gold, all))
        .number("answered, %", |(_, [_, answered, _])| percent(*answered, all))
        .number("right where it is gold, %", |(_, [gold, _, right])| percent(*right, *gold))
        .note("Over the graded questions of all runs. A panel that answers a letter much more often than it is gold chooses by its place and not by its text.")
        .unless_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::table::Cell;

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
        let table = table(&answers).unwrap();
        let shown: Vec<Vec<String>> =
            table.rows.iter().map(|row| row.cells[..3].iter().map(Cell::shown).collect()).collect();
        assert_eq!(shown, [["A", "1", "2"], ["B", "2", "0"], ["no answer", "0", "1"]]);
        assert_eq!(table.rows[0].cells[5], Cell::Number(100.0, 1));
        assert!(super::table(&answers[3..]).is_none());
    }
}
