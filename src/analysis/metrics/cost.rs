//! What answers cost: calls, tokens and seconds, per item and per right answer.

use serde::{Deserialize, Serialize};

use crate::analysis::table::{Cell, Labelled, Table};
use crate::record::CallLine;

/// All calls of a system, over all its runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    pub total: Spent,
    pub per_item: Spent,
    /// Wrong answers' calls are in it; `null` where no answer was right.
    pub per_correct: Option<Spent>,
    /// Items times runs.
    pub n_items: usize,
    pub n_correct: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    pub calls: f64,
    pub prompt_tokens: f64,
    /// Of the prompts, found in the prefix index.
    pub cached_tokens: f64,
    pub completion_tokens: f64,
    /// From a call's submission to its completion. Calls overlap, so their sum exceeds the wall time.
    pub call_seconds: f64,
}

impl Cost {
    /// `n_items` counts the items of every run, errored ones too, and `n_correct` those answered rightly; `None` without
    /// items.
    pub fn of<'a>(
        calls: impl IntoIterator<Item = &'a CallLine>,
        n_items: usize,
        n_correct: usize,
    ) -> Option<Cost> {
        let mut total = Spent::default();
        let mut elapsed_ms = 0;
        for call in calls {
            total.calls += 1.0;
            total.prompt_tokens += call.usage.prompt_tokens as f64;
            total.cached_tokens += call.usage.cached_tokens as f64;
            total.completion_tokens += call.usage.completion_tokens as f64;
            elapsed_ms += call.elapsed_ms;
        }
        total.call_seconds = elapsed_ms as f64 / 1000.0;
        Some(Cost {
            total,
            per_item: total.over(n_items)?,
            per_correct: total.over(n_correct),
            n_items,
            n_correct,
        })
    }
}

impl Spent {
    fn over(&self, n: usize) -> Option<Spent> {
        let each = |sum: f64| sum / n as f64;
        (n > 0).then(|| Spent {
            calls: each(self.calls),
            prompt_tokens: each(self.prompt_tokens),
            cached_tokens: each(self.cached_tokens),
            completion_tokens: each(self.completion_tokens),
            call_seconds: each(self.call_seconds),
        })
    }
}

/// What a cost has of one price, where it has it.
type Price = fn(&Cost) -> Option<&Spent>;

pub fn table(rows: &[Labelled<'_, Cost>]) -> Table {
    let mut table = Table::grouped("cost", "Cost", rows.iter().map(|row| (row.group.clone(), row)))
        .text("", |row| &row.label)
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

    fn calls(n: usize) -> Vec<CallLine> {
        let mut call = call("q1", 1, "sym");
        call.usage.cached_tokens = 60;
        call.elapsed_ms = 1500;
        vec![call; n]
    }

    #[test]
    fn wrong_answers_are_paid_for_by_the_right_ones() {
        let cost = Cost::of(&calls(12), 4, 2).unwrap();
        assert_eq!(cost.total.call_seconds, 18.0);
        assert_eq!(cost.per_item.calls, 3.0);
        let per_correct = cost.per_correct.unwrap();
        assert_eq!((per_correct.calls, per_correct.prompt_tokens), (6.0, 600.0));
        assert_eq!(per_correct.cached_tokens, 360.0);
        assert_eq!(per_correct.completion_tokens, 120.0);
        assert_eq!(per_correct.call_seconds, 9.0);
    }

    #[test]
    fn what_is_not_there_has_no_price() {
        assert_eq!(Cost::of(&calls(1), 1, 0).unwrap().per_correct, None);
        assert_eq!(Cost::of(&[], 0, 0), None);
        assert_eq!(Cost::of(&[], 3, 1).unwrap().per_item, Spent::default());
    }
}

#[cfg(test)]
mod table_tests {
    use super::*;
    use crate::experiment::fixtures::call;

    #[test]
    fn without_a_right_answer_there_is_no_price_of_one() {
        let cost = Cost::of(&vec![call("q1", 1, "sym"); 6], 3, 0).unwrap();
        let row =
            Labelled { group: String::new(), label: "A run".to_owned(), of: &cost, health: None };
        let table = super::table(&[row]);
        let cells = &table.rows[0].cells;
        assert_eq!(cells.len(), table.columns.len());
        assert_eq!(cells[4], Cell::Number(2.0, 2));
        assert_eq!(cells[9..], vec![Cell::Nothing; 5]);
    }
}
