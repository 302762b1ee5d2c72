//! Fetching a repository of the hub, file by file, each verified before it is put in its place.
//!
//! hf-hub addresses the hub: endpoint, URLs, and the listing that resolves a revision to a commit. The bytes travel
//! over ureq directly, because hf-hub 0.5's own download waits for ever on a silent connection, takes a full answer
//! to a ranged request for the missing rest, moves a blob into the cache before its sum can be checked, and knows no
//! destination but the cache.
//!
//! A file arrives in `NAME.incomplete` beside its destination and is renamed when its size is right and its sha256 is
//! the one of the card and of the hub's etag (large files), or git's sha1 that of the etag (small ones). An interrupted fetch leaves the incomplete file behind, and the next one goes on from there.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use hf_hub::api::sync::ApiBuilder;
use ureq::Agent;

use self::client::{Client, Gate, Hub, Listing, RemoteFile};
use self::progress::Progress;
use super::cache::{CachedRepository, is_commit};
use super::checkpoint::Checkpoint;
use super::digest::git_sum_of_file;
use super::provenance::{PROVENANCE, Provenance};
use super::source::open_snapshot;
use super::{
    Authority, Card, Environment, HubError, HubOptions, Kind, Repository, Token, sha256_file,
};
use crate::checkpoint;
use crate::outside;

mod client;
mod convert;
mod dataset;
#[cfg(test)]
mod fake_hub;
mod progress;
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
    if let Some(reason) = options.fetch_refusal() {
        return Err(HubError::Forbidden { member: repository.spelling(), reason });
    }
    let hub = connect(repository, options)?;
    let listing = hub.list()?;
    let destination = match to {
        Some(folder) => Destination::Folder(std::path::absolute(folder)?),
        None => Destination::Cache(options.cache()?.repository(&repository.id)),
    };
    let mut fetch = Fetch {
        hub,
        commit: listing.commit.clone(),
        destination,
        progress: Progress::new(options),
        sums: BTreeMap::new(),
    };
    fetch.all(&listing)?;
    fetch.finish()
}

#[expect(clippy::disallowed_methods, reason = "the hub's own addressing opens no connection here")]
fn connect<'a>(repository: &'a Repository, options: &HubOptions) -> Result<Hub<'a>, HubError> {
    let environment = &options.environment;
    let token = environment.token()?;
    let api = ApiBuilder::from_cache(hf_hub::Cache::new(PathBuf::new()))
        .with_endpoint(environment.endpoint.clone())
        .with_token(token.as_ref().map(|token| token.secret().to_owned()))
        .with_user_agent("wardround", env!("CARGO_PKG_VERSION"))
        .build()
        .map_err(|error| HubError::Unreachable {
            url: environment.endpoint.clone(),
            reason: error.to_string(),
        })?;
    let accept = repository.card.and_then(|card| card.licence.accept.clone());
    let gate = Gate {
        repository: repository.id.clone(),
        page: accept.unwrap_or_else(|| format!("https://huggingface.co/{}", repository.id)),
        is_known: repository.card.is_some(),
    };
    Ok(Hub { api, client: client(environment, token, Some(gate)), repository })
}

/// A client that waits as long as the environment says.
#[expect(clippy::disallowed_methods, reason = "the one place where a connection may be opened")]
pub fn client(environment: &Environment, token: Option<Token>, gate: Option<Gate>) -> Client {
    let agent = Agent::config_builder()
        .http_status_as_error(false)
        // Each request says which way it goes, and follows its redirects itself: another host may be asked another way.
        .proxy(None)
        .max_redirects(0)
        .user_agent(concat!("wardround/", env!("CARGO_PKG_VERSION")))
        .timeout_resolve(Some(environment.metadata_timeout))
        .timeout_connect(Some(environment.metadata_timeout))
        .timeout_recv_response(Some(environment.metadata_timeout.max(environment.download_timeout)))
        .timeout_per_read(Some(environment.download_timeout))
        .build()
        .new_agent();
    Client {
        agent,
        proxies: environment.proxies.clone(),
        token,
        metadata_timeout: environment.metadata_timeout,
        pause: environment.download_timeout / 10,
        gate,
    }
}

/// Where the files go.
enum Destination {
    /// Blobs by etag, and links to them from the commit's snapshot.
    Cache(CachedRepository),
    /// The files themselves, with a provenance.
    Folder(PathBuf),
}

struct Fetch<'a> {
    hub: Hub<'a>,
    commit: String,
    destination: Destination,
    progress: Progress,
    /// File name to sum, of what was fetched or found right.
    sums: BTreeMap<String, String>,
}

impl Fetch<'_> {
    fn all(&mut self, listing: &Listing) -> Result<(), HubError> {
        match self.hub.repository.card {
            Some(card) if card.kind == Kind::Encoder => self.listed(card, listing),
            _ => self.decoder(listing),
        }
    }

    /// What an encoder's card lists, each file in the first accepted form that the repository has.
    fn listed(&mut self, card: &Card, listing: &Listing) -> Result<(), HubError> {
        for file in &card.files {
            let name = file.names().find(|name| listing.has(name));
            self.file(name.unwrap_or(&file.name))?;
        }
        Ok(())
    }

    fn decoder(&mut self, listing: &Listing) -> Result<(), HubError> {
        for name in [checkpoint::CONFIG, checkpoint::TOKENIZER] {
            self.file(name)?;
        }
        let optional = [
            checkpoint::GENERATION_CONFIG,
            checkpoint::TOKENIZER_CONFIG,
            checkpoint::CHAT_TEMPLATE_JINJA,
            checkpoint::CHAT_TEMPLATE_JSON,
        ];
        for name in optional.into_iter().filter(|name| listing.has(name)) {
            self.file(name)?;
        }
        if listing.has(checkpoint::SINGLE) {
            return self.file(checkpoint::SINGLE);
        }
        self.file(checkpoint::INDEX)?;
        for shard in checkpoint::shard_names(&self.directory().join(checkpoint::INDEX))? {
            self.file(&shard)?;
        }
        Ok(())
    }

    /// Makes sure that one file is there and right.
    fn file(&mut self, name: &str) -> Result<(), HubError> {
        let remote = self.hub.inspect(&self.commit, name)?;
        if let Some(expected) = self.hub.repository.card_size(&self.commit, name)
            && expected != remote.size_bytes
        {
            let actual = remote.size_bytes;
            return Err(HubError::WrongSize { file: name.to_owned(), expected, actual });
        }
        let path = self.place(name, &remote);
        let sha256 = match self.kept(name, &remote, &path)? {
            Some(sha256) => sha256,
            None => self.download(name, &remote, &path)?,
        };
        if let Destination::Cache(cached) = &self.destination {
            link(&path, &cached.snapshot(&self.commit).join(name))?;
        }
        self.sums.insert(name.to_owned(), sha256);
        Ok(())
    }

    /// Where a file's bytes belong. On a file system without links the cache keeps them in the snapshot itself.
    fn place(&self, name: &str, remote: &RemoteFile) -> PathBuf {
        let file = self.directory().join(name);
        let is_link_or_absent = !fs_err::symlink_metadata(&file).is_ok_and(|data| data.is_file());
        match &self.destination {
            Destination::Cache(cached) if is_link_or_absent => cached.blob(&remote.etag),
            _ => file,
        }
    }

    /// The sum of a file that is there already and right.
    fn kept(
        &self,
        name: &str,
        remote: &RemoteFile,
        path: &Path,
    ) -> Result<Option<String>, HubError> {
        if !path.is_file() || fs_err::metadata(path)?.len() != remote.size_bytes {
            return Ok(None);
        }
        let sha256 = sha256_file(path)?;
        let is_right = self.check(name, remote, path, &sha256).is_ok();
        Ok(is_right.then_some(sha256))
    }

    fn download(&self, name: &str, remote: &RemoteFile, path: &Path) -> Result<String, HubError> {
        let part = match &self.destination {
            Destination::Cache(_) => incomplete(path),
            // A folder's names do not tell one commit's file from another's.
            Destination::Folder(_) => incomplete(&path.with_added_extension(&remote.etag)),
        };
        let bar = self.progress.start(name, remote.size_bytes);
        let sha256 = transfer::download(&self.hub.client, remote, &part, &bar)?;
        if let Err(error) = self.check(name, remote, &part, &sha256) {
            fs_err::remove_file(&part)?;
            return Err(error);
        }
        fs_err::rename(&part, path)?;
        bar.finish();
        Ok(sha256)
    }

    /// Compares a file's sums with each one that is known.
    fn check(
        &self,
        name: &str,
        remote: &RemoteFile,
        path: &Path,
        sha256: &str,
    ) -> Result<(), HubError> {
        let git = remote.git_sum().map(|_| git_sum_of_file(path)).transpose()?.unwrap_or_default();
        let of_card = self.hub.repository.card_sha256(&self.commit, name);
        let known = [
            of_card.map(|sum| (Authority::Card, sum, sha256)),
            remote.sha256().map(|sum| (Authority::Hub, sum, sha256)),
            remote.git_sum().map(|sum| (Authority::Hub, sum, git.as_str())),
        ];
        match known.into_iter().flatten().find(|(_, expected, actual)| expected != actual) {
            None => Ok(()),
            Some((authority, expected, actual)) => Err(HubError::WrongSum {
                file: name.to_owned(),
                expected: expected.to_owned(),
                actual: actual.to_owned(),
                authority,
            }),
        }
    }

    fn directory(&self) -> PathBuf {
        match &self.destination {
            Destination::Cache(cached) => cached.snapshot(&self.commit),
            Destination::Folder(folder) => folder.clone(),
        }
    }

    /// Records what was fetched. The reference comes last: an interrupted fetch leaves the earlier snapshot in use.
    fn finish(self) -> Result<Checkpoint, HubError> {
        let directory = self.directory();
        let revision = &self.hub.repository.revision;
        match &self.destination {
            Destination::Cache(cached) if !is_commit(revision) => {
                replace(&cached.reference(revision), &self.commit)?;
            }
            Destination::Cache(_) => {}
            Destination::Folder(folder) => {
                let provenance = Provenance {
                    repository: self.hub.repository.id.clone(),
                    revision: self.commit.clone(),
                    sha256: self.sums,
                };
                replace(
                    &folder.join(PROVENANCE),
                    &toml::to_string_pretty(&provenance).map_err(io::Error::other)?,
                )?;
            }
        }
        open_snapshot(self.hub.repository, &self.commit, &directory)
    }
}

/// Links a snapshot's file to its blob; where the file system knows no links, the blob itself moves there.
fn link(blob: &Path, file: &Path) -> Result<(), HubError> {
    if file.is_file() && fs_err::canonicalize(file)? == fs_err::canonicalize(blob)? {
        return Ok(());
    }
    let folder = file.parent().unwrap_or(file);
    fs_err::create_dir_all(folder)?;
    if file.symlink_metadata().is_ok() {
        fs_err::remove_file(file)?;
    }
    let root = blob.parent().and_then(Path::parent).unwrap_or(blob);
    let depth = folder.strip_prefix(root).map_or(0, |below| below.components().count());
    let up: PathBuf = std::iter::repeat_n("..", depth).collect();
    let target = up.join(blob.strip_prefix(root).unwrap_or(blob));
    match symlink(&target, file) {
        Ok(()) => Ok(()),
        Err(_) => Ok(fs_err::rename(blob, file)?),
    }
}

#[cfg(unix)]
fn symlink(target: &Path, file: &Path) -> io::Result<()> {
    fs_err::os::unix::fs::symlink(target, file)
}

#[cfg(not(unix))]
fn symlink(_target: &Path, _file: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The name that a file has until it is complete.
fn incomplete(path: &Path) -> PathBuf {
    path.with_added_extension("incomplete")
}

/// Writes a small file by way of a temporary one, so that it is never half written.
fn replace(path: &Path, text: &str) -> Result<(), HubError> {
    let part = incomplete(path);
    fs_err::create_dir_all(path.parent().unwrap_or(path))?;
    outside::write_public(&part, text)?;
    Ok(fs_err::rename(&part, path)?)
}
