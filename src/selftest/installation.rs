//! What a bundle's MANIFEST.json says should be there, and whether it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use rayon::prelude::*;
use serde::Deserialize;

use super::check::{Check, some};
use super::error::SelftestError;
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::hub::installed::{FORMAT, MANIFEST, SUMS, is_signature};
use crate::hub::{HubError, if_there, sha256_file};
use crate::outside;

/// Of a manifest what a selftest needs; a bundle's own verification reads all of it.
#[derive(Debug, Deserialize)]
pub struct Manifest {
    format: u32,
    name: String,
    version: String,
    pub created_at: Option<String>,
    files: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    path: String,
    size_bytes: u64,
    sha256: String,
    role: String,
}

/// An installed version, or a bundle.
pub struct Installation {
    root: PathBuf,
    pub manifest: Manifest,
    sha256: String,
}

/// What is wrong with a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Missing,
    Changed,
}

/// What is said of this program.
pub fn describe_binary(sha256: &str) -> String {
    format!("wardround {}, sha256 {sha256}", env!("CARGO_PKG_VERSION"))
}

impl Installation {
    /// Reads a root's manifest; `None` where there is none and `may_lack` one, as a bundle that is being made.
    ///
    /// # Errors
    /// No directory, no manifest, or one that is not as it should be.
    pub fn read(root: &Path, may_lack: bool) -> Result<Option<Installation>, Failure> {
        if !root.is_dir() {
            return Err(SelftestError::NoRoot { path: root.to_owned() }.into());
        }
        let path = root.join(MANIFEST);
        let bytes = match if_there(outside::file(&path))? {
            Some(bytes) => bytes,
            None if may_lack => return Ok(None),
            None => return Err(SelftestError::NoManifest { root: root.to_owned() }.into()),
        };
        let bad = |reason: String| SelftestError::Manifest { path: path.clone(), reason };
        let manifest: Manifest =
            serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
        if manifest.format != FORMAT {
            return Err(bad(format!("it has the format {}, not {FORMAT}", manifest.format)).into());
        }
        if let Some(entry) = manifest.files.iter().find(|entry| !stays_inside(&entry.path)) {
            return Err(bad(format!("the path `{}` leads outside", entry.path)).into());
        }
        // Files are named by where they lie, not by a link to it.
        let root = fs_err::canonicalize(root)?;
        Ok(Some(Installation { root, manifest, sha256: sha256(&bytes) }))
    }

    /// Whether the program that runs is one of the manifest's.
    pub fn check_binary(&self, sha256: &str) -> Check {
        let found = describe_binary(sha256);
        let mut binaries =
            self.manifest.files.iter().filter(|entry| entry.role == "binary").peekable();
        if binaries.peek().is_none() {
            return Check::note("binary", format!("{found}; the manifest has none"));
        }
        match binaries.find(|entry| entry.sha256 == sha256) {
            Some(entry) => Check::ok("binary", format!("{found}, as {}", entry.path)),
            None => Check::differs("binary", format!("{found}, which is none of the manifest's")),
        }
    }

    /// Compares every file with the manifest. `known`: sums that were computed already.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn check_files(&self, known: &BTreeMap<PathBuf, String>) -> Result<Vec<Check>, Failure> {
        let Manifest { name, version, files, .. } = &self.manifest;
        let about = format!("{name} {version}, sha256 {}", self.sha256);
        let judged = files
            .par_iter()
            .map(|entry| Ok((entry, self.judge(entry, known)?)))
            .collect::<Result<Vec<_>, HubError>>()?;
        let mut checks = Vec::new();
        for (wrong, what) in [(Wrong::Missing, "missing"), (Wrong::Changed, "changed")] {
            let names = judged.iter().filter(|(_, found)| *found == Some(wrong));
            let names: Vec<String> = names.map(|(entry, _)| entry.path.clone()).collect();
            if !names.is_empty() {
                checks.push(Check::broken("manifest", format!("{what}: {}", some(&names))));
            }
        }
        let extra = self.unlisted()?;
        if !extra.is_empty() {
            checks.push(Check::differs("manifest", format!("not listed in it: {}", some(&extra))));
        }
        checks.insert(
            0,
            match checks.is_empty() {
                true => Check::ok("manifest", format!("{about}: {} files as listed", files.len())),
                false => Check::note("manifest", about),
            },
        );
        Ok(checks)
    }

    fn judge(
        &self,
        entry: &Entry,
        known: &BTreeMap<PathBuf, String>,
    ) -> Result<Option<Wrong>, HubError> {
        let path = self.root.join(&entry.path);
        let Some(metadata) = if_there(fs_err::metadata(&path))? else {
            return Ok(Some(Wrong::Missing));
        };
        if metadata.len() != entry.size_bytes {
            return Ok(Some(Wrong::Changed));
        }
        let sum = match known.get(&path) {
            Some(sum) => sum.clone(),
            None => sha256_file(&path)?,
        };
        Ok((sum != entry.sha256).then_some(Wrong::Changed))
    }

    /// Files that the manifest does not list and that lie not beside it in every bundle, sorted.
    fn unlisted(&self) -> Result<Vec<String>, Failure> {
        let files = &self.manifest.files;
        let listed: BTreeSet<&str> =
            files.iter().map(|entry| entry.path.as_str()).chain([MANIFEST, SUMS]).collect();
        let mut extra = Vec::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs_err::read_dir(&folder)? {
                let entry = entry?;
                let path = entry.path();
                if entry.file_type()?.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name =
                    path.strip_prefix(&self.root).unwrap_or(&path).to_string_lossy().into_owned();
                // Whoever reviewed the bundle may have signed it too.
                if !listed.contains(name.as_str()) && !is_signature(&name) {
                    extra.push(name);
                }
            }
        }
        extra.sort();
        Ok(extra)
    }
}

fn stays_inside(path: &str) -> bool {
    let mut components = Path::new(path).components();
    !path.is_empty() && components.all(|component| matches!(component, Component::Normal(_)))
}
