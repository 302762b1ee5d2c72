//! The files of a trail's lines: `trail.jsonl`, and what was too long for it, `trail.0001.jsonl` and on, in one chain.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::event;
use crate::appended;
use crate::diagnosis::Failure;
use crate::experiment::line;
use crate::outside;

const CURRENT: &str = "trail.jsonl";
/// What the first line of a trail is chained to.
pub const ANCHOR: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// Bytes that the last line of a file is looked for in, at first.
const LAST_LINE: u64 = 64 << 10;

/// The file that lines are appended to.
pub fn current(directory: &Path) -> PathBuf {
    directory.join(CURRENT)
}

/// A file that is full, counted from 1.
pub fn part(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("trail.{number:04}.jsonl"))
}

/// How many files are full.
pub fn parts(directory: &Path) -> usize {
    (1..).take_while(|number| part(directory, *number).is_file()).count()
}

/// All files, the oldest first.
pub fn all(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files: Vec<PathBuf> =
        (1..=parts(directory)).map(|number| part(directory, number)).collect();
    files.extend(Some(current(directory)).filter(|path| path.is_file()));
    match files.is_empty() {
        false => Ok(files),
        true => Err(Failure::mismatch(format!(
            "{} holds no audit trail, as --audit writes one",
            directory.display()
        ))),
    }
}

/// The bytes of a small file beside a trail; `None` where there is none.
///
/// # Errors
/// One that cannot be read, or is longer than `most`; what is no file, such as a pipe, which may never end.
pub(super) fn beside(path: &Path, most: u64) -> Result<Option<Vec<u8>>, Failure> {
    match outside::bytes(path, most) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput
                    | io::ErrorKind::InvalidData
                    | io::ErrorKind::IsADirectory
            ) =>
        {
            Err(Failure::mismatch(error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

/// What a line says of its place, and all that it says.
pub struct Line {
    pub fields: Value,
    pub hash: String,
    /// As it lies on the disk, without its newline.
    pub text: String,
}

impl Line {
    pub fn seq(&self) -> u64 {
        self.fields["seq"].as_u64().unwrap_or(0)
    }

    pub fn prev(&self) -> &str {
        self.text("prev")
    }

    /// A field; empty where it has none of this name.
    pub fn text(&self, name: &str) -> &str {
        self.fields[name].as_str().unwrap_or_default()
    }

    /// The fingerprint of the key that sums are made with from here on, where the line tells one.
    pub fn fingerprint(&self) -> Option<&str> {
        let tells = event::tells_key(self.text("event"));
        Some(self.text("key")).filter(|key| tells && !key.is_empty())
    }

    /// Reads one whose hash is right. `line` is without its newline.
    pub fn open(line: &[u8]) -> Result<Line, String> {
        let opened = line::open(line).map_err(|defect| defect.to_string())?;
        let fields =
            serde_json::from_slice(&opened.without_hash()).map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(line).into_owned();
        Ok(Line { fields, hash: opened.hash, text })
    }
}

/// Where a trail ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub seq: u64,
    pub hash: String,
    /// Bytes of the current file's whole lines.
    pub bytes: u64,
    /// Bytes behind them: of lines that were being written when the process was killed or the power went.
    pub torn_bytes: u64,
}

/// Reads where a trail ends, and checks the current file's chain.
///
/// # Errors
/// A line that was changed, or does not follow the one before.
pub fn end(directory: &Path) -> Result<End, Failure> {
    let path = current(directory);
    let before = match parts(directory) {
        0 => None,
        number => Some(last_line(&part(directory, number))?),
    };
    let mut end = End {
        seq: before.as_ref().map_or(0, Line::seq),
        hash: before.map_or_else(|| ANCHOR.to_owned(), |line| line.hash),
        bytes: 0,
        torn_bytes: 0,
    };
    let text = match outside::file(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    for (index, piece) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let broken =
            |why: &str| Failure::mismatch(format!("{}, line {}: {why}", path.display(), index + 1));
        let Some(whole) = piece.strip_suffix(b"\n") else {
            if is_unfinished(piece) {
                end.torn_bytes = piece.len() as u64;
                break;
            }
            return Err(broken("the last line is no beginning of a line"));
        };
        let line = Line::open(whole).map_err(|why| broken(&why))?;
        if line.seq() != end.seq + 1 || line.prev() != end.hash {
            return Err(broken("it does not follow the line before"));
        }
        end.seq += 1;
        end.hash = line.hash;
        end.bytes += piece.len() as u64;
    }
    Ok(end)
}

/// Whether bytes without a newline are what an interrupted write leaves of a line.
pub(super) fn is_unfinished(bytes: &[u8]) -> bool {
    appended::is_unfinished(bytes, |line| Line::open(line).is_ok())
}

/// Whether a file has the last line of an end where it was.
pub(super) fn has_at(path: &Path, end: &End) -> Result<bool, Failure> {
    let length = fs_err::metadata(path)?.len();
    if length < end.bytes {
        return Ok(false);
    }
    let line = line_before(path, end.bytes)?;
    Ok(line.is_ok_and(|line| line.seq() == end.seq && line.hash == end.hash))
}

fn last_line(path: &Path) -> Result<Line, Failure> {
    let length = fs_err::metadata(path)?.len();
    let wrong = |why| Failure::mismatch(format!("{}, the last line: {why}", path.display()));
    line_before(path, length)?.map_err(wrong)
}

/// The last line of a file's first `length` bytes, or what is wrong with it.
fn line_before(path: &Path, length: u64) -> Result<Result<Line, String>, Failure> {
    let mut file = outside::open(path)?;
    let mut size = LAST_LINE;
    loop {
        let from = length.saturating_sub(size);
        file.seek(SeekFrom::Start(from))?;
        let mut text = Vec::new();
        (&mut file).take(length - from).read_to_end(&mut text)?;
        let text = text.strip_suffix(b"\n").unwrap_or(&text);
        match text.iter().rposition(|byte| *byte == b'\n') {
            None if from > 0 => size *= 8,
            place => {
                let last = &text[place.map_or(0, |place| place + 1)..];
                return Ok(Line::open(last));
            }
        }
    }
}
