//! A part of a run's items, for machines that share a run: of every n items one, so that parts are equally hard.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Written `2/4`: of every four items, from the first on, the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    /// Counted from 1.
    number: usize,
    of: usize,
}

/// What a shard's plan keeps of the run that it is a part of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardPlan {
    pub part: Shard,
    /// Items of the whole run.
    pub whole_items: usize,
    /// Over the whole run's dataset.jsonl.
    pub whole_sha256: String,
}

impl Shard {
    /// Counted from 0.
    pub fn index(self) -> usize {
        self.number - 1
    }

    /// How many shards make the whole.
    pub fn of(self) -> usize {
        self.of
    }

    /// All shards of a run that is cut into `of`, in order.
    pub fn all(of: usize) -> impl Iterator<Item = Shard> {
        (1..=of).map(move |number| Shard { number, of })
    }

    /// The items of this shard: every `of`-th, beginning with the shard's number.
    pub fn take<T>(self, all: Vec<T>) -> Vec<T> {
        let own = all.into_iter().skip(self.index());
        own.step_by(self.of).collect()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let pair = text.split_once('/');
        let pair = pair.and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match pair {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Shard { number, of }),
            _ => Err("not a shard, such as 2/4: the second of four".to_owned()),
        }
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Shard, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> String {
        shard.to_string()
    }
}

impl ShardPlan {
    /// The whole run's values in order, from those of its shards; `None` where their numbers do not fit.
    pub fn join<T: Clone>(&self, shards: &[&[T]]) -> Option<Vec<T>> {
        let one = |place: usize| shards[place % shards.len()].get(place / shards.len());
        let whole = (0..self.whole_items).map(|place| one(place).cloned());
        let whole: Vec<T> = whole.collect::<Option<_>>()?;
        let all: usize = shards.iter().map(|items| items.len()).sum();
        (all == whole.len()).then_some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::Diagnosis;
    use crate::experiment::fixtures::{ITEMS, plan, texts};

    fn items(count: usize) -> Vec<String> {
        (1..=count).map(|number| format!("q{number}")).collect()
    }

    #[test]
    fn a_shard_is_written_as_it_reads() {
        let shard: Shard = "2/4".parse().unwrap();
        assert_eq!(shard.to_string(), "2/4");
        assert_eq!((shard.index(), shard.of()), (1, 4));
        for wrong in ["", "2", "0/4", "5/4", "1/0", "-1/2", "1/2/3", "a/b", "1 / 2"] {
            let error = wrong.parse::<Shard>().unwrap_err();
            assert!(error.contains("such as 2/4"), "{wrong}: {error}");
        }
    }

    #[test]
    fn every_item_falls_to_one_shard_and_joins_in_its_old_place() {
        for of in 1..=7 {
            let whole = items(7);
            let parts: Vec<Vec<String>> =
                Shard::all(of).map(|shard| shard.take(whole.clone())).collect();
            let sizes = parts.iter().map(Vec::len);
            assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
            let slices: Vec<&[String]> = parts.iter().map(Vec::as_slice).collect();
            let first = Shard::all(of).next().unwrap();
            let plan = shard_plan(first, 7);
            assert_eq!(plan.join(&slices), Some(whole));
        }
        let second: Shard = "2/3".parse().unwrap();
        assert_eq!(second.take(items(7)), ["q2", "q5"]);
    }

    #[test]
    fn other_numbers_do_not_join() {
        let plan = shard_plan("1/2".parse().unwrap(), 3);
        let (odd, even) = (["q1".to_owned(), "q3".to_owned()], ["q2".to_owned()]);
        assert_eq!(plan.join(&[&odd, &even]), Some(items(3)));
        assert_eq!(plan.join(&[&odd[..], &[]]), None);
        assert_eq!(plan.join(&[&odd[..], &items(2)]), None);
    }

    fn shard_plan(part: Shard, whole_items: usize) -> ShardPlan {
        ShardPlan { part, whole_items, whole_sha256: String::new() }
    }

    #[test]
    fn a_shard_beyond_the_items_is_refused() {
        let mut dataset = plan().dataset;
        let error = dataset.shard("4/4".parse().unwrap(), texts(&ITEMS)).unwrap_err();
        assert_eq!(error.to_string(), "shard 4/4 of 3 items has none");
        assert!(error.hint().unwrap().contains("at most as many shards"));
    }
}
