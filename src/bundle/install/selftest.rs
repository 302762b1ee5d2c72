//! The selftest of what was just installed, by the program that was installed with it.

use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use crate::bundle::manifest::{ComponentKind, Manifest};
use crate::bundle::root::Root;
use crate::bundle::{BundleError, files};
use crate::console;
use crate::diagnosis::{Blame, Failure};

/// Runs `bin/wardround selftest` of a version. `false`: it has no program, no models, or a program without a selftest.
///
/// # Errors
/// A program that cannot run here; differences.
pub fn run(root: &Root, manifest: &Manifest) -> Result<bool, Failure> {
    let version = &manifest.version;
    let directory = root.version(&version.to_string());
    let program = directory.join("bin/wardround");
    if !program.is_file() {
        console::note("note: the bundle has no bin/wardround, so nothing was tried");
        return Ok(false);
    }
    if !manifest.components.iter().any(|component| component.kind == ComponentKind::Model) {
        console::note("note: the bundle has no models, so nothing was tried");
        return Ok(false);
    }
    let failed = |status: String| BundleError::Selftest { program: program.clone(), status };
    let started = |error: io::Error| failed(error.to_string());
    let mut help = Command::new(&program);
    let help = help.args(["selftest", "--help"]).stdin(Stdio::null());
    let known = status_of(help.stdout(Stdio::null()).stderr(Stdio::null())).map_err(started)?;
    if !known.success() {
        console::note("note: the program of the bundle has no selftest");
        return Ok(false);
    }
    let out = root.selftest(version);
    files::make_folder(&out)?;
    console::note(format!(
        "selftest of {}; its page goes to {}",
        directory.display(),
        out.display()
    ));
    let mut selftest = Command::new(&program);
    let selftest = selftest.arg("selftest").arg("--root").arg(&directory).arg("--out").arg(&out);
    let status = status_of(selftest.stdin(Stdio::null())).map_err(started)?;
    match status.code() {
        Some(0) => Ok(true),
        Some(code) if code == i32::from(Blame::Outcome.exit_code()) => {
            Err(BundleError::GoldenDiffers {
                directory,
                root: root.path.clone(),
                version: version.clone(),
            }
            .into())
        }
        _ => Err(failed(status.to_string()).into()),
    }
}

/// Runs a program that was just written. A process that was being started at that time may hold its file open for a moment still.
fn status_of(command: &mut Command) -> io::Result<ExitStatus> {
    const ATTEMPTS: usize = 40;
    const PAUSE: Duration = Duration::from_millis(50);
    for _ in 1..ATTEMPTS {
        match command.status() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => thread::sleep(PAUSE),
            result => return result,
        }
    }
    command.status()
}
