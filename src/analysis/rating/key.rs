//! `rate-key.json`: which run is behind each entry of a sheet. Raters must not see it before they have rated. Earlier versions wrote more.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::rater::read_json;
use crate::diagnosis::Failure;
use crate::experiment::whole_file;
use crate::record::Schema;

/// The key's name beside the page.
pub const FILE: &str = "rate-key.json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SheetKey {
    pub schema: Schema,
    /// Whose key it is.
    pub sheet: String,
    pub seed: u64,
    pub runs: Vec<KeyRun>,
    /// In the sheet's order.
    pub entries: Vec<KeyEntry>,
}

/// One of the runs that were exported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRun {
    /// The directory, as it was named.
    pub path: String,
    pub system: String,
    /// Backbones, each once, in the order of the panel.
    pub models: Vec<String>,
    /// The plan fixes the run, wherever its directory is moved.
    pub plan_sha256: String,
    pub synthetic: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyEntry {
    pub code: String,
    pub item: String,
    /// The place of its run in `runs`.
    pub run: usize,
}

impl SheetKey {
    /// # Errors
    /// A file that is no key, or contradicts itself.
    pub fn read(path: &Path) -> Result<SheetKey, Failure> {
        let key: SheetKey = read_json(path, "key of a rating sheet")?;
        match key.entries.iter().all(|entry| entry.run < key.runs.len()) {
            true => Ok(key),
            false => {
                let path = path.display();
                Err(Failure::mismatch(format!(
                    "{path} has an entry of a run that it does not list"
                )))
            }
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
}
