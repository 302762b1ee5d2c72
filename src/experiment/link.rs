//! A record that can be a line of a chained log: its key, and the fields that chain it.

use std::fmt;
use std::hash::Hash;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::record::{
    AnswerLine, CallKey, CallLine, ItemKey, ItemLine, NoteLine, SearchKey, SearchLine,
};

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

    fn place(&mut self) -> Place<'_>;
}

/// Where a record stands in its chain.
pub struct Place<'a> {
    /// The line's number, where the record carries one.
    pub seq: Option<&'a mut u64>,
    pub prev: &'a mut String,
    pub hash: &'a mut String,
}

impl Link for CallLine {
    type Key = CallKey;
    const FILE: &'static str = "calls.jsonl";

    fn key(&self) -> CallKey {
        CallKey {
            dataset: self.dataset.clone(),
            run: self.run,
            item: self.item.clone(),
            agent: self.agent.clone(),
            round: self.round,
            purpose: self.purpose.clone(),
            sample: self.sample,
        }
    }

    fn place(&mut self) -> Place<'_> {
        Place { seq: Some(&mut self.seq), prev: &mut self.prev, hash: &mut self.hash }
    }
}

impl Link for SearchLine {
    type Key = SearchKey;
    const FILE: &'static str = "searches.jsonl";

    fn key(&self) -> SearchKey {
        SearchKey {
            dataset: self.dataset.clone(),
            run: self.run,
            item: self.item.clone(),
            round: self.round,
            step: self.step,
        }
    }

    fn place(&mut self) -> Place<'_> {
        Place { seq: Some(&mut self.seq), prev: &mut self.prev, hash: &mut self.hash }
    }
}

impl Link for ItemLine {
    type Key = ItemKey;
    const FILE: &'static str = "items.jsonl";

    fn key(&self) -> ItemKey {
        let (ItemLine::Answer(AnswerLine { dataset, .. })
        | ItemLine::Note(NoteLine { dataset, .. })) = self;
        ItemKey { dataset: dataset.clone(), run: self.run(), item: self.item().to_owned() }
    }

    /// An item that errored is tried again by a resumed run, and its later line counts.
    fn is_final(&self) -> bool {
        self.error().is_none()
    }

    fn place(&mut self) -> Place<'_> {
        let (ItemLine::Answer(AnswerLine { prev, hash, .. })
        | ItemLine::Note(NoteLine { prev, hash, .. })) = self;
        Place { seq: None, prev, hash }
    }
}
