//! A table that prints itself: as Markdown, CSV, JSON, and as HTML for the page. Text forms round; CSV and JSON keep every digit.

mod cell;
mod column;
#[cfg(test)]
mod tests;

pub use cell::Cell;
pub use column::{Column, Kind};

use serde_json::{Map, Value, json};

use super::escape::escape;

#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What `--table` calls it.
    pub name: &'static str,
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// Sentences that stand under it.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The heading that it stands under; may be empty.
    pub group: String,
    /// One for each column.
    pub cells: Vec<Cell>,
}

impl Row {
    pub fn new(cells: Vec<Cell>) -> Row {
        let group = String::new();
        Row { group, cells }
    }
}

impl Table {
    /// `None` without rows.
    pub fn unless_empty(self) -> Option<Table> {
        (!self.rows.is_empty()).then_some(self)
    }

    fn has_groups(&self) -> bool {
        self.rows.iter().any(|row| !row.group.is_empty())
    }

    /// The rows, each with its heading where that is another than the row's before.
    fn grouped(&self) -> impl Iterator<Item = (Option<&str>, &Row)> {
        let before = [""].into_iter();
        let before = before.chain(self.rows.iter().map(|row| row.group.as_str()));
        let rows = self.rows.iter().zip(before);
        rows.map(|(row, before)| {
            let group = Some(row.group.as_str());
            (group.filter(|group| *group != before), row)
        })
    }

    pub fn markdown(&self) -> String {
        let plain = |text: &str| text.replace('|', "\\|").replace('\n', " ");
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("**{}**\n\n", self.title);
        text += &line(self.columns.iter().map(|c| plain(&c.heading())).collect());
        let rule = self.columns.iter().map(|column| match column.kind {
            Kind::Text => "---".to_owned(),
            _ => "---:".to_owned(),
        });
        text += &line(rule.collect());
        for (group, row) in self.grouped() {
            if let Some(group) = group {
                let mut cells = vec![String::new(); self.columns.len()];
                cells[0] = format!("*{}*", plain(group));
                text += &line(cells);
            }
            let cells = row.cells.iter().map(|cell| match cell.is_best() {
                true => format!("**{}**", cell.shown()),
                false => plain(&cell.shown()),
            });
            text += &line(cells.collect());
        }
        for note in &self.notes {
            text += &format!("\n{note}\n");
        }
        text
    }

    /// A line of headings, then a line a row.
    pub fn csv(&self) -> String {
        let quote = |field: String| match field.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", field.replace('"', "\"\"")),
            false => field,
        };
        let line = |fields: Vec<String>| {
            let fields: Vec<String> = fields.into_iter().map(quote).collect();
            fields.join(",") + "\n"
        };
        let group = |group: &str| match self.has_groups() {
            true => vec![group.to_owned()],
            false => Vec::new(),
        };
        let headings = self.columns.iter().flat_map(Column::headings);
        let mut text = line(group("group").into_iter().chain(headings).collect());
        for row in &self.rows {
            let cells = self.columns.iter().zip(&row.cells);
            let fields = cells.flat_map(|(column, cell)| cell.fields(column.kind));
            text += &line(group(&row.group).into_iter().chain(fields).collect());
        }
        text
    }

    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let mut object = Map::new();
            if self.has_groups() {
                object.insert("group".to_owned(), json!(row.group));
            }
            for (column, cell) in self.columns.iter().zip(&row.cells) {
                object.insert(column.heading(), cell.json());
            }
            Value::Object(object)
        });
        json!({
            "name": self.name,
            "title": self.title,
            "rows": rows.collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }

    /// A `table` element in a container of its own that scrolls, and the notes.
    pub fn html(&self) -> String {
        let mut html = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table class=\"numbers\">\n<thead>\n",
            escape(&self.title)
        );
        html += &self.html_heads();
        html += "</thead>\n<tbody>\n";
        for (group, row) in self.grouped() {
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

    /// Under its title.
    pub fn titled_html(&self) -> String {
        format!("<h3>{}</h3>\n{}", escape(&self.title), self.html())
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
