//! From what a user typed to a checkpoint: a directory, a card's name, or a hub id.

use std::path::{Path, PathBuf};

use super::cache::CachedRepository;
use super::{
    Card, Checkpoint, FilesError, HubError, HubOptions, Kind, OfflineReason, Repository,
    fetch as hub_fetch,
};

#[cfg(test)]
mod tests;

/// Finds the checkpoint of a panel member, fetching it where the cache has not all of it and fetching is allowed.
///
/// A directory of that name comes first, then a card's name, then a hub id, `org/name` or `org/name@revision`. A hub id that has a card means the card's commit unless a revision is given. What is whole in the cache is used without
/// asking the hub.
///
/// # Errors
/// See [`HubError`]; the first missing file is named.
pub fn resolve(member: &str, options: &HubOptions) -> Result<Checkpoint, HubError> {
    match identify(member)? {
        Some(repository) => open_or_fetch(&repository, options),
        None => {
            let path = std::path::absolute(member)?;
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
            Checkpoint::open(&name, &path)
        }
    }
}

/// Says early why [`resolve`] would fail, as far as nothing need be fetched to know it.
pub fn check(member: &str, options: &HubOptions) -> Result<(), HubError> {
    match identify(member)? {
        Some(_) if options.fetch_refusal().is_none() => Ok(()),
        _ => resolve(member, options).map(drop),
    }
}

fn open_or_fetch(repository: &Repository, options: &HubOptions) -> Result<Checkpoint, HubError> {
    match look_up(repository, options) {
        Err(HubError::NotCached { .. }) if options.fetch_refusal().is_none() => {
            hub_fetch::fetch_repository(repository, None, options)
        }
        found => found,
    }
}

/// Fetches a model, named by its card or hub id, into the cache, or into the folder `to` together with a
/// `provenance.toml` by which it can be verified offline. Files that are there and right are kept.
pub fn fetch(
    member: &str,
    to: Option<&Path>,
    options: &HubOptions,
) -> Result<Checkpoint, HubError> {
    hub_fetch::fetch_repository(&repository(member)?, to, options)
}

/// The folder of an encoder or reranker: a directory, or that of a card's files, fetched into the cache where they are not there.
///
/// # Errors
/// See [`HubError`]; only a card's name is looked for.
pub fn folder(named: &Path, options: &HubOptions) -> Result<PathBuf, HubError> {
    match named.to_str().filter(|name| !named.is_dir() && Card::find(name).is_some()) {
        Some(name) => Ok(resolve(name, options)?.directory),
        None => Ok(named.to_owned()),
    }
}

/// The repository that a user means; `None` is the directory of that name.
fn identify(member: &str) -> Result<Option<Repository>, HubError> {
    if Path::new(member).is_dir() { Ok(None) } else { repository(member).map(Some) }
}

fn repository(member: &str) -> Result<Repository, HubError> {
    let unknown = || HubError::UnknownModel { member: member.to_owned() };
    Repository::parse(member)?.ok_or_else(unknown)
}

/// Looks a repository up in the cache, resolving its revision once for all files.
fn look_up(repository: &Repository, options: &HubOptions) -> Result<Checkpoint, HubError> {
    let cache = options.cache()?;
    let cached = CachedRepository::of(&cache, &repository.id);
    let lacks = |missing: String| HubError::NotCached {
        member: repository.spelling(),
        repository: format!("{} at revision {}", repository.id, repository.revision),
        missing,
        cache: cache.clone(),
        reason: options.fetch_refusal().unwrap_or(OfflineReason::Command),
    };
    let commit = cached.commit(&repository.revision)?;
    let commit = commit.ok_or_else(|| lacks("the revision is unknown there".to_owned()))?;
    let snapshot = cached.snapshot(&commit);
    if !snapshot.is_dir() {
        return Err(lacks(format!("there is no snapshot of {commit}")));
    }
    open_snapshot(repository, &snapshot).map_err(|error| match error {
        HubError::Files(FilesError::Incomplete { file, .. }) => lacks(format!("{file} is missing")),
        HubError::Files(FilesError::NoWeights { .. }) => {
            lacks("its weights are missing".to_owned())
        }
        error => error,
    })
}

/// Opens the files of a commit; a decoder of the hub comes with its tokenizer.json.
///
/// # Errors
/// A file is missing, or the index of shards is damaged.
pub fn open_snapshot(repository: &Repository, directory: &Path) -> Result<Checkpoint, HubError> {
    let checkpoint = Checkpoint::open(repository.name(), directory)?;
    if repository.card.is_none_or(|card| card.kind == Kind::Decoder) {
        checkpoint.tokenizer()?;
    }
    Ok(checkpoint)
}
