//! What a corpus is made of: `corpora/NAME.toml`, embedded in the binary, or a file of the user's own.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::formats::SourceFormat;
use super::split::RecursiveSplitter;
use crate::diagnosis::Failure;
use crate::outside;

// `CORPORA`: every file of `corpora/` by its name, in the order of the names.
include!(concat!(env!("OUT_DIR"), "/corpora.rs"));

/// One corpus before it is built.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    pub name: String,
    /// What a user should know of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(rename = "source")]
    pub sources: Vec<Source>,
}

/// Documents of one kind, from one place, under one licence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// How passages and `--sources` name it.
    pub label: String,
    /// Sources that tables show as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub format: SourceFormat,
    /// A file or a folder in the data directory.
    pub path: String,
    /// Of a folder, the files to read, `*` for any characters; without it all that the format can read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Of the Hugging Face hub, `owner/name`, that publishes `files`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// A branch or a commit of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Characters of a chunk at most, where the format does not come in chunks.
    #[serde(default = "default_size")]
    pub size: usize,
    /// Characters that a chunk repeats of the one before it.
    #[serde(default = "default_overlap")]
    pub overlap: usize,
    /// Of rows with a field `source`: the values to keep; without it all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// A CSV file in the data directory with a column `wiki_id`: the articles to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Of the hub, `owner/name`, that publishes that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_repository: Option<String>,
    pub licence: String,
    /// Whether the licence lets copies be handed on.
    #[serde(default)]
    pub redistribute: bool,
    /// The address of a document that has none of its own, `{id}` for its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_template: Option<String>,
}

fn default_size() -> usize {
    1000
}

fn default_overlap() -> usize {
    200
}

impl Description {
    /// The names of those in the binary.
    pub fn known() -> impl Iterator<Item = &'static str> {
        CORPORA.iter().filter_map(|(name, _)| name.strip_suffix(".toml"))
    }

    /// The description of this name in the binary, or in the file of this path.
    ///
    /// # Errors
    /// A name that none has, a file that is none.
    pub fn open(name: &str) -> Result<Description, Failure> {
        let embedded = CORPORA.iter().find(|(file, _)| file.strip_suffix(".toml") == Some(name));
        let path = Path::new(name);
        match embedded {
            Some((file, text)) => Description::parse(text, Path::new(file)),
            None if path.is_file() => Description::parse(&outside::text(path)?, path),
            None => Err(Failure::refused(format!(
                "no corpus is called `{name}`, and there is no description at that path; known: {}",
                Description::known().collect::<Vec<_>>().join(", ")
            ))),
        }
    }

    /// # Errors
    /// What is no description, or contradicts itself; `path` says where it stands.
    pub fn parse(text: &str, path: &Path) -> Result<Description, Failure> {
        let wrong = |problem: String| {
            Failure::refused(format!("{} does not describe a corpus: {problem}", path.display()))
        };
        let description: Description = outside::toml(text).map_err(wrong)?;
        if description.sources.is_empty() {
            return Err(wrong("it has no [[source]]".to_owned()));
        }
        let mut labels = Vec::new();
        for source in &description.sources {
            let label = &source.label;
            if labels.contains(&label) {
                return Err(wrong(format!("two sources are called `{label}`")));
            }
            if let Some(problem) = source.problem() {
                return Err(wrong(format!("source `{label}`: {problem}")));
            }
            labels.push(label);
        }
        Ok(description)
    }
}

impl Source {
    pub fn splitter(&self) -> RecursiveSplitter {
        RecursiveSplitter { size: self.size, overlap: self.overlap }
    }

    fn problem(&self) -> Option<&'static str> {
        let is_plain = |character: char| character.is_alphanumeric() || "-_.".contains(character);
        if self.label.is_empty() || !self.label.chars().all(is_plain) {
            return Some("a label is made of letters, digits, `-`, `_` and `.`");
        }
        // A description may be somebody else's.
        if !outside::is_below(&self.path) {
            return Some("`path` is not below the folder of the data; --data-dir names another");
        }
        if !self.files.iter().chain(&self.filter).all(|file| outside::is_below(file)) {
            return Some("`files` and `filter` are names below the folder of the data");
        }
        if self.size == 0 || self.overlap >= self.size {
            return Some("`overlap` must be smaller than `size`");
        }
        (self.filter.is_some() && self.format != SourceFormat::Wikipedia)
            .then_some("`filter` goes with format = \"wikipedia\" alone")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_description_parses() {
        for (name, text) in CORPORA {
            let description = Description::parse(text, Path::new(name)).unwrap();
            assert_eq!(*name, format!("{}.toml", description.name));
        }
        assert!(Description::known().any(|name| name == "medquad"));
    }

    /// Guidelines that are not open come as one folder of rows, each with its publisher in `source`: tables show them one by one.
    #[test]
    fn each_closed_publisher_of_guidelines_is_a_source_of_its_own() {
        let corpus = Description::open("clinicalcorp").unwrap();
        let closed: Vec<&Source> =
            corpus.sources.iter().filter(|source| source.path == "guidelines-closed").collect();
        let labels: Vec<&str> = closed.iter().map(|source| source.label.as_str()).collect();
        assert_eq!(labels, ["drugs", "guidelinecentral", "aafp", "idsa", "cps"]);
        for source in closed {
            assert_eq!(source.only, [source.label.as_str()]);
            assert_eq!(source.group.as_deref(), Some("guidelines"));
            assert_eq!(source.format, SourceFormat::Guidelines);
            assert!(!source.redistribute && source.repository.is_none(), "{}", source.label);
        }
    }

    #[test]
    fn what_is_wrong_with_a_description_is_named() {
        let good = "name = \"own\"\n[[source]]\nlabel = \"ward\"\nformat = \"folder\"\npath = \"texts\"\nlicence = \"internal\"\n";
        let problem = |from: &str, to: &str| {
            let text = good.replacen(from, to, 1);
            Description::parse(&text, Path::new("own.toml")).unwrap_err().to_string()
        };
        Description::parse(good, Path::new("own.toml")).unwrap();
        assert!(problem("path =", "paths = 1\npath =").contains("unknown field `paths`"));
        for path in ["../texts", "/etc", "a/../../b"] {
            let said = problem("\"texts\"", &format!("{path:?}"));
            assert!(said.contains("`path` is not below"), "{said}");
        }
        assert!(problem("path =", "files = [\"../a\"]\npath =").contains("names below"));
        assert!(problem("ward", "a ward").contains("a label is made of"));
        assert!(problem("folder", "pdf").contains("unknown variant `pdf`"));
        assert!(problem("path =", "size = 10\npath =").contains("`overlap` must be smaller"));
        let twice = format!("{good}{}", &good[13..]);
        let error = Description::parse(&twice, Path::new("own.toml")).unwrap_err();
        assert!(error.to_string().contains("two sources are called `ward`"));
        let error = Description::open("no-such").unwrap_err().to_string();
        assert!(error.contains("known: ") && error.contains("medquad"), "{error}");
    }
}
