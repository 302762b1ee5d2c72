//! What answers cost: calls, tokens and seconds, in all and per item.

use serde::{Deserialize, Serialize};

use crate::analysis::table::{Cell, Labelled, Table};
use crate::record::CallLine;

/// All calls of a system, over all its runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    pub total: Spent,
    pub per_item: Spent,
    /// Items times runs.
    pub n_items: usize,
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
    /// `n_items` counts the items of every run, errored ones too; `None` without items.
    pub fn of<'a>(calls: impl IntoIterator<Item = &'a CallLine>, n_items: usize) -> Option<Cost> {
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
        let each = |sum: f64| sum / n_items as f64;
        let per_item = Spent {
            calls: each(total.calls),
            prompt_tokens: each(total.prompt_tokens),
            cached_tokens: each(total.cached_tokens),
            completion_tokens: each(total.completion_tokens),
            call_seconds: each(total.call_seconds),
        };
        (n_items > 0).then_some(Cost { total, per_item, n_items })
    }
}

pub fn table(rows: &[Labelled<'_, Cost>]) -> Table {
    Table::grouped("cost", "Cost", rows.iter().map(|row| (row.group.clone(), row)))
        .text("", |row| &row.label)
        .replies(|row| row.health)
        .number("items × runs", |row| row.of.n_items)
        .under("per item")
        .number("calls", |row| Cell::Number(row.of.per_item.calls, 2))
        .number("prompt tokens", |row| Cell::Number(row.of.per_item.prompt_tokens, 0))
        .number("cached", |row| Cell::Number(row.of.per_item.cached_tokens, 0))
        .number("completion tokens", |row| Cell::Number(row.of.per_item.completion_tokens, 0))
        .number("call seconds", |row| Cell::Number(row.of.per_item.call_seconds, 2))
        .note("Cached tokens are those of the prompt that the prefix cache held. Seconds add up the calls, which overlap in time; a call that another cell made before is counted as that one took.")
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixtures::call;

    #[test]
    fn calls_are_paid_for_by_all_items() {
        let mut call = call("q1", 1, "sym");
        call.usage.cached_tokens = 60;
        call.elapsed_ms = 1500;
        let cost = Cost::of(&vec![call; 12], 4).unwrap();
        assert_eq!((cost.total.call_seconds, cost.per_item.call_seconds), (18.0, 4.5));
        assert_eq!((cost.per_item.calls, cost.per_item.cached_tokens), (3.0, 180.0));
    }

    #[test]
    fn what_is_not_there_has_no_price() {
        assert_eq!(Cost::of(&[], 0), None);
        assert_eq!(Cost::of(&[], 3).unwrap().per_item, Spent::default());
    }
}
