//! Charts of tables: what columns of a table hold, drawn under the headings of its rows.

use itertools::Itertools;

use super::{Drawing, Key, Lane, Mark, Row, Subplot, draw};
use crate::analysis::metrics::bootstrap::Estimate;
use crate::analysis::metrics::over_runs::Spread;
use crate::analysis::table::{self, Cell, Column, Table};

/// How a table is drawn. A column that is named with what it shares with its neighbours is drawn once for each heading of rows; one that
/// is named without, once for each heading of columns that has it.
pub struct Chart {
    pub table: &'static str,
    /// Empty where the table's own stands over it.
    pub title: &'static str,
    pub description: &'static str,
    /// Values that the axis must reach.
    pub reach: &'static [f64],
    pub lanes: &'static [Drawn],
}

/// A column: its colour, its name, and what the legend calls it; empty where nothing needs to.
pub struct Drawn(pub usize, pub &'static str, pub &'static str);

impl Chart {
    /// `None` where none of its columns holds a number.
    pub fn of(&self, table: &Table) -> Option<Subplot> {
        let is_drawn = |column: &&Column| self.lanes.iter().any(|lane| lane.1 == column.label);
        let shared = table.columns.iter().filter(is_drawn).map(|column| column.over.as_str());
        let overs: Vec<&str> = shared.filter(|over| !over.is_empty()).unique().collect();
        let groups = table.rows.iter().map(|row| row.group.as_str()).unique();
        let drawings: Vec<Drawing> = match overs.is_empty() {
            true => groups.filter_map(|group| self.drawing(table, group, "")).collect(),
            false => overs.iter().filter_map(|over| self.drawing(table, over, over)).collect(),
        };
        let lanes = self.lanes.iter().filter(|lane| !lane.2.is_empty());
        let mut key: Vec<Key> = lanes.map(|lane| Key::series(lane.0, lane.2)).collect();
        if drawings.iter().any(|one| one.svg.contains("class=\"paper\"")) {
            let label = "the paper's, with its spread or interval".to_owned();
            key.push(Key { swatch: "diamond".to_owned(), label });
        }
        let title = self.title.to_owned();
        (!drawings.is_empty()).then_some(Subplot { title, drawings, key })
    }

    /// Of the rows under a heading, or of all rows the columns that share one.
    fn drawing(&self, table: &Table, heading: &str, over: &str) -> Option<Drawing> {
        let place = |name: &str| {
            table.columns.iter().position(|column| match over {
                "" => column.heading() == name,
                over => column.over == over && column.label == name,
            })
        };
        let row = |row: &table::Row| {
            let lane = |Drawn(series, name, _): &Drawn| {
                let place = place(name)?;
                let over = &table.columns[place].over;
                let is_papers = |column: &Column| column.label == "paper" && column.over == *over;
                let papers = table.columns.iter().position(is_papers);
                lane(*series, &row.cells[place], papers.map(|place| &row.cells[place]))
            };
            let lanes: Vec<Lane> = self.lanes.iter().filter_map(lane).collect();
            // Of a difference, what is taken away too.
            let less = table.columns.iter().position(|column| column.label == "less");
            let less = less.map(|place| format!(" − {}", row.cells[place].shown()));
            let label = row.cells[0].shown() + &less.unwrap_or_default();
            (!lanes.is_empty()).then_some(Row { label, lanes })
        };
        let rows = table.rows.iter().filter(|row| !over.is_empty() || row.group == heading);
        let rows: Vec<Row> = rows.filter_map(row).collect();
        let title = if heading.is_empty() { self.title } else { heading };
        (!rows.is_empty()).then(|| draw(title, self.description, self.reach, &rows))
    }
}

/// `None` of a cell without a number.
fn lane(series: usize, cell: &Cell, paper: Option<&Cell>) -> Option<Lane> {
    let paper = paper.and_then(|paper| match *paper {
        Cell::Spread(Spread { mean, std, .. }, _) => {
            let std = std.unwrap_or(0.0);
            Some(Mark::Paper { mean, low: mean - std, high: mean + std })
        }
        Cell::Interval { mean, low, high } => {
            Some(Mark::Paper { mean, low: low.unwrap_or(mean), high: high.unwrap_or(mean) })
        }
        _ => None,
    });
    let (said, marks) = match *cell {
        Cell::Number(value, _) => (cell.shown(), vec![Mark::Bar { value, std: None }]),
        Cell::Spread(spread, _) => {
            let bar = Mark::Bar { value: spread.mean, std: spread.deviation() };
            let said = Spread { n: None, std: spread.deviation(), ..spread }.to_string();
            (said, [bar].into_iter().chain(paper).collect())
        }
        Cell::Estimate(Estimate { mean, low, high, .. }) => {
            // Without an interval a dot alone; what is said beside it tells why.
            let (low, high) = (low.unwrap_or(mean), high.unwrap_or(mean));
            let ours = Mark::Interval { mean, low, high };
            // The paper's first, so that ours is not hidden.
            (cell.shown(), paper.into_iter().chain([ours]).collect())
        }
        _ => return None,
    };
    Some(Lane { series, said, marks })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::table::tests::table;

    fn chart(lanes: &'static [Drawn]) -> Chart {
        Chart { table: "accuracy", title: "", description: "By method.", reach: &[1.0], lanes }
    }

    #[test]
    fn a_column_is_drawn_by_the_heading_that_it_is_not_named_with() {
        let titles = |lanes| {
            let drawn = chart(lanes).of(&table()).unwrap();
            drawn.drawings.into_iter().map(|one| one.title).collect::<Vec<_>>()
        };
        assert_eq!(titles(&[Drawn(0, "ours", "")]), ["MedQA"]);
        // The method of the other group has no figure.
        assert_eq!(titles(&[Drawn(0, "MedQA: ours", "")]), ["Single"]);
        assert!(chart(&[Drawn(0, "theirs", "")]).of(&table()).is_none());
    }

    #[test]
    fn a_figure_of_the_papers_is_drawn_over_ours_and_named() {
        let paper = |mean| Some(Spread { mean, std: None, n: None });
        let rows = [("one", 0.5, paper(0.6)), ("other", 0.25, None)];
        let table = Table::of("accuracy", "Accuracy", &rows)
            .text("method", |row| row.0)
            .spread("ours", |row| Spread { mean: row.1, std: Some(0.1), n: Some(2) })
            .spread("paper", |row| row.2)
            .build();
        let drawn = chart(&[Drawn(0, "ours", "ours")]).of(&table).unwrap();
        assert_eq!(drawn.drawings[0].svg.matches("<path class=\"paper\"").count(), 1);
        assert_eq!(drawn.drawings[0].svg.matches("<rect class=\"fill s0\"").count(), 2);
        let legend: Vec<&str> = drawn.key.iter().map(|one| one.label.as_str()).collect();
        assert_eq!(legend, ["ours", "the paper's, with its spread or interval"]);
    }
}
