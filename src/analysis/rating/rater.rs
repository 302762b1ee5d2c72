//! A rater's file, as the page exports it: who rated which sheet, and a score for each entry. Its comments are for people.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::BEST;
use super::key::SheetKey;
use super::scores::Rated;
use crate::diagnosis::Failure;
use crate::outside;
use crate::record::Schema;

#[derive(Deserialize)]
struct RaterFile {
    #[serde(rename = "schema")]
    _schema: Schema,
    sheet: String,
    rater: String,
    entries: Vec<RaterEntry>,
}

#[derive(Deserialize)]
struct RaterEntry {
    code: String,
    /// `None` where the entry was not rated.
    score: Option<u8>,
}

/// The raters' names in the order of their files, and their scores of each entry of the key.
///
/// # Errors
/// A file that is not one of the key's sheet, and the same rater twice.
pub fn read_all<'a>(
    key: &'a SheetKey,
    paths: &[PathBuf],
) -> Result<(Vec<String>, Vec<Rated<'a>>), Failure> {
    let mut names: Vec<String> = Vec::new();
    let unrated = |entry| Rated { entry, scores: Vec::new() };
    let mut rated: Vec<Rated<'_>> = key.entries.iter().map(unrated).collect();
    for path in paths {
        let (name, scores) = read(key, path)?;
        let is_same = |one: &String| one.to_lowercase() == name.to_lowercase();
        if let Some(first) = names.iter().position(is_same) {
            let (first, other) = (paths[first].display(), path.display());
            return Err(Failure::usage(
                format!("{first} and {other} are both of rater {name}"),
                "give one file a rater, and every rater initials of their own",
            ));
        }
        names.push(name);
        rated.iter_mut().zip(scores).for_each(|(rated, score)| rated.scores.push(score));
    }
    Ok((names, rated))
}

/// The rater's name, and the score of each entry of the key.
///
/// # Errors
/// A file that is none, or of another sheet, or with an entry that the sheet lacks or that comes twice, or with a score out of range.
fn read(key: &SheetKey, path: &Path) -> Result<(String, Vec<Option<u8>>), Failure> {
    let file: RaterFile = read_json(path, "rater's file")?;
    let path = path.display();
    if file.sheet != key.sheet {
        let (found, expected) = (&file.sheet, &key.sheet);
        return Err(Failure::usage(
            format!("{path} rates sheet {found}, the key is that of sheet {expected}"),
            "score a rater's file with the key that was written beside the page",
        ));
    }
    let given: BTreeMap<&str, Option<u8>> =
        file.entries.iter().map(|one| (one.code.as_str(), one.score)).collect();
    let of_key = || key.entries.iter().map(|one| given.get(one.code.as_str()));
    let scores: Vec<Option<u8>> = of_key().map(|score| score.copied().flatten()).collect();
    // Neither others, nor one twice.
    let are_the_keys = of_key().flatten().count() == file.entries.len();
    match are_the_keys && scores.iter().flatten().all(|score| *score <= BEST) {
        // The page exports none without the rater's initials.
        true => Ok((file.rater.trim().to_owned(), scores)),
        false => Err(Failure::usage(
            format!("{path}: entries other than the sheet's, or scores other than 0 to {BEST}"),
            "export the file again from the page",
        )),
    }
}

/// Reads a file of ours.
///
/// # Errors
/// What is missing, no file, no JSON, or not shaped as its kind is.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path, what: &str) -> Result<T, Failure> {
    outside::json(path)?.map_err(|error| {
        Failure::usage(
            format!("{} is no {what}: {error}", path.display()),
            "`rate export` writes the key, the page that it writes exports the raters' files",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `score` would wait for it without end.
    #[test]
    fn a_pipe_holds_no_ratings() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ratings.json");
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let read = read_json::<serde_json::Value>(&path, "rater's file");
        let error = read.unwrap_err().to_string();
        assert!(error.contains("ratings.json: it is no file"), "{error}");
    }
}
