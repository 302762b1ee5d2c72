//! A table as HTML.

use super::escape::escape;
pub use crate::analysis::table::{Cell, Kind, Labelled, Table};

impl Table {
    /// A `table` element in a container of its own that scrolls, and the notes.
    pub fn html(&self) -> String {
        let mut html = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table class=\"numbers\">\n<thead>\n",
            escape(&self.title)
        );
        html += &self.html_heads();
        html += "</thead>\n<tbody>\n";
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
                let shown = escape(&cell.shown());
                html += &match (place, column.kind, cell.is_best()) {
                    (0, ..) => format!("<th scope=\"row\">{shown}</th>"),
                    (_, Kind::Text, _) => format!("<td class=\"text\">{shown}</td>"),
                    (_, _, true) => format!("<td><b>{shown}</b></td>"),
                    _ => format!("<td>{shown}</td>"),
                };
            }
            html += "</tr>\n";
        }
        html += "</tbody>\n</table></div>\n";
        for note in &self.notes {
            html += &format!("<p class=\"note\">{}</p>\n", escape(note));
        }
        html
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

#[cfg(test)]
mod tests {
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
}
