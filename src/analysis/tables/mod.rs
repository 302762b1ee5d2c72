//! Tables that runs and recipes share: cost, calibration, and all of notes.

pub mod correction;
pub mod debate;
pub mod notes;
mod search;

use std::collections::BTreeMap;

use super::health::{LABEL, ParseHealth};
use super::table::{Cell, Table, TableBuilder};
use crate::analysis::metrics::calibration::Calibration;
use crate::analysis::metrics::cost::{Cost, Spent};
use crate::record::AnswerLine;

/// What a row is of, and what it is called.
pub struct Labelled<'a, T> {
    /// The heading that it stands under; may be empty.
    pub group: &'a str,
    pub label: &'a str,
    pub of: &'a T,
    /// How the replies behind it were read.
    pub health: Option<ParseHealth>,
}

impl<R: Copy> TableBuilder<R> {
    /// How the replies behind a row were read: of every table of accuracies, and of what a run's page has beside them.
    pub fn replies(self, of: impl Fn(R) -> Option<ParseHealth>) -> Self {
        self.text(LABEL, |row| of(row).map(|health| health.to_string()))
    }
}

/// A share of a count, of which there may be none.
fn percent(count: usize, of: usize) -> Cell {
    if of == 0 { Cell::Nothing } else { Cell::Number(100.0 * count as f64 / of as f64, 1) }
}

/// The scores of each, then every bin: how many answers, their mean confidence, the share that is right.
pub fn calibration_table(rows: &[Labelled<'_, Calibration>]) -> Table {
    let mut table = Table::of("calibration", "Calibration of the team's confidence", rows)
        .grouped_by(|row| row.group.to_owned())
        .text("", |row| row.label)
        .replies(|row| row.health)
        .number("answers", |row| row.of.n)
        .number("expected calibration error", |row| row.of.ece)
        .number("Brier score", |row| row.of.brier);
    let short = |value: Option<f64>| value.map(|value| Cell::Number(value, 2));
    for (place, bin) in rows.first().into_iter().flat_map(|row| row.of.bins.iter().enumerate()) {
        table = table
            .under(format!("{:.1}–{:.1}", bin.low, bin.high))
            .number("n", |row| Some(row.of.bins.get(place)?.n))
            .number("confidence", |row| short(row.of.bins.get(place)?.confidence))
            .number("right", |row| short(row.of.bins.get(place)?.accuracy));
    }
    table
        .note("Answers by the confidence that the team states: how many, their mean confidence, and the share that is right. Items that errored state none. On notes an answer is whether there is an error, and its confidence that of detection: the arbiter's, else the mean of the agents who gave this answer; of `medreflex` the mean review of an accepted answer, divided by five. A bin holds confidences above its low end, up to and with its high end.")
        .build()
}

/// What a cost has of one price, where it has it.
type Price = fn(&Cost) -> Option<&Spent>;

pub fn cost_table(rows: &[Labelled<'_, Cost>]) -> Table {
    let mut table = Table::of("cost", "Cost", rows)
        .grouped_by(|row| row.group.to_owned())
        .text("", |row| row.label)
        .replies(|row| row.health)
        .number("items × runs", |row| row.of.n_items)
        .number("right", |row| row.of.n_correct);
    let spents: [(&str, Price); 2] = [
        ("per item", |cost| Some(&cost.per_item)),
        ("per right answer", |cost| cost.per_correct.as_ref()),
    ];
    for (over, of) in spents {
        let number = |row: &Labelled<'_, Cost>, part: fn(&Spent) -> f64, digits: usize| {
            of(row.of).map(|spent| Cell::Number(part(spent), digits))
        };
        table = table
            .under(over)
            .number("calls", |row| number(row, |spent| spent.calls, 2))
            .number("prompt tokens", |row| number(row, |spent| spent.prompt_tokens, 0))
            .number("cached", |row| number(row, |spent| spent.cached_tokens, 0))
            .number("completion tokens", |row| number(row, |spent| spent.completion_tokens, 0))
            .number("call seconds", |row| number(row, |spent| spent.call_seconds, 2));
    }
    table
        .note("Wrong answers are paid for by the right ones. Cached tokens are those of the prompt that the prefix index held. Seconds add up the calls, which overlap in time; a call that another cell made before is counted as that one took.")
        .build()
}

/// `None` where no question has gold.
pub fn position_table<'a>(answers: impl IntoIterator<Item = &'a AnswerLine>) -> Option<Table> {
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
    use crate::analysis::metrics::calibration::calibration;

    #[test]
    fn every_bin_is_listed() {
        let calibration = calibration(&[(0.9, true), (0.9, false), (0.3, false)], 10).unwrap();
        let table = calibration_table(&[Labelled {
            group: "",
            label: "A run",
            of: &calibration,
            health: None,
        }]);
        assert_eq!(table.columns.len(), 5 + 30);
        assert_eq!(table.rows[0].cells.len(), table.columns.len());
        let nines = table.columns.iter().position(|column| column.over == "0.8–0.9");
        let cells = &table.rows[0].cells[nines.unwrap()..];
        assert_eq!(cells[..3], [Cell::Count(2), Cell::Number(0.9, 2), Cell::Number(0.5, 2)]);
    }

    #[test]
    fn a_row_with_fewer_bins_than_the_first_has_empty_cells() {
        let [ten, five] = [10, 5].map(|bins| calibration(&[(0.9, true)], bins).unwrap());
        let row = |of| Labelled { group: "", label: "", of, health: None };
        let table = calibration_table(&[row(&ten), row(&five)]);
        assert_eq!(table.rows[1].cells.last(), Some(&Cell::Nothing));
    }
}

#[cfg(test)]
mod costs_tests {
    use super::*;
    use crate::experiment::fixtures::call;

    #[test]
    fn without_a_right_answer_there_is_no_price_of_one() {
        let cost = Cost::of(&vec![call("q1", 1, "sym"); 6], 3, 0).unwrap();
        let table = cost_table(&[Labelled { group: "", label: "A run", of: &cost, health: None }]);
        let cells = &table.rows[0].cells;
        assert_eq!(cells.len(), table.columns.len());
        assert_eq!(cells[4], Cell::Number(2.0, 2));
        assert_eq!(cells[9..], vec![Cell::Nothing; 5]);
    }
}

#[cfg(test)]
mod positions_tests {
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
        let table = position_table(&answers).unwrap();
        let shown: Vec<Vec<String>> =
            table.rows.iter().map(|row| row.cells[..3].iter().map(Cell::shown).collect()).collect();
        assert_eq!(shown, [["A", "1", "2"], ["B", "2", "0"], ["no answer", "0", "1"]]);
        assert_eq!(table.rows[0].cells[5], Cell::Number(100.0, 1));
        assert!(super::position_table(&answers[3..]).is_none());
    }
}
