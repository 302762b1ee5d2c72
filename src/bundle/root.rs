//! Where bundles are installed: `ROOT/versions/VERSION`, and the links `current` and `previous`, each swapped by one rename.

use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};

use fs_err::File;

use super::manifest::{MOST_BYTES, Manifest};
use super::signature::TrustedKey;
use super::trust::Trust;
use super::verify::{Opened, open};
use super::version::Version;
use super::{BundleError, MANIFEST, files};
use crate::digest::sha256;
use crate::hub::{if_there, installed};

const VERSIONS: &str = "versions";
const CURRENT: &str = "current";
const PREVIOUS: &str = "previous";
const LOCK: &str = ".lock";
/// What ends the name of a version that is being written.
const PARTIAL: &str = ".partial";

/// A directory of installed versions.
pub struct Root {
    pub path: PathBuf,
}

/// A root that no other process changes as long as this lives.
pub struct LockedRoot {
    pub root: Root,
    lock: File,
}

impl Drop for LockedRoot {
    fn drop(&mut self) {
        // Closed alone, it would stay locked as long as a program that another thread is just starting has its copy.
        let _ = self.lock.file().unlock();
    }
}

/// A version that is installed whole.
pub struct Installed {
    pub manifest: Manifest,
    pub manifest_sha256: String,
    pub directory: PathBuf,
    pub is_current: bool,
}

impl Root {
    pub fn new(path: &Path) -> Root {
        Root { path: path.to_owned() }
    }

    /// Whether a directory is one.
    pub fn is_one(path: &Path) -> bool {
        path.join(VERSIONS).is_dir()
    }

    /// Where versions lie, each in a directory of its own.
    pub fn versions(&self) -> PathBuf {
        self.path.join(VERSIONS)
    }

    pub fn version(&self, version: &str) -> PathBuf {
        self.versions().join(version)
    }

    /// Where a version is written before it takes its place.
    pub fn partial(&self, version: &Version) -> PathBuf {
        self.versions().join(format!(".{version}{PARTIAL}"))
    }

    /// Removes what killed installations left, of whatever version.
    ///
    /// # Errors
    /// A directory that cannot be read or removed.
    pub fn remove_partial(&self) -> io::Result<()> {
        for entry in fs_err::read_dir(self.versions())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let version = name.strip_prefix('.').and_then(|name| name.strip_suffix(PARTIAL));
            if version.is_some_and(|version| version.parse::<Version>().is_ok()) {
                fs_err::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    /// Where the outcomes of a version's selftest lie.
    pub fn selftest(&self, version: &Version) -> PathBuf {
        installed::selftest_folder(&self.path, &version.to_string())
    }

    /// Makes the directory where it is not there, and keeps other processes from changing it.
    ///
    /// # Errors
    /// A place that cannot be written; another process at work.
    pub fn lock(self) -> Result<LockedRoot, BundleError> {
        files::make_folder(&self.versions())?;
        let mut lock = fs_err::OpenOptions::new();
        let lock = lock.write(true).create(true).truncate(false).open(self.path.join(LOCK))?;
        match lock.file().try_lock() {
            Ok(()) => Ok(LockedRoot { root: self, lock }),
            Err(TryLockError::WouldBlock) => Err(BundleError::Busy { path: self.path }),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// All whole versions, the oldest first.
    ///
    /// # Errors
    /// A directory that cannot be read; a version without a sound manifest.
    pub fn installed(&self) -> Result<Vec<Installed>, BundleError> {
        let current = self.link(CURRENT)?;
        let entries = if_there(fs_err::read_dir(self.versions()))?;
        let entries = entries.ok_or_else(|| BundleError::NoRoot { root: self.path.clone() })?;
        let mut installed = Vec::new();
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.parse::<Version>().is_ok() {
                installed.push(self.open(&name, current.as_deref())?);
            }
        }
        installed.sort_by(|left, right| left.manifest.version.cmp(&right.manifest.version));
        Ok(installed)
    }

    fn open(&self, version: &str, current: Option<&str>) -> Result<Installed, BundleError> {
        let directory = self.version(version);
        let path = directory.join(MANIFEST);
        let Some(bytes) = if_there(files::read_small(&path, MOST_BYTES))? else {
            return Err(BundleError::NoBundle { directory, file: MANIFEST.to_owned() });
        };
        let manifest = Manifest::parse(&bytes, &path)?;
        let is_current = current == Some(version);
        Ok(Installed { manifest, manifest_sha256: sha256(&bytes), directory, is_current })
    }

    /// Whose bundles the root takes; `None` before its first one.
    ///
    /// # Errors
    /// Versions without the file that says so: whoever removed it could bring in a bundle of their own.
    pub fn trust(&self) -> Result<Option<Trust>, BundleError> {
        let trust = Trust::of_root(&self.path)?;
        if trust.is_none() {
            for entry in fs_err::read_dir(self.versions())? {
                if entry?.file_name().to_string_lossy().parse::<Version>().is_ok() {
                    return Err(BundleError::NoTrust { root: self.path.clone() });
                }
            }
        }
        Ok(trust)
    }

    /// The version that a link names.
    fn link(&self, name: &str) -> Result<Option<String>, BundleError> {
        let target = if_there(fs_err::read_link(self.path.join(name)))?;
        let name = target.as_deref().and_then(Path::file_name);
        Ok(name.map(|name| name.to_string_lossy().into_owned()))
    }

    /// The version that is current; `None` before the first.
    ///
    /// # Errors
    /// A link that cannot be read, or names no version.
    pub fn current(&self) -> Result<Option<Version>, BundleError> {
        Ok(self.link(CURRENT)?.map(|name| name.parse()).transpose()?)
    }
}

impl LockedRoot {
    /// Makes a version current; the one that was is remembered. Whenever the power is cut, one of them is.
    ///
    /// # Errors
    /// A place that cannot be written.
    pub fn make_current(&self, version: &Version) -> Result<(), BundleError> {
        let before =
            self.root.current()?.filter(|before| before.to_string() != version.to_string());
        if let Some(before) = &before {
            self.swap(PREVIOUS, before)?;
        }
        self.swap(CURRENT, version)
    }

    /// Puts a link to a version in the place of the one that is there.
    fn swap(&self, name: &str, version: &Version) -> Result<(), BundleError> {
        let root = &self.root.path;
        let partial = root.join(format!(".{name}.partial"));
        if_there(fs_err::remove_file(&partial))?;
        let target = Path::new(VERSIONS).join(version.to_string());
        fs_err::os::unix::fs::symlink(target, &partial)?;
        fs_err::rename(&partial, root.join(name))?;
        Ok(files::sync(root)?)
    }

    /// Makes the version before current again, or the one of this name; what was current is then the one before.
    ///
    /// # Errors
    /// No such version; one that the root's signers did not sign, or of which a file is not what its sum says; a root that has lost the
    /// names of its signers.
    pub fn roll_back(&self, to: Option<&str>) -> Result<Version, BundleError> {
        let root = &self.root;
        let current = root.link(CURRENT)?;
        let previous = root.link(PREVIOUS)?.filter(|name| Some(name) != current.as_ref());
        let name = to.map(str::to_owned).or(previous);
        let name = name.ok_or_else(|| BundleError::NothingBefore { root: root.path.clone() })?;
        if name.parse::<Version>().is_err() || !root.version(&name).is_dir() {
            return Err(BundleError::NoVersion { root: root.path.clone(), version: name });
        }
        // By the same rules as when it was installed: signed by the root's signers, and every file as its sum says.
        let missing = || BundleError::NoTrust { root: root.path.clone() };
        let trust = root.trust()?.ok_or_else(missing)?;
        let keys = trust.keys()?;
        let opened = Installed::check(&root.version(&name), &keys)?;
        trust.expect(&root.path, &Trust::in_bundle(&opened, &keys))?;
        self.make_current(&opened.manifest.version)?;
        Ok(opened.manifest.version)
    }
}

impl Installed {
    /// Reads all of an installed version again.
    ///
    /// # Errors
    /// One that these keys did not sign; files that are missing, changed, or not of it.
    pub fn check(directory: &Path, keys: &[TrustedKey]) -> Result<Opened, BundleError> {
        let opened = open(directory, keys)?;
        let mut checked = opened.check(true)?;
        if checked.unchanged > 0 {
            let missing = format!("missing  {} files of the version before", checked.unchanged);
            checked.problems.push(missing);
        }
        BundleError::refuse_damaged(directory, checked.problems)?;
        Ok(opened)
    }
}
