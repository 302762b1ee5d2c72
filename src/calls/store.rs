//! A store that calls are looked up in and added to while a command runs.

use std::collections::HashMap;
use std::fs::DirBuilder;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use super::kept::{KeptCall, LONGEST, store_key};
use crate::console;
use crate::diagnosis::Failure;
use crate::outside;
use crate::record::CallLine;

/// Calls in a directory, where there is one, and those that this process has learnt of. It may be used by many threads, and the directory by
/// many processes.
#[derive(Default)]
pub struct Store {
    directory: Option<PathBuf>,
    known: RwLock<HashMap<String, KeptCall>>,
    taken: AtomicU64,
    has_told: AtomicBool,
}

impl Store {
    /// The store in `directory`, which is made where it is not there, for its owner alone.
    ///
    /// # Errors
    /// As [`Store::make`].
    pub fn open(directory: &Path) -> Result<Store, Failure> {
        Store::make(directory)?;
        Ok(Store { directory: Some(directory.to_owned()), ..Store::default() })
    }

    /// Learns of a call that was made, for as long as this process runs; of a member elsewhere, whose text no request fixes, it learns
    /// nothing.
    pub fn learn(&self, call: &CallLine) {
        if !call.request.is_empty() {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            known.entry(store_key(&call.request, None)).or_insert_with(|| call.into());
        }
    }

    /// Makes a directory for a store, unless it is there, before anything is begun that would need it; others may be making it at the same
    /// time, and nobody removes it.
    ///
    /// # Errors
    /// A directory of other things; one that cannot be read or made; a file.
    pub fn make(directory: &Path) -> Result<(), Failure> {
        for entry in outside::if_there(fs_err::read_dir(directory))?.into_iter().flatten() {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_prefix = name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !is_prefix || !entry.file_type()?.is_dir() {
                let path = directory.display();
                let message = format!("{path} is no store of calls: it holds {name}");
                let hint = "name an empty or a new directory, or one that --calls has written";
                return Err(Failure::usage(message, hint));
            }
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| {
            let named = format!("cannot make {}: {error}", directory.display());
            io::Error::new(error.kind(), named).into()
        })
    }

    /// How many calls were found in the directory.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(&key[..2]).join(format!("{key}.call")))
    }

    /// The completion under a key. What is damaged is told, and is not there.
    pub fn get(&self, key: &str) -> Option<KeptCall> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        if known.is_some() {
            return known;
        }
        let path = self.path(key)?;
        let problem = match outside::bytes_beside(&path, LONGEST) {
            Ok(bytes) => match KeptCall::decode(key, &bytes) {
                Some(kept) => {
                    self.taken.fetch_add(1, Ordering::Relaxed);
                    return Some(kept);
                }
                None => "it is not as it was written".to_owned(),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => error.to_string(),
        };
        let path = path.display();
        console::note(format!("warning: {path}: a call of the store is not used: {problem}"));
        None
    }

    /// Keeps a completion in the directory, in place of what was damaged too. A disk that takes no more is told once; the calls go on.
    pub fn put(&self, key: &str, kept: &KeptCall) {
        let Some(path) = self.path(key) else { return };
        if let Err(error) = write(&path, key, kept)
            && !self.has_told.swap(true, Ordering::Relaxed)
        {
            console::note(format!("warning: not every call is kept: {error}"));
        }
    }
}

/// Nothing waits for the disk: what a power cut takes has a sum that is wrong, and is computed again.
fn write(path: &Path, key: &str, kept: &KeptCall) -> io::Result<()> {
    let bytes = kept.encode(key)?;
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    // A name of its own, among those of all machines.
    let own = RandomState::new().build_hasher().finish();
    let part = path.with_extension(format!("{own:016x}.part"));
    let mut file = outside::create(&part)?;
    let written = file.write_all(&bytes).and_then(|()| fs_err::rename(&part, path));
    written.inspect_err(|_| {
        let _ = fs_err::remove_file(&part);
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::kept::tests::kept;
    use super::*;

    fn key(name: &str) -> String {
        super::super::store_key(name, None)
    }

    #[test]
    fn what_one_store_keeps_another_finds_at_once() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("new/calls");
        let [one, two] = [(); 2].map(|()| Store::open(&directory).unwrap());
        assert_eq!(one.get(&key("a")), None);
        one.put(&key("a"), &kept("A"));
        two.put(&key("b"), &kept("B"));
        assert_eq!((two.get(&key("a")), one.get(&key("b"))), (Some(kept("A")), Some(kept("B"))));
        assert_eq!((one.taken(), two.taken()), (1, 1));
        // What another has copied in is there, whole or not at all.
        let elsewhere = Store::open(&scratch.path().join("elsewhere")).unwrap();
        let (from, to) = (one.path(&key("a")).unwrap(), elsewhere.path(&key("a")).unwrap());
        fs_err::create_dir(to.parent().unwrap()).unwrap();
        let whole = fs_err::read(&from).unwrap();
        for length in 0..=whole.len() {
            fs_err::write(&to, &whole[..length]).unwrap();
            assert_eq!(elsewhere.get(&key("a")).is_some(), length == whole.len(), "{length}");
        }
        fs_err::write(&to, b"damaged").unwrap();
        elsewhere.put(&key("a"), &kept("A"));
        assert_eq!(elsewhere.get(&key("a")), Some(kept("A")));
        let files = fs_err::read_dir(to.parent().unwrap()).unwrap().count();
        assert_eq!(files, 1, "nothing half made stays");
    }

    #[test]
    fn what_a_store_learns_it_knows_and_no_directory_has_it() {
        let scratch = tempfile::tempdir().unwrap();
        let said = |request: &str, text: &str| CallLine {
            request: request.to_owned(),
            text: text.to_owned(),
            ..CallLine::default()
        };
        for store in [Store::default(), Store::open(scratch.path()).unwrap()] {
            [said("a", "A"), said("a", "B"), said("", "C")].iter().for_each(|one| store.learn(one));
            let texts = ["a", ""].map(|name| store.get(&key(name)).map(|kept| kept.text));
            assert_eq!((texts, store.taken()), ([Some("A".to_owned()), None], 0));
        }
        Store::default().put(&key("a"), &kept("A"));
        assert_eq!(fs_err::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[test]
    fn many_writers_of_one_call_leave_it_whole() {
        let scratch = tempfile::tempdir().unwrap();
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    let store = Store::open(scratch.path()).unwrap();
                    for number in 0..50 {
                        let name = number.to_string();
                        store.put(&key(&name), &kept(&name));
                        assert_eq!(store.get(&key(&name)), Some(kept(&name)));
                    }
                    assert!(!store.has_told.load(Ordering::Relaxed));
                });
            }
        });
    }

    #[test]
    fn a_disk_that_takes_no_more_costs_no_call() {
        let scratch = tempfile::tempdir().unwrap();
        let store = Store::open(scratch.path()).unwrap();
        // A file where the folder would be.
        fs_err::write(store.path(&key("a")).unwrap().parent().unwrap(), "").unwrap();
        store.put(&key("a"), &kept("A"));
        assert!(store.has_told.load(Ordering::Relaxed));
        assert_eq!(store.get(&key("a")), None);
    }

    #[test]
    fn a_directory_of_other_things_is_no_store() {
        let scratch = tempfile::tempdir().unwrap();
        for other in ["calls.jsonl", "1.calls", "ab"] {
            fs_err::write(scratch.path().join(other), "").unwrap();
            let error = Store::open(scratch.path()).err().unwrap().to_string();
            let expected = format!("is no store of calls: it holds {other}");
            assert!(error.ends_with(&expected), "{error}");
            fs_err::remove_file(scratch.path().join(other)).unwrap();
        }
    }

    #[test]
    fn a_store_is_its_owners_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let new = scratch.path().join("ff/new");
        let store = Store::open(&new).unwrap();
        store.put(&key("a"), &kept("A"));
        let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&new), mode(&store.path(&key("a")).unwrap())), (0o700, 0o600));
    }
}
