//! The selftest: whether what is installed is whole, and computes here what it computed where it was released.
//!
//! ```text
//! manifest, binary, machine, clock, file modes → of each model: its sums, then sixteen calls → one report
//! ```
//!
//! The engine gives equal bytes on machines of one kind, so the tokens of a call can be compared one by one.

mod calls;
pub mod check;
mod error;
pub mod golden;
mod installation;
pub mod last;
mod model;
pub mod modes;
mod trial;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;

pub use check::{Check, State};
pub use error::SelftestError;
pub use model::{Compared, FileReport, ModelReport, TrialReport};

use self::installation::Installation;
use crate::diagnosis::Failure;
use crate::experiment::clock;
use crate::experiment::hardware::DeviceChoice;
use crate::experiment::run::host;
use crate::hub::{HubOptions, sha256_file};
use crate::model::{WantedPrecision, available_memory};
use crate::ops::Device;
use crate::panel::memory::gibibytes;

/// Of the report and of golden files.
pub const SCHEMA: u32 = 1;
/// The file of a report.
pub const JSON: &str = "selftest.json";

/// What is tested, and how.
pub struct SelftestOptions<'a> {
    /// An installed version of a bundle, or a bundle.
    pub root: Option<&'a Path>,
    /// Names or directories.
    pub models: &'a [String],
    pub hub: &'a HubOptions,
    pub device: DeviceChoice,
    /// How numbers are to be kept; `None`: as golden files say, else as the checkpoint has them.
    pub precision: Option<WantedPrecision>,
    /// The directory of golden files.
    pub golden: Option<&'a Path>,
    /// Whether they are written instead of compared with.
    pub writes_golden: bool,
    /// This program's file.
    pub binary: &'a Path,
    /// What was found before: file modes, the sandbox.
    pub found: Vec<Check>,
    /// Told what is being done.
    pub tell: &'a dyn Fn(&str),
}

/// What a selftest came to.
#[derive(Debug, Serialize)]
pub struct Report {
    pub schema: u32,
    pub created_at: String,
    pub version: &'static str,
    /// The worst of all checks.
    pub outcome: State,
    pub elapsed_ms: u64,
    pub checks: Vec<Check>,
    pub models: Vec<ModelReport>,
}

/// Tests everything. What is wrong with a file is in the report.
///
/// # Errors
/// A manifest that cannot be read, or is missing where it must be there; a machine that fails or has too little memory.
pub fn run(options: &SelftestOptions<'_>) -> Result<Report, Failure> {
    let started = Instant::now();
    let created_at = clock::utc_now();
    let installation = match options.root {
        Some(root) => Installation::read(root, options.writes_golden)?,
        None => None,
    };
    let mut checks = vec![Check::note("machine", machine())];
    for device in options.device.devices()? {
        checks.push(Check::note("device", device_words(&device)));
    }
    checks.push(Check::note("memory", memory()));
    checks.push(clock_check(&created_at, installation.as_ref()));
    checks.extend(options.found.iter().cloned());
    (options.tell)("this program");
    let binary_sha256 = sha256_file(options.binary)?;
    checks.push(match &installation {
        Some(installation) if !options.writes_golden => installation.check_binary(&binary_sha256),
        _ => Check::note("binary", installation::describe_binary(&binary_sha256)),
    });
    let mut models = Vec::with_capacity(options.models.len());
    for member in options.models {
        models.push(model::test(member, options)?);
    }
    if let Some(installation) = &installation {
        (options.tell)("the files of the manifest");
        checks.extend(installation.check_files(&sums(&models))?);
    }
    let all = checks.iter().chain(models.iter().flat_map(|model| &model.checks));
    Ok(Report {
        schema: SCHEMA,
        outcome: all.map(|check| check.state).max().unwrap_or(State::Note),
        created_at,
        version: env!("CARGO_PKG_VERSION"),
        elapsed_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        checks,
        models,
    })
}

/// The sums that are known of models' files, so that no weights are read twice.
fn sums(models: &[ModelReport]) -> BTreeMap<PathBuf, String> {
    let files = models.iter().flat_map(|model| {
        model
            .files
            .iter()
            .filter_map(|file| Some((model.path.join(&file.name), file.sha256.clone()?)))
    });
    files.collect()
}

fn machine() -> String {
    let host = host();
    format!("{}: {}, {} cores, {}", host.name, host.cpu, host.cores, host.system)
}

fn device_words(device: &Device) -> String {
    let free = device.own_memory().map(|free| format!(", {} free", gibibytes(free)));
    format!("{}, {} threads{}", device.describe(), device.threads(), free.unwrap_or_default())
}

fn memory() -> String {
    let all = usize::try_from(host().memory_bytes).unwrap_or(usize::MAX);
    format!("{} free of {}", gibibytes(available_memory()), gibibytes(all))
}

/// A clock that is before the bundle's making is wrong; RFC 3339 times in UTC compare as texts.
fn clock_check(now: &str, installation: Option<&Installation>) -> Check {
    match installation.and_then(|installation| installation.manifest.created_at.as_deref()) {
        Some(made) if now < made => {
            Check::differs("clock", format!("{now}, which is before the bundle was made, {made}"))
        }
        _ => Check::note("clock", now.to_owned()),
    }
}

impl Report {
    /// A line a check, for people.
    pub fn table(&self) -> String {
        let mut text = String::new();
        for Check { state, name, found } in &self.checks {
            text += &format!("{:8} {name:16} {found}\n", state.word());
        }
        for model in &self.models {
            for Check { state, name, found } in &model.checks {
                text += &format!("{:8} {:16} {name:10} {found}\n", state.word(), model.name);
            }
        }
        text
    }

    /// How it ended.
    ///
    /// # Errors
    /// Anything that differs, or that is missing or corrupt.
    pub fn verdict(&self) -> Result<(), Failure> {
        let all = || self.checks.iter().chain(self.models.iter().flat_map(|model| &model.checks));
        let count = all().filter(|check| check.state == self.outcome).count();
        let hint = "the lines above say what";
        match self.outcome {
            State::Note | State::Ok => Ok(()),
            State::Differs => Err(Failure::outcome(
                format!("the selftest found {count} of {} checks that differ", all().count()),
                Some(hint.to_owned()),
            )),
            State::Broken => Err(SelftestError::Broken { count, checks: all().count() }.into()),
        }
    }
}
