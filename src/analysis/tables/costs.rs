//! What answers cost, as a table: per item, and per right answer.

use super::Labelled;
use crate::analysis::metrics::cost::{Cost, Spent};
use crate::analysis::table::{Cell, Table};

/// What a cost has of one price, where it has it.
type Price = fn(&Cost) -> Option<&Spent>;

pub fn table(rows: &[Labelled<'_, Cost>]) -> Table {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixtures::call;

    #[test]
    fn without_a_right_answer_there_is_no_price_of_one() {
        let cost = Cost::of(&vec![call("q1", 1, "sym"); 6], 3, 0).unwrap();
        let table = table(&[Labelled { group: "", label: "A run", of: &cost, health: None }]);
        let cells = &table.rows[0].cells;
        assert_eq!(cells.len(), table.columns.len());
        assert_eq!(cells[4], Cell::Number(2.0, 2));
        assert_eq!(cells[9..], vec![Cell::Nothing; 5]);
    }
}
