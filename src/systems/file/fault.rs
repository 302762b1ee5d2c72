//! What is wrong with a file of TOML, a system's or a recipe's: where, and what may help.

use std::fmt;

use crate::diagnosis::Failure;

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

    /// In the `[[table]]` of this name.
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
        if let Some(at) = self.at {
            return 1 + text.get(..at).unwrap_or(text).matches('\n').count();
        }
        let (table, name) = self.of.as_ref().map_or(("", ""), |(table, name)| (*table, name));
        let (header, within, quoted) =
            (format!("[[{table}]]"), format!("{table}."), format!("\"{name}\""));
        let is_key = |line: &str, key: &str| {
            let line = line.trim_start_matches(['[', ' ']);
            let after = line.strip_prefix(&within).unwrap_or(line).strip_prefix(key);
            after.is_some_and(|after| after.trim_start().starts_with(['=', ']', '.']))
        };
        let is_name = |line: &str| is_key(line, "name") && line.contains(&quoted);
        let (mut begins, mut named) = (0, None);
        for (number, line) in text.lines().enumerate().filter(|_| self.of.is_some()) {
            if line.starts_with("[[") {
                begins = if line.starts_with(&header) { number + 1 } else { 0 };
            }
            if begins > 0 && is_name(line) {
                named = Some(number);
                break;
            }
        }
        let start = if named.is_some() { begins } else { 0 };
        let mut own = text.lines().skip(start);
        let key = match self.of {
            Some(_) => own
                .take_while(|line| !line.starts_with("[["))
                .position(|line| is_key(line, &self.key)),
            None => own.position(|line| is_key(line, &self.key)),
        };
        1 + key.map_or(named.unwrap_or(0), |key| start + key)
    }
}

/// What is wrong, without the place.
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
