//! What is wrong with a file of TOML, a system's or a recipe's: where, and what may help.

use std::fmt;

use crate::diagnosis::Failure;
use crate::outside;

/// What is wrong, and in which table of the file or under which key.
#[derive(Debug, Default)]
pub struct Fault {
    /// The byte of the text at which it is, where that is known.
    at: Option<usize>,
    /// A table and its name, as `stage` and `answer`.
    of: Option<(&'static str, String)>,
    key: String,
    problem: Box<str>,
    hint: Box<str>,
}

impl Fault {
    pub fn new(key: &str, problem: impl Into<String>, hint: impl Into<String>) -> Fault {
        let (problem, hint) = (problem.into().into(), hint.into().into());
        Fault { key: key.to_owned(), problem, hint, ..Fault::default() }
    }

    pub fn within(self, table: &'static str, name: &str) -> Fault {
        Fault { of: Some((table, name.to_owned())), ..self }
    }

    /// Of a file whose keys this page of docs/ lists.
    pub fn of_toml(error: &toml::de::Error, page: &str) -> Fault {
        let hint = format!("docs/{page} lists the keys");
        Fault { at: error.span().map(|span| span.start), ..Fault::new("", error.message(), hint) }
    }

    /// What is wrong with the value of a key; the page of docs/ says more, where the error has no hint of its own.
    pub fn under(key: &str, error: &Failure, page: &str) -> Fault {
        let hint = error.hint().unwrap_or_else(|| format!("docs/{page} says more"));
        Fault::new(key, error.to_string(), hint)
    }

    /// As an error of the file at `place` with this text.
    pub fn told(self, place: &str, text: &str) -> Failure {
        Failure::usage(format!("{place}, line {}: {self}", self.line(text)), &self.hint)
    }

    /// The line of the text, from 1: of the key, in the table of that name; the name's, where the key is not there.
    fn line(&self, text: &str) -> usize {
        let at = self.at.or_else(|| self.place(text)).unwrap_or_default();
        1 + text.get(..at).unwrap_or(text).matches('\n').count()
    }

    /// The byte of the text at which that stands.
    fn place(&self, text: &str) -> Option<usize> {
        let keys = outside::toml_keys(text).ok()?;
        let table = match &self.of {
            None => keys.get_ref(),
            Some((table, name)) => {
                let all = keys.get_ref().get(*table)?.get_ref().as_array()?.iter();
                let mut all = all.filter_map(|one| one.get_ref().as_table());
                all.find(|one| {
                    one.get("name").and_then(|own| own.get_ref().as_str()) == Some(name.as_str())
                })?
            }
        };
        let mut inner = table.values().filter_map(|value| value.get_ref().as_table());
        let found = table.get_key_value(self.key.as_str()).or_else(|| table.get_key_value("name"));
        let found = found.or_else(|| inner.find_map(|one| one.get_key_value(self.key.as_str())));
        found.map(|(key, _)| key.span().start)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((table, name)) = &self.of {
            write!(f, "{table} {name}, ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(self.problem.trim_end())
    }
}
