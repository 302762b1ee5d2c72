//! The sandbox of a process: from some point on it reads and writes what it was given, talks to nobody, and starts no other program.
//!
//! ```text
//! paths are known, no thread runs → enter (Landlock) → threads, models, sockets → seal (seccomp, on every thread)
//! ```
//!
//! Landlock binds the thread that asks for it and those that it starts, so it comes before the first. What the kernel cannot do is
//! said, never hidden.

#[cfg(not(all(target_os = "linux", feature = "airgap")))]
mod absent;
#[cfg(target_os = "linux")]
pub mod acts;
#[cfg(all(target_os = "linux", feature = "airgap"))]
mod calls;
pub mod inherited;
#[cfg(all(target_os = "linux", feature = "airgap"))]
mod landlock;
pub mod report;
#[cfg(all(target_os = "linux", feature = "airgap"))]
mod seccomp;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use clap::ValueEnum;

#[cfg(not(all(target_os = "linux", feature = "airgap")))]
use self::absent as landlock;
#[cfg(not(all(target_os = "linux", feature = "airgap")))]
use self::absent as seccomp;
pub use self::report::Report;
use crate::diagnosis::Failure;
pub use crate::outside;

/// Whether a process is sandboxed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SandboxMode {
    /// As far as the kernel can; what it cannot is said
    #[default]
    Auto,
    /// Files by Landlock ABI 3 (Linux 6.2) or later, and calls by seccomp; or not started
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
    /// Directories of which the names are seen, not what is in their files; empty directories may be removed there.
    pub list: Vec<PathBuf>,
    pub network: Network,
}

/// Whom a process may talk to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Nobody.
    #[default]
    None,
    /// Whoever connects to this port, or to a Unix socket: `None`. What listens is there before the sandbox is sealed.
    Listen { port: Option<u16> },
    /// Everybody: models are fetched, or asked elsewhere.
    Open,
}

/// What a required sandbox asks of Landlock: all that is done with files, truncating them too. What later interfaces add, seccomp
/// denies all the same: sockets, control of devices, signals.
const LEAST_LANDLOCK: u32 = 3;

/// A sandbox that was entered.
#[must_use = "without being sealed it does not restrict calls"]
pub struct Sandbox {
    network: Network,
    mode: SandboxMode,
    pub report: Report,
}

/// Restricts the files of this thread and of those that it starts. `None` where no sandbox is wanted.
///
/// # Errors
/// A kernel that cannot, where the sandbox is required.
pub fn enter(mode: SandboxMode, policy: &Policy) -> Result<Option<Sandbox>, Failure> {
    if mode == SandboxMode::Off {
        return Ok(None);
    }
    if mode == SandboxMode::Require && policy.network == Network::Open {
        return Err(Failure::usage(
            "a sandbox is required, and models would be fetched or asked elsewhere",
            "fetch the models before and say --offline; members behind an endpoint go with --sandbox auto or off",
        ));
    }
    let report = landlock::restrict_files(policy);
    accept(mode, &report, holds_files(&report))?;
    Ok(Some(Sandbox { network: policy.network, mode, report }))
}

/// Whether files are restricted as far as a required sandbox asks, and nobody may look in.
fn holds_files(report: &Report) -> bool {
    report.is_hidden && report.files.is_some_and(|version| version >= LEAST_LANDLOCK)
}

/// Accepts what held; less than all only where that is not required.
fn accept(mode: SandboxMode, report: &Report, has_held: bool) -> Result<(), Failure> {
    match has_held || mode != SandboxMode::Require {
        true => Ok(()),
        false => Err(Failure::mismatch(format!(
            "a sandbox is required: files by Landlock ABI {LEAST_LANDLOCK} or later, calls by seccomp, no core dumps; this machine lacks {}",
            report.lacking.join(", ")
        ))),
    }
}

impl Sandbox {
    /// Restricts the calls of every thread, for good; whatever listens must do so already.
    pub fn seal(&mut self) -> Result<(), Failure> {
        let sealed = seccomp::restrict_calls(self.network);
        self.report.calls = sealed.is_ok();
        if let Err(why) = sealed {
            self.report.lacking.push(why);
        }
        accept(self.mode, &self.report, self.report.calls)
    }
}
