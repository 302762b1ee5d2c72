//! A table as HTML.

use super::kit::escape;
use crate::analysis::metrics::bootstrap::Estimate;
use crate::analysis::metrics::over_runs::Spread;
pub use crate::analysis::table::{Cell, Kind, Labelled, Table};

impl Table {
    /// A `table` element in a container of its own that scrolls. Under shares and differences stands a bar. Its notes are [`explanations`].
    pub fn html(&self) -> String {
        let mut html = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table class=\"numbers\">\n<thead>\n",
            escape(&self.title)
        );
        html += &self.html_heads();
        html += "</thead>\n<tbody>\n";
        let cells = || self.rows.iter().flat_map(|row| &row.cells);
        let reach = cells().filter_map(interval).flatten().map(f64::abs).fold(0.0, f64::max);
        for (group, row) in self.with_headings() {
            if let Some(group) = group {
                let width = self.columns.len();
                html += &format!(
                    "<tr class=\"heading\"><th colspan=\"{width}\" scope=\"rowgroup\">{}</th></tr>\n",
                    escape(group)
                );
            }
            html += "<tr>";
            for (place, (column, cell)) in self.columns.iter().zip(&row.cells).enumerate() {
                let (shown, bar) = (escape(&cell.shown()), bar(cell, reach));
                html += &match (place, column.kind, cell.is_best()) {
                    (0, ..) => format!("<th scope=\"row\">{shown}</th>"),
                    (_, Kind::Text, _) => format!("<td class=\"text\">{shown}</td>"),
                    (_, _, true) => format!("<td{bar}><b>{shown}</b></td>"),
                    _ => format!("<td{bar}>{shown}</td>"),
                };
            }
            html += "</tr>\n";
        }
        html + "</tbody>\n</table></div>\n"
    }

    /// The heads of the columns: a line, or two where some share a heading.
    fn html_heads(&self) -> String {
        let mut html = String::new();
        if self.columns.iter().any(|column| !column.over.is_empty()) {
            html += "<tr>";
            for columns in self.columns.chunk_by(|left, right| left.over == right.over) {
                let (width, over) = (columns.len(), escape(&columns[0].over));
                html += &match over.as_str() {
                    "" => format!("<td colspan=\"{width}\"></td>"),
                    over => format!("<th colspan=\"{width}\" scope=\"colgroup\">{over}</th>"),
                };
            }
            html += "</tr>\n";
        }
        html += "<tr>";
        for (place, column) in self.columns.iter().enumerate() {
            let class = match (place, column.kind) {
                (0, _) | (_, Kind::Text) => " class=\"text\"",
                _ => "",
            };
            html += &format!("<th scope=\"col\"{class}>{}</th>", escape(&column.label));
        }
        html + "</tr>\n"
    }
}

/// What is said of tables at a page's foot, each sentence once: a table's title and its notes.
pub fn explanations(tables: &[Table]) -> Vec<(&str, Vec<&str>)> {
    let mut said = Vec::new();
    for table in tables {
        let is_new =
            |note: &&str| !said.iter().any(|(_, notes): &(&str, Vec<&str>)| notes.contains(note));
        let notes: Vec<&str> = table.notes.iter().map(String::as_str).filter(is_new).collect();
        if !notes.is_empty() {
            said.push((table.title.as_str(), notes));
        }
    }
    said
}

/// The ends of a difference's interval.
fn interval(cell: &Cell) -> Option<[f64; 2]> {
    match *cell {
        Cell::Estimate(Estimate { low, high, .. }) => Some([low?, high?]),
        _ => None,
    }
}

/// The attributes that draw a bar: of a share from 0 to 1, of a difference over its interval, 0 in the middle of a table's `reach`.
fn bar(cell: &Cell, reach: f64) -> String {
    let share = match *cell {
        Cell::Number(mean, 4) | Cell::Spread(Spread { mean, .. }, _) => Some(mean),
        _ => None,
    };
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    let (class, [from, to]) = match (share, interval(cell)) {
        (Some(share), _) => ("", [0.0, share]),
        (_, Some(ends)) if reach > 0.0 => {
            (" class=\"around\"", ends.map(|end| 0.5 + 0.5 * end / reach))
        }
        _ => return String::new(),
    };
    format!("{class} style=\"--from:{:.1}%;--to:{:.1}%\"", 100.0 * from, 100.0 * to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::table::tests::table;

    #[test]
    fn html_escapes_and_spans_what_columns_share() {
        let html = table().html();
        assert!(html.contains("<th scope=\"row\">&lt;script&gt;</th>"));
        assert!(
            html.contains("<td colspan=\"1\"></td><th colspan=\"2\" scope=\"colgroup\">MedQA</th>")
        );
        assert!(html.contains("aria-label=\"Accuracy &lt;all&gt;\""));
        assert!(!html.contains("<script>"));
    }

    #[test]
    fn a_share_has_a_bar_from_0_and_a_difference_one_around_it() {
        assert_eq!(bar(&Cell::Number(0.25, 4), 0.0), " style=\"--from:0.0%;--to:25.0%\"");
        let difference = Cell::Estimate(Estimate::of(0.1, Some([-0.1, 0.2])));
        let drawn = " class=\"around\" style=\"--from:25.0%;--to:100.0%\"";
        assert_eq!(bar(&difference, 0.2), drawn);
        for cell in [Cell::Count(1), Cell::Number(3.5, 2), Cell::Number(12.0, 4), Cell::Nothing] {
            assert_eq!(bar(&cell, 0.2), "");
        }
    }
}
