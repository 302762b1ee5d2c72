//! Fetching what is published, file by file, each verified before it is put in its place: here models, in `dataset` datasets.
//!
//! The bytes travel over ureq. hf-hub 0.5 waits for ever on a silent connection, takes a full answer to a ranged request for the missing
//! rest, moves a blob into the cache before its sum can be checked, and knows no destination but the cache.
//!
//! A file arrives in `NAME.incomplete` beside its destination and is renamed when its size is right and its sha256 is
//! the one of the card and, of a large file, of the hub's list. An interrupted fetch leaves the incomplete file behind, and the next one goes on from there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use indicatif::HumanBytes;

use self::client::{Client, Listing};
use self::transfer::RemoteFile;
use super::cache::{CachedRepository, is_commit};
use super::checkpoint::Checkpoint;
use super::source::open_snapshot;
use super::{
    Authority, HubError, HubOptions, Kind, Provenance, Repository, provenance, sha256_file,
};
use crate::checkpoint;
use crate::console;
use crate::digest::sha256;
use crate::outside;

mod client;
mod convert;
mod dataset;
#[cfg(test)]
mod fake_hub;
#[cfg(test)]
mod tests;
mod transfer;

pub use self::dataset::fetch_dataset;

/// Whether this build can fetch at all.
pub const AVAILABLE: bool = true;

/// Fetches what a model is run from: configuration, tokenizer, template, weights; of an encoder, what its card lists.
///
/// # Errors
/// [`HubError::Forbidden`] before any connection where one is forbidden; else what the hub, the network, a sum or the
/// file system refused.
pub fn fetch_repository(
    repository: &Repository,
    to: Option<&Path>,
    options: &HubOptions,
) -> Result<Checkpoint, HubError> {
    options.allow_fetch("models", &repository.spelling())?;
    let client = Client::new(options, options.token()?, Some(repository.clone()))?;
    let Repository { id, revision, .. } = repository;
    let (root, escaped) = (&options.endpoint, revision.replace('/', "%2F"));
    let url = format!("{root}/api/models/{id}/revision/{escaped}?blobs=true");
    let listing = client.list(&url, &format!("{id} at revision {revision}"))?;
    let (cache, directory) = match to {
        Some(folder) => (None, std::path::absolute(folder)?),
        None => {
            let cache = CachedRepository::of(&options.cache()?, id);
            let snapshot = cache.snapshot(&listing.commit);
            (Some(cache), snapshot)
        }
    };
    let sums = BTreeMap::new();
    let mut fetch = Fetch { repository, options, client, listing, cache, directory, sums };
    fetch.all()?;
    fetch.finish()
}

struct Fetch<'a> {
    repository: &'a Repository,
    options: &'a HubOptions,
    client: Client,
    listing: Listing,
    /// Where blobs by their sums belong; the directory has links to them. `None`: it has the files themselves, with a provenance.
    cache: Option<CachedRepository>,
    directory: PathBuf,
    /// File name to sum, of what was fetched or found right.
    sums: BTreeMap<String, String>,
}

impl Fetch<'_> {
    fn all(&mut self) -> Result<(), HubError> {
        if let Some(card) = self.repository.card.filter(|card| card.kind == Kind::Encoder) {
            for file in &card.files {
                // The first accepted form that the repository has.
                let name = file.names().find(|name| self.listing.file(name).is_some());
                self.file(name.unwrap_or(&file.name))?;
            }
            return Ok(());
        }
        let optional = [
            checkpoint::GENERATION_CONFIG,
            checkpoint::TOKENIZER_CONFIG,
            checkpoint::CHAT_TEMPLATE_JINJA,
            checkpoint::CHAT_TEMPLATE_JSON,
        ];
        let mut names = vec![checkpoint::CONFIG, checkpoint::TOKENIZER];
        names.extend(optional.into_iter().filter(|name| self.listing.file(name).is_some()));
        for name in names {
            self.file(name)?;
        }
        if self.listing.file(checkpoint::SINGLE).is_some() {
            return self.file(checkpoint::SINGLE);
        }
        self.file(checkpoint::INDEX)?;
        for shard in checkpoint::shard_names(&self.directory.join(checkpoint::INDEX))? {
            self.file(&shard)?;
        }
        Ok(())
    }

    /// Makes sure that one file is there and right.
    fn file(&mut self, name: &str) -> Result<(), HubError> {
        let (id, commit) = (&self.repository.id, &self.listing.commit);
        let absent = || {
            let what = format!("{name} in {id} at {commit}");
            HubError::NotFound { what, message: None }
        };
        let listed = self.listing.file(name).ok_or_else(absent)?;
        let card = self.repository.card_file(commit, name);
        let size = card.and_then(|card| card.size_bytes);
        if let (Some(found), Some(expected)) = (listed.size, size)
            && found != expected
        {
            let problem = format!("has {found} bytes on the hub, but its card says {expected}");
            return Err(HubError::Changed { file: name.to_owned(), problem });
        }
        let size_bytes = listed.size.or(size);
        // Where nobody knows git's sum, another word of its length.
        let other = || sha256(format!("{commit}/{name}"))[..40].to_owned();
        let blob = listed.blob().map_or_else(other, str::to_owned);
        let (of_card, of_hub) = (card.and_then(|card| card.sha256.as_deref()), listed.sha256());
        let known = [(Authority::Card, of_card), (Authority::Hub, of_hub)];
        let file = self.directory.join(name);
        let cache = self.cache.as_ref();
        let path = cache.map_or_else(|| file.clone(), |cache| cache.blob(&blob));
        // In a folder, a small file of the same length may be another commit's.
        let is_told_apart = self.cache.is_some() || of_card.or(of_hub).is_some();
        let is_whole = path.is_file()
            && size_bytes.is_none_or(|size| fs_err::metadata(&path).is_ok_and(|m| m.len() == size));
        let kept = if is_whole && is_told_apart { Some(sha256_file(&path)?) } else { None };
        let sha256 = match kept.filter(|sha256| check(name, sha256, &known).is_ok()) {
            Some(sha256) => sha256,
            None => {
                let part = match self.cache {
                    Some(_) => incomplete(&path),
                    // A folder's names do not tell one commit's file from another's.
                    None => incomplete(&path.with_added_extension(&blob)),
                };
                let url = format!("{}/{id}/resolve/{commit}/{name}", self.options.endpoint);
                let remote = RemoteFile { url, size_bytes };
                bring(&self.client, self.options, name, &remote, &part, |sha256| {
                    check(name, sha256, &known)?;
                    fs_err::rename(&part, &path)?;
                    Ok(sha256.to_owned())
                })?
            }
        };
        if self.cache.is_some() {
            link(&path, &file, name)?;
        }
        self.sums.insert(name.to_owned(), sha256);
        Ok(())
    }

    /// Records what was fetched. The reference comes last: an interrupted fetch leaves the earlier snapshot in use.
    fn finish(self) -> Result<Checkpoint, HubError> {
        let Self { repository, listing: Listing { commit, .. }, directory, .. } = self;
        match &self.cache {
            Some(cache) if !is_commit(&repository.revision) => {
                let reference = cache.reference(&repository.revision);
                fs_err::create_dir_all(reference.parent().unwrap_or(&reference))?;
                outside::replace(&reference, commit.as_str(), false)?;
            }
            Some(_) => {}
            None => {
                let (repository, revision) = (repository.id.clone(), commit.clone());
                let listed = Provenance { repository, revision, sha256: self.sums };
                provenance::write(&directory, &listed)?;
            }
        }
        open_snapshot(repository, &directory)
    }
}

/// Downloads a file into `part`, and has it checked and put in its place by its sha256. What is refused then is deleted.
fn bring<T>(
    client: &Client,
    options: &HubOptions,
    name: &str,
    remote: &RemoteFile,
    part: &Path,
    put: impl FnOnce(&str) -> Result<T, HubError>,
) -> Result<T, HubError> {
    let size = remote.size_bytes.map(|bytes| format!(" ({})", HumanBytes(bytes)));
    let file = format!("{}{}", console::plain(name), size.unwrap_or_default());
    let tell = |what: &str| {
        if !options.quiet {
            console::note(format!("{what} {file}"));
        }
    };
    tell("fetching");
    let mut told = 0;
    let sha256 = transfer::download(client, remote, part, &mut |bytes, whole| {
        let tenths = 10 * bytes / whole.max(1);
        if tenths > std::mem::replace(&mut told, tenths) && tenths < 10 {
            tell(&format!("{tenths}0 % of"));
        }
    })?;
    let placed = put(&sha256);
    match placed.is_ok() {
        true => tell("fetched"),
        false => fs_err::remove_file(part)?,
    }
    placed
}

/// Compares a file's sum with each one that is known.
fn check(name: &str, sha256: &str, known: &[(Authority, Option<&str>)]) -> Result<(), HubError> {
    for (authority, known) in known {
        if let Some(expected) = known.filter(|expected| *expected != sha256) {
            let problem = format!("has the sum {sha256}, but {authority} says {expected}");
            return Err(HubError::Changed { file: name.to_owned(), problem });
        }
    }
    Ok(())
}

/// Links a snapshot's file to its blob.
fn link(blob: &Path, file: &Path, name: &str) -> Result<(), HubError> {
    if file.is_file() && fs_err::canonicalize(file)? == fs_err::canonicalize(blob)? {
        return Ok(());
    }
    fs_err::create_dir_all(file.parent().unwrap_or(file))?;
    if file.symlink_metadata().is_ok() {
        fs_err::remove_file(file)?;
    }
    // From the commit's folder in `snapshots`, or from a folder below it.
    let up = "../".repeat(Path::new(name).components().count() + 1);
    let blobs = Path::new(&up).join("blobs");
    let target = blobs.join(blob.file_name().unwrap_or_default());
    Ok(fs_err::os::unix::fs::symlink(target, file)?)
}

/// The name that a file has until it is complete.
fn incomplete(path: &Path) -> PathBuf {
    path.with_added_extension("incomplete")
}
