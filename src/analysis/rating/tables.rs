//! Ratings as tables: scores by run, raters by pair, entries that raters see differently, entries of one run.

use super::key::{Key, KeyRun};
use super::scores::{FAR, Mos, Pair, Rated};
use crate::analysis::table::{Cell, Column, Kind, Row, Table};

/// Digits of a mean, as Table 6 has them.
const DIGITS: usize = 3;

/// All that `rate score` prints.
pub fn all(key: &Key, raters: &[String], entries: &[Rated], pairs: &[Pair]) -> Vec<Table> {
    let rows = key.runs.iter().enumerate().map(|(place, run)| {
        let own = entries.iter().filter(|entry| entry.run == place);
        (run, Mos::of(&own.collect::<Vec<_>>(), raters.len()))
    });
    let rows: Vec<(&KeyRun, Mos)> = rows.collect();
    let mut tables = vec![scores(raters, &rows)];
    if !pairs.is_empty() {
        tables.push(agreement(pairs));
        tables.push(disputed(key, raters, entries));
    }
    tables
}

/// A row a run.
pub fn scores(raters: &[String], rows: &[(&KeyRun, Mos)]) -> Table {
    let mut columns = vec![
        Column::new("run", Kind::Text),
        Column::new("system", Kind::Text),
        Column::new("models", Kind::Text),
        Column::new("entries", Kind::Number),
        Column::new("unrated", Kind::Number),
    ];
    let by_rater = raters.iter();
    columns.extend(by_rater.map(|rater| Column::under("MOS by rater", rater, Kind::Number)));
    columns.push(Column::new("MOS", Kind::Number));
    columns.push(Column::new("normalised MOS", Kind::Number));
    let rows = rows.iter().map(|(run, mos)| {
        let mut cells = vec![
            Cell::text(&run.path),
            Cell::text(&run.system),
            Cell::text(run.models.join(", ")),
            Cell::Count(mos.n_entries),
            Cell::Count(mos.n_unrated),
        ];
        cells.extend(mos.by_rater.iter().map(|mean| number(*mean)));
        cells.extend([number(mos.mean), number(mos.normalised())]);
        Row::new(cells)
    });
    Table {
        name: "ratings",
        title: "Mean opinion scores".to_owned(),
        columns,
        rows: rows.collect(),
        notes: vec![
            "From 0, completely incorrect, to 3, excellent; normalised to 1. The mean is over all scores that were given; entries \
             that a rater left out are counted as unrated, not as 0."
                .to_owned(),
        ],
    }
}

/// A row a pair of raters.
pub fn agreement(pairs: &[Pair]) -> Table {
    let row = |pair: &Pair| {
        Row::new(vec![
            Cell::text(format!("{} and {}", pair.first, pair.other)),
            Cell::Count(pair.n_both),
            Cell::Count(pair.n_identical),
            number(pair.agreement),
            number(pair.kappa),
            number(pair.kappa_quadratic),
        ])
    };
    Table {
        name: "raters",
        title: "Agreement of raters".to_owned(),
        columns: vec![
            Column::new("raters", Kind::Text),
            Column::new("rated by both", Kind::Number),
            Column::new("identical scores", Kind::Number),
            Column::new("agreement", Kind::Number),
            Column::new("Cohen's kappa, unweighted", Kind::Number),
            Column::new("Cohen's kappa, quadratic weights", Kind::Number),
        ],
        rows: pairs.iter().map(row).collect(),
        notes: vec![
            "Over all entries of the sheet that both rated. Agreement is the share of identical scores; kappa takes off what \
             chance would give, and does not exist where both gave one and the same score throughout."
                .to_owned(),
        ],
    }
}

/// A row an entry on which raters are far apart.
fn disputed(key: &Key, raters: &[String], entries: &[Rated]) -> Table {
    let disputed: Vec<&Rated> = entries.iter().filter(|entry| entry.is_disputed()).collect();
    let mut table = listed(raters, &disputed);
    let runs = disputed
        .iter()
        .map(|entry| Cell::text(&key.runs[entry.run].path));
    table.columns.insert(2, Column::new("run", Kind::Text));
    for (row, run) in table.rows.iter_mut().zip(runs) {
        row.cells.insert(2, run);
    }
    Table {
        name: "disputed",
        title: format!("Entries on which raters differ by {FAR} or more"),
        notes: match disputed.len() {
            0 => vec!["There is none.".to_owned()],
            _ => Vec::new(),
        },
        ..table
    }
}

/// A row an entry of a run.
pub fn rated(raters: &[String], entries: &[Rated]) -> Table {
    let entries: Vec<&Rated> = entries.iter().collect();
    listed(raters, &entries)
}

fn listed(raters: &[String], entries: &[&Rated]) -> Table {
    let mut columns = vec![
        Column::new("item", Kind::Text),
        Column::new("entry", Kind::Text),
    ];
    columns.extend(
        raters
            .iter()
            .map(|rater| Column::under("score", rater, Kind::Number)),
    );
    columns.extend(
        raters
            .iter()
            .map(|rater| Column::under("comment", rater, Kind::Text)),
    );
    let row = |entry: &&Rated| {
        let mut cells = vec![Cell::text(&entry.item), Cell::text(&entry.code)];
        let scores = entry.scores.iter();
        cells.extend(scores.map(|score| match score {
            Some(score) => Cell::Count(usize::from(*score)),
            None => Cell::Nothing,
        }));
        cells.extend(entry.comments.iter().map(Cell::text));
        Row::new(cells)
    };
    Table {
        name: "rated",
        title: "Rated entries".to_owned(),
        columns,
        rows: entries.iter().map(row).collect(),
        notes: Vec::new(),
    }
}

fn number(value: Option<f64>) -> Cell {
    value.map_or(Cell::Nothing, |value| Cell::Number(value, DIGITS))
}
