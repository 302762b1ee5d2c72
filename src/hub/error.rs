//! Why a model cannot be found, fetched or used, and what to do about it.

use std::io;
use std::path::PathBuf;

use super::{Card, DatasetCard, Kind};
use crate::checkpoint::FilesError;
use crate::fault::faults;

const AGAIN: &str =
    "run the same command again: it continues the download; HF_ENDPOINT names a mirror of the hub";

faults! {
    /// Why a checkpoint cannot be found, fetched or used.
    #[derive(Debug, thiserror::Error)]
    pub enum HubError {
        #[error(
            "no model is called `{member}`: it is not a directory here, a card's name or a hub id (org/name)"
        )]
        UnknownModel { member: String } => Usage,
            format!("cards of language models: {}; of encoders: {}", cards(Kind::Decoder), cards(Kind::Encoder));
        #[error("`{revision}` is not the name of a branch, tag or commit")]
        Revision { revision: String } => Usage,
            "a revision of a model of the hub is written org/name@revision";
        #[error("there is no directory for the hub's cache: no home directory is known")]
        NoCache => Usage, "set HF_HUB_CACHE or HF_HOME";
        #[error("{name} is {problem}")]
        BadVariable { name: &'static str, problem: String } => Usage;
        #[error(transparent)]
        Files(error: #[from] FilesError) => error.blame(), error.hint();
        /// A provenance.
        #[error("{} cannot be read: {reason}", path.display())]
        Malformed { path: PathBuf, reason: String } => Artefact;
        #[error("{repository} is incomplete in the cache {}: {missing}; {reason}", cache.display())]
        NotCached {
            /// As it would be typed.
            member: String,
            /// With its revision, in words.
            repository: String,
            /// What the cache lacks.
            missing: String,
            cache: PathBuf,
            reason: OfflineReason,
        } => Artefact, elsewhere("models", member);
        #[error("{name} cannot be fetched: {reason}")]
        Forbidden {
            /// What fetches it: `models` or `data`.
            verb: &'static str,
            /// As it would be typed.
            name: String,
            reason: OfflineReason,
        } => Artefact, elsewhere(verb, name);
        #[error("the hub refuses access to {repository} (HTTP {status}){}", said(message))]
        Refused {
            repository: String,
            status: u16,
            /// What the hub said, where it said anything.
            message: Option<String>,
            /// The page on which access is asked for.
            page: String,
        } => Artefact,
            format!("accept the licence on {page}, then set HF_TOKEN to a read token of that account");
        #[error("the hub has no {what}{}", said(message))]
        NotFound { what: String, message: Option<String> } => Artefact,
            "check the spelling; a private repository needs a token (HF_TOKEN)";
        #[error("{url} answered with HTTP {status}")]
        Status { url: String, status: u16 } => Artefact,
            match status {
                404 => "a mirror (HF_ENDPOINT) must have the same paths",
                _ => AGAIN,
            };
        #[error("{url} cannot be reached: {reason}")]
        Unreachable { url: String, reason: String } => Artefact,
            format!("{AGAIN}; where connections go through a proxy, WARDROUND_PROXY has to name it");
        #[error("{url} sent an unexpected answer: {reason}")]
        BadAnswer { url: String, reason: String } => Artefact;
        #[error("{file} {problem}; nothing of it is kept")]
        Changed { file: String, problem: String } => Artefact,
            "fetch it again; if that fails too, do not trust the source";
        #[error("no dataset is called `{name}`, and there is no card at that path")]
        UnknownDataset { name: String } => Usage,
            format!("the datasets are {}", joined(DatasetCard::all().iter().map(|card| card.name.as_str())));
        #[error("{} has no file of any dataset", path.display())]
        NoDatasets { path: PathBuf } => Usage, "`wardround data fetch all --to DIR` makes one";
        #[error("{} is being written by another process", path.display())]
        Busy { path: PathBuf } => Usage, "wait for it, then run the same command again";
        #[error(transparent)]
        Io(error: #[from] io::Error) => error.blame(), error.hint();
    }
}

/// Why nothing may be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OfflineReason {
    #[error("--offline forbids connections")]
    Flag,
    /// This environment variable is set.
    #[error("{0} is set and forbids connections")]
    Variable(&'static str),
    /// The command looks at what is there.
    #[error("this command downloads nothing")]
    Command,
    #[error("this build cannot connect (it lacks the feature `hub`)")]
    Build,
}

fn said(message: &Option<String>) -> String {
    message.as_ref().map(|message| format!(": {message}")).unwrap_or_default()
}

/// The names of the models' cards of this kind.
fn cards(kind: Kind) -> String {
    let cards = Card::all().iter().filter(|card| card.kind == kind);
    joined(cards.map(|card| card.name.as_str()))
}

fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

fn elsewhere(verb: &str, name: &str) -> String {
    let remedy = format!(
        "run `wardround {verb} fetch {name} --to DIR` on a machine with a network and copy DIR here"
    );
    if verb == "models" { remedy + "; name it in place of the model" } else { remedy }
}
