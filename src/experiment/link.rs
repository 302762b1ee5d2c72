//! A record that can be a line of a chained log: its key, and the three fields that chain it.

use std::fmt;
use std::hash::Hash;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::record::{CallKey, CallLine, ItemKey, ItemLine, SearchKey, SearchLine};

/// A record that serialises as one JSON object whose last field is `hash`.
pub trait Link: PartialEq + Serialize + DeserializeOwned {
    type Key: Clone + Eq + Hash + Ord + fmt::Display;
    /// The log's name in the run directory.
    const FILE: &'static str;

    fn key(&self) -> Self::Key;
    /// Whether no later line may bear the same key.
    fn is_final(&self) -> bool {
        true
    }

    /// The line's number, where the record carries one.
    fn seq(&self) -> Option<u64>;
    fn prev(&self) -> &str;
    fn hash(&self) -> &str;
    fn set(&mut self, seq: u64, prev: &str, hash: &str);
}

/// What lines with a number of their own have in common.
macro_rules! numbered {
    () => {
        fn seq(&self) -> Option<u64> {
            Some(self.seq)
        }

        fn prev(&self) -> &str {
            &self.prev
        }

        fn hash(&self) -> &str {
            &self.hash
        }

        fn set(&mut self, seq: u64, prev: &str, hash: &str) {
            self.seq = seq;
            self.prev = prev.to_owned();
            self.hash = hash.to_owned();
        }
    };
}

pub(crate) use numbered;

impl Link for CallLine {
    type Key = CallKey;
    const FILE: &'static str = "calls.jsonl";

    fn key(&self) -> CallKey {
        CallLine::key(self)
    }

    numbered!();
}

impl Link for SearchLine {
    type Key = SearchKey;
    const FILE: &'static str = "searches.jsonl";

    fn key(&self) -> SearchKey {
        SearchLine::key(self)
    }

    numbered!();
}

impl Link for ItemLine {
    type Key = ItemKey;
    const FILE: &'static str = "items.jsonl";

    fn key(&self) -> ItemKey {
        let dataset = match self {
            ItemLine::Answer(record) => &record.dataset,
            ItemLine::Note(record) => &record.dataset,
        };
        ItemKey { dataset: dataset.clone(), run: self.run(), item: self.item().to_owned() }
    }

    /// An item that errored is tried again by a resumed run, and its later line counts.
    fn is_final(&self) -> bool {
        self.error().is_none()
    }

    fn seq(&self) -> Option<u64> {
        None
    }

    fn prev(&self) -> &str {
        match self {
            ItemLine::Answer(record) => &record.prev,
            ItemLine::Note(record) => &record.prev,
        }
    }

    fn hash(&self) -> &str {
        match self {
            ItemLine::Answer(record) => &record.hash,
            ItemLine::Note(record) => &record.hash,
        }
    }

    fn set(&mut self, _seq: u64, prev: &str, hash: &str) {
        let (own_prev, own_hash) = match self {
            ItemLine::Answer(record) => (&mut record.prev, &mut record.hash),
            ItemLine::Note(record) => (&mut record.prev, &mut record.hash),
        };
        *own_prev = prev.to_owned();
        *own_hash = hash.to_owned();
    }
}
