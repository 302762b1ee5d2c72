//! How many of a system's replies could be parsed, and how, and how many say nothing: shown with every accuracy.

use std::fmt;

use itertools::Itertools;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::metrics::over_runs::share;
use super::table::TableBuilder;
use crate::record::{CallLine, Parse};

/// The share of replies that could not be read or declined to answer, above which figures come with a warning.
pub const UNREAD_LIMIT: f64 = 0.05;
/// The share of replies that say nothing, above which figures come with a warning.
pub const VOID_LIMIT: f64 = 0.1;
/// Of figures of random weights.
pub const SYNTHETIC: &str =
    "Synthetic weights: every answer is noise, and these figures mean nothing.";
/// The shares that [`ParseHealth`] shows, in their order.
pub const SHARES: &str = "ok / repaired / fallback / refused / unread";
/// What a column of them is called.
pub const LABEL: &str = "read, %: ok / repaired / fallback / refused / unread";
/// What such a column shows.
pub const NOTE: &str = "Read: the shares of replies that were read as they were asked for, after repair, from their words (fallback), of those that declined to answer (refused), and of those not read at all (unread). In brackets: the share of replies, read or not, whose texts have hardly a word (void).";

/// Shares of all calls, from 0 to 1. The first five sum to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParseHealth {
    pub ok: f64,
    pub repaired: f64,
    pub fallback: f64,
    pub refused: f64,
    pub unread: f64,
    /// Of all replies, however they were read: see [`is_void`].
    #[serde(default, skip_serializing_if = "is_none")]
    pub void: f64,
}

fn is_none(share: &f64) -> bool {
    *share == 0.0
}

impl ParseHealth {
    /// `None` without calls.
    pub fn of<'a>(calls: impl IntoIterator<Item = &'a CallLine>) -> Option<ParseHealth> {
        let calls: Vec<&CallLine> = calls.into_iter().collect();
        let of = |is: &dyn Fn(&CallLine) -> bool| {
            share(calls.iter().filter(|call| is(call)).count(), calls.len())
        };
        Some(ParseHealth {
            ok: of(&|call| call.parse == Parse::Ok)?,
            repaired: of(&|call| call.parse == Parse::Repaired)?,
            fallback: of(&|call| call.parse == Parse::Fallback)?,
            refused: of(&|call| call.parse == Parse::Refused)?,
            unread: of(&|call| call.parse == Parse::Unread)?,
            void: of(&|call| is_void(&call.text))?,
        })
    }

    /// The warnings for figures of `whom`.
    pub fn warnings(&self, whom: &str) -> Vec<String> {
        warnings([(whom.to_owned(), *self)])
    }
}

/// The warnings for the figures of several, naming those of which more than [`UNREAD_LIMIT`] of the replies could not be read or declined to
/// answer, and those of which more than [`VOID_LIMIT`] say nothing.
pub fn warnings(of: impl IntoIterator<Item = (String, ParseHealth)>) -> Vec<String> {
    let (mut unread, mut void) = (Vec::new(), Vec::new());
    for (whom, health) in of {
        let ParseHealth { refused, unread: not_read, void: says_nothing, .. } = health;
        if not_read + refused > UNREAD_LIMIT {
            let silent = [("refused", refused), ("unread", not_read)];
            let silent = silent.iter().filter(|(_, share)| *share > 0.0);
            let silent =
                silent.map(|(name, share)| format!("{name} {:.1}", 100.0 * share)).join(", ");
            unread.push(format!("{whom} ({silent} %)"));
        }
        if says_nothing > VOID_LIMIT {
            void.push(format!("{whom} ({:.1} %)", 100.0 * says_nothing));
        }
    }
    let told = |whom: Vec<String>, limit: f64, what: &str| {
        (!whom.is_empty()).then(|| {
            let (whom, limit) = (whom.join(", "), 100.0 * limit);
            format!("Warning: of the replies of {whom} more than {limit:.0} % {what}")
        })
    };
    let of_unread = "could not be read, or declined to answer. Such figures say how a model writes as much as what it knows.";
    let of_void = "have hardly a word. What was read of them may be well-formed and mean nothing.";
    let told = [told(unread, UNREAD_LIMIT, of_unread), told(void, VOID_LIMIT, of_void)];
    told.into_iter().flatten().collect()
}

/// Percentages, in the order of [`SHARES`].
impl fmt::Display for ParseHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares = [self.ok, self.repaired, self.fallback, self.refused, self.unread];
        let shares = shares.map(|share| format!("{:.1}", 100.0 * share));
        f.write_str(&shares.join(" / "))?;
        if is_none(&self.void) { Ok(()) } else { write!(f, " (void {:.1})", 100.0 * self.void) }
    }
}

impl<R: Copy> TableBuilder<R> {
    /// How the replies behind a row were read: of every table of accuracies, and of what a run's page has beside them.
    pub fn replies(self, of: impl Fn(R) -> Option<ParseHealth>) -> Self {
        self.text(LABEL, |row| of(row).map(|health| health.to_string()))
    }
}

/// Whether a reply says nothing, well-formed or not: more than half of the texts in its record have fewer than two words. Of a reply in tags
/// what it thinks is such a text.
fn is_void(reply: &str) -> bool {
    let record = serde_json::from_str::<Value>(without_fence(reply)).ok();
    let mut texts = Vec::new();
    match &record {
        Some(record @ Value::Object(_)) => collect(record, &mut texts),
        _ => {
            let rest = reply.split_once("<think>").map(|(_, rest)| rest);
            texts.extend(rest.and_then(|rest| rest.split_once("</think>")).map(|(text, _)| text));
        }
    }
    2 * texts.iter().filter(|text| words(text) < 2).count() > texts.len()
}

fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inner.map_or(text, |inner| inner.trim_end_matches('`').trim())
}

/// Keys under which a word or a letter is all that is asked for.
fn is_label(key: &str) -> bool {
    const LABELS: &str = "answer option choice agree error label confidence role hierarchy expertise sentence_id name severity difficulty";
    let key = key.to_ascii_lowercase();
    LABELS.split(' ').any(|label| key.contains(label))
}

/// The texts of a record, but for those under the keys of labels.
fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(list) => list.iter().for_each(|one| collect(one, texts)),
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(key, value)| !(is_label(key) && value.is_string()));
            fields.for_each(|(_, value)| collect(value, texts));
        }
        _ => {}
    }
}

fn words(text: &str) -> usize {
    let is_word = |word: &&str| word.chars().filter(|c| c.is_alphabetic()).nth(1).is_some();
    match text.split_whitespace().filter(is_word).count() {
        // Chinese is written without spaces.
        1 if text.chars().filter(|c| *c as u32 >= 0x2E80).nth(3).is_some() => 2,
        count => count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixtures::call;

    fn health(parses: &[Parse]) -> Option<ParseHealth> {
        let calls = parses.iter().map(|parse| {
            let mut call = call("q1", 0, "sym");
            call.parse = *parse;
            call
        });
        ParseHealth::of(&calls.collect::<Vec<_>>())
    }

    #[test]
    fn every_reply_is_in_one_share() {
        use Parse::{Fallback, Ok, Refused, Repaired, Unread};
        let health = health(&[Ok, Repaired, Fallback, Refused, Unread]).unwrap();
        let ParseHealth { ok, repaired, fallback, refused, unread, .. } = health;
        assert_eq!([ok, repaired, fallback, refused, unread], [0.2; 5]);
        assert_eq!(health.to_string(), "20.0 / 20.0 / 20.0 / 20.0 / 20.0");
        assert_eq!(super::ParseHealth::of(&[]), None);
    }

    #[test]
    fn replies_that_say_nothing_are_counted_and_warned_of() {
        let replies = ["{\"Thought\": \"7\", \"Answer\": \"B\"}", "The answer is B."];
        let calls = replies.map(|text| {
            let mut call = call("q1", 0, "sym");
            call.text = text.to_owned();
            call
        });
        let health = ParseHealth::of(&calls).unwrap();
        assert!(health.to_string().ends_with(" (void 50.0)"), "{health}");
        let warning = health.warnings("a on b").concat();
        assert!(warning.contains("of a on b (50.0 %) more than 10 %"), "{warning}");
        let written = serde_json::to_string(&health).unwrap();
        assert_eq!(serde_json::from_str::<ParseHealth>(&written).unwrap(), health);
    }

    #[test]
    fn a_record_of_digits_and_marks_is_void() {
        for void in [
            r#"{"evidence": ["1", "", "..."], "answer": "B", "confidence": 0.9}"#,
            r#"{"Thought": "7", "Answer": "B"}"#,
            "<think>x</think>\nCORRECT",
        ] {
            assert!(is_void(void), "{void}");
        }
        for sound in [
            r#"{"evidence": ["fever and cough", "", "a high white count"], "answer": "B"}"#,
            r#"{"answer": "B"}"#,
            "B",
            "The answer is B.",
            r#"{"Thought": "肺炎的可能性最大", "Answer": "B"}"#,
            "<think>Warfarin is given.</think>\nCORRECT",
        ] {
            assert!(!is_void(sound), "{sound}");
        }
    }

    #[test]
    fn more_than_one_in_twenty_without_an_answer_is_warned_of() {
        use Parse::{Fallback, Refused, Unread};
        let with = |silent: &[Parse]| {
            let parses = [silent, &vec![Parse::Ok; 20 - silent.len()]].concat();
            health(&parses).unwrap().warnings("a on b").concat()
        };
        for one in [&[Unread][..], &[Refused], &[Fallback; 9]] {
            assert_eq!(with(one), "");
        }
        for (silent, shares) in [
            (&[Unread, Unread][..], "unread 10.0"),
            (&[Unread, Refused], "refused 5.0, unread 5.0"),
            (&[Refused; 18], "refused 90.0"),
        ] {
            let warning = with(silent);
            let told =
                format!("of a on b ({shares} %) more than 5 % could not be read, or declined");
            assert!(warning.contains(&told), "{warning}");
        }
    }
}
