//! A part of a run's items, for machines that share a run: of every n items one, so that parts are equally hard.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Written `2/4`: of every four items, from the first on, the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    /// Counted from 1.
    number: usize,
    of: usize,
}

impl Shard {
    /// How many of so many items are its own, at most.
    pub fn share(self, items: usize) -> usize {
        items.div_ceil(self.of)
    }

    /// The items of this shard: every `of`-th, beginning with the shard's number.
    pub fn take<T>(self, all: Vec<T>) -> Vec<T> {
        all.into_iter().skip(self.number - 1).step_by(self.of).collect()
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
            _ => Err("not a shard, such as 2/4: the second of four, counted from 1".to_owned()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_written_as_it_reads() {
        assert_eq!("2/4".parse::<Shard>().unwrap().to_string(), "2/4");
        for wrong in ["", "2", "0/4", "5/4", "1/0", "-1/2", "1/2/3", "a/b", "1 / 2"] {
            let error = wrong.parse::<Shard>().unwrap_err();
            assert!(error.contains("such as 2/4"), "{wrong}: {error}");
        }
    }

    #[test]
    fn every_item_falls_to_one_shard() {
        for of in 1..=9 {
            let mut all = Vec::new();
            for number in 1..=of {
                let own = Shard { number, of }.take((1..=7).collect());
                assert!(
                    own.len() + 1 >= Shard { number, of }.share(7)
                        && own.len() <= 7_usize.div_ceil(of)
                );
                all.extend(own);
            }
            all.sort_unstable();
            assert_eq!(all, Vec::from_iter(1..=7));
        }
        assert_eq!(Shard { number: 2, of: 3 }.take(vec![1, 2, 3, 4, 5, 6, 7]), [2, 5]);
    }
}
