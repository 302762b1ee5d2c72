//! Whether a note has an error: a flag that only a reply which was read can give; without one it is unread.

use serde::{Deserialize, Serialize};

use super::{CallLine, Parse};

/// That a reply was read. There is no other way to it than a call whose reply was; an outcome that asks for one therefore has no default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Basis(());

impl CallLine {
    /// `None` of a reply that could not be read, and of a refusal.
    pub fn basis(&self) -> Option<Basis> {
        match self.parse {
            Parse::Ok | Parse::Repaired | Parse::Fallback => Some(Basis(())),
            Parse::Refused | Parse::Unread => None,
        }
    }
}

/// Whether a note has an error. Logs have `true`, `false`, or `null` for what is unread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Flag(Option<bool>);

impl Flag {
    /// Unread without a basis, and where what was read does not say.
    pub fn on(basis: Option<Basis>, has_error: Option<bool>) -> Flag {
        Flag(basis.and(has_error))
    }

    pub fn said(self) -> Option<bool> {
        self.0
    }

    /// The basis of what is said, for an outcome that is made of this one.
    pub fn basis(self) -> Option<Basis> {
        self.0.map(|_| Basis(()))
    }

    pub fn is_read(self) -> bool {
        self.0.is_some()
    }

    pub fn has_error(self) -> bool {
        self.0 == Some(true)
    }

    /// Whether it says that there is no error; what is unread does not.
    pub fn is_clear(self) -> bool {
        self.0 == Some(false)
    }
}

/// `1 item`, `2 items`.
pub fn count(number: impl std::fmt::Display, noun: &str) -> String {
    let number = number.to_string();
    format!("{number} {noun}{}", if number == "1" { "" } else { "s" })
}

/// A sentence of a note as people count, from 1; in files and logs the first is 0.
pub fn sentence_in_words(id: usize) -> String {
    format!("sentence {}", id + 1)
}

/// What was found in a note, in the words of every page, terminal and reply.
pub fn found_in_words(has_error: bool, sentence_id: Option<usize>) -> String {
    match (has_error, sentence_id) {
        (true, Some(id)) => format!("an error in {}", sentence_in_words(id)),
        (true, None) => "an error".to_owned(),
        (false, _) => "no error".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixtures;

    /// For tests, which make outcomes without calls.
    impl From<Option<bool>> for Flag {
        fn from(said: Option<bool>) -> Flag {
            Flag(said)
        }
    }

    #[test]
    fn a_flag_without_a_reply_that_was_read_is_unread() {
        let mut call = fixtures::call("q1", 1, "sym");
        use Parse::{Fallback, Ok, Refused, Repaired, Unread};
        for parse in [Ok, Repaired, Fallback, Refused, Unread] {
            call.parse = parse;
            let is_read = !matches!(parse, Parse::Refused | Parse::Unread);
            for said in [Some(true), Some(false), None] {
                let expected = said.filter(|_| is_read);
                assert_eq!(Flag::on(call.basis(), said).said(), expected, "{parse:?}");
            }
        }
        assert_eq!(Flag::default().basis(), None);
    }

    #[test]
    fn people_count_sentences_from_one() {
        assert_eq!(found_in_words(true, Some(0)), "an error in sentence 1");
        assert_eq!(found_in_words(true, None), "an error");
        assert_eq!(found_in_words(false, Some(4)), "no error");
    }

    #[test]
    fn logs_have_a_flag_as_true_false_or_null() {
        for (text, said) in [("true", Some(true)), ("false", Some(false)), ("null", None)] {
            let flag: Flag = serde_json::from_str(text).unwrap();
            assert_eq!((flag.said(), serde_json::to_string(&flag).unwrap()), (said, text.into()));
        }
    }
}
