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
