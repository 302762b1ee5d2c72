//! A cell: what it holds, and how that is written.

use serde_json::{Value, json};

use crate::analysis::metrics::bootstrap::Estimate;
use crate::analysis::metrics::over_runs::{OverRuns, Spread, plain, signed};

#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Nothing,
    Text(String),
    Count(usize),
    /// A number and the digits that text shows of it.
    Number(f64, usize),
    /// And whether no other row does better.
    Spread(Spread, bool),
    /// A paper's, with a sign, being a difference; without an interval where it prints none.
    Interval {
        mean: f64,
        low: Option<f64>,
        high: Option<f64>,
    },
    /// Ours. What its interval is over stands under the table.
    Estimate(Estimate),
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
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => count.to_string(),
            Cell::Number(value, digits) => plain(*value, *digits),
            Cell::Spread(spread, _) => spread.to_string(),
            Cell::Interval { mean, low, high } => {
                let ends = |(low, high)| format!(" [{}, {}]", signed(low, 4), signed(high, 4));
                signed(*mean, 4) + &low.zip(*high).map(ends).unwrap_or_default()
            }
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
            Cell::Text(text) => vec![("", json!(text))],
            Cell::Count(count) => vec![("", json!(count))],
            Cell::Number(value, _) => vec![("", json!(value))],
            Cell::Spread(Spread { mean, std, n }, _) => {
                vec![("mean", json!(mean)), ("std", json!(std)), ("n", json!(n))]
            }
            Cell::Interval { mean, low, high }
            | Cell::Estimate(Estimate { mean, low, high, .. }) => {
                vec![("mean", json!(mean)), ("low", json!(low)), ("high", json!(high))]
            }
        }
    }

    /// As many as its column has headings.
    pub(super) fn fields(&self, kind: Kind) -> Vec<String> {
        let field = |(_, value)| match value {
            Value::Null => String::new(),
            Value::String(text) => text,
            number => number.to_string(),
        };
        let mut fields: Vec<String> = self.values().into_iter().map(field).collect();
        fields.resize(kind.fields().len(), String::new());
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
        let heading = self.heading();
        self.kind.fields().iter().map(|field| format!("{heading}{field}")).collect()
    }
}

impl Kind {
    /// What its fields' headings add to the column's.
    pub(super) fn fields(self) -> &'static [&'static str] {
        match self {
            Kind::Text | Kind::Number => &[""],
            Kind::Spread => &["", " std", " n"],
            Kind::Interval => &["", " low", " high"],
        }
    }
}
