//! The lines of a trail, one after another, and which of them somebody wants to see.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;

use super::files::{self, Line};
use super::key::Key;
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
#[derive(Clone, Debug, Default, Args)]
pub struct Filter {
    /// Lines from this time on, in UTC: 2026-03-01 or 2026-03-01T09:30:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub from: Option<String>,
    /// Lines up to this time; a day counts whole
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub to: Option<String>,
    /// Lines of this key or user
    #[arg(long, value_name = "NAME")]
    pub actor: Option<String>,
    /// Lines of this event: request, case, run, forget, …
    #[arg(long, value_name = "NAME")]
    pub event: Option<String>,
    /// The line of an answer, by its `wardround.request`
    #[arg(long, value_name = "SHA256")]
    pub request: Option<String>,
}

/// A time in UTC, or a day, as it was written.
pub fn time(text: &str) -> Result<String, String> {
    let whole = match text.len() {
        10 => format!("{text}T00:00:00Z"),
        _ => text.to_owned(),
    };
    match humantime::parse_rfc3339(&whole) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => {
            Err("expected a time in UTC, such as 2026-03-01 or 2026-03-01T09:30:00Z".to_owned())
        }
    }
}

impl Filter {
    /// With the request as the trail has it: by its sum under the trail's key.
    ///
    /// # Errors
    /// A trail without its key, where a request is asked for.
    pub fn keyed(mut self, directory: &Path) -> Result<Filter, Failure> {
        if let Some(digest) = &mut self.request {
            let missing = || {
                Failure::usage(
                    format!("{} has no key", directory.display()),
                    "--request needs the key of the trail",
                )
            };
            let key = Key::find(directory)?.ok_or_else(missing)?;
            *digest = key.sum_bytes(digest.as_bytes());
        }
        Ok(self)
    }

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
