//! A rater's file, as the page exports it: who rated which sheet, and a score and a comment for each entry.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::key::Key;
use super::{BEST, RatingError};

const KIND: &str = "wardround-ratings";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RaterFile {
    kind: String,
    sheet: String,
    rater: String,
    entries: Vec<FileEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEntry {
    code: String,
    score: Option<i64>,
    #[serde(default)]
    comment: String,
}

/// What one rater said of a whole sheet, in the order of its key's entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rater {
    pub name: String,
    /// `None` where the entry was not rated.
    pub scores: Vec<Option<u8>>,
    pub comments: Vec<String>,
}

/// The raters' files against the key, in the order in which they are named.
///
/// # Errors
/// A file that is not one of the key's sheet, and the same rater twice.
pub fn read_all(key: &Key, paths: &[impl AsRef<Path>]) -> Result<Vec<Rater>, RatingError> {
    let mut raters: Vec<Rater> = Vec::new();
    for path in paths.iter().map(AsRef::as_ref) {
        let rater = Rater::read(key, path)?;
        let name = rater.name.to_lowercase();
        let known = raters.iter().position(|one| one.name.to_lowercase() == name);
        if let Some(first) = known {
            return Err(RatingError::SameRater {
                rater: rater.name,
                first: paths[first].as_ref().to_owned(),
                other: path.to_owned(),
            });
        }
        raters.push(rater);
    }
    Ok(raters)
}

impl Rater {
    /// # Errors
    /// A file that is none, or of another sheet, that does not say whose it is, or with an entry that the sheet lacks or that
    /// comes twice, or with a score out of range.
    pub fn read(key: &Key, path: &Path) -> Result<Rater, RatingError> {
        let file: RaterFile = read_json(path, KIND, "rater's file")?;
        let path = || path.to_owned();
        if file.sheet != key.sheet {
            return Err(RatingError::OtherSheet {
                path: path(),
                expected: key.sheet.clone(),
                found: file.sheet,
            });
        }
        let name = file.rater.trim().to_owned();
        if name.is_empty() {
            return Err(RatingError::NoRater { path: path() });
        }
        let places = key.places();
        let mut found: Vec<Option<FileEntry>> = vec![None; key.entries.len()];
        for entry in file.entries {
            let code = entry.code.clone();
            let Some(&place) = places.get(code.as_str()) else {
                return Err(RatingError::UnknownEntry { path: path(), code });
            };
            let is_fine = |score: i64| (0..=i64::from(BEST)).contains(&score);
            if let Some(score) = entry.score.filter(|score| !is_fine(*score)) {
                return Err(RatingError::Score { path: path(), code, score });
            }
            if found[place].replace(entry).is_some() {
                return Err(RatingError::RepeatedEntry { path: path(), code });
            }
        }
        let (scores, comments) = found
            .into_iter()
            .map(|entry| match entry {
                None => (None, String::new()),
                Some(entry) => {
                    let score = entry.score.and_then(|score| u8::try_from(score).ok());
                    (score, entry.comment.trim().to_owned())
                }
            })
            .unzip();
        Ok(Rater { name, scores, comments })
    }
}

/// A file of ours, told from others by its `kind`.
///
/// # Errors
/// What is missing, no JSON, of another kind, or not shaped as its kind is.
pub(super) fn read_json<T: DeserializeOwned>(
    path: &Path,
    kind: &str,
    what: &'static str,
) -> Result<T, RatingError> {
    let wrong = |reason: String| RatingError::NotRead { path: path.to_owned(), what, reason };
    let bytes = fs_err::read(path)?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    match value.get("kind").and_then(Value::as_str) {
        Some(found) if found == kind => {
            serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))
        }
        Some(found) => Err(wrong(format!("its kind is {found}, not {kind}"))),
        None => Err(wrong(format!("it has no kind, which should be {kind}"))),
    }
}
