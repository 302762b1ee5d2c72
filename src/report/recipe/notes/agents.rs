//! How the agents got there: who settled a stage, how sure the detectors are, what a stage costs.

use super::Entry;
use crate::analysis::notes::{LowPair, Prices, Settled, StageCost};
use crate::report::table::{Cell, Column, Kind, Table};

pub fn consensus(entries: &[Entry<'_>]) -> Option<Table> {
    let mut rows = Vec::new();
    for entry in entries {
        for stage in &entry.notes.consensus {
            let row = |settled: &Settled| {
                entry.row([
                    Cell::text(stage.stage.name()),
                    Cell::text(settled.source.in_words()),
                    Cell::Count(settled.n),
                    Cell::share(Some(settled.share)),
                    Cell::Count(settled.n_right),
                    Cell::share(Some(settled.accuracy)),
                    Cell::Count(settled.n_wrong()),
                    Cell::share(Some(1.0 - settled.accuracy)),
                ])
            };
            rows.extend(stage.settled.iter().map(row));
        }
    }
    Table {
        name: "consensus",
        title: "Agreement and arbitration".to_owned(),
        columns: vec![
            Column::new("method", Kind::Text),
            Column::new("stage", Kind::Text),
            Column::new("settled by", Kind::Text),
            Column::new("notes", Kind::Number),
            Column::new("share", Kind::Number),
            Column::new("right", Kind::Number),
            Column::new("accuracy", Kind::Number),
            Column::new("wrong", Kind::Number),
            Column::new("error rate", Kind::Number),
        ],
        rows,
        notes: vec!["Over all runs. Localisation sees the notes that detection flags.".to_owned()],
    }
    .unless_empty()
}

pub fn confidence(entries: &[Entry<'_>]) -> Option<Table> {
    let row = |entry: &Entry<'_>| {
        let found = entry.notes.confidence.as_ref()?;
        let pair = |pair: Option<[f64; 2]>| {
            [0, 1].map(|agent| {
                pair.map_or(Cell::Nothing, |pair| Cell::Number(100.0 * pair[agent], 1))
            })
        };
        let low = |low: &LowPair| {
            Cell::text(format!(
                "{}: {} agree, {} right",
                low.n, low.n_agreed, low.n_right
            ))
        };
        let cells = [Cell::Count(found.n_agreed)]
            .into_iter()
            .chain(pair(found.all))
            .chain(pair(found.right))
            .chain(pair(found.wrong))
            .chain(found.low.iter().map(low));
        Some(entry.row(cells))
    };
    let mut columns = vec![
        Column::new("method", Kind::Text),
        Column::new("agreed", Kind::Number),
    ];
    for over in ["all agreed", "right", "wrong"] {
        for agent in ["agent 1", "agent 2"] {
            columns.push(Column::under(over, agent, Kind::Number));
        }
    }
    for below in ["90", "85", "80"] {
        columns.push(Column::under("both below", below, Kind::Text));
    }
    Table {
        name: "confidence",
        title: "Confidence of the detectors".to_owned(),
        columns,
        rows: entries.iter().filter_map(row).collect(),
        notes: vec!["Means on notes on which both agree, of 100, over all runs; then notes on which both are less sure.".to_owned()],
    }
    .unless_empty()
}

pub fn stages(entries: &[Entry<'_>]) -> Table {
    let rows = entries.iter().flat_map(|entry| {
        let row = move |stage: &StageCost| {
            entry.row([
                Cell::text(&stage.stage),
                Cell::Count(stage.calls),
                Cell::Number(stage.latency_seconds, 2),
                Cell::Number(stage.prompt_tokens, 0),
                Cell::Number(stage.cached_tokens, 0),
                Cell::Number(stage.completion_tokens, 0),
                Cell::Number(1000.0 * stage.price(&Prices::default()), 3),
            ])
        };
        entry.notes.stages.iter().map(row)
    });
    Table {
        name: "stages",
        title: "Cost by stage".to_owned(),
        columns: vec![
            Column::new("method", Kind::Text),
            Column::new("stage", Kind::Text),
            Column::new("calls", Kind::Number),
            Column::under("per note", "seconds", Kind::Number),
            Column::under("per note", "tokens in", Kind::Number),
            Column::under("per note", "cached", Kind::Number),
            Column::under("per note", "tokens out", Kind::Number),
            Column::under("per note", "$ / 1000", Kind::Number),
        ],
        rows: rows.collect(),
        notes: vec![
            "Means over all notes, those that a stage did not see too. Dollars for a thousand notes at the paper's prices for a million tokens: 0.10 in, 0.025 cached, 0.40 out.".to_owned(),
        ],
    }
}
