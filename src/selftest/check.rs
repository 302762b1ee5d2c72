//! One thing that was looked at, and what came of it.

use serde::{Deserialize, Serialize};

/// What came of a check; the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Told, with nothing to compare it with.
    Note,
    Ok,
    /// Otherwise than it should be.
    Differs,
    /// Missing, corrupt, or of something else.
    Broken,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            State::Note => "note",
            State::Ok => "ok",
            State::Differs => "DIFFERS",
            State::Broken => "BROKEN",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: String,
    pub state: State,
    /// In words.
    pub found: String,
}

impl Check {
    pub fn note(name: &str, found: impl Into<String>) -> Check {
        Check { name: name.to_owned(), state: State::Note, found: found.into() }
    }

    pub fn ok(name: &str, found: impl Into<String>) -> Check {
        Check { name: name.to_owned(), state: State::Ok, found: found.into() }
    }

    pub fn differs(name: &str, found: impl Into<String>) -> Check {
        Check { name: name.to_owned(), state: State::Differs, found: found.into() }
    }

    pub fn broken(name: &str, found: impl Into<String>) -> Check {
        Check { name: name.to_owned(), state: State::Broken, found: found.into() }
    }
}

/// Some of a list, and how many more there are.
pub fn some(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_state_is_the_greatest() {
        let mut states = [State::Broken, State::Note, State::Differs, State::Ok];
        states.sort();
        assert_eq!(states, [State::Note, State::Ok, State::Differs, State::Broken]);
    }

    #[test]
    fn a_long_list_is_cut_and_counted() {
        let names: Vec<String> = (1..=7).map(|name| name.to_string()).collect();
        assert_eq!(some(&names), "1, 2, 3, 4, 5 and 2 more");
        assert_eq!(some(&names[..2]), "1, 2");
    }
}
