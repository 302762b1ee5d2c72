//! The selftest of what was just installed, by the program that was installed with it.

use std::io;
use std::process::{Command, Stdio};

use crate::bundle::manifest::{ComponentKind, Manifest};
use crate::bundle::root::Root;
use crate::bundle::{BundleError, files, program};
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
    help.args(["selftest", "--help"]).stdin(Stdio::null());
    help.stdout(Stdio::null()).stderr(Stdio::null());
    let known = program::start(|| help.status()).map_err(started)?;
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
    selftest.arg("selftest").arg("--root").arg(&directory).arg("--out").arg(&out);
    selftest.stdin(Stdio::null());
    let status = program::start(|| selftest.status()).map_err(started)?;
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
