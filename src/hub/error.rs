//! Why a model cannot be found, fetched or used, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::proxy::ProxyError;
use super::{Authority, Card, DatasetCard, Kind};
use crate::checkpoint::FilesError;
use crate::diagnosis::{Blame, Diagnosis};

/// Why a checkpoint cannot be found, fetched or used.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error(
        "no model is called `{member}`: it is not a directory here, a card's name or a hub id (org/name)"
    )]
    UnknownModel { member: String },
    #[error("there is no model directory at {}", path.display())]
    NoDirectory { path: PathBuf },
    #[error("{} is a file; a model is a directory", path.display())]
    NotADirectory { path: PathBuf },
    #[error("`{revision}` is not the name of a branch, tag or commit")]
    BadRevision { revision: String },
    #[error("`{member}` is a directory, which has no revision `{revision}`")]
    RevisionOfDirectory { member: String, revision: String },
    #[error("`{member}` names a revision, and --revision asks for `{revision}`")]
    RevisionTwice { member: String, revision: String },
    #[error("there is no directory for the hub's cache: no home directory is known")]
    NoCache,
    #[error("{name} is `{value}`, not {expected}")]
    BadVariable { name: &'static str, value: String, expected: &'static str },

    #[error(transparent)]
    Files(#[from] FilesError),
    /// A provenance, or what a bundle left behind.
    #[error("{} cannot be read: {reason}", path.display())]
    Malformed { path: PathBuf, reason: String },
    #[error(transparent)]
    NotCached(Box<NotCached>),
    #[error("{member} cannot be fetched: {reason}")]
    Forbidden {
        /// As it would be typed.
        member: String,
        reason: OfflineReason,
    },

    #[error("the hub refuses access to {repository} (HTTP {status}){}", said(message))]
    Refused {
        repository: String,
        status: u16,
        /// What the hub said, where it said anything.
        message: Option<String>,
        /// The page on which access is asked for.
        page: String,
        with_token: bool,
    },
    #[error("the hub has no {what}{}", said(message))]
    NotFound { what: String, message: Option<String> },
    #[error("{url} answered with HTTP {status}")]
    Status { url: String, status: u16 },
    #[error("{url} cannot be reached: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("{url} sent an unexpected answer: {reason}")]
    BadAnswer { url: String, reason: String },
    #[error(
        "{file} has the sha256 {actual}, but {authority} says {expected}; the download was deleted"
    )]
    WrongSum { file: String, expected: String, actual: String, authority: Authority },
    #[error(
        "{file} has {actual} bytes on the hub, but the card says {expected}; nothing of it was downloaded"
    )]
    WrongSize { file: String, expected: u64, actual: u64 },
    #[error("{file} has {found} rows, but its card says {expected}; the download was deleted")]
    WrongRows { file: String, expected: u64, found: u64 },
    #[error("{file} cannot be converted: {reason}; the download was deleted")]
    Unconvertible { file: String, reason: String },
    #[error("no dataset is called `{name}`, and there is no card at that path")]
    UnknownDataset { name: String },
    #[error("{dataset} cannot be fetched: {reason}")]
    DataForbidden {
        /// As it would be typed.
        dataset: String,
        reason: OfflineReason,
    },
    #[error("there is no directory at {}", path.display())]
    NoDataDirectory { path: PathBuf },
    #[error("{} has no file of any dataset", path.display())]
    NoDatasets { path: PathBuf },
    #[error("{model} may not be used before its licence, the {licence}, is accepted: {} does not say so", path.display())]
    NotAccepted { model: String, licence: String, path: PathBuf },
    #[error("{} is being written by another process", path.display())]
    Busy { path: PathBuf },
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A repository that is incomplete in the cache and may not be fetched.
#[derive(Debug, thiserror::Error)]
#[error(
    "{repository} at revision {revision} is incomplete in the cache {}: {missing}; {reason}",
    cache.display()
)]
pub struct NotCached {
    /// As it would be typed.
    pub member: String,
    pub repository: String,
    pub revision: String,
    /// What the cache lacks.
    pub missing: String,
    pub cache: PathBuf,
    /// The branches and tags of the repository that the cache knows at other commits.
    pub known: Vec<String>,
    pub reason: OfflineReason,
}

/// Why nothing may be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfflineReason {
    /// `--offline` was given.
    Flag,
    /// This environment variable is set.
    Variable(&'static str),
    /// The command looks at what is there.
    Command,
    /// The build has no HTTP client.
    Build,
}

impl fmt::Display for OfflineReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => formatter.write_str("--offline forbids connections"),
            Self::Variable(name) => write!(formatter, "{name} is set and forbids connections"),
            Self::Command => formatter.write_str("this command downloads nothing"),
            Self::Build => {
                formatter.write_str("this build cannot connect (it lacks the feature `hub`)")
            }
        }
    }
}

fn said(message: &Option<String>) -> String {
    message.as_ref().map(|message| format!(": {message}")).unwrap_or_default()
}

impl Diagnosis for HubError {
    fn blame(&self) -> Blame {
        match self {
            Self::UnknownModel { .. }
            | Self::NoDirectory { .. }
            | Self::NotADirectory { .. }
            | Self::BadRevision { .. }
            | Self::RevisionOfDirectory { .. }
            | Self::RevisionTwice { .. }
            | Self::NoCache
            | Self::UnknownDataset { .. }
            | Self::NoDataDirectory { .. }
            | Self::NoDatasets { .. }
            | Self::BadVariable { .. }
            | Self::Busy { .. } => Blame::Usage,
            Self::Files(error) => error.blame(),
            Self::Proxy(error) => error.blame(),
            Self::Io(error) => error.blame(),
            _ => Blame::Artefact,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownModel { .. } => {
                let names = |kind: Kind| {
                    let cards = Card::all().iter().filter(|card| card.kind == kind);
                    cards.map(|card| card.name.as_str()).collect::<Vec<_>>().join(", ")
                };
                Some(format!(
                    "cards of language models: {}; of encoders: {}; a path begins with ./ or /",
                    names(Kind::Decoder),
                    names(Kind::Encoder)
                ))
            }
            Self::UnknownDataset { .. } => {
                let names = DatasetCard::all().iter().map(|card| card.name.as_str());
                Some(format!("the datasets are {}", names.collect::<Vec<_>>().join(", ")))
            }
            Self::DataForbidden { dataset, .. } => Some(format!(
                "run `wardround data fetch {dataset} --to DIR` on a machine with a network and copy DIR here"
            )),
            Self::NoDataDirectory { .. } | Self::NoDatasets { .. } => {
                Some("`wardround data fetch all --to DIR` makes one".to_owned())
            }
            Self::Status { status: 404, .. } => {
                Some("a mirror (--endpoint, HF_ENDPOINT) must have the same paths".to_owned())
            }
            Self::WrongRows { .. } | Self::Unconvertible { .. } => {
                Some("fetch it again; if that fails too, the source has changed".to_owned())
            }
            Self::NoCache => Some("set HF_HUB_CACHE or HF_HOME".to_owned()),
            Self::Files(error) => error.hint(),
            Self::RevisionOfDirectory { .. } => {
                Some("only models of the hub have revisions; write org/name@revision".to_owned())
            }
            Self::NotCached(lacking) => {
                let remedy = elsewhere(&lacking.member);
                Some(match lacking.known.first() {
                    None => remedy,
                    Some(first) => format!(
                        "{remedy}; the cache has other revisions of it: {} (name {}@{first})",
                        lacking.known.join(", "),
                        lacking.repository
                    ),
                })
            }
            Self::Forbidden { member, .. } => Some(elsewhere(member)),
            Self::Refused { page, with_token: false, .. } => Some(format!(
                "accept the licence on {page}, then set HF_TOKEN to a read token of that account"
            )),
            Self::Refused { page, with_token: true, .. } => Some(format!(
                "ask for access on {page} with the account of the token in use; \
                 HF_TOKEN overrides the stored token"
            )),
            Self::NotFound { .. } => {
                Some("check the spelling; a private repository needs a token (HF_TOKEN)".to_owned())
            }
            Self::Unreachable { .. } | Self::Status { .. } => Some(
                "run the same command again: it continues the download; HF_ENDPOINT names a mirror"
                    .to_owned(),
            ),
            Self::WrongSum { .. } | Self::WrongSize { .. } => {
                Some("fetch it again; if that fails too, do not trust the source".to_owned())
            }
            Self::NotAccepted { model, .. } => Some(format!(
                "install the bundle again, with `wardround bundle install … --accept {model}` once the text was read"
            )),
            Self::Proxy(error) => error.hint(),
            Self::Io(error) => error.hint(),
            Self::Busy { .. } => Some("wait for it, then run the same command again".to_owned()),
            _ => None,
        }
    }
}

fn elsewhere(member: &str) -> String {
    format!(
        "run `wardround models fetch {member} --to DIR` on a machine with a network, \
         copy DIR here and name it in place of the model"
    )
}
