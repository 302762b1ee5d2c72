//! Keywords that corrections must name, from files beside the notes, and the sums of those files.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data::json;
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::outside;

/// Of one or several files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GivenKeywords {
    /// By note id.
    pub by_note: BTreeMap<String, Vec<String>>,
    pub files: Vec<KeywordFile>,
}

/// What results keep of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeywordFile {
    pub path: String,
    pub sha256: String,
    /// Notes that it has keywords of.
    pub notes: usize,
}

impl GivenKeywords {
    /// # Errors
    /// A file that is not there, or is no object from note id to a list of keywords.
    pub fn read(&mut self, path: &Path) -> Result<(), Failure> {
        let bytes = outside::file(path)?;
        let read: BTreeMap<String, Vec<String>> =
            json::read(&bytes).map_err(|error| {
                Failure::usage(
                    format!("{}: {error}", path.display()),
                    "expected a JSON object from note id to a list of keywords, as `wardround data keywords` writes it",
                )
            })?;
        self.files.push(KeywordFile {
            path: path.display().to_string(),
            sha256: sha256(&bytes),
            notes: read.len(),
        });
        self.by_note.extend(read);
        Ok(())
    }
}
