//! The Keyword-Prioritized Correction Score of every weight.

use super::Entry;
use crate::analysis::notes::Kpcs;
use crate::report::notes::tables::measured;
use crate::report::table::{Cell, Column, Kind, Table};

pub fn kpcs(entries: &[Entry<'_>]) -> Option<Table> {
    let rows = entries.iter().flat_map(|entry| {
        let row = move |one: &Kpcs| {
            let [eq9, gated] = [&one.eq9, &one.gated].map(|one| measured(Some(one)));
            let alpha = [Cell::Number(one.alpha, 1)];
            entry.row(alpha.into_iter().chain(eq9).chain(gated))
        };
        let weights = entry.notes.correction.iter().flat_map(|one| &one.kpcs);
        weights.map(row)
    });
    Table {
        name: "kpcs",
        title: "Keyword-Prioritized Correction Score".to_owned(),
        columns: vec![
            Column::new("method", Kind::Text),
            Column::new("α", Kind::Number),
            Column::under("Eq. 9", "pairs", Kind::Spread),
            Column::under("Eq. 9", "all notes", Kind::Spread),
            Column::under("published code", "pairs", Kind::Spread),
            Column::under("published code", "all notes", Kind::Spread),
        ],
        rows: rows.collect(),
        notes: Vec::new(),
    }
    .unless_empty()
}
