//! How many of a system's replies could be parsed, and how, how many say nothing and how many were cut: shown with every accuracy.

use itertools::Itertools;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::metrics::over_runs::share;
use super::table::{Cell, Labelled, Table, TableBuilder};
use crate::record::{CallLine, FinishReason, Parse, is_default};

/// The share of replies that could not be read or declined to answer, above which figures come with a warning.
pub const UNREAD_LIMIT: f64 = 0.05;
/// The share of replies that were cut off, or say nothing, above which figures come with a warning.
pub const VOID_LIMIT: f64 = 0.1;
/// Of figures of random weights.
pub const SYNTHETIC: &str =
    "Synthetic weights: every answer is noise, and these figures mean nothing.";

/// Shares of all calls, from 0 to 1. The first five sum to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ParseHealth {
    pub ok: f64,
    pub repaired: f64,
    pub fallback: f64,
    pub refused: f64,
    pub unread: f64,
    /// Of all replies, however they were read: see `is_void`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub void: f64,
    /// Of all replies: those that ran out of tokens.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cut: f64,
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
            cut: of(&|call| call.finish_reason == FinishReason::Length)?,
        })
    }

    /// The percentage that could be read.
    pub fn read(&self) -> f64 {
        100.0 * (self.ok + self.repaired + self.fallback)
    }

    fn shares(&self) -> impl Iterator<Item = (&'static str, f64)> + Clone {
        let ParseHealth { ok, repaired, fallback, refused, unread, void, cut } = *self;
        let read = [("ok", ok), ("repaired", repaired), ("fallback", fallback)];
        let not = [("refused", refused), ("unread", unread), ("void", void), ("cut", cut)];
        read.into_iter().chain(not)
    }

    /// The warnings for the figures of one run.
    pub fn warnings(&self) -> Vec<String> {
        warnings([(String::new(), *self)], "runs")
    }
}

/// What figures are warned of where it is more than this share of their replies: the shares, in words, and what helps.
const WARNINGS: [(f64, &[&str], &str, &str); 3] = [
    (UNREAD_LIMIT, &["refused", "unread"], "could not be read or declined to answer", LARGER),
    (VOID_LIMIT, &["cut"], "were cut off", "allow more by --set max_tokens=N"),
    (
        VOID_LIMIT,
        &["void"],
        "have hardly a word, so what was read of them may mean nothing",
        LARGER,
    ),
];
const LARGER: &str = "try a larger model, or --set record=short where the system has it";

/// The warnings for the figures of several `nouns`: a sentence with its remedy, and below it on a line of its own which they are.
pub fn warnings(of: impl IntoIterator<Item = (String, ParseHealth)>, nouns: &str) -> Vec<String> {
    let of: Vec<(String, ParseHealth)> = of.into_iter().collect();
    let told = |(limit, names, what, remedy): (f64, &[&str], &str, &str)| {
        let poor = of.iter().filter_map(|(whom, health)| {
            let shares = health.shares().filter(|(name, _)| names.contains(name));
            let is_poor = shares.clone().map(|(_, share)| share).sum::<f64>() > limit;
            is_poor.then(|| format!("{whom} ({})", in_words(shares)))
        });
        let poor: Vec<String> = poor.collect();
        let what = format!("more than {:.0} % of the replies {what}", 100.0 * limit);
        match (&poor[..], of.len()) {
            ([], _) => None,
            ([one], 1) if one.starts_with(' ') => Some(format!("Warning: {what}{one}: {remedy}.")),
            (poor, all) => Some(format!(
                "Warning: in {} of {all} {nouns} {what}: {remedy}.\n{}",
                poor.len(),
                poor.join("; ")
            )),
        }
    };
    WARNINGS.into_iter().filter_map(told).collect()
}

/// Percentages, of those that are not 0.
fn in_words(shares: impl Iterator<Item = (&'static str, f64)>) -> String {
    let shares = shares.filter(|(_, share)| *share > 0.0);
    let mut shares = shares.map(|(name, share)| format!("{name} {:.1}", 100.0 * share));
    format!("{} %", shares.join(", "))
}

impl<R: Copy> TableBuilder<R> {
    /// The share of the replies behind a row that could be read: of every table of accuracies.
    pub fn replies(self, of: impl Fn(R) -> Option<ParseHealth>) -> Self {
        self.number("read %", |row| of(row).map(|health| Cell::Number(health.read(), 1)))
    }
}

/// How the replies behind each row were read; `None` where none has any.
pub fn table<T>(rows: &[Labelled<'_, T>]) -> Option<Table> {
    let rows =
        rows.iter().filter_map(|row| Some((row.group.clone(), (row.label.as_str(), row.health?))));
    let mut table =
        Table::grouped("replies", "How replies were read, in % of all", rows).text("", |row| row.0);
    for (place, (name, _)) in ParseHealth::default().shares().enumerate() {
        let share =
            |health: ParseHealth| health.shares().nth(place).map(|(_, share)| 100.0 * share);
        table = table.number(name, |(_, health)| share(health).map(|it| Cell::Number(it, 1)));
    }
    table
        .note("Ok: in the form that was asked for. Repaired: after its JSON was repaired. Fallback: from the words of a text of another form. Refused: the model declined to answer. Unread: nothing of what was asked for could be read. These five make 100. Void: hardly a word in the reply, read or not. Cut: it ran out of tokens.")
        .unless_empty()
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
        let told = "ok 20.0, repaired 20.0, fallback 20.0, refused 20.0, unread 20.0 %";
        assert_eq!(in_words(health.shares()), told);
        assert_eq!(super::ParseHealth::of(&[]), None);
    }

    #[test]
    fn replies_that_say_nothing_or_are_cut_are_counted_and_warned_of() {
        let replies = ["{\"Thought\": \"7\", \"Answer\": \"B\"}", "The answer is B."];
        let calls = replies.map(|text| {
            let mut call = call("q1", 0, "sym");
            call.text = text.to_owned();
            call
        });
        let void = ParseHealth::of(&calls).unwrap();
        assert!(in_words(void.shares()).ends_with(", void 50.0 %"), "{void:?}");
        let warning = void.warnings().concat();
        assert!(warning.contains("may mean nothing (void 50.0 %): try"), "{warning}");
        let written = serde_json::to_string(&void).unwrap();
        assert_eq!(serde_json::from_str::<ParseHealth>(&written).unwrap(), void);

        let cut = calls.map(|call| CallLine { finish_reason: FinishReason::Length, ..call });
        let cut = ParseHealth::of(&cut).unwrap();
        let warning = cut.warnings().concat();
        let told = "were cut off (cut 100.0 %): allow more by --set max_tokens=N.";
        assert!(warning.contains(told), "{warning}");
        let both = warnings([("a".to_owned(), void), ("b".to_owned(), cut)], "cells");
        assert!(both[0].starts_with("Warning: in 1 of 2 cells more than 10 % of the replies were"));
        assert!(both[0].ends_with(".\nb (cut 100.0 %)"), "{both:?}");
        assert!(both[1].ends_with(".\na (void 50.0 %); b (void 50.0 %)"), "{both:?}");
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
            health(&parses).unwrap().warnings().concat()
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
            let told = format!(
                "more than 5 % of the replies could not be read or declined to answer ({shares} %): "
            );
            assert!(warning.contains(&told), "{warning}");
        }
    }
}
