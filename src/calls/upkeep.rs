//! What a store holds, whether it is whole, and what is taken out of it or into it.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::line::{Kept, Key, decode};
use super::segment::{
    Appender, END, EXTENSION, HEADER, Line, PARTIAL, Place, held, list, lock, read, read_line,
};
use super::{CallsError, Store};
use crate::console;
use crate::outside;

/// What a store holds.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Held {
    pub files: usize,
    pub bytes: u64,
    pub calls: usize,
    /// Lines of calls that another line keeps too.
    pub twice: usize,
    /// Calls that endpoints answered.
    pub elsewhere: usize,
    pub completion_tokens: usize,
    /// What computing them took, all together.
    pub elapsed_ms: u64,
    /// Seconds since 1970.
    pub oldest: Option<u64>,
    pub newest: Option<u64>,
    /// Lines that are no calls.
    pub damaged: Vec<Damage>,
    /// Files with bytes behind their last line: of a process that still writes, or was killed.
    pub unfinished: Vec<PathBuf>,
}

/// A line that is no call.
#[derive(Debug, PartialEq, Serialize)]
pub struct Damage {
    pub path: PathBuf,
    /// Counted from 1.
    pub line: usize,
    pub defect: &'static str,
}

/// Which calls stay, or go out.
#[derive(Debug, Default)]
pub struct Chosen {
    /// These alone; `None`: all.
    pub keys: Option<HashSet<Key>>,
    /// Those kept since, in seconds since 1970; `None`: all.
    pub since: Option<u64>,
}

impl Chosen {
    fn has(&self, key: &Key, kept: &Kept) -> bool {
        self.keys.as_ref().is_none_or(|keys| keys.contains(key))
            && self.since.is_none_or(|since| kept.kept_at >= since)
    }
}

/// What clearing a store away did.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Cleared {
    pub kept: usize,
    pub dropped: usize,
    /// Files that another process is writing, which stay as they are.
    pub busy: usize,
}

/// The files of a store.
///
/// # Errors
/// What is none.
fn files(directory: &Path) -> Result<Vec<PathBuf>, CallsError> {
    let path = || directory.to_owned();
    list(directory)?.map_err(|other| CallsError::NotAStore { path: path(), other })
}

/// An error of reading a file: that it is none of calls, where its first line is another.
fn not_calls(path: &Path) -> impl Fn(io::Error) -> CallsError + '_ {
    |error| match error.kind() {
        io::ErrorKind::InvalidData => CallsError::NotCalls { path: path.to_owned() },
        _ => error.into(),
    }
}

fn decoded(line: &Line) -> Result<(Key, Kept), &'static str> {
    decode(line.bytes.as_deref().ok_or("it is longer than any call")?)
}

/// Reads all of a store, and checks every line.
///
/// # Errors
/// What is no store, or cannot be read.
pub fn inspect(directory: &Path) -> Result<Held, CallsError> {
    let mut held = Held::default();
    let mut known = HashSet::new();
    for path in files(directory)? {
        held.files += 1;
        let bytes = fs_err::metadata(&path)?.len();
        held.bytes += bytes;
        let read = read(&path, 0, |line| match decoded(&line) {
            Err(defect) => {
                held.damaged.push(Damage { path: path.clone(), line: line.number, defect });
            }
            Ok((key, _)) if !known.insert(key.clone()) => held.twice += 1,
            Ok((_, kept)) => {
                held.calls += 1;
                held.elsewhere += usize::from(kept.elsewhere.is_some());
                let tokens = kept.usage.completion_tokens;
                held.completion_tokens = held.completion_tokens.saturating_add(tokens);
                held.elapsed_ms = held.elapsed_ms.saturating_add(kept.elapsed_ms);
                held.oldest = Some(held.oldest.map_or(kept.kept_at, |old| old.min(kept.kept_at)));
                held.newest = held.newest.max(Some(kept.kept_at));
            }
        });
        match read {
            Ok(end) if end.at < bytes => held.unfinished.push(path),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let defect = "it is not the first line of a file of calls";
                held.damaged.push(Damage { path, line: 1, defect });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(held)
}

/// Puts the chosen calls together in one file, each once, and removes the files that they were in. What is damaged goes; files that
/// another process writes stay as they are.
///
/// # Errors
/// What is no store, or is being cleared; a file that is none of calls, or a disk that takes no more: nothing is changed then.
pub fn clear(directory: &Path, chosen: &Chosen) -> Result<Cleared, CallsError> {
    // Each of two would take what the other has put together for a copy that stays.
    let alone = outside::open_directory(directory)?;
    if !held(&alone)? {
        return Err(CallsError::Busy { path: directory.to_owned() });
    }
    let (mut cleared, mut known) = (Cleared::default(), HashSet::new());
    let mut locked = Vec::new();
    for path in files(directory)? {
        match lock(&path)? {
            Some(lock) => locked.push((path, lock)),
            None => {
                cleared.busy += 1;
                read(&path, 0, |line| {
                    known.extend(decoded(&line).ok().map(|(key, _)| key));
                })
                .map_err(not_calls(&path))?;
            }
        }
    }
    let mut together = Appender::create(directory, PARTIAL)?;
    let mut failed = None;
    for (path, _) in &locked {
        let read = read(path, 0, |line| match decoded(&line) {
            Ok((key, kept)) if chosen.has(&key, &kept) && known.insert(key.clone()) => {
                let line = [line.bytes.unwrap_or_default(), b"\n".to_vec()].concat();
                match together.append(&line) {
                    Ok(_) => cleared.kept += 1,
                    Err(error) => failed = Some(error.into()),
                }
            }
            _ => cleared.dropped += 1,
        });
        // What is not ours is nobody's to remove.
        if let Err(error) = read {
            failed = Some(not_calls(path)(error));
        }
    }
    let written = failed.map_or_else(|| Ok(together.sync()?), Err);
    if let Err(error) = written {
        let _ = fs_err::remove_file(&together.path);
        return Err(error);
    }
    match cleared.kept {
        0 => fs_err::remove_file(&together.path)?,
        _ => fs_err::rename(&together.path, together.path.with_extension(EXTENSION))?,
    }
    outside::sync_directory(directory)?;
    for (path, _) in locked {
        fs_err::remove_file(path)?;
    }
    // What a clearing left that was cut off.
    for entry in fs_err::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == PARTIAL) && lock(&path)?.is_some()
        {
            fs_err::remove_file(path)?;
        }
    }
    Ok(cleared)
}

/// Writes the chosen calls to a new file for its owner alone, each once and in the order of their keys, and behind them how many there
/// are, which it returns.
///
/// # Errors
/// What is no store; a file that is there, or cannot be written.
pub fn export(directory: &Path, chosen: &Chosen, out: &Path) -> Result<usize, CallsError> {
    let mut places = std::collections::BTreeMap::new();
    let files = files(directory)?;
    for (file, path) in files.iter().enumerate() {
        read(path, 0, |line| {
            if let Ok((key, kept)) = decoded(&line)
                && chosen.has(&key, &kept)
            {
                let length = line.bytes.as_ref().map_or(0, Vec::len);
                places.entry(key).or_insert(Place { file, at: line.at, length });
            }
        })
        .map_err(not_calls(path))?;
    }
    if fs_err::symlink_metadata(out).is_ok() {
        let there = format!("{} is there already", out.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, there).into());
    }
    let part = out.with_added_extension(PARTIAL);
    let write = || -> io::Result<()> {
        let mut file = io::BufWriter::new(outside::create(&part)?);
        writeln!(file, "{HEADER}")?;
        for place in places.values() {
            file.write_all(&read_line(&files[place.file], *place)?)?;
            file.write_all(b"\n")?;
        }
        writeln!(file, "{END}{}", places.len())?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs_err::rename(&part, out)
    };
    write().inspect_err(|_| {
        let _ = fs_err::remove_file(&part);
    })?;
    Ok(places.len())
}

/// Takes in the calls of an exported file, those that are not there; returns how many. Nothing is taken in of a file that is damaged.
///
/// # Errors
/// A file that is none, or is damaged; what is no store.
pub fn import(directory: &Path, from: &Path) -> Result<usize, CallsError> {
    let (mut defect, mut lines) = (None, 0);
    let end = read(from, 0, |line| {
        lines += 1;
        if let Err(found) = decoded(&line) {
            defect.get_or_insert((line.number, found));
        }
    });
    let end = end.map_err(not_calls(from))?;
    let is_whole = end.at > 0
        && end.at == fs_err::metadata(from)?.len()
        && end.count.is_none_or(|count| count == lines);
    match defect {
        Some((line, defect)) => {
            return Err(CallsError::BadLine { path: from.to_owned(), line, defect });
        }
        None if !is_whole => return Err(CallsError::CutOff { path: from.to_owned() }),
        None if end.count.is_none() => console::note(format!(
            "warning: the last line of {} does not say how many calls it has, as earlier versions wrote it: whether all are there nobody can tell",
            from.display()
        )),
        None => {}
    }
    let mut taken = 0;
    let store = Store::open(directory, true)?;
    let mut failed = None;
    read(from, 0, |line| {
        if let Ok((key, kept)) = decoded(&line)
            && failed.is_none()
        {
            match store.put_if_absent(&key, &kept) {
                Ok(is_new) => taken += usize::from(is_new),
                Err(error) => failed = Some(error),
            }
        }
    })?;
    failed.map_or(Ok(taken), |error: io::Error| Err(error.into()))
}

#[cfg(test)]
mod tests;
