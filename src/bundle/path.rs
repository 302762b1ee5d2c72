//! A file's path inside a bundle: relative, plain, and the same on every file system that the bundle may cross.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Bytes of the longest path.
const MOST_BYTES: usize = 200;

/// Parts of letters, digits, `.`, `_`, `+` and `-` between slashes, none of which begins with a dot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BundlePath(String);

/// A text that is no path of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no path of a bundle: {why}", path.escape_debug())]
pub struct BadPath {
    pub path: String,
    pub why: &'static str,
}

impl BundlePath {
    /// # Errors
    /// What may lead elsewhere, is hidden, or is spelled otherwise on another file system.
    pub fn parse(text: &str) -> Result<BundlePath, BadPath> {
        let bad = |why| Err(BadPath { path: text.to_owned(), why });
        if text.len() > MOST_BYTES {
            return bad("it has more than 200 bytes");
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-/".contains(&byte);
        if !text.bytes().all(is_plain) {
            return bad("it has other characters than A-Z a-z 0-9 . _ + - /");
        }
        for part in text.split('/') {
            match part.as_bytes() {
                [] => return bad("it has an empty part"),
                [b'.', ..] => return bad("a part of it begins with a dot"),
                [.., b'.'] => return bad("a part of it ends with a dot"),
                _ => {}
            }
        }
        Ok(BundlePath(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where it lies in a directory.
    pub fn below(&self, directory: &Path) -> PathBuf {
        directory.join(&self.0)
    }

    /// The folder that it begins with; `None` of a file at the top.
    pub fn top(&self) -> Option<&str> {
        self.0.split_once('/').map(|(top, _)| top)
    }

    /// The folders that it lies in, the outermost first.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').map(|(at, _)| &self.0[..at])
    }
}

impl fmt::Display for BundlePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for BundlePath {
    type Error = BadPath;

    fn try_from(text: String) -> Result<BundlePath, BadPath> {
        BundlePath::parse(&text)
    }
}

impl From<BundlePath> for String {
    fn from(path: BundlePath) -> String {
        path.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_paths_are_taken_and_no_others() {
        for good in ["README.html", "models/qwen3-4b/1_Pooling/config.json", "a/b-c_d.e+f"] {
            assert_eq!(BundlePath::parse(good).unwrap().as_str(), good);
        }
        let long = format!("{}/a", "x".repeat(MOST_BYTES));
        for bad in [
            "",
            "/",
            "/etc/passwd",
            "a//b",
            "a/",
            "..",
            "a/../b",
            "./a",
            "a/.hidden",
            "a b",
            "a\\b",
            "ä",
            "a\nb",
            "a:b",
            "a.",
            "a./b",
            "a*",
            &long,
        ] {
            assert!(BundlePath::parse(bad).is_err(), "{bad:?}");
            let json = serde_json::to_string(bad).unwrap();
            assert!(serde_json::from_str::<BundlePath>(&json).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn folders_come_from_the_outside_in() {
        let path = BundlePath::parse("a/b/c.txt").unwrap();
        assert_eq!(path.folders().collect::<Vec<_>>(), ["a", "a/b"]);
        assert_eq!((path.top(), BundlePath::parse("c").unwrap().top()), (Some("a"), None));
    }
}
