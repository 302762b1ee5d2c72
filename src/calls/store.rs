//! A store that calls are looked up in and added to while a command runs.

use std::collections::HashMap;
use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::CallsError;
use super::line::{Kept, Key, decode, encode};
use super::segment::{Appender, EXTENSION, Place, key_of, list, read, read_line};
use crate::console;

/// How long a call that was not found is not looked for again in what other processes wrote since.
const FRESH: Duration = Duration::from_secs(1);

/// A store of calls in a directory. It may be used by many threads, and the directory by many processes.
pub struct Store {
    directory: PathBuf,
    /// Whether answers of endpoints are kept too.
    remote: bool,
    index: Mutex<Index>,
    own: Mutex<Own>,
    taken: AtomicU64,
    has_told: AtomicBool,
}

/// Where calls stand.
#[derive(Default)]
struct Index {
    places: HashMap<Key, Place>,
    /// Files, and how much of each was read; those that are gone stay, since places count them.
    files: Vec<(PathBuf, u64)>,
    read_at: Option<Instant>,
}

/// The file of this process.
enum Own {
    /// Nothing was added yet.
    None,
    Open(Appender),
    /// It could not be written to.
    Failed,
}

impl Store {
    /// The store in `directory`, which is made where it is not there, for its owner alone.
    ///
    /// # Errors
    /// A directory of other things; one that cannot be read.
    pub fn open(directory: &Path, remote: bool) -> Result<Store, CallsError> {
        match DirBuilder::new().recursive(true).mode(0o700).create(directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                let named = format!("cannot make {}: {error}", directory.display());
                return Err(io::Error::new(error.kind(), named).into());
            }
            _ => {}
        }
        Store::check(directory)?;
        let store = Store {
            directory: directory.to_owned(),
            remote,
            index: Mutex::default(),
            own: Mutex::new(Own::None),
            taken: AtomicU64::new(0),
            has_told: AtomicBool::new(false),
        };
        store.refresh(&mut store.index())?;
        Ok(store)
    }

    /// Whether a directory may be a store, before anything is begun that would need it; one that is not there may be.
    ///
    /// # Errors
    /// A directory of other things; one that cannot be read; a file.
    pub fn check(directory: &Path) -> Result<(), CallsError> {
        match list(directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            listed => listed?.map(|_| ()).map_err(|other| {
                let path = directory.to_owned();
                CallsError::NotAStore { path, other }
            }),
        }
    }

    /// Whether answers of endpoints are kept too.
    pub fn keeps_remote(&self) -> bool {
        self.remote
    }

    /// How many calls were found.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// The completion under a key. What is damaged is told, and is not there.
    pub fn get(&self, key: &Key) -> Option<Kept> {
        // Once more where the file was cleared away since it was read.
        for _ in 0..2 {
            let (path, place) = self.find(key)?;
            let problem = match read_line(&path, place).as_deref().map(decode) {
                Ok(Ok((found, kept))) if found == *key => {
                    self.taken.fetch_add(1, Ordering::Relaxed);
                    return Some(kept);
                }
                Ok(Ok(_)) => "it is that of another call",
                Ok(Err(problem)) => problem,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    self.forget(place.file);
                    continue;
                }
                Err(_) => "it cannot be read",
            };
            self.index().places.remove(key);
            console::note(format!(
                "warning: {}, byte {}: a call of the store is not used: {problem}",
                path.display(),
                place.at
            ));
            return None;
        }
        None
    }

    /// Keeps a completion, unless one is kept under the key. A disk that takes no more is told once; the calls go on.
    pub fn put(&self, key: &Key, kept: &Kept) {
        if let Err(error) = self.put_if_absent(key, kept)
            && !self.has_told.swap(true, Ordering::Relaxed)
        {
            console::note(format!(
                "warning: calls are no longer kept in {}: {error}",
                self.directory.display()
            ));
        }
    }

    /// As [`Store::put`]; returns whether it was not there.
    ///
    /// # Errors
    /// A disk that takes no more.
    pub(super) fn put_if_absent(&self, key: &Key, kept: &Kept) -> io::Result<bool> {
        if self.index().places.contains_key(key) {
            return Ok(false);
        }
        self.append(key, kept).map(|()| true)
    }

    /// Keeps a completion in a file of its own, as a process does that has not seen the others'.
    #[cfg(test)]
    pub(super) fn put_even_if_there(&self, key: &Key, kept: &Kept) {
        self.append(key, kept).unwrap();
    }

    fn append(&self, key: &Key, kept: &Kept) -> io::Result<()> {
        let line = encode(key, kept)?;
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Own::None = *own {
            *own = match Appender::create(&self.directory, EXTENSION) {
                Ok(appender) => Own::Open(appender),
                Err(error) => {
                    *own = Own::Failed;
                    return Err(error);
                }
            };
        }
        let Own::Open(appender) = &mut *own else { return Ok(()) };
        let at = match appender.append(&line) {
            Ok(at) => at,
            Err(error) => {
                *own = Own::Failed;
                return Err(error);
            }
        };
        let path = appender.path.clone();
        let mut index = self.index();
        let file = index.file(path);
        index.files[file].1 = at + line.len() as u64;
        index.places.insert(key.clone(), Place { file, at, length: line.len() - 1 });
        Ok(())
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, key: &Key) -> Option<(PathBuf, Place)> {
        let mut index = self.index();
        if !index.places.contains_key(key)
            && index.read_at.is_none_or(|read_at| read_at.elapsed() > FRESH)
            && let Err(error) = self.refresh(&mut index)
            && !self.has_told.swap(true, Ordering::Relaxed)
        {
            console::note(format!("warning: the store of calls cannot be read: {error}"));
        }
        let place = *index.places.get(key)?;
        Some((index.files[place.file].0.clone(), place))
    }

    /// Reads what was added since.
    fn refresh(&self, index: &mut Index) -> io::Result<()> {
        index.read_at = Some(Instant::now());
        let Ok(files) = list(&self.directory)? else { return Ok(()) };
        for path in files {
            let file = index.file(path.clone());
            let from = index.files[file].1;
            if fs_err::metadata(&path).is_ok_and(|found| found.len() <= from) {
                continue;
            }
            let mut found = Vec::new();
            let mut unreadable = 0;
            let read = read(&path, from, |line| match (key_of(&line), &line.bytes) {
                (Some(key), Some(bytes)) => {
                    found.push((key, Place { file, at: line.at, length: bytes.len() }));
                }
                _ => unreadable += 1,
            });
            match read {
                Ok(end) => index.files[file].1 = end.at,
                // It was cleared away.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => {
                    index.files[file].1 = u64::MAX;
                    console::note(format!("warning: {}: {error}", path.display()));
                }
            }
            if unreadable > 0 {
                let path = path.display();
                console::note(format!("warning: {path}: {unreadable} lines are no calls"));
            }
            for (key, place) in found {
                index.places.insert(key, place);
            }
        }
        Ok(())
    }

    fn forget(&self, file: usize) {
        let mut index = self.index();
        index.places.retain(|_, place| place.file != file);
        // What stood there may stand in any other by now, or have stood there before.
        index.files.iter_mut().for_each(|(_, read)| *read = 0);
        index.read_at = None;
    }
}

impl Index {
    /// The number of a file.
    fn file(&mut self, path: PathBuf) -> usize {
        let known = self.files.iter().position(|(known, _)| *known == path);
        known.unwrap_or_else(|| {
            self.files.push((path, 0));
            self.files.len() - 1
        })
    }
}

#[cfg(test)]
mod tests;
