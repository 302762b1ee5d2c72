//! The sandbox of a process: from some point on it reads and writes what it was given, makes no socket, and starts no other program.
//!
//! Landlock binds the thread that asks for it and those that it starts, so it is entered before the first, with whatever listens open
//! already. What the kernel cannot do is said, never hidden. What more systemd and bubblewrap do is in `docs/airgap.md`.

#[cfg(all(target_os = "linux", feature = "airgap"))]
mod linux;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::OnceLock;

use clap::ValueEnum;

use crate::diagnosis::Failure;

/// Whether a process is sandboxed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SandboxMode {
    /// As far as the kernel can; what it cannot is said
    #[default]
    Auto,
    /// Files by Landlock ABI 3 (Linux 6.2) or later, and network and processes by seccomp; or not started
    Require,
    /// Not at all
    Off,
}

/// What a process may do.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Files and directories to read, with all that is in them.
    pub read: Vec<PathBuf>,
    /// Those to write too. They must exist.
    pub write: Vec<PathBuf>,
    /// Directories of which the names are seen, and not what is in their files.
    pub list: Vec<PathBuf>,
    /// Whether it may talk to everybody: models are fetched, or asked elsewhere.
    pub has_network: bool,
}

/// What held of a sandbox, or why it did not.
#[derive(Debug)]
struct Held {
    /// Whether there are no core dumps, and nobody may look in.
    is_hidden: bool,
    /// The version of Landlock's interface that files are restricted by.
    files: Result<u32, String>,
    calls: Result<(), String>,
}

/// What a required sandbox asks of Landlock: all that is done with files, truncating them too.
const LEAST_LANDLOCK: u32 = 3;

/// What held of the sandbox that this process is in, which it never leaves.
static HELD: OnceLock<String> = OnceLock::new();

/// What held of this process's sandbox, in words; `None`: it is in none.
pub fn held() -> Option<String> {
    HELD.get().cloned()
}

/// Restricts this process for good, of which no other thread runs. Gives what held, in words; `None` where no sandbox is wanted.
///
/// # Errors
/// A kernel that cannot, where the sandbox is required.
pub fn enter(mode: SandboxMode, policy: &Policy) -> Result<Option<String>, Failure> {
    if mode == SandboxMode::Off {
        return Ok(None);
    }
    if mode == SandboxMode::Require && policy.has_network {
        return Err(Failure::usage(
            "a sandbox is required, and models would be fetched or asked elsewhere",
            "fetch the models before and say --offline; members behind an endpoint go with --sandbox auto or off",
        ));
    }
    let held = restrict(policy);
    let lacking = held.lacking();
    match mode == SandboxMode::Require && !lacking.is_empty() {
        false => Ok(Some(HELD.get_or_init(|| held.words(policy)).clone())),
        true => Err(Failure::mismatch(format!(
            "a sandbox is required: files by Landlock ABI {LEAST_LANDLOCK} or later, calls by seccomp, no core dumps; this machine lacks {}",
            lacking.join(", ")
        ))),
    }
}

#[cfg(all(target_os = "linux", feature = "airgap"))]
fn restrict(policy: &Policy) -> Held {
    Held {
        is_hidden: linux::hide(),
        files: linux::restrict_files(policy),
        calls: linux::restrict_calls(policy.has_network).map_err(|error| error.to_string()),
    }
}

#[cfg(not(all(target_os = "linux", feature = "airgap")))]
fn restrict(_: &Policy) -> Held {
    let why = || "this build has no sandbox for this system".to_owned();
    Held { is_hidden: false, files: Err(why()), calls: Err(why()) }
}

impl Held {
    /// What a required sandbox has and this one has not.
    fn lacking(&self) -> Vec<String> {
        let hidden = (!self.is_hidden).then(|| "the ban on core dumps and tracing".to_owned());
        let files = match &self.files {
            Ok(version) if *version >= LEAST_LANDLOCK => None,
            Ok(_) => Some("truncating files by Landlock".to_owned()),
            Err(why) => Some(format!("files ({why})")),
        };
        let calls = self.calls.as_ref().err().map(|why| format!("calls ({why})"));
        [hidden, files, calls].into_iter().flatten().collect()
    }

    fn words(&self, policy: &Policy) -> String {
        let files = self.files.as_ref().ok();
        let files = files.map(|version| format!("files by Landlock ABI {version}"));
        let calls = match policy.has_network {
            true => "processes by seccomp",
            false => "network and processes by seccomp",
        };
        let held: Vec<String> =
            files.into_iter().chain(self.calls.is_ok().then(|| calls.to_owned())).collect();
        let held = if held.is_empty() { "nothing is enforced".to_owned() } else { held.join(", ") };
        let mut lacking = self.lacking();
        if policy.has_network {
            lacking.push("network, since models are fetched or asked elsewhere".to_owned());
        }
        match lacking.is_empty() {
            true => format!("sandbox: {held}"),
            false => format!("sandbox: {held}; not enforced: {}", lacking.join(", ")),
        }
    }
}
