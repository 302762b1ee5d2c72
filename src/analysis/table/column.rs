//! A column: its headings, and what it holds.

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
    pub fn new(label: impl Into<String>, kind: Kind) -> Column {
        let (over, label) = (String::new(), label.into());
        Column { over, label, kind }
    }

    pub fn texts(labels: &[&str]) -> Vec<Column> {
        let labels = labels.iter();
        labels.map(|label| Column::new(*label, Kind::Text)).collect()
    }

    pub fn numbers(labels: &[&str]) -> Vec<Column> {
        let labels = labels.iter();
        labels.map(|label| Column::new(*label, Kind::Number)).collect()
    }

    pub fn under(over: &str, label: impl Into<String>, kind: Kind) -> Column {
        Column { over: over.to_owned(), ..Column::new(label, kind) }
    }

    pub(super) fn heading(&self) -> String {
        match self.over.as_str() {
            "" => self.label.clone(),
            over => format!("{over}: {}", self.label),
        }
    }

    /// The headings of its fields in CSV.
    pub(super) fn headings(&self) -> Vec<String> {
        let heading = self.heading();
        let parts: &[&str] = match self.kind {
            Kind::Text | Kind::Number => &[""],
            Kind::Spread => &["", " std", " n"],
            Kind::Interval => &["", " low", " high"],
        };
        parts.iter().map(|part| format!("{heading}{part}")).collect()
    }
}
