//! Keywords that corrections must name, and words that count as them, from files beside the notes, and the sums of those files.

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
    /// By keyword in lower case.
    pub synonyms: BTreeMap<String, Vec<String>>,
    pub synonym_file: Option<SynonymFile>,
}

/// What results keep of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeywordFile {
    pub path: String,
    pub sha256: String,
    /// Notes that it has keywords of.
    pub notes: usize,
}

/// What results keep of a file of synonyms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SynonymFile {
    pub path: String,
    pub sha256: String,
    /// Words that it has synonyms of.
    pub words: usize,
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

    /// Takes the synonyms of a file, which count as the word that they are listed under; case does not matter.
    ///
    /// # Errors
    /// A file that is not there, or is no object from word to a list of words.
    pub fn read_synonyms(&mut self, path: &Path) -> Result<(), Failure> {
        let bytes = outside::file(path)?;
        let refuse = |problem: String| {
            let hint = r#"expected a JSON object from word to a list of words, such as {"salbutamol": ["albuterol"]}"#;
            Failure::usage(format!("{}: {problem}", path.display()), hint)
        };
        let read: BTreeMap<String, Vec<String>> =
            json::read(&bytes).map_err(|error| refuse(error.to_string()))?;
        let words = read.len();
        for (word, synonyms) in read {
            if word.trim().is_empty() {
                return Err(refuse("a word is empty".to_owned()));
            }
            if let Some(place) = synonyms.iter().position(|one| one.trim().is_empty()) {
                return Err(refuse(format!("synonym {} of `{word}` is empty", place + 1)));
            }
            self.synonyms.entry(word.to_lowercase()).or_default().extend(synonyms);
        }
        let (path, sha256) = (path.display().to_string(), sha256(&bytes));
        self.synonym_file = Some(SynonymFile { path, sha256, words });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_synonyms_is_read_or_refused_with_its_path_and_the_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("synonyms.json");
        let read = |text: &str| {
            fs_err::write(&path, text).unwrap();
            let mut given = GivenKeywords::default();
            given.read_synonyms(&path).map(|()| given)
        };
        let text =
            r#"{"Salbutamol": ["albuterol", "Ventolin"], "salbutamol": ["SABA"], "ASA": []}"#;
        let given = read(text).unwrap();
        assert_eq!(given.synonyms["salbutamol"], ["albuterol", "Ventolin", "SABA"]);
        assert_eq!(given.synonyms["asa"], [""; 0]);
        let file = given.synonym_file.unwrap();
        assert_eq!((file.words, file.sha256), (3, sha256(text.as_bytes())));
        for (text, place) in [
            ("{\"a\": [\"b\"],\n \"c\": \"d\"}", "line 2 column 9"),
            (r#"{"a": ["b", 1]}"#, "line 1 column 13"),
            (r#"{"a": ["b", " "]}"#, "synonym 2 of `a` is empty"),
            (r#"{"": ["b"]}"#, "a word is empty"),
            ("[]", "line 1 column 0"),
        ] {
            let error = read(text).unwrap_err().to_string();
            let has_path = error.contains(&path.display().to_string());
            assert!(has_path && error.contains(place), "{error}");
        }
    }
}
