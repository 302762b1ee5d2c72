//! How many of a system's replies could be parsed, and how: shown with every accuracy.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::experiment::results::ParseCounts;
use crate::record::CallLine;

/// The share of unread replies above which figures come with a warning.
pub const UNREAD_LIMIT: f64 = 0.05;
/// The shares that [`ParseHealth`] shows, in their order.
pub const SHARES: &str = "ok / repaired / fallback / unread";
/// What a column of them is called.
pub const LABEL: &str = "read, %: ok / repaired / fallback / unread";
/// What such a column shows.
pub const NOTE: &str = "Read: the shares of replies that were read as they were asked for, after repair, from their words (fallback), and not at all (unread); what is missing to 100 % declined to answer.";

/// Shares of all calls, from 0 to 1; they sum to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParseHealth {
    pub ok: f64,
    pub repaired: f64,
    pub fallback: f64,
    pub refused: f64,
    pub unread: f64,
}

impl ParseHealth {
    /// `None` without calls.
    pub fn of<'a>(calls: impl IntoIterator<Item = &'a CallLine>) -> Option<ParseHealth> {
        let counts = ParseCounts::of(calls);
        let ParseCounts { ok, repaired, fallback, refused, unread, .. } = counts;
        let all = ok + repaired + fallback + refused + unread;
        let share = |count: usize| count as f64 / all as f64;
        (all > 0).then(|| ParseHealth {
            ok: share(ok),
            repaired: share(repaired),
            fallback: share(fallback),
            refused: share(refused),
            unread: share(unread),
        })
    }

    /// The warning for figures of `whom`, where more than [`UNREAD_LIMIT`] of the replies could not be read.
    pub fn warning(&self, whom: &str) -> Option<String> {
        warning([(whom.to_owned(), *self)])
    }
}

/// One warning for the figures of several, naming those of which more than [`UNREAD_LIMIT`] of the replies could not be read.
pub fn warning(of: impl IntoIterator<Item = (String, ParseHealth)>) -> Option<String> {
    let of = of.into_iter().filter(|(_, health)| health.unread > UNREAD_LIMIT);
    let of: Vec<String> =
        of.map(|(whom, health)| format!("{whom} ({:.1} %)", 100.0 * health.unread)).collect();
    (!of.is_empty()).then(|| {
        format!(
            "Warning: more than {:.0} % of the replies could not be read of {}. Such figures say how a model writes as much as what it knows.",
            100.0 * UNREAD_LIMIT,
            of.join(", ")
        )
    })
}

/// Percentages, in the order of [`SHARES`].
impl fmt::Display for ParseHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares = [self.ok, self.repaired, self.fallback, self.unread];
        let shares = shares.map(|share| format!("{:.1}", 100.0 * share));
        f.write_str(&shares.join(" / "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixtures::call;
    use crate::record::Parse;

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
        let health = health(&Parse::ALL).unwrap();
        let ParseHealth { ok, repaired, fallback, refused, unread } = health;
        assert_eq!([ok, repaired, fallback, refused, unread], [0.2; 5]);
        assert_eq!(health.to_string(), "20.0 / 20.0 / 20.0 / 20.0");
        assert_eq!(super::ParseHealth::of(&[]), None);
    }

    #[test]
    fn more_than_one_in_twenty_unread_is_warned_of() {
        let with = |unread: usize, of: usize| {
            let parses = [vec![Parse::Unread; unread], vec![Parse::Ok; of - unread]].concat();
            health(&parses).unwrap().warning("a on b")
        };
        assert_eq!(with(1, 20), None);
        let warning = with(2, 20).unwrap();
        assert!(
            warning.contains("more than 5 % of the replies could not be read of a on b (10.0 %)."),
            "{warning}"
        );
        assert_eq!(health(&[Parse::Fallback, Parse::Refused]).unwrap().warning("a"), None);
    }
}
