//! What can be wrong with a bundle, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use super::manifest::FORMAT;
use super::path::BadPath;
use super::version::{BadVersion, Version};
use super::{MANIFEST, SUMS};
use crate::diagnosis::{Blame, Diagnosis};

/// Problems that a message lists at most.
const MOST_LINES: usize = 50;

/// Why a bundle is not made, not trusted, or not installed.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    #[error("{} is no bundle: it has no {file}", directory.display())]
    NoBundle { directory: PathBuf, file: String },
    #[error("{file} cannot be used: {why}")]
    BadFile { file: String, why: String },
    #[error("the bundle has format {found}, this version of wardround reads {FORMAT}")]
    Format { found: u32 },
    #[error("`{key}` is no public key of minisign: {why}")]
    BadKey { key: String, why: String },
    #[error("{} has no signature of {SUMS} by {key}{}", directory.display(), in_brackets(reasons))]
    NotSigned { directory: PathBuf, key: String, reasons: Vec<String> },
    #[error("{} is not authenticated: no key was given that it must be signed by", directory.display())]
    NoKey { directory: PathBuf },
    #[error("{} is not what it should be: {}\n{}", directory.display(), counted(problems.len()), shown(problems))]
    Wrong { directory: PathBuf, problems: Vec<String> },
    #[error("the installed version {} is not what it should be: {}\n{}", directory.display(), counted(problems.len()), shown(problems))]
    Damaged { directory: PathBuf, problems: Vec<String> },

    #[error(transparent)]
    Path(#[from] BadPath),
    #[error(transparent)]
    Version(#[from] BadVersion),
    #[error("`{name}` is no name for {what}")]
    Name { name: String, what: &'static str },
    #[error("{} exists and is not empty", path.display())]
    Exists { path: PathBuf },
    #[error("{} is being written by another process", path.display())]
    Busy { path: PathBuf },
    #[error("two files would be {path}: {} and {}", first.display(), second.display())]
    Twice { path: String, first: PathBuf, second: PathBuf },
    #[error("nothing says what these files should be:\n{}", shown(files))]
    Unverified { files: Vec<String> },
    #[error("{} holds {count} notes of MEDEC-UW, which are under a data-use agreement and may not be passed on", path.display())]
    Agreement { path: PathBuf, count: u64 },
    #[error("{} holds {label}, whose licence does not let copies be handed on: {licence}", path.display())]
    NotRedistributable { path: PathBuf, label: String, licence: String },
    #[error("{model} may be passed on only by who accepted its licence, the {licence}")]
    NotAcceptedBy { model: String, licence: String },
    #[error("the text of the licence of {model}, the {licence}, is not there")]
    NoLicenceText { model: String, licence: String, url: String },
    #[error("the text that says what {model} may be used for is not there")]
    NoPolicyText { model: String, url: String },
    #[error("{} is not the licence of {model} that its card knows: its sha256 is {found}, the card says {expected}", path.display())]
    OtherLicence { model: String, path: PathBuf, expected: String, found: String },
    #[error("{} changed while it was copied", path.display())]
    Changed { path: PathBuf },
    #[error("`wardround selftest` of {} ended with {status}", program.display())]
    Selftest { program: PathBuf, status: String },

    #[error("{} holds no installed version", root.display())]
    NoRoot { root: PathBuf },
    #[error("version {new} is older than {newest}, which is installed in {}", root.display())]
    Downgrade { root: PathBuf, new: Version, newest: Version },
    #[error("the bundle is of {new}, and {} was first installed with {own}", root.display())]
    OtherProduct { root: PathBuf, own: String, new: String },
    #[error("no --trust names the key {key}, by which all of {} is signed", root.display())]
    OtherSigner { root: PathBuf, key: String },
    #[error("{} has installed versions and no trust.json, which says whose bundles it takes", root.display())]
    NoTrust { root: PathBuf },
    #[error("version {version} is in {} already, and it is another bundle", root.display())]
    OtherVersion { root: PathBuf, version: Version },
    #[error("the bundle holds what changed since a version that is not in {}: the one whose {MANIFEST} has the sha256 {sha256}", root.display())]
    NoPrevious { root: PathBuf, sha256: String },
    #[error("the licence of {model}, the {licence}, was not accepted")]
    NotAccepted { model: String, licence: String, text: PathBuf },
    #[error("{} has {free_bytes} bytes free, and {needed_bytes} are needed", path.display())]
    NoSpace { path: PathBuf, free_bytes: u64, needed_bytes: u64 },
    #[error("the bundle's program is for {needed}, and this machine is {found}")]
    OtherCpu { needed: String, found: String },
    #[error("the bundle's program needs {what} {needed} or later, and this machine has {found}")]
    OtherSystem { what: &'static str, needed: String, found: String },
    #[error("the bundle has no unit `{name}`; it has {units}")]
    NoUnit { name: String, units: String },
    #[error("a unit cannot name {}: it has characters that systemd reads as something else", root.display())]
    UnitRoot { root: PathBuf },
    #[error("no version is there to go back to in {}", root.display())]
    NothingBefore { root: PathBuf },
    #[error("version {version} is not in {}", root.display())]
    NoVersion { root: PathBuf, version: String },
    #[error("version {version} is installed in {} and is not current: its selftest found differences", directory.display())]
    GoldenDiffers { directory: PathBuf, root: PathBuf, version: Version },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl BundleError {
    /// Refuses a directory with which something is wrong.
    pub fn refuse_wrong(directory: &Path, problems: Vec<String>) -> Result<(), BundleError> {
        match problems.is_empty() {
            true => Ok(()),
            false => Err(BundleError::Wrong { directory: directory.to_owned(), problems }),
        }
    }

    /// Refuses an installed version with which something is wrong.
    pub fn refuse_damaged(directory: &Path, problems: Vec<String>) -> Result<(), BundleError> {
        match problems.is_empty() {
            true => Ok(()),
            false => Err(BundleError::Damaged { directory: directory.to_owned(), problems }),
        }
    }
}

fn in_brackets(reasons: &[String]) -> String {
    match reasons {
        [] => String::new(),
        reasons => format!(" ({})", reasons.join("; ")),
    }
}

fn counted(count: usize) -> String {
    match count {
        1 => "1 problem".to_owned(),
        count => format!("{count} problems"),
    }
}

fn shown(lines: &[String]) -> String {
    let mut shown: Vec<String> =
        lines.iter().take(MOST_LINES).map(|line| format!("  {line}")).collect();
    if lines.len() > MOST_LINES {
        shown.pop();
        shown.push(format!("  … and {} more", lines.len() - MOST_LINES + 1));
    }
    shown.join("\n")
}

impl Diagnosis for BundleError {
    fn blame(&self) -> Blame {
        match self {
            BundleError::Path(_)
            | BundleError::Version(_)
            | BundleError::Name { .. }
            | BundleError::BadKey { .. }
            | BundleError::Exists { .. }
            | BundleError::Busy { .. }
            | BundleError::Twice { .. }
            | BundleError::Agreement { .. }
            | BundleError::NotRedistributable { .. }
            | BundleError::NotAcceptedBy { .. }
            | BundleError::Downgrade { .. }
            | BundleError::OtherProduct { .. }
            | BundleError::OtherSigner { .. }
            | BundleError::OtherVersion { .. }
            | BundleError::NoUnit { .. }
            | BundleError::UnitRoot { .. }
            | BundleError::NothingBefore { .. } => Blame::Usage,
            BundleError::NoSpace { .. } => Blame::Machine,
            BundleError::GoldenDiffers { .. } => Blame::Outcome,
            BundleError::Io(error) => error.blame(),
            _ => Blame::Artefact,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            BundleError::NoBundle { .. } => {
                "name the directory that `wardround bundle create` wrote"
            }
            BundleError::Format { .. } => {
                "use the wardround that came with the bundle, once it is checked by hand as README.html says"
            }
            BundleError::BadKey { .. } => {
                "give the file of a public key, or the line of it that begins with RW"
            }
            BundleError::NotSigned { .. } => {
                "do not use it; ask the sender, by another way, which key signed it"
            }
            BundleError::NoKey { .. } => {
                "give --trust KEY, a key whose fingerprint came by another way"
            }
            BundleError::Wrong { .. } => "do not use it; copy it again, and check it again",
            BundleError::Damaged { directory, .. } => {
                return Some(format!(
                    "remove {}, and install the bundle again",
                    directory.display()
                ));
            }
            BundleError::Exists { .. } => "choose a directory that is not there yet",
            BundleError::Busy { .. } => "wait for it, then run the same command again",
            BundleError::Unverified { .. } => {
                "fetch them with `wardround models fetch` or `data fetch`, or say --unverified; the bundle then says so"
            }
            BundleError::Agreement { .. } => {
                "take out its rows: the recipient asks its owners for it"
            }
            BundleError::NotRedistributable { label, .. } => {
                return Some(format!(
                    "let the recipient make it there, with `wardround data fetch` or `corpus build`; --allow {label} says that you were given leave"
                ));
            }
            BundleError::UnitRoot { .. } => {
                "install --to a path of letters, digits and / . _ + @ - alone, or write the unit by hand"
            }
            BundleError::NotAcceptedBy { .. } => "give --accepted-by NAME",
            BundleError::NoLicenceText { model, url, .. } => {
                return Some(format!("save it from {url}, and give --licence {model}=FILE"));
            }
            BundleError::NoPolicyText { model, url } => {
                return Some(format!("save it from {url}, and give --policy {model}=FILE"));
            }
            BundleError::OtherLicence { .. } => {
                "save the text as its owner publishes it, byte for byte"
            }
            BundleError::OtherProduct { .. } | BundleError::OtherSigner { .. } => {
                "do not use it, unless the sender told you by another way that this changes; then say --new-signer"
            }
            BundleError::NoTrust { .. } => {
                "find out who removed it; then install a bundle whose signers you know, with --trust KEY --new-signer"
            }
            BundleError::Downgrade { .. } => {
                "say --downgrade, or go back with `wardround bundle rollback`"
            }
            BundleError::OtherVersion { .. } => {
                "the sender gives each bundle a version of its own, with --release"
            }
            BundleError::NoPrevious { .. } => {
                "install that version first, or ask for a whole bundle"
            }
            BundleError::NotAccepted { model, text, .. } => {
                return Some(format!("read {}, then give --accept {model}", text.display()));
            }
            BundleError::NoSpace { .. } => {
                "free some space; versions that are not current may be removed from ROOT/versions"
            }
            BundleError::OtherCpu { .. } | BundleError::OtherSystem { .. } => {
                "ask the sender for a bundle whose program runs on this machine"
            }
            BundleError::NoRoot { .. } => "name the ROOT of `wardround bundle install --to ROOT`",
            BundleError::NothingBefore { root } | BundleError::NoVersion { root, .. } => {
                return Some(format!(
                    "`wardround bundle ls {}` lists the versions, and --to names one",
                    root.display()
                ));
            }
            BundleError::GoldenDiffers { version, root, .. } => {
                return Some(format!(
                    "read the selftest's page; `wardround bundle rollback {} --to {version}` makes it current all the same",
                    root.display()
                ));
            }
            BundleError::Io(error) => return error.hint(),
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_lists_fifty_problems_at_most() {
        let problems: Vec<String> = (0..60).map(|number| format!("missing {number}")).collect();
        let error = BundleError::Wrong { directory: "b".into(), problems };
        let text = error.to_string();
        assert_eq!(text.lines().count(), 1 + MOST_LINES);
        assert!(text.contains("60 problems") && text.ends_with("… and 11 more"), "{text}");
    }
}
