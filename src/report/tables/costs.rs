//! What answers cost, as a table: per item, and per right answer.

use crate::analysis::metrics::cost::{Cost, Spent};
use crate::report::table::{Cell, Column, Kind, Row, Table};

/// A row for each of what is called so, under its group.
pub fn table(rows: &[(String, String, &Cost)]) -> Table {
    let mut columns = vec![
        Column::new("", Kind::Text),
        Column::new("items × runs", Kind::Number),
        Column::new("right", Kind::Number),
    ];
    for over in ["per item", "per right answer"] {
        for label in ["calls", "prompt tokens", "cached", "completion tokens", "call seconds"] {
            columns.push(Column::under(over, label, Kind::Number));
        }
    }
    let row = |(group, label, cost): &(String, String, &Cost)| Row {
        group: group.clone(),
        cells: [
            vec![Cell::text(label), Cell::Count(cost.n_items), Cell::Count(cost.n_correct)],
            spent(Some(&cost.per_item)),
            spent(cost.per_correct.as_ref()),
        ]
        .concat(),
    };
    Table {
        name: "cost",
        title: "Cost".to_owned(),
        columns,
        rows: rows.iter().map(row).collect(),
        notes: vec![
            "Wrong answers are paid for by the right ones. Cached tokens are those of the prompt that the prefix index held. Seconds add up the calls, which overlap in time; a call that another cell made before is counted as that one took.".to_owned(),
        ],
    }
}

fn spent(spent: Option<&Spent>) -> Vec<Cell> {
    let Some(spent) = spent else {
        return vec![Cell::Nothing; 5];
    };
    vec![
        Cell::Number(spent.calls, 2),
        Cell::Number(spent.prompt_tokens, 0),
        Cell::Number(spent.cached_tokens, 0),
        Cell::Number(spent.completion_tokens, 0),
        Cell::Number(spent.call_seconds, 2),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::metrics::cost::Call;

    #[test]
    fn without_a_right_answer_there_is_no_price_of_one() {
        let call =
            Call { prompt_tokens: 100, cached_tokens: 0, completion_tokens: 20, elapsed_ms: 1500 };
        let cost = Cost::of([call; 6], 3, 0).unwrap();
        let table = table(&[(String::new(), "A run".to_owned(), &cost)]);
        let cells = &table.rows[0].cells;
        assert_eq!(cells.len(), table.columns.len());
        assert_eq!(cells[3], Cell::Number(2.0, 2));
        assert_eq!(cells[8..], vec![Cell::Nothing; 5]);
    }
}
