//! One item of a run with the path to the run's head: what shows the item's calls to somebody who has nothing of the run but its head.
//!
//! The run's items are the leaves of a Merkle tree, in the order of the plan. A leaf is the sum of the hashes of all lines of one item: its
//! text, its calls, searches and outcomes, each kind in the order of its log. So a line of the item cannot be left out, nor one of another
//! added. results.json holds the root, and the head is the sum of results.json.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::contents::Contents;
use super::error::RunError;
use super::link::Link;
use super::results::Results;
use super::{chain, line, merkle, outcome};
use crate::digest::{hex, is_sha256};
use crate::outside;
use crate::record::{CallLine, ItemLine, ItemText, SCHEMA, SearchLine};

/// The file's content: JSON, spelled as it is written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    pub schema: u32,
    /// The item's place in the plan, counted from 0.
    pub index: usize,
    /// From the leaf up.
    pub path: Vec<String>,
    pub text: ItemText,
    pub calls: Vec<CallLine>,
    pub searches: Vec<SearchLine>,
    pub outcomes: Vec<ItemLine>,
    /// The run's results.json.
    pub results: Results,
}

/// What a leaf is the sum of, as JSON: the hashes of the lines of an item.
#[derive(Serialize)]
struct Leaf<'a> {
    item: &'a str,
    text: String,
    calls: Vec<&'a str>,
    searches: Vec<&'a str>,
    outcomes: Vec<&'a str>,
}

impl<'a> Leaf<'a> {
    fn new(text: &'a ItemText) -> Result<Leaf<'a>, RunError> {
        let item = text.item();
        let json = serde_json::to_string(text)
            .map_err(|error| RunError::unloggable(format_args!("item {item}"), error))?;
        let text = line::seal(&json[1..json.len() - 1]).1;
        let (calls, searches, outcomes) = Default::default();
        Ok(Leaf { item, text, calls, searches, outcomes })
    }

    fn sum(&self) -> Result<merkle::Sum, RunError> {
        let json = serde_json::to_vec(self);
        Ok(merkle::leaf(&json.map_err(|error| RunError::unloggable(self.item, error))?))
    }
}

/// The leaves of a run.
fn leaves(contents: &Contents) -> Result<Vec<merkle::Sum>, RunError> {
    let mut leaves: HashMap<&str, Leaf<'_>> = HashMap::with_capacity(contents.texts.len());
    for (item, text) in &contents.texts {
        leaves.insert(item, Leaf::new(text)?);
    }
    for call in &contents.calls.records {
        leaves.entry(&call.item).and_modify(|leaf| leaf.calls.push(&call.hash));
    }
    for search in &contents.searches.records {
        leaves.entry(&search.item).and_modify(|leaf| leaf.searches.push(&search.hash));
    }
    for item in &contents.items.records {
        leaves.entry(item.item()).and_modify(|leaf| leaf.outcomes.push(item.hash()));
    }
    let planned = contents.plan.dataset.items.iter();
    planned.filter_map(|item| leaves.get(item.as_str())).map(Leaf::sum).collect()
}

/// The root over a run's items, as results.json has it.
pub(super) fn root(contents: &Contents) -> Result<String, RunError> {
    Ok(hex(&merkle::root(&leaves(contents)?)))
}

impl Proof {
    /// The proof of one item of a run.
    ///
    /// # Errors
    /// An item that the run does not have; results without a root.
    pub fn of(contents: &Contents, results: Results, item: &str) -> Result<Proof, RunError> {
        let planned = contents.plan.dataset.items.iter().position(|planned| planned == item);
        let (Some(index), Some(text)) = (planned, contents.texts.get(item)) else {
            let path = contents.path.clone();
            return Err(RunError::NoItem { path, item: item.to_owned() });
        };
        if results.items_root.is_none() {
            return Err(RunError::NoRoot { path: contents.path.clone() });
        }
        let path = merkle::path(&leaves(contents)?, index);
        let calls = contents.calls.records.iter().filter(|call| call.item == item);
        let searches = contents.searches.records.iter().filter(|search| search.item == item);
        let outcomes = contents.items.records.iter().filter(|line| line.item() == item);
        Ok(Proof {
            schema: SCHEMA,
            index,
            path: path.iter().map(|sum| hex(sum)).collect(),
            text: text.clone(),
            calls: calls.cloned().collect(),
            searches: searches.cloned().collect(),
            outcomes: outcomes.cloned().collect(),
            results,
        })
    }

    /// The bytes of the file.
    pub fn to_text(&self) -> Result<String, RunError> {
        let json = serde_json::to_string_pretty(self);
        Ok(json.map_err(|error| RunError::unloggable("a proof", error))? + "\n")
    }

    /// Reads a proof and checks it against the head of its run: every byte of it.
    ///
    /// # Errors
    /// Whatever is not as it was written, or of a run with another head.
    pub fn check(path: &Path, head: &str) -> Result<Proof, RunError> {
        Proof::check_bytes(&outside::file(path)?, path, head)
    }

    fn check_bytes(bytes: &[u8], path: &Path, head: &str) -> Result<Proof, RunError> {
        let refuse = |reason: String| RunError::BadProof { path: path.to_owned(), reason };
        let proof: Proof =
            serde_json::from_slice(bytes).map_err(|error| refuse(error.to_string()))?;
        if proof.schema != SCHEMA {
            return Err(RunError::Schema { path: path.to_owned(), found: proof.schema });
        }
        if proof.to_text()?.as_bytes() != bytes {
            return Err(refuse("it is not spelled as it is written".to_owned()));
        }
        let results = &proof.results;
        let own = results.computed_head()?;
        if results.head != own || own != head.trim().to_lowercase() {
            let (path, expected) = (PathBuf::from(path), head.to_owned());
            return Err(RunError::HeadDiffers { path, expected });
        }
        let mut leaf = Leaf::new(&proof.text)?;
        let of_calls = proof.calls.iter().map(|call| call.item.as_str());
        let of_searches = proof.searches.iter().map(|search| search.item.as_str());
        let of_outcomes = proof.outcomes.iter().map(ItemLine::item);
        let mut items = of_calls.chain(of_searches).chain(of_outcomes);
        if let Some(other) = items.find(|item| *item != leaf.item) {
            return Err(refuse(format!(
                "it is that of item {}, with lines of item {other}",
                leaf.item
            )));
        }
        for line in &proof.outcomes {
            outcome::held_against(&proof.text, line)
                .map_err(|defect| refuse(defect.to_string()))?;
        }
        leaf.calls = hashes(&proof.calls).map_err(refuse)?;
        leaf.searches = hashes(&proof.searches).map_err(refuse)?;
        leaf.outcomes = hashes(&proof.outcomes).map_err(refuse)?;
        let sums: Option<Vec<merkle::Sum>> = proof.path.iter().map(|sum| from_hex(sum)).collect();
        let sums = sums.ok_or_else(|| refuse("its path is not one of sums".to_owned()))?;
        let root = merkle::root_by(leaf.sum()?, proof.index, results.n_items, &sums);
        match root.map(|root| hex(&root)) {
            root @ Some(_) if root == results.items_root => Ok(proof),
            _ => Err(refuse(format!(
                "it does not lead to the root in its results: lines of item {} are missing, added or of another run",
                leaf.item
            ))),
        }
    }
}

/// The hashes of lines, each of which must be that of its line.
fn hashes<R: Link + Clone>(records: &[R]) -> Result<Vec<&str>, String> {
    let of_line = |record: &'_ R| {
        let mut again = record.clone();
        let sealed = chain::seal(&mut again, record.seq().unwrap_or(0), record.prev());
        sealed.map_err(|error| error.to_string())?;
        match again.hash() == record.hash() {
            true => Ok(()),
            false => Err(format!("{} was changed", record.key())),
        }
    };
    records.iter().try_for_each(of_line)?;
    Ok(records.iter().map(Link::hash).collect())
}

/// `None` for what is not the spelling of a sum.
fn from_hex(text: &str) -> Option<merkle::Sum> {
    let digits = Some(text).filter(|text| is_sha256(text))?.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    digits.map(byte).collect::<Option<Vec<u8>>>()?.try_into().ok()
}

#[cfg(test)]
mod tests;
