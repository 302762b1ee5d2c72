//! Files that others wrote, read under a ceiling: of a length that published ones keep to by far, JSON into memory that is bounded.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::ceiling::{Ceiling, CeilingError, bounded};

/// Published configurations and tables of special tokens have a fiftieth of it.
const LONGEST_JSON: u64 = 64 << 20;
/// JSON of numbers alone takes sixteen times its length.
const JSON: Ceiling = Ceiling::new(512 << 20, Duration::from_secs(30));

/// Why a file of JSON is not read.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "what each means is its message")]
pub enum JsonError {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error(transparent)]
    Invalid(#[from] serde_json::Error),
    #[error(transparent)]
    Stopped(#[from] CeilingError),
}

/// The bytes of a regular file, which `most` bounds.
///
/// # Errors
/// One that cannot be read, or is longer; what is no file, such as a pipe, which may never end.
pub fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let named = |problem: String| io::Error::other(format!("{}: {problem}", path.display()));
    // What is not there is said as by opening it.
    let there = fs_err::metadata(path).or_else(|_| fs_err::File::open(path)?.metadata())?;
    if !there.is_file() {
        return Err(named("it is no file".to_owned()));
    }
    let mut bytes = Vec::new();
    let file: File = fs_err::File::open(path)?.into_parts().0;
    file.take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| named(error.to_string()))?;
    match bytes.len() as u64 > most {
        true => Err(named(format!("it is longer than {most} bytes"))),
        false => Ok(bytes),
    }
}

/// The bytes of a regular file, however long: a pipe in its place would be waited for without end.
///
/// # Errors
/// One that cannot be read; what is no file.
pub fn file(path: &Path) -> io::Result<Vec<u8>> {
    bytes(path, u64::MAX)
}

/// A file of JSON as a `T`.
///
/// # Errors
/// See [`bytes`]; what is no such JSON, or would take far more memory than published files do.
pub fn json<T: DeserializeOwned + Send + 'static>(path: &Path) -> Result<T, JsonError> {
    let bytes = bytes(path, LONGEST_JSON)?;
    Ok(bounded("reading JSON", JSON, move || serde_json::from_slice(&bytes))??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_json_is_bounded_in_length_and_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            json::<serde_json::Value>(&path).map_err(|error| error.to_string())
        };
        assert_eq!(read("[1]"), Ok(serde_json::json!([1])));
        assert!(read("[1").unwrap_err().contains("EOF"));
        // 32 bytes a number.
        let numbers = format!("[{}1]", "1,".repeat(20 << 20));
        assert!(read(&numbers).unwrap_err().contains("more than 537 MB"));
        assert!(read(&" ".repeat(65 << 20)).unwrap_err().contains("longer than 67108864 bytes"));
        assert!(json::<serde_json::Value>(folder.path()).is_err());
    }

    /// Otherwise a run whose log is a pipe would be waited for without end.
    #[test]
    fn a_pipe_is_no_file() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calls.jsonl");
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(file(&path).unwrap_err().to_string().contains("it is no file"));
    }
}
