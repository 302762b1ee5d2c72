//! How many of a system's replies could be parsed, and how: shown with every accuracy.

use std::fmt;

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use super::metrics::over_runs::share;
use super::substance::Substance;
use super::table::TableBuilder;
use crate::record::{CallLine, Parse};

/// The share of replies that could not be read or declined to answer, above which figures come with a warning.
pub const UNREAD_LIMIT: f64 = 0.05;
/// The share of replies that say nothing, above which figures come with a warning.
pub const HOLLOW_LIMIT: f64 = 0.1;
/// The shares that [`ParseHealth`] shows, in their order.
pub const SHARES: &str = "ok / repaired / fallback / refused / unread";
/// What a column of them is called.
pub const LABEL: &str = "read, %: ok / repaired / fallback / refused / unread";
/// What such a column shows.
pub const NOTE: &str = "Read: the shares of replies that were read as they were asked for, after repair, from their words (fallback), of those that declined to answer (refused), and of those not read at all (unread). In brackets: the shares of replies, read or not, whose texts have hardly a word (void), end in the same words again and again (looping), ran out of tokens or break off (cut), or contradict themselves (contradictory).";

/// Shares of all calls, from 0 to 1. The first five sum to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParseHealth {
    pub ok: f64,
    pub repaired: f64,
    pub fallback: f64,
    pub refused: f64,
    pub unread: f64,
    /// Of all replies, however they were read: see `analysis::substance`.
    #[serde(default, skip_serializing_if = "is_none")]
    pub void: f64,
    #[serde(default, skip_serializing_if = "is_none")]
    pub looping: f64,
    #[serde(default, skip_serializing_if = "is_none")]
    pub cut: f64,
    #[serde(default, skip_serializing_if = "is_none")]
    pub contradictory: f64,
}

fn is_none(share: &f64) -> bool {
    *share == 0.0
}

impl ParseHealth {
    /// `None` without calls.
    pub fn of<'a>(calls: impl IntoIterator<Item = &'a CallLine>) -> Option<ParseHealth> {
        let calls: Vec<(Parse, Substance)> =
            calls.into_iter().map(|call| (call.parse, Substance::of(call))).collect();
        let of = |is: fn(&(Parse, Substance)) -> bool| {
            share(calls.iter().filter(|call| is(call)).count(), calls.len())
        };
        Some(ParseHealth {
            ok: of(|call| call.0 == Parse::Ok)?,
            repaired: of(|call| call.0 == Parse::Repaired)?,
            fallback: of(|call| call.0 == Parse::Fallback)?,
            refused: of(|call| call.0 == Parse::Refused)?,
            unread: of(|call| call.0 == Parse::Unread)?,
            void: of(|call| call.1.is_void)?,
            looping: of(|call| call.1.is_looping)?,
            cut: of(|call| call.1.is_cut)?,
            contradictory: of(|call| call.1.is_contradictory)?,
        })
    }

    /// What the replies are beside how they were read.
    fn hollow(&self) -> [(&'static str, f64); 4] {
        let ParseHealth { void, looping, cut, contradictory, .. } = *self;
        [("void", void), ("looping", looping), ("cut", cut), ("contradictory", contradictory)]
    }

    /// The warnings for figures of `whom`.
    pub fn warnings(&self, whom: &str) -> Vec<String> {
        warnings([(whom.to_owned(), *self)])
    }
}

/// Those that are not 0, in percent.
fn named(shares: &[(&str, f64)]) -> String {
    let shares = shares.iter().filter(|(_, share)| *share > 0.0);
    shares.map(|(name, share)| format!("{name} {:.1}", 100.0 * share)).join(", ")
}

/// The warnings for the figures of several, naming those of which more than [`UNREAD_LIMIT`] of the replies could not be read or declined to
/// answer, and those of which more than [`HOLLOW_LIMIT`] say nothing.
pub fn warnings(of: impl IntoIterator<Item = (String, ParseHealth)>) -> Vec<String> {
    let of: Vec<(String, ParseHealth)> = of.into_iter().collect();
    let unread = of.iter().filter(|(_, one)| one.unread + one.refused > UNREAD_LIMIT);
    let unread = unread.map(|(whom, one)| {
        let silent = [("refused", one.refused), ("unread", one.unread)];
        format!("{whom} ({} %)", named(&silent))
    });
    let hollow = of.iter().filter(|(_, one)| one.hollow().iter().any(|(_, of)| *of > HOLLOW_LIMIT));
    let hollow = hollow.map(|(whom, one)| format!("{whom} ({} %)", named(&one.hollow())));
    let (unread, hollow): (Vec<String>, Vec<String>) = (unread.collect(), hollow.collect());
    let mut warnings = Vec::new();
    if !unread.is_empty() {
        warnings.push(format!(
            "Warning: of the replies of {} more than {:.0} % could not be read, or declined to answer. Such figures say how a model writes as much as what it knows.",
            unread.join(", "),
            100.0 * UNREAD_LIMIT
        ));
    }
    if !hollow.is_empty() {
        warnings.push(format!(
            "Warning: of the replies of {} more than {:.0} % have hardly a word, loop, are cut or contradict themselves. What was read of them may be well-formed and mean nothing.",
            hollow.join(", "),
            100.0 * HOLLOW_LIMIT
        ));
    }
    warnings
}

/// Percentages, in the order of [`SHARES`].
impl fmt::Display for ParseHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares = [self.ok, self.repaired, self.fallback, self.refused, self.unread];
        let shares = shares.map(|share| format!("{:.1}", 100.0 * share));
        f.write_str(&shares.join(" / "))?;
        match named(&self.hollow()) {
            none if none.is_empty() => Ok(()),
            hollow => write!(f, " ({hollow})"),
        }
    }
}

impl<R: Copy> TableBuilder<R> {
    /// How the replies behind a row were read: of every table of accuracies, and of what a run's page has beside them.
    pub fn replies(self, of: impl Fn(R) -> Option<ParseHealth>) -> Self {
        self.text(LABEL, |row| of(row).map(|health| health.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixtures::call;
    use crate::record::FinishReason;

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
            call.finish_reason = FinishReason::Stop;
            call
        });
        let health = ParseHealth::of(&calls).unwrap();
        assert!(health.to_string().ends_with(" (void 50.0)"), "{health}");
        let warning = health.warnings("a on b").concat();
        assert!(warning.contains("of a on b (void 50.0 %) more than 10 %"), "{warning}");
        let written = serde_json::to_string(&health).unwrap();
        assert!(!written.contains("looping"), "{written}");
        assert_eq!(serde_json::from_str::<ParseHealth>(&written).unwrap(), health);
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
