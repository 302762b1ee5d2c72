//! Exact Shapley values of the agents for the panel's answer (Shapley, 1953): v(S) is 1 where the agents of S alone answer as all do, else 0;
//! v(∅) = 0.

use std::fmt;

use serde::Serialize;

/// What the members of a panel answer without the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Coalition {
    pub agents: Vec<String>,
    pub answer: String,
}

#[derive(Debug, PartialEq, Serialize)]
pub struct Shapley {
    /// That of all.
    pub answer: String,
    /// In panel order. They sum to v of all, which is 1, or 0 where the panel has no answer: then there is nothing to explain, and all are 0.
    pub values: Vec<Value>,
    /// Every one but the empty, the whole panel last.
    pub coalitions: Vec<Coalition>,
}

/// An agent's value: `parts` of `of`, which is the number of orders in which the agents may come.
#[derive(Debug, PartialEq, Serialize)]
pub struct Value {
    pub agent: String,
    pub parts: i64,
    pub of: i64,
    pub value: f64,
}

/// As a fraction in lowest terms.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut divisor, mut rest) = (self.of, self.parts.abs());
        while rest != 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        match (self.parts / divisor, self.of / divisor) {
            (whole, 1) => write!(f, "{whole}"),
            (parts, of) => write!(f, "{parts}/{of}"),
        }
    }
}

/// `coalitions` are in the order of the binary numbers whose digit `i` says whether agent `i` is there.
pub fn shapley(agents: &[String], coalitions: Vec<Coalition>) -> Shapley {
    let answer = coalitions.last().map(|all| all.answer.clone()).unwrap_or_default();
    let is_won = |members: usize| {
        let coalition = members.checked_sub(1).and_then(|at| coalitions.get(at));
        i64::from(!answer.is_empty() && coalition.is_some_and(|one| one.answer == answer))
    };
    let (n, of) = (agents.len() as i64, factorial(agents.len() as i64));
    let value = |(place, agent): (usize, &String)| {
        let own = 1_usize << place;
        let others = (0..1_usize << agents.len()).filter(|members| members & own == 0);
        let gain = |members: usize| {
            let size = i64::from(members.count_ones());
            factorial(size) * factorial(n - size - 1) * (is_won(members | own) - is_won(members))
        };
        let parts = others.map(gain).sum();
        Value { agent: agent.clone(), parts, of, value: parts as f64 / of as f64 }
    };
    let values = agents.iter().enumerate().map(value).collect();
    Shapley { answer, values, coalitions }
}

fn factorial(n: i64) -> i64 {
    (1..=n).product()
}

impl Shapley {
    /// The agents without each of whom alone the others answer otherwise.
    pub fn pivotal(&self) -> impl Iterator<Item = &str> {
        let n = self.values.len();
        let lacks = move |agent: &str| {
            let mut others = self.coalitions.iter();
            let without = |one: &&Coalition| {
                one.agents.len() + 1 == n && !one.agents.iter().any(|there| there == agent)
            };
            others.find(without).is_some_and(|others| others.answer != self.answer)
        };
        let agents = self.values.iter().map(|value| value.agent.as_str());
        agents.filter(move |agent| n > 1 && lacks(agent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    fn agents(n: usize) -> Vec<String> {
        (0..n).map(|agent| format!("agent-{agent}")).collect()
    }

    /// The values of a game, whose answer is A where it is won.
    fn parts(n: usize, is_won: impl Fn(usize) -> bool) -> Vec<i64> {
        let coalition = |members: usize| Coalition {
            agents: agents(n)
                .into_iter()
                .enumerate()
                .filter(|(at, _)| members >> at & 1 == 1)
                .map(|(_, agent)| agent)
                .collect(),
            answer: if is_won(members) { "A" } else { "B" }.to_owned(),
        };
        let found = shapley(&agents(n), (1..1 << n).map(coalition).collect());
        found.values.into_iter().map(|value| value.parts).collect()
    }

    #[test]
    fn known_games_have_their_values() {
        // One decides; a majority of three; a veto of the first over two others; of one alone all.
        assert_eq!(parts(3, |members| members & 2 != 0), [0, 6, 0]);
        assert_eq!(parts(3, |members| members.count_ones() >= 2), [2, 2, 2]);
        assert_eq!(parts(3, |members| members & 1 != 0 && members != 1), [4, 1, 1]);
        assert_eq!(parts(1, |_| true), [1]);
        // Who spoils it for the others has less than nothing.
        assert_eq!(parts(2, |members| members != 2), [2, 0]);
        assert_eq!(parts(3, |members| members != 6 && members != 2), [5, -1, 2]);
    }

    #[test]
    fn values_sum_to_what_the_whole_panel_has() {
        let mut random = SplitMix64::new(7);
        for n in 1..=6 {
            for _ in 0..50 {
                let game: Vec<bool> = (0..1 << n).map(|_| random.below(2) == 1).collect();
                let all = (1 << n) - 1;
                let parts = parts(n, |members| members == all || game[members]);
                assert_eq!(parts.iter().sum::<i64>(), factorial(n as i64));
            }
        }
    }

    #[test]
    fn a_panel_without_an_answer_has_none_to_share() {
        let coalition = |agents: &[&str]| Coalition {
            agents: agents.iter().map(|agent| (*agent).to_owned()).collect(),
            answer: String::new(),
        };
        let agents = agents(2);
        let coalitions = [&["agent-0"][..], &["agent-1"], &["agent-0", "agent-1"]].map(coalition);
        let found = shapley(&agents, coalitions.into());
        assert!(found.values.iter().all(|value| value.parts == 0), "{found:?}");
    }
}
