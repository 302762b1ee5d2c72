//! `rate-key.json`: which run is behind each entry of a sheet. Raters must not see it before they have rated.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::rater::{not_read, read_json};
use crate::diagnosis::Failure;
use crate::experiment::whole_file;
use crate::record::Schema;

/// The key's name beside the page.
pub const FILE: &str = "rate-key.json";
pub(super) const KIND: &str = "wardround-rating-key";
/// A verdict of every rater is kept for each source of an entry: a damaged key must not ask for more than memory holds.
const MOST_CITATIONS: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    pub kind: String,
    pub schema: Schema,
    /// Whose key it is.
    pub sheet: String,
    pub seed: u64,
    /// Whether raters saw the gold.
    pub gold_shown: bool,
    pub dataset: String,
    pub dataset_sha256: String,
    pub runs: Vec<KeyRun>,
    /// In the sheet's order.
    pub entries: Vec<KeyEntry>,
}

/// One of the runs that were exported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRun {
    /// The directory, as it was named.
    pub path: String,
    pub system: String,
    /// Backbones, each once, in the order of the panel.
    pub models: Vec<String>,
    /// The plan fixes the run, wherever its directory is moved.
    pub plan_sha256: String,
    /// Which of its repetitions was rated.
    pub run: u32,
    pub synthetic: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyEntry {
    pub code: String,
    pub item: String,
    /// The place of its run in `runs`.
    pub run: usize,
    /// Sources that the answer names.
    #[serde(default, skip_serializing_if = "is_none")]
    pub citations: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it by reference")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

impl Key {
    /// # Errors
    /// A file that is no key, or contradicts itself.
    pub fn read(path: &Path) -> Result<Key, Failure> {
        let what = "key of a rating sheet";
        let key: Key = read_json(path, KIND, what)?;
        let defect = |entry: &KeyEntry| match entry {
            one if one.run >= key.runs.len() => Some("is of a run that it does not list"),
            one if one.citations > MOST_CITATIONS => Some("names more sources than any answer"),
            _ => None,
        };
        match key.entries.iter().find_map(|entry| Some((&entry.code, defect(entry)?))) {
            None => Ok(key),
            Some((code, defect)) => Err(not_read(path, what, format!("entry {code} {defect}"))),
        }
    }

    /// For its owner alone (mode 0600).
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::from)?;
        Ok(whole_file::write_private(path, (text + "\n").as_bytes())?)
    }

    /// The place of each entry, by its code.
    pub fn places(&self) -> HashMap<&str, usize> {
        let entries = self.entries.iter().enumerate();
        entries.map(|(place, entry)| (entry.code.as_str(), place)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_count_of_sources_is_refused() {
        let entry =
            KeyEntry { code: "E1".into(), item: "q1".into(), run: 0, citations: usize::MAX };
        let run = KeyRun {
            path: "run".into(),
            system: "medreflex".into(),
            models: Vec::new(),
            plan_sha256: String::new(),
            run: 1,
            synthetic: true,
        };
        let key = Key {
            kind: KIND.into(),
            schema: Schema,
            sheet: String::new(),
            seed: 42,
            gold_shown: false,
            dataset: "medec".into(),
            dataset_sha256: String::new(),
            runs: vec![run],
            entries: vec![entry],
        };
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join(FILE);
        key.write(&path).unwrap();
        let error = Key::read(&path).unwrap_err().to_string();
        assert!(error.ends_with("entry E1 names more sources than any answer"), "{error}");
    }
}
