//! The lines of a trail, one after another, and which of them somebody wants to see.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::files::{self, Line};
use crate::diagnosis::Failure;
use crate::outside;

/// The most bytes of a line. Those that are written have some kilobytes: texts are files of their own.
const LONGEST: u64 = 16 << 20;

/// One line as it lies on the disk.
pub struct RawLine {
    pub path: PathBuf,
    /// In its file, from 1.
    pub number: usize,
    /// Without the newline.
    pub bytes: Vec<u8>,
    /// Whether it has its newline.
    pub is_whole: bool,
}

impl RawLine {
    /// Where it lies, for a message.
    pub fn place(&self) -> String {
        format!("{}, line {}", self.path.display(), self.number)
    }
}

/// Hands every line of a trail to `take`, the oldest first.
///
/// # Errors
/// A directory without a trail; a file that cannot be read; a line without an end; whatever `take` has against a line.
pub fn raw(
    directory: &Path,
    mut take: impl FnMut(&RawLine) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for path in files::all(directory)? {
        let mut reader = BufReader::with_capacity(1 << 20, outside::open(&path)?);
        let mut line = RawLine { path: path.clone(), number: 0, bytes: Vec::new(), is_whole: true };
        loop {
            line.bytes.clear();
            let read = reader.by_ref().take(LONGEST).read_until(b'\n', &mut line.bytes)?;
            if read == 0 {
                break;
            }
            line.number += 1;
            if read as u64 == LONGEST {
                let problem = format!("{}: it has no end within {LONGEST} bytes", line.place());
                return Err(Failure::mismatch(problem));
            }
            line.is_whole = line.bytes.pop_if(|byte| *byte == b'\n').is_some();
            take(&line)?;
        }
    }
    Ok(())
}

/// Which lines are wanted.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Not before this time, in UTC, as in `2026-03-01` or `2026-03-01T09:30:00Z`.
    pub from: Option<String>,
    /// Not after it; a day counts whole.
    pub to: Option<String>,
    pub actor: Option<String>,
    pub event: Option<String>,
    /// The digest of a request as its answer has it, under the trail's key.
    pub request: Option<String>,
}

impl Filter {
    pub fn wants(&self, line: &Line) -> bool {
        let at = line.text("at_utc");
        let is = |wanted: &Option<String>, name: &str| {
            wanted.as_deref().is_none_or(|wanted| line.text(name) == wanted)
        };
        let is_after = self.from.as_deref().is_none_or(|from| at >= from);
        let is_before = self.to.as_deref().is_none_or(|to| at.get(..to.len()).unwrap_or(at) <= to);
        let is_asked = is(&self.actor, "actor") && is(&self.event, "event");
        is_after && is_before && is_asked && is(&self.request, "request")
    }
}

/// Hands the wanted lines to `take`; each line's own hash is checked.
pub fn lines(
    directory: &Path,
    filter: &Filter,
    mut take: impl FnMut(Line) -> Result<(), Failure>,
) -> Result<(), Failure> {
    raw(directory, |raw| {
        if !raw.is_whole {
            return Ok(());
        }
        let changed = |why| Failure::mismatch(format!("{}: {why}", raw.place()));
        let line = Line::open(&raw.bytes).map_err(changed)?;
        match filter.wants(&line) {
            true => take(line),
            false => Ok(()),
        }
    })
}
