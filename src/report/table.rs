//! A table that prints itself: as Markdown, CSV, JSON, and as HTML for the page. Text forms round; CSV and JSON keep every digit.

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
pub struct Column {
    /// The heading that it shares with its neighbours; may be empty.
    pub over: String,
    pub label: String,
    pub kind: Kind,
}

/// What a column holds, and so how many fields it takes in CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Number,
    /// A mean, its standard deviation, and how many values they are of.
    Spread,
    /// A mean and the ends of its interval.
    Interval,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The heading that it stands under; may be empty.
    pub group: String,
    /// One for each column.
    pub cells: Vec<Cell>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Nothing,
    Text(String),
    Count(usize),
    /// A number and the digits that text shows of it.
    Number(f64, usize),
    Spread {
        mean: f64,
        std: Option<f64>,
        n: Option<usize>,
        /// Whether no other row does better.
        best: bool,
    },
    /// With a sign, being a difference.
    Interval {
        mean: f64,
        low: f64,
        high: f64,
    },
}

impl Column {
    pub fn new(label: impl Into<String>, kind: Kind) -> Column {
        let (over, label) = (String::new(), label.into());
        Column { over, label, kind }
    }

    pub fn under(over: &str, label: impl Into<String>, kind: Kind) -> Column {
        Column {
            over: over.to_owned(),
            ..Column::new(label, kind)
        }
    }

    fn heading(&self) -> String {
        match self.over.as_str() {
            "" => self.label.clone(),
            over => format!("{over}: {}", self.label),
        }
    }

    /// The headings of its fields in CSV.
    fn headings(&self) -> Vec<String> {
        let heading = self.heading();
        let parts: &[&str] = match self.kind {
            Kind::Text | Kind::Number => &[""],
            Kind::Spread => &["", " std", " n"],
            Kind::Interval => &["", " low", " high"],
        };
        parts
            .iter()
            .map(|part| format!("{heading}{part}"))
            .collect()
    }
}

impl Row {
    pub fn new(cells: Vec<Cell>) -> Row {
        let group = String::new();
        Row { group, cells }
    }
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    /// A fraction of 1, as accuracies are shown.
    pub fn share(value: Option<f64>) -> Cell {
        value.map_or(Cell::Nothing, |value| Cell::Number(value, 4))
    }

    /// As a person reads it.
    pub fn shown(&self) -> String {
        match self {
            Cell::Nothing => "–".to_owned(),
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => count.to_string(),
            Cell::Number(value, digits) => format!("{value:.digits$}"),
            Cell::Spread { mean, std, n, .. } => {
                let std = std.map_or(String::new(), |std| format!(" ± {std:.4}"));
                let n = n.map_or(String::new(), |n| format!(" (n = {n})"));
                format!("{mean:.4}{std}{n}")
            }
            Cell::Interval { mean, low, high } => format!("{mean:+.4} [{low:+.4}, {high:+.4}]"),
        }
    }

    fn is_best(&self) -> bool {
        matches!(self, Cell::Spread { best: true, .. })
    }

    /// As many as its column has headings.
    fn fields(&self, kind: Kind) -> Vec<String> {
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let mut fields = match self {
            Cell::Nothing => Vec::new(),
            Cell::Text(text) => vec![text.clone()],
            Cell::Count(count) => vec![count.to_string()],
            Cell::Number(value, _) => vec![value.to_string()],
            Cell::Spread { mean, std, n, .. } => {
                let n = n.map_or(String::new(), |n| n.to_string());
                vec![mean.to_string(), number(*std), n]
            }
            Cell::Interval { mean, low, high } => [mean, low, high].map(f64::to_string).to_vec(),
        };
        fields.resize(Column::new("", kind).headings().len(), String::new());
        fields
    }

    fn json(&self) -> Value {
        match self {
            Cell::Nothing => Value::Null,
            Cell::Text(text) => json!(text),
            Cell::Count(count) => json!(count),
            Cell::Number(value, _) => json!(value),
            Cell::Spread { mean, std, n, .. } => json!({"mean": mean, "std": std, "n": n}),
            Cell::Interval { mean, low, high } => json!({"mean": mean, "low": low, "high": high}),
        }
    }
}

impl Table {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let spread = |mean, best| Cell::Spread {
            mean,
            std: Some(0.125),
            n: Some(3),
            best,
        };
        let row = |group: &str, cells| Row {
            group: group.to_owned(),
            cells,
        };
        Table {
            name: "accuracy",
            title: "Accuracy <all>".to_owned(),
            columns: vec![
                Column::new("method", Kind::Text),
                Column::under("MedQA", "ours", Kind::Spread),
                Column::under("MedQA", "less paper", Kind::Interval),
            ],
            rows: vec![
                row(
                    "Single",
                    vec![
                        Cell::text("a, \"b\" | c"),
                        spread(1.0 / 3.0, true),
                        Cell::Nothing,
                    ],
                ),
                row(
                    "Single",
                    vec![
                        Cell::text("<script>"),
                        spread(0.25, false),
                        Cell::Interval {
                            mean: 0.1,
                            low: -0.2,
                            high: 0.4,
                        },
                    ],
                ),
                row("Panel", vec![Cell::text("d"), Cell::Nothing, Cell::Nothing]),
            ],
            notes: vec!["A note & more.".to_owned()],
        }
    }

    #[test]
    fn markdown_rounds_marks_the_best_and_keeps_its_columns() {
        let text = table().markdown();
        assert!(
            text.contains("| method | MedQA: ours | MedQA: less paper |\n| --- | ---: | ---: |")
        );
        assert!(
            text.contains(
                "| *Single* |  |  |\n| a, \"b\" \\| c | **0.3333 ± 0.1250 (n = 3)** | – |"
            )
        );
        assert!(text.contains("| +0.1000 [-0.2000, +0.4000] |\n| *Panel* |"));
        assert!(text.ends_with("\nA note & more.\n"));
    }

    #[test]
    fn csv_has_a_field_for_every_number_and_every_digit() {
        let text = table().csv();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let heads: Vec<String> = reader
            .headers()
            .unwrap()
            .iter()
            .map(str::to_owned)
            .collect();
        assert_eq!(heads[..3], ["group", "method", "MedQA: ours"]);
        assert_eq!(
            heads[5..],
            [
                "MedQA: less paper",
                "MedQA: less paper low",
                "MedQA: less paper high"
            ]
        );
        let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(&records[0][1], "a, \"b\" | c");
        assert_eq!(records[0][2].parse::<f64>().unwrap(), 1.0 / 3.0);
        assert_eq!(
            (&records[0][3], &records[0][4], &records[0][5]),
            ("0.125", "3", "")
        );
        assert_eq!(&records[1][7], "0.4");
        assert_eq!(records.len(), 3);
    }

    #[test]
    fn json_keeps_numbers_as_numbers() {
        let json = table().json();
        assert_eq!(json["rows"][0]["MedQA: ours"]["mean"], 1.0 / 3.0);
        assert_eq!(json["rows"][0]["MedQA: less paper"], Value::Null);
        assert_eq!(json["rows"][2]["group"], "Panel");
    }

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
