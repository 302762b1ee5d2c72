//! What an error says beside its message: who has to act on it, and what may help.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};

/// Who has to act on an error; the exit code of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// Nobody at fault: the command did its work, and a gate failed or items errored.
    Outcome,
    /// The command line, the configuration, or the user's data.
    Usage,
    /// A missing or corrupt file of a model, a run or another artefact.
    Artefact,
    /// The machine or this program: a full disk, a failed GPU, no memory, a dead thread.
    Machine,
    /// A signal ended what can go on.
    Interrupted,
}

impl Blame {
    /// 1, 2, 3, 70 (`EX_SOFTWARE` of sysexits.h) and 130 (128 + SIGINT).
    pub fn exit_code(self) -> u8 {
        match self {
            Blame::Outcome => 1,
            Blame::Usage => 2,
            Blame::Artefact => 3,
            Blame::Machine => 70,
            Blame::Interrupted => 130,
        }
    }
}

pub trait Diagnosis: Error + Send + Sync + 'static {
    fn blame(&self) -> Blame;

    /// What the user can do about it, printed after `hint:`.
    fn hint(&self) -> Option<String> {
        None
    }
}

#[derive(Debug)]
pub struct Failure(Box<dyn Diagnosis>);

impl<E: Diagnosis> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure(Box::new(error))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Complaint {
    blame: Blame,
    message: String,
    hint: Option<String>,
}

impl Diagnosis for Complaint {
    fn blame(&self) -> Blame {
        self.blame
    }

    fn hint(&self) -> Option<String> {
        self.hint.clone()
    }
}

impl Failure {
    /// The command line asks for what cannot be.
    pub fn usage(message: impl Into<String>, hint: &str) -> Failure {
        Failure::complaint(Blame::Usage, message.into(), Some(hint.to_owned()))
    }

    /// The same, where there is nothing to advise.
    pub fn refused(message: impl Into<String>) -> Failure {
        Failure::complaint(Blame::Usage, message.into(), None)
    }

    /// The command did its work, and the outcome is not what was hoped for.
    pub fn outcome(message: impl Into<String>, hint: Option<String>) -> Failure {
        Failure::complaint(Blame::Outcome, message.into(), hint)
    }

    /// Something that the command needs is not there.
    pub fn missing(message: impl Into<String>, hint: &str) -> Failure {
        Failure::complaint(Blame::Artefact, message.into(), Some(hint.to_owned()))
    }

    /// The machine or this program failed.
    pub fn machine(message: impl Into<String>, hint: &str) -> Failure {
        Failure::complaint(Blame::Machine, message.into(), Some(hint.to_owned()))
    }

    /// A signal ended it.
    pub fn interrupted(message: impl Into<String>, hint: String) -> Failure {
        Failure::complaint(Blame::Interrupted, message.into(), Some(hint))
    }

    /// A file's content does not match what was recorded of it.
    pub fn mismatch(message: impl Into<String>) -> Failure {
        Failure::complaint(Blame::Artefact, message.into(), None)
    }

    /// The same, of one thing among several.
    pub fn about(self, what: &str) -> Failure {
        Failure::complaint(self.blame(), format!("{what}: {self}"), self.hint())
    }

    fn complaint(blame: Blame, message: String, hint: Option<String>) -> Failure {
        Failure::from(Complaint { blame, message, hint })
    }

    pub fn blame(&self) -> Blame {
        self.0.blame()
    }

    pub fn hint(&self) -> Option<String> {
        self.0.hint()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Diagnosis for io::Error {
    /// A path that was named, or else the machine.
    fn blame(&self) -> Blame {
        match self.kind() {
            ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::AlreadyExists
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::DirectoryNotEmpty
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::ResourceBusy
            | ErrorKind::InvalidFilename
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidData => Blame::Usage,
            _ => Blame::Machine,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some space and try again",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

impl Diagnosis for rayon::ThreadPoolBuildError {
    fn blame(&self) -> Blame {
        Blame::Machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_the_machines_and_a_named_path_the_users() {
        for kind in [
            ErrorKind::StorageFull,
            ErrorKind::QuotaExceeded,
            ErrorKind::OutOfMemory,
            ErrorKind::Other,
        ] {
            assert_eq!(io::Error::from(kind).blame(), Blame::Machine, "{kind}");
        }
        for kind in
            [ErrorKind::NotFound, ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem]
        {
            assert_eq!(io::Error::from(kind).blame(), Blame::Usage, "{kind}");
        }
    }
}
