//! Files that others wrote, of lengths that published ones keep to by far.

use std::error::Error;
use std::fs::TryLockError;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use ::toml::Spanned;
use ::toml::de::DeTable;
use serde::de::DeserializeOwned;

/// Published configurations and tables of special tokens have a sixth of it. What is made for it becomes fifty times as much in memory, TOML
/// of empty tables eighty times.
pub const LONGEST_JSON: u64 = 8 << 20;
/// No file of a model but its weights is longer; other files are read up to it, whatever memory is free.
pub const LONGEST_FILE: u64 = 64 << 20;
const LOCK_TRIES: usize = 10;

pub use wardround_ops::regular_file::{
    create, create_public, open, open_beside, open_directory, open_to_write, sync_directory, write,
    write_public,
};

/// Whether a path that a file of somebody else's names stays below the folder that it is joined to: plain names alone.
pub fn is_below(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// What a file of somebody else's names below `folder`.
pub fn below(folder: &Path, path: &str) -> io::Result<PathBuf> {
    match is_below(path) {
        true => Ok(folder.join(path)),
        false => {
            let problem = format!("{path} leads out of {}", folder.display());
            Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
        }
    }
}

/// A path inside a folder, with `/` between its parts; the whole path where it lies elsewhere.
pub fn relative(path: &Path, root: &Path) -> String {
    let Ok(inside) = path.strip_prefix(root) else { return path.to_string_lossy().into_owned() };
    inside.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// What was done with a file; `None` where there is none.
pub fn if_there<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

/// Writes a file beside `path`, makes it durable and puts it in the place of `path`: it is there whole or as before. Where it is `private` its
/// owner alone may read it.
pub fn replace(path: &Path, bytes: impl AsRef<[u8]>, private: bool) -> io::Result<()> {
    let partial = partial(path);
    let made = if private { create(&partial) } else { create_public(&partial) };
    let written = made.and_then(|mut file| {
        file.write_all(bytes.as_ref())?;
        file.sync_all()?;
        std::fs::rename(&partial, path)
    });
    if written.is_err() {
        // The error to report is the first one; a partial file that stays is overwritten by the next attempt.
        let _ = fs_err::remove_file(&partial);
    }
    written.map_err(|error| {
        // The file that was wanted is named, not the one beside it.
        let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        io::Error::new(error.kind(), format!("cannot write {}: {reason}", path.display()))
    })?;
    sync_directory_of(path)
}

/// Where a file is written before it takes its place: hidden, in the same directory.
pub fn partial(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.partial"))
}

/// Makes the entry of `path` in its directory durable.
pub fn sync_directory_of(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    sync_directory(parent.unwrap_or(Path::new(".")))
}

/// Keeps other processes out until the file is closed, be it by a kill; `false` where one has it. A program that this process is
/// just starting has its files for a moment, so that a lock is asked for several times.
///
/// # Errors
/// A file system without locks.
pub fn lock(file: &fs_err::File) -> io::Result<bool> {
    for _ in 0..LOCK_TRIES {
        match file.file().try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

/// The bytes of a file beside another one which somebody else has named: no link, which might lead anywhere.
///
/// # Errors
/// A link; see [`bytes`].
pub fn bytes_beside(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read(open_beside(path)?, path, most)
}

/// The bytes of a regular file, which `most` bounds.
///
/// # Errors
/// One that cannot be read, or is longer; what is no file, such as a pipe, which may never end.
pub fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read(open(path)?, path, most)
}

fn read(file: fs_err::File, path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // One in `/proc` says 0, and a log may grow meanwhile.
    let bytes = if file.metadata()?.len() > most { None } else { within(file, most)? };
    let problem = || format!("{}: it is longer than {most} bytes", path.display());
    bytes.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, problem()))
}

/// All bytes that come, after unpacking where `reader` unpacks; `None` where they are more than `most`.
pub fn within(reader: impl Read, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    reader.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= most))
}

/// The bytes of a regular file, as many as the machine can hold: a pipe in its place would be waited for without end.
///
/// # Errors
/// One that cannot be read, or takes more than half of the free memory: a sparse one may claim any length; what is no file.
pub fn file(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    file_within(path.as_ref(), available_memory)
}

fn file_within(path: &Path, available: impl Fn() -> usize) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let most = match file.metadata()?.len() {
        0..=LONGEST_FILE => LONGEST_FILE,
        _ => LONGEST_FILE.max(available() as u64 / 2),
    };
    read(file, path, most)
}

/// Bytes that this process may still allocate: the system's free memory or what its control group leaves, as a scheduler gives a job less
/// than its machine has; `usize::MAX` where the system does not report them.
pub fn available_memory() -> usize {
    let Ok(mut system) = sysinfo::System::new() else {
        return usize::MAX;
    };
    system.refresh_memory();
    let free = system.available_memory();
    usize::try_from(free.min(left_to_group(&mut system))).unwrap_or(usize::MAX)
}

/// What the group's files take goes where memory is wanted, so that it is free; `u64::MAX` without a limit.
fn left_to_group(system: &mut sysinfo::System) -> u64 {
    let Ok(own) = sysinfo::get_current_pid() else { return u64::MAX };
    let (own_alone, nothing) =
        (sysinfo::ProcessesToUpdate::Some(&[own]), sysinfo::ProcessRefreshKind::nothing());
    system.refresh_processes_specifics(own_alone, false, nothing);
    let limits = system.process(own).and_then(sysinfo::Process::cgroup_limits);
    limits.map_or(u64::MAX, |limits| limits.total_memory.saturating_sub(limits.rss))
}

/// The text of a regular file, without a byte order mark.
///
/// # Errors
/// One that cannot be read, or is not UTF-8; what is no file.
pub fn text(path: impl AsRef<Path>) -> io::Result<String> {
    let path = path.as_ref();
    let text = String::from_utf8(file(path)?).map_err(|_| {
        let problem = format!("{}: it is not UTF-8", path.display());
        io::Error::new(io::ErrorKind::InvalidData, problem)
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// A file of JSON as a `T`, or why it is none.
///
/// # Errors
/// See [`bytes`].
pub fn json<T: DeserializeOwned>(path: &Path) -> io::Result<serde_json::Result<T>> {
    Ok(serde_json::from_slice(&bytes(path, LONGEST_JSON)?))
}

/// A text of TOML as a `T`.
///
/// # Errors
/// What is no such TOML, or is longer than any file of it that is read.
#[expect(clippy::disallowed_methods, reason = "this is where it is bounded")]
pub fn toml<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    refuse_long(text)?;
    ::toml::from_str(text).map_err(|error| with_line(&error, text))
}

/// A text of TOML as its keys, each with its place in the text.
pub fn toml_keys(text: &str) -> Result<Spanned<DeTable<'_>>, String> {
    refuse_long(text)?;
    DeTable::parse(text).map_err(|error| with_line(&error, text))
}

/// What is wrong, and in which line of the text.
pub fn with_line(error: &::toml::de::Error, text: &str) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("line {}: {}", 1 + before.matches('\n').count(), error.message().trim_end())
}

fn refuse_long(text: &str) -> Result<(), String> {
    let long = || format!("it is longer than {LONGEST_JSON} bytes");
    (text.len() as u64 <= LONGEST_JSON).then_some(()).ok_or_else(long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_json_is_bounded_in_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let read = json::<serde_json::Value>(&path).map_err(|error| error.to_string())?;
            read.map_err(|error| error.to_string())
        };
        assert_eq!(read("[1]"), Ok(serde_json::json!([1])));
        assert!(read("[1").unwrap_err().contains("EOF"));
        assert!(read(&" ".repeat(9 << 20)).unwrap_err().contains("longer than 8388608 bytes"));
        assert!(json::<serde_json::Value>(folder.path()).is_err());
    }

    #[test]
    fn a_text_of_toml_is_bounded_in_length() {
        let read = |text: &str| toml::<::toml::Table>(text);
        assert_eq!(read("a = 1").unwrap()["a"].as_integer(), Some(1));
        assert!(read("a = 1\nb = ").unwrap_err().starts_with("line 2: "));
        assert!(read(&" ".repeat(9 << 20)).unwrap_err().contains("longer than 8388608 bytes"));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("queries.txt");
        std::fs::write(&path, "\u{feff}fever\n\u{feff}").unwrap();
        assert_eq!(text(&path).unwrap(), "fever\n\u{feff}");
    }

    /// It takes no room, and reading it would take all memory.
    #[test]
    fn a_file_that_claims_more_than_the_machine_holds_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calls.jsonl");
        std::fs::File::create(&path).unwrap().set_len(1 << 43).unwrap();
        for read in [file(&path).map(drop), text(&path).map(drop), json::<u8>(&path).map(drop)] {
            let problem = read.unwrap_err().to_string();
            assert!(problem.contains("calls.jsonl: it is longer than "), "{problem}");
        }
        std::fs::File::create(&path).unwrap().set_len(LONGEST_FILE + 1).unwrap();
        let of = |available: u64| {
            file_within(&path, || available as usize).map(|bytes| bytes.len() as u64)
        };
        assert_eq!(of(3 * LONGEST_FILE).unwrap(), LONGEST_FILE + 1);
        assert!(of(LONGEST_FILE).is_err());
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
