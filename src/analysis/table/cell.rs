//! A cell: what it holds, and how that is written.

use serde_json::{Value, json};

use crate::analysis::metrics::bootstrap::Estimate;
use crate::analysis::metrics::over_runs::{OverRuns, Spread, plain};

#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Nothing,
    Text(String),
    Count(usize),
    /// A number and the digits that text shows of it.
    Number(f64, usize),
    /// And whether no other row does better.
    Spread(Spread, bool),
    /// A difference, with a sign. What its interval is over stands under the table.
    Estimate(Estimate),
    /// A text of several figures, and those as CSV has them.
    Figures(String, Vec<Value>),
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Cell {
        Cell::Text(text.clone())
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Cell {
        Cell::Count(count)
    }
}

/// A fraction of 1, as accuracies are shown.
impl From<f64> for Cell {
    fn from(share: f64) -> Cell {
        Cell::Number(share, 4)
    }
}

impl From<Spread> for Cell {
    fn from(spread: Spread) -> Cell {
        Cell::Spread(spread, false)
    }
}

/// A mean with its spread over the runs.
impl From<&OverRuns> for Cell {
    fn from(figure: &OverRuns) -> Cell {
        Spread::from(figure).into()
    }
}

/// A difference with its interval.
impl From<&Estimate> for Cell {
    fn from(estimate: &Estimate) -> Cell {
        Cell::Estimate(*estimate)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Nothing, T::into)
    }
}

impl Cell {
    /// As a person reads it.
    pub fn shown(&self) -> String {
        match self {
            Cell::Nothing => "–".to_owned(),
            Cell::Text(text) | Cell::Figures(text, _) => text.clone(),
            Cell::Count(count) => count.to_string(),
            Cell::Number(value, digits) => plain(*value, *digits),
            Cell::Spread(spread, _) => spread.to_string(),
            Cell::Estimate(estimate) => estimate.to_string(),
        }
    }

    /// Whether no other row does better.
    pub fn is_best(&self) -> bool {
        matches!(self, Cell::Spread(_, true))
    }

    /// The estimate that it shows.
    pub(super) fn estimate(&self) -> Option<&Estimate> {
        match self {
            Cell::Estimate(estimate) => Some(estimate),
            _ => None,
        }
    }

    /// What it holds, each by its name; of a cell of one value it has none.
    fn values(&self) -> Vec<(&'static str, Value)> {
        match self {
            Cell::Nothing => Vec::new(),
            Cell::Text(text) | Cell::Figures(text, _) => vec![("", json!(text))],
            Cell::Count(count) => vec![("", json!(count))],
            Cell::Number(value, _) => vec![("", json!(value))],
            Cell::Spread(Spread { mean, std, n }, _) => {
                vec![("mean", json!(mean)), ("std", json!(std)), ("n", json!(n))]
            }
            Cell::Estimate(Estimate { mean, low, high, .. }) => {
                vec![("mean", json!(mean)), ("low", json!(low)), ("high", json!(high))]
            }
        }
    }

    /// As many as its column has headings. A text among figures, such as that there is no gold, is no figure.
    pub(super) fn fields(&self, column: &Column) -> Vec<String> {
        let values: Vec<Value> = match self {
            Cell::Figures(_, figures) => figures.clone(),
            Cell::Text(_) if column.kind != Kind::Text => Vec::new(),
            _ => self.values().into_iter().map(|(_, value)| value).collect(),
        };
        let field = |value| match value {
            Value::Null => String::new(),
            Value::String(text) => text,
            number => number.to_string(),
        };
        let mut fields: Vec<String> = values.into_iter().map(field).collect();
        fields.resize(column.headings().len(), String::new());
        fields
    }

    pub(super) fn json(&self) -> Value {
        let mut values = self.values();
        match values.len() {
            0 => Value::Null,
            1 => values.remove(0).1,
            _ => values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The heading that it shares with its neighbours; may be empty.
    pub over: String,
    pub label: String,
    pub kind: Kind,
    /// What the figures of its texts are called in CSV, in place of the label; empty where a text has none.
    pub figures: Vec<String>,
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

impl Column {
    /// With that which it shares.
    pub fn heading(&self) -> String {
        match self.over.as_str() {
            "" => self.label.clone(),
            over => format!("{over}: {}", self.label),
        }
    }

    /// The headings of its fields in CSV.
    pub(super) fn headings(&self) -> Vec<String> {
        let own: Vec<&str> = self.figures.iter().map(String::as_str).collect();
        let (heading, fields) = match own.is_empty() {
            true => (self.heading(), self.kind.fields()),
            false => (self.over.clone(), &own[..]),
        };
        fields.iter().map(|field| name(&format!("{heading} {field}"))).collect()
    }
}

/// A heading that scripts write easily: words in small letters with `_` between, signs as words.
fn name(heading: &str) -> String {
    let signs = [("%", " percent "), ("−", " less "), ("→", " to "), ("'", "")];
    let text =
        signs.iter().fold(heading.to_lowercase(), |text, (sign, word)| text.replace(sign, word));
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("_");
    if name.is_empty() { "row".to_owned() } else { name }
}

impl Kind {
    /// What its fields' headings add to the column's.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Kind::Text | Kind::Number => &[""],
            Kind::Spread => &["mean", "std", "n"],
            Kind::Interval => &["mean", "low", "high"],
        }
    }
}
