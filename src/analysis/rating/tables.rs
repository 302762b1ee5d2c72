//! Ratings as tables: scores by run, raters by pair, entries that raters see differently, entries of one run.

use super::key::{Key, KeyRun};
use super::scores::{FAR, Mos, Rated, RaterPair};
use crate::analysis::table::{Cell, Column, Kind, Table};

/// Digits of a mean, as Table 6 has them.
const DIGITS: usize = 3;

/// All that `rate score` prints.
pub fn all(key: &Key, raters: &[String], entries: &[Rated], pairs: &[RaterPair]) -> Vec<Table> {
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
    let by_rater = raters.iter();
    let by_rater = by_rater.map(|rater| Column::under("MOS by rater", rater, Kind::Number));
    let columns = [
        Column::texts(&["run", "system", "models"]),
        Column::numbers(&["entries", "unrated"]),
        by_rater.collect(),
        Column::numbers(&["MOS", "normalised MOS"]),
    ];
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
        cells
    });
    Table::new("ratings", "Mean opinion scores", columns.concat(), rows).with_note(
        "From 0, completely incorrect, to 3, excellent; normalised to 1. The mean is over all scores that were given; entries that a \
         rater left out are counted as unrated, not as 0.",
    )
}

/// A row a pair of raters.
pub fn agreement(pairs: &[RaterPair]) -> Table {
    let columns = [
        Column::texts(&["raters"]),
        Column::numbers(&[
            "rated by both",
            "identical scores",
            "agreement",
            "Cohen's kappa, unweighted",
            "Cohen's kappa, quadratic weights",
        ]),
    ];
    let rows = pairs.iter().map(|pair| {
        vec![
            Cell::text(format!("{} and {}", pair.first, pair.other)),
            Cell::Count(pair.n_both),
            Cell::Count(pair.n_identical),
            number(pair.agreement),
            number(pair.kappa),
            number(pair.kappa_quadratic),
        ]
    });
    Table::new("raters", "Agreement of raters", columns.concat(), rows).with_note(
        "Over all entries of the sheet that both rated. Agreement is the share of identical scores; kappa takes off what chance would \
         give, and does not exist where both gave one and the same score throughout.",
    )
}

/// A row an entry on which raters are far apart.
fn disputed(key: &Key, raters: &[String], entries: &[Rated]) -> Table {
    let disputed: Vec<&Rated> = entries.iter().filter(|entry| entry.is_disputed()).collect();
    let mut table = listed(raters, &disputed);
    let runs = disputed.iter().map(|entry| Cell::text(&key.runs[entry.run].path));
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
    let of_raters = |over: &str, kind: Kind| {
        let raters = raters.iter();
        raters.map(|rater| Column::under(over, rater, kind)).collect()
    };
    let columns = [
        Column::texts(&["item", "entry"]),
        of_raters("score", Kind::Number),
        of_raters("comment", Kind::Text),
    ];
    let score = |score: &Option<u8>| score.map_or(Cell::Nothing, |one| Cell::Count(one.into()));
    let rows = entries.iter().map(|entry| {
        let mut cells = vec![Cell::text(&entry.item), Cell::text(&entry.code)];
        cells.extend(entry.scores.iter().map(score));
        cells.extend(entry.comments.iter().map(Cell::text));
        cells
    });
    Table::new("rated", "Rated entries", columns.concat(), rows)
}

fn number(value: Option<f64>) -> Cell {
    value.map_or(Cell::Nothing, |value| Cell::Number(value, DIGITS))
}
