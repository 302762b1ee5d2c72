//! What can be wrong with a bundle, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use super::manifest::FORMAT;
use super::path::BadPath;
use super::version::{BadVersion, Version};
use super::{MANIFEST, SUMS};
use crate::fault::faults;

/// Problems that a message lists at most.
const MOST_LINES: usize = 50;

faults! {
    /// Why a bundle is not made, not trusted, or not installed.
    #[derive(Debug, thiserror::Error)]
    pub enum BundleError {
        #[error("{} is no bundle: it has no {file}", directory.display())]
        NoBundle { directory: PathBuf, file: String } => Artefact,
            "name the directory that `wardround bundle create` wrote";
        #[error("{file} cannot be used: {why}")]
        BadFile { file: String, why: String } => Artefact;
        #[error("the bundle has format {found}, this version of wardround reads {FORMAT}")]
        Format { found: u32 } => Artefact,
            "use the wardround that came with the bundle, once it is checked by hand as README.html says";
        #[error("`{key}` is no public key of minisign: {why}")]
        BadKey { key: String, why: String } => Usage,
            "give the file of a public key, or the line of it that begins with RW";
        #[error("{} has no signature of {SUMS} by {key}{}", directory.display(), in_brackets(reasons))]
        NotSigned { directory: PathBuf, key: String, reasons: Vec<String> } => Artefact,
            "do not use it; ask the sender, by another way, which key signed it";
        #[error("{} is not authenticated: no key was given that it must be signed by", directory.display())]
        NoKey { directory: PathBuf } => Artefact,
            "give --trust KEY, a key whose fingerprint came by another way";
        #[error("{} is not what it should be: {}\n{}", directory.display(), counted(problems.len()), shown(problems))]
        Wrong { directory: PathBuf, problems: Vec<String> } => Artefact,
            "do not use it; copy it again, and check it again";
        #[error("the installed version {} is not what it should be: {}\n{}", directory.display(), counted(problems.len()), shown(problems))]
        Damaged { directory: PathBuf, problems: Vec<String> } => Artefact,
            format!("remove {}, and install the bundle again", directory.display());
        #[error(transparent)]
        Path(error: #[from] BadPath) => Usage;
        #[error(transparent)]
        Version(error: #[from] BadVersion) => Usage;
        #[error("`{name}` is no name for {what}")]
        Name { name: String, what: &'static str } => Usage;
        #[error("{} exists and is not empty", path.display())]
        Exists { path: PathBuf } => Usage, "choose a directory that is not there yet";
        #[error("{} is being written by another process", path.display())]
        Busy { path: PathBuf } => Usage, "wait for it, then run the same command again";
        #[error("two files would be {path}: {} and {}", first.display(), second.display())]
        Twice { path: String, first: PathBuf, second: PathBuf } => Usage;
        #[error("nothing says what these files should be:\n{}", shown(files))]
        Unverified { files: Vec<String> } => Artefact,
            "fetch them with `wardround models fetch` or `data fetch`, or say --unverified; the bundle then says so";
        #[error("{} holds {count} notes of MEDEC-UW, which are under a data-use agreement and may not be passed on", path.display())]
        Agreement { path: PathBuf, count: u64 } => Usage,
            "take out its rows: the recipient asks its owners for it";
        #[error("{} holds {label}, whose licence does not let copies be handed on: {licence}", path.display())]
        NotRedistributable { path: PathBuf, label: String, licence: String } => Usage,
            format!("let the recipient make it there, with `wardround data fetch` or `corpus build`; --allow {label} says that you were given leave");
        #[error("{model} may be passed on only by who accepted its licence, the {licence}")]
        NotAcceptedBy { model: String, licence: String } => Usage, "give --accepted-by NAME";
        #[error("the text of the licence of {model}, the {licence}, is not there")]
        NoLicenceText { model: String, licence: String, url: String } => Artefact,
            format!("save it from {url}, and give --licence {model}=FILE");
        #[error("the text that says what {model} may be used for is not there")]
        NoPolicyText { model: String, url: String } => Artefact,
            format!("save it from {url}, and give --policy {model}=FILE");
        #[error("{} is not the licence of {model} that its card knows: its sha256 is {found}, the card says {expected}", path.display())]
        OtherLicence { model: String, path: PathBuf, expected: String, found: String } => Artefact,
            "save the text as its owner publishes it, byte for byte";
        #[error("{} changed while it was copied", path.display())]
        Changed { path: PathBuf } => Artefact;
        #[error("`wardround selftest` of {} ended with {status}", program.display())]
        Selftest { program: PathBuf, status: String } => Artefact;
        #[error("{} holds no installed version", root.display())]
        NoRoot { root: PathBuf } => Artefact,
            "name the ROOT of `wardround bundle install --to ROOT`";
        #[error("version {new} is older than {newest}, which is or was installed in {}", root.display())]
        Downgrade { root: PathBuf, new: Version, newest: Version } => Usage,
            "say --downgrade, or go back with `wardround bundle rollback`";
        #[error("the bundle is of {new}, and {} was first installed with {own}", root.display())]
        OtherProduct { root: PathBuf, own: String, new: String } => Usage,
            "do not use it, unless the sender told you by another way that this changes; then say --new-signer";
        #[error("{one} and {other} are one key: two signatures by it are not those of two signers")]
        SameKey { one: String, other: String } => Usage, "name each signer's key once";
        #[error("no --trust names the key {key}, by which all of {} is signed", root.display())]
        OtherSigner { root: PathBuf, key: String } => Usage,
            "do not use it, unless the sender told you by another way that this changes; then say --new-signer";
        #[error("{} has installed versions and no trust.json, which says whose bundles it takes", root.display())]
        NoTrust { root: PathBuf } => Artefact,
            "find out who removed it; then install a bundle whose signers you know, with --trust KEY --new-signer";
        #[error("version {version} is in {} already, and it is another bundle", root.display())]
        OtherVersion { root: PathBuf, version: Version } => Usage,
            "the sender gives each bundle a version of its own, with --release";
        #[error("the bundle holds what changed since a version that is not in {}: the one whose {MANIFEST} has the sha256 {sha256}", root.display())]
        NoPrevious { root: PathBuf, sha256: String } => Artefact,
            "install that version first, or ask for a whole bundle";
        #[error("the licence of {model}, the {licence}, was not accepted")]
        NotAccepted { model: String, licence: String, text: PathBuf } => Artefact,
            format!("read {}, then give --accept {model}", text.display());
        #[error("{} has {free_bytes} bytes free, and {needed_bytes} are needed", path.display())]
        NoSpace { path: PathBuf, free_bytes: u64, needed_bytes: u64 } => Machine,
            "free some space; versions that are not current may be removed from ROOT/versions";
        #[error("the bundle's program is for {needed}, and this machine is {found}")]
        OtherCpu { needed: String, found: String } => Artefact,
            "ask the sender for a bundle whose program runs on this machine";
        #[error("the bundle's program needs {what} {needed} or later, and this machine has {found}")]
        OtherSystem { what: &'static str, needed: String, found: String } => Artefact,
            "ask the sender for a bundle whose program runs on this machine";
        #[error("the bundle has no unit `{name}`; it has {units}")]
        NoUnit { name: String, units: String } => Usage;
        #[error("a unit cannot name {}: it has characters that systemd reads as something else", root.display())]
        UnitRoot { root: PathBuf } => Usage,
            "install --to a path of letters, digits and / . _ + @ - alone, or write the unit by hand";
        #[error("no version is there to go back to in {}", root.display())]
        NothingBefore { root: PathBuf } => Usage,
            format!("`wardround bundle ls {}` lists the versions, and --to names one", root.display());
        #[error("version {version} is not in {}", root.display())]
        NoVersion { root: PathBuf, version: String } => Artefact,
            format!("`wardround bundle ls {}` lists the versions, and --to names one", root.display());
        #[error("version {version} is installed in {} and is not current: its selftest found differences", directory.display())]
        GoldenDiffers { directory: PathBuf, root: PathBuf, version: Version } => Outcome,
            format!("read the selftest's page; `wardround bundle rollback {} --to {version}` makes it current all the same", root.display() );
        #[error(transparent)]
        Io(error: #[from] io::Error) => error.blame(), error.hint();
    }
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
