//! What goes into a bundle: each file with its sum and the component that it belongs to, before anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Request;
use crate::bundle::BundleError;
use crate::bundle::files::Summed;
use crate::bundle::manifest::{Component, FileEntry, Manifest, Role};
use crate::bundle::path::BundlePath;
use crate::digest::sha256;
use crate::hub;
use crate::outside;

/// A file that is to be in the bundle.
#[derive(Clone, Debug)]
pub struct Item {
    pub source: Source,
    /// What it must still be when it is copied.
    pub summed: Summed,
    pub role: Role,
    pub component: Option<String>,
    /// Whether the recipients have it.
    pub unchanged: bool,
}

#[derive(Clone, Debug)]
pub enum Source {
    File(PathBuf),
    Text(Vec<u8>),
}

/// The files by their paths, and what they are parts of.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    pub items: BTreeMap<BundlePath, Item>,
    pub components: Vec<Component>,
    /// Files that nothing says what they should be, and the components that they belong to.
    pub unknown: BTreeMap<BundlePath, String>,
    /// What licences do not let be handed on, and goes in since the sender was given leave.
    pub by_leave: BTreeSet<String>,
}

/// Something of others, by the words of its own card.
pub struct Kept<'a> {
    pub label: &'a str,
    pub licence: &'a str,
    pub path: &'a Path,
}

/// A file whose sum is known already.
pub struct Known<'a> {
    pub path: String,
    pub file: &'a Path,
    pub sha256: String,
    pub component: Option<&'a str>,
}

impl Contents {
    /// A file of the disk, which is summed.
    ///
    /// # Errors
    /// A file that cannot be read; a path that another file has.
    pub fn add_file(
        &mut self,
        path: &str,
        file: &Path,
        component: Option<&str>,
    ) -> Result<(), BundleError> {
        let sum = hub::sha256_file(file)?;
        self.add_known(Known { path: path.to_owned(), file, sha256: sum, component })
    }

    /// # Errors
    /// See [`Contents::add_file`].
    pub fn add_known(&mut self, known: Known) -> Result<(), BundleError> {
        let size_bytes = fs_err::metadata(known.file)?.len();
        let summed = Summed { sha256: known.sha256, size_bytes };
        self.insert(&known.path, Source::File(known.file.to_owned()), summed, known.component)
    }

    /// A file that is written here.
    ///
    /// # Errors
    /// A path that another file has.
    pub fn add_text(
        &mut self,
        path: &str,
        text: &str,
        component: Option<&str>,
    ) -> Result<(), BundleError> {
        let summed = Summed { sha256: sha256(text), size_bytes: text.len() as u64 };
        self.insert(path, Source::Text(text.as_bytes().to_vec()), summed, component)
    }

    fn insert(
        &mut self,
        path: &str,
        source: Source,
        summed: Summed,
        component: Option<&str>,
    ) -> Result<(), BundleError> {
        let path = BundlePath::parse(path)?;
        let role = Role::of(&path).ok_or_else(|| BundleError::Name {
            name: path.to_string(),
            what: "a file of a bundle",
        })?;
        let component = component.map(str::to_owned);
        let item = Item { source, summed, role, component, unchanged: false };
        if let Some(other) = self.items.get(&path) {
            let (first, second) = (other.place(), item.place());
            return Err(BundleError::Twice { path: path.to_string(), first, second });
        }
        self.items.insert(path, item);
        Ok(())
    }

    /// Says that nothing says what a file should be.
    ///
    /// # Errors
    /// A path that is none.
    pub fn mark_unknown(&mut self, path: &str, component: &str) -> Result<(), BundleError> {
        self.unknown.insert(BundlePath::parse(path)?, component.to_owned());
        Ok(())
    }

    /// Takes note that a licence does not let something be handed on.
    ///
    /// # Errors
    /// [`BundleError::NotRedistributable`], unless the sender was given leave.
    pub fn allow(&mut self, kept: Kept, request: &Request) -> Result<(), BundleError> {
        let Kept { label, licence, path } = kept;
        if !request.allowed.iter().any(|allowed| allowed == label) {
            let (label, licence) = (label.to_owned(), licence.to_owned());
            return Err(BundleError::NotRedistributable { path: path.to_owned(), label, licence });
        }
        self.by_leave.insert(label.to_owned());
        Ok(())
    }

    /// # Errors
    /// Files that nothing says what they should be, unless they are taken as they are.
    pub fn check(&self, unverified: bool) -> Result<(), BundleError> {
        if self.unknown.is_empty() || unverified {
            return Ok(());
        }
        Err(BundleError::Unverified {
            files: self.unknown.keys().map(ToString::to_string).collect(),
        })
    }

    /// The components that have such files.
    pub fn unverified_components(&self) -> BTreeSet<String> {
        self.unknown.values().cloned().collect()
    }

    /// Marks what recipients have. Licences and the page always travel: they are read before anything is installed.
    pub fn leave_out(&mut self, old: &Manifest) {
        let known: BTreeMap<&BundlePath, &str> =
            old.files.iter().map(|file| (&file.path, file.sha256.as_str())).collect();
        for (path, item) in &mut self.items {
            let travels = [Role::Licence, Role::Doc, Role::Binary].contains(&item.role);
            item.unchanged = !travels && known.get(path) == Some(&item.summed.sha256.as_str());
        }
    }
}

impl Item {
    /// Where its bytes come from, as errors say it.
    pub fn place(&self) -> PathBuf {
        match &self.source {
            Source::File(path) => path.clone(),
            Source::Text(_) => "a file that is written here".into(),
        }
    }

    /// As the manifest has it, whole.
    pub fn entry(&self, path: &BundlePath) -> FileEntry {
        FileEntry {
            path: path.clone(),
            size_bytes: self.summed.size_bytes,
            sha256: self.summed.sha256.clone(),
            mode: self.role.mode(),
            role: self.role,
            component: self.component.clone(),
            unchanged: self.unchanged,
            parts: Vec::new(),
        }
    }

    /// Its bytes.
    ///
    /// # Errors
    /// A file that cannot be opened.
    pub fn open(&self) -> std::io::Result<Box<dyn std::io::Read + Send + '_>> {
        match &self.source {
            Source::File(path) => Ok(Box::new(outside::open(path)?)),
            Source::Text(text) => Ok(Box::new(text.as_slice())),
        }
    }
}
