//! A rater's file, as the page exports it: who rated which sheet, and a score and a comment for each entry.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::BEST;
use super::key::Key;
use crate::diagnosis::Failure;
use crate::outside;
use crate::record::Schema;

const KIND: &str = "wardround-ratings";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RaterFile {
    kind: String,
    schema: Schema,
    sheet: String,
    rater: String,
    entries: Vec<RaterEntry>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RaterEntry {
    code: String,
    /// `None` where the entry was not rated.
    score: Option<i64>,
    #[serde(default)]
    pub comment: String,
    /// Of each source that the entry names, `None` where it was not rated; absent in a file where it names none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Option<Verdict>>,
}

impl RaterEntry {
    pub fn score(&self) -> Option<u8> {
        u8::try_from(self.score?).ok()
    }
}

/// What a source says of the correction that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Supports,
    SaysNothing,
    Contradicts,
}

/// What one rater said of a whole sheet, in the order of its key's entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rater {
    pub name: String,
    pub entries: Vec<RaterEntry>,
}

/// The raters' files against the key, in the order in which they are named.
///
/// # Errors
/// A file that is not one of the key's sheet, and the same rater twice.
pub fn read_all(key: &Key, paths: &[impl AsRef<Path>]) -> Result<Vec<Rater>, Failure> {
    let mut raters: Vec<Rater> = Vec::new();
    for path in paths.iter().map(AsRef::as_ref) {
        let rater = Rater::read(key, path)?;
        let name = rater.name.to_lowercase();
        let known = raters.iter().position(|one| one.name.to_lowercase() == name);
        if let Some(first) = known {
            let (first, other) = (paths[first].as_ref().display(), path.display());
            return Err(Failure::usage(
                format!("{first} and {other} are both of rater {}", rater.name),
                "give one file a rater, and every rater initials of their own",
            ));
        }
        raters.push(rater);
    }
    Ok(raters)
}

impl Rater {
    /// # Errors
    /// A file that is none, or of another sheet, that does not say whose it is, or with an entry that the sheet lacks or that
    /// comes twice, or with a score out of range.
    pub fn read(key: &Key, path: &Path) -> Result<Rater, Failure> {
        let file: RaterFile = read_json(path, KIND, "rater's file")?;
        let path = path.display();
        if file.sheet != key.sheet {
            let (found, expected) = (&file.sheet, &key.sheet);
            return Err(Failure::usage(
                format!("{path} rates sheet {found}, the key is that of sheet {expected}"),
                "score a rater's file with the key that was written beside the page",
            ));
        }
        let name = file.rater.trim().to_owned();
        if name.is_empty() {
            return Err(Failure::usage(
                format!("{path} does not say who rated"),
                "fill in the rater's initials on the page, and export again",
            ));
        }
        let places = key.places();
        let refuse = |problem: String| {
            Err(Failure::usage(format!("{path}: {problem}"), "export the file again from the page"))
        };
        let mut found: Vec<Option<RaterEntry>> = vec![None; key.entries.len()];
        for entry in file.entries {
            let code = entry.code.clone();
            let Some(&place) = places.get(code.as_str()) else {
                return refuse(format!("the sheet has no entry {code}"));
            };
            let is_fine = |score: i64| (0..=i64::from(BEST)).contains(&score);
            if let Some(score) = entry.score.filter(|score| !is_fine(*score)) {
                return refuse(format!(
                    "the score of entry {code} is {score}, not one of 0 to {BEST}"
                ));
            }
            let n_citations = key.entries[place].citations;
            if !entry.citations.is_empty() && entry.citations.len() != n_citations {
                let found = entry.citations.len();
                return refuse(format!(
                    "entry {code} has verdicts on {found} sources, the sheet shows {n_citations}"
                ));
            }
            if found[place].replace(entry).is_some() {
                return refuse(format!("entry {code} comes twice"));
            }
        }
        let entries = found.into_iter().zip(&key.entries).map(|(entry, in_key)| {
            let mut entry = entry.unwrap_or_default();
            entry.comment = entry.comment.trim().to_owned();
            entry.citations.resize(in_key.citations, None);
            entry
        });
        Ok(Rater { name, entries: entries.collect() })
    }
}

/// That a file of ours is none.
pub(super) fn not_read(path: &Path, what: &str, reason: impl std::fmt::Display) -> Failure {
    Failure::usage(
        format!("{} is no {what}: {reason}", path.display()),
        "`rate export` writes the key, the page that it writes exports the raters' files",
    )
}

/// Reads a file of ours, which is recognised by its `kind`.
///
/// # Errors
/// What is missing, no file, no JSON, of another kind, or not shaped as its kind is.
pub(super) fn read_json<T: DeserializeOwned>(
    path: &Path,
    kind: &str,
    what: &str,
) -> Result<T, Failure> {
    let wrong = |reason: String| not_read(path, what, reason);
    let bytes = outside::file(path)?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    match value.get("kind").and_then(Value::as_str) {
        Some(found) if found == kind => {
            serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))
        }
        Some(found) => Err(wrong(format!("its kind is {found}, not {kind}"))),
        None => Err(wrong(format!("it has no kind, which should be {kind}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `report` would wait for it without end.
    #[test]
    fn a_pipe_holds_no_ratings() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ratings.json");
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let error = read_json::<Value>(&path, KIND, "rater's file").unwrap_err().to_string();
        assert!(error.contains("ratings.json: it is no file"), "{error}");
    }
}
