//! A pattern that the source spells out.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::{Captures, Match, Regex};

/// A pattern that is compiled when it is first looked for. One that does not compile finds nothing.
pub struct Pattern {
    text: &'static str,
    regex: OnceLock<Option<Regex>>,
}

impl Pattern {
    pub const fn new(text: &'static str) -> Pattern {
        Pattern { text, regex: OnceLock::new() }
    }

    /// `None` where it does not compile.
    pub fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| Regex::new(self.text).ok()).as_ref()
    }

    pub fn is_match(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }

    pub fn find<'t>(&self, text: &'t str) -> Option<Match<'t>> {
        self.regex()?.find(text)
    }

    pub fn find_iter<'t>(&self, text: &'t str) -> impl Iterator<Item = Match<'t>> {
        self.regex().into_iter().flat_map(move |regex| regex.find_iter(text))
    }

    pub fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.regex()?.captures(text)
    }

    pub fn captures_iter<'t>(&self, text: &'t str) -> impl Iterator<Item = Captures<'t>> {
        self.regex().into_iter().flat_map(move |regex| regex.captures_iter(text))
    }

    pub fn replace_all<'t>(&self, text: &'t str, by: &str) -> Cow<'t, str> {
        self.regex().map_or(text.into(), |regex| regex.replace_all(text, by))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_compile_finds_nothing() {
        let digits = Pattern::new(r"\d+");
        let found: Vec<&str> = digits.find_iter("1, 22").map(|digits| digits.as_str()).collect();
        assert_eq!(found, ["1", "22"]);
        assert_eq!(digits.replace_all("1, 22", "n"), "n, n");
        let broken = Pattern::new("(");
        assert!(broken.regex().is_none() && !broken.is_match("(") && broken.captures("").is_none());
        assert_eq!(broken.captures_iter("(").count(), 0);
        assert_eq!(broken.replace_all("(", ""), "(");
    }
}
