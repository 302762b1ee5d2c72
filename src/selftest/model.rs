//! A model's selftest: its files against their sums, then its answers against a golden file, or against themselves.

use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;

use super::calls::{self, BATCH, Call};
use super::check::{Check, some};
use super::error::SelftestError;
use super::golden::{self, Golden, Head};
use super::trial::{Answer, Difference, Way, answer, differences};
use super::{SelftestOptions, State};
use crate::diagnosis::{Blame, Failure};
use crate::experiment::hardware::{Compute, Hardware};
use crate::experiment::models::Models;
use crate::experiment::plan::{MemberChoice, MemberPlan};
use crate::hub::{Checkpoint, Kind, Status, resolve, verify};
use crate::model::{Config, ModelError, WantedPrecision, precision_of};
use crate::ops::{Device, Precision, Quantisation};
use crate::panel::PanelError;
use crate::panel::backbone::Backbone;
use crate::panel::memory::{AuxiliaryModels, KvBudget};
use crate::synth;

/// Tokens of the longest prompt and its completion, by any tokenizer.
const CONTEXT: usize = 4096;
/// Tokens of keys and values: two contexts, which the calls share.
const KV_TOKENS: usize = 2 * CONTEXT;

/// What a model's selftest came to.
#[derive(Debug, Serialize)]
pub struct ModelReport {
    pub name: String,
    pub path: PathBuf,
    pub repository: Option<String>,
    pub revision: Option<String>,
    /// Whether its weights are random.
    pub is_synthetic: bool,
    pub checks: Vec<Check>,
    pub files: Vec<FileReport>,
    pub trials: Vec<TrialReport>,
}

/// A file, and whether it is what it should be.
#[derive(Debug, Serialize)]
pub struct FileReport {
    pub name: String,
    pub sha256: Option<String>,
    pub state: State,
    /// In words.
    pub found: String,
}

/// The calls, asked in one way of keeping numbers.
#[derive(Debug, Serialize)]
pub struct TrialReport {
    /// What the answers were made with.
    pub head: Head,
    pub compared: Compared,
    pub calls: usize,
    pub elapsed_ms: u64,
    pub differences: Vec<Difference>,
}

/// What a model's answers were compared with.
#[derive(Debug, Serialize)]
#[serde(tag = "with", rename_all = "snake_case")]
pub enum Compared {
    /// A golden file.
    Golden { path: PathBuf },
    /// With themselves, each call alone and in a batch.
    Themselves { why: String },
    /// The same, and then they were written.
    Written { path: PathBuf },
}

/// Tests one model.
///
/// # Errors
/// A model that is not there, a machine that fails or has too little memory. What is wrong with a file is in the report.
pub fn test(member: &str, options: &SelftestOptions<'_>) -> Result<ModelReport, Failure> {
    let checkpoint = resolve(member, options.hub)?;
    (options.tell)(&format!("the files of {}", checkpoint.name));
    let mut report = ModelReport {
        name: checkpoint.name.clone(),
        path: fs_err::canonicalize(&checkpoint.directory)?,
        repository: checkpoint.repository.clone(),
        revision: checkpoint.revision.clone(),
        is_synthetic: checkpoint.directory.join(synth::MARKER).is_file(),
        checks: Vec::new(),
        files: files(&checkpoint)?,
        trials: Vec::new(),
    };
    report.checks.push(check_files(&report.files, report.is_synthetic));
    if checkpoint.card.is_some_and(|card| card.kind == Kind::Encoder) {
        report.checks.push(Check::note("calls", "none: it reads text and writes none"));
        return Ok(report);
    }
    // Weights that are not what they should be are not tried: what they say means nothing.
    if report.checks.iter().any(|check| check.state == State::Broken) {
        return Ok(report);
    }
    match try_calls(member, &checkpoint, options, &mut report) {
        Err(failure) if failure.blame() == Blame::Artefact => {
            report.checks.push(Check::broken("calls", failure.to_string()));
            Ok(report)
        }
        tried => tried.map(|()| report),
    }
}

fn files(checkpoint: &Checkpoint) -> Result<Vec<FileReport>, Failure> {
    let report = |file: crate::hub::FileCheck| {
        let (state, found) = match file.status {
            Status::Ok(authority) => (State::Ok, format!("as {authority} says")),
            Status::Unknown => (State::Note, "nothing says what it should be".to_owned()),
            Status::Missing => (State::Broken, "missing".to_owned()),
            Status::Mismatch { authority, expected } => {
                (State::Broken, format!("{authority} says {expected}"))
            }
        };
        FileReport { name: file.name, sha256: file.sha256, state, found }
    };
    Ok(verify(checkpoint)?.into_iter().map(report).collect())
}

fn check_files(files: &[FileReport], is_synthetic: bool) -> Check {
    let named = |state: State| -> Vec<String> {
        let of_state = files.iter().filter(|file| file.state == state);
        of_state.map(|file| file.name.clone()).collect()
    };
    let (wrong, unknown) = (named(State::Broken), named(State::Note));
    let right = files.len() - wrong.len() - unknown.len();
    if !wrong.is_empty() {
        return Check::broken("files", format!("not what they should be: {}", some(&wrong)));
    }
    if is_synthetic {
        return Check::note(
            "files",
            format!("{} of a synthetic model: its answers are noise", files.len()),
        );
    }
    match unknown.is_empty() {
        true => Check::ok("files", format!("{right} as their sums say")),
        false => Check::note(
            "files",
            format!("{right} as their sums say; no sum is known of {}", some(&unknown)),
        ),
    }
}

fn try_calls(
    member: &str,
    checkpoint: &Checkpoint,
    options: &SelftestOptions<'_>,
    report: &mut ModelReport,
) -> Result<(), Failure> {
    let device = &options.device.one_device()?;
    for planned in plan(checkpoint, options, device)? {
        let WantedPrecision { dtype, quantisation, kv } = planned.precision;
        let on = options.device.clone();
        let hardware = Hardware {
            compute: Compute { on, dtype, quant: quantisation, kv_dtype: kv, fast: false },
            max_batch: Some(BATCH),
            context: Some(CONTEXT),
            kv: KvBudget { tokens: Some(KV_TOKENS), ..KvBudget::default() },
            ..Hardware::default()
        };
        (options.tell)(&format!("the calls of {}", checkpoint.name));
        let started = Instant::now();
        let name = member.to_owned();
        let models =
            Models::describe([&name], &hardware, options.hub, |_| Ok(AuxiliaryModels::default()))?;
        let Some(description) = models.descriptions.first() else { continue };
        let kind = golden::device_kind(device, description.precision);
        let plan = MemberPlan::local("", description, MemberChoice::default());
        let here = Head::new(&plan, &kind);
        if let Against::Golden(golden) = &planned.against {
            golden.expect_model(&here)?;
        }
        for backbone in models.start_backbones()? {
            let calls = calls::all();
            let Comparison { compared, differences } =
                compare(&backbone, &calls, &planned.against, &here)?;
            let trial = TrialReport {
                head: here.clone(),
                compared,
                calls: calls.len(),
                elapsed_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
                differences,
            };
            report.checks.extend(checks(&trial));
            report.trials.push(trial);
        }
    }
    Ok(())
}

/// How numbers are kept in a trial, and what its answers are compared with.
struct Planned {
    precision: WantedPrecision,
    against: Against,
}

enum Against {
    Golden(Box<Golden>),
    Themselves {
        why: String,
    },
    /// The same, and a golden file is written to this directory.
    New(PathBuf),
}

/// What there is to compare with on this kind of device.
fn plan(
    checkpoint: &Checkpoint,
    options: &SelftestOptions<'_>,
    device: &Device,
) -> Result<Vec<Planned>, Failure> {
    let precision = options.precision.unwrap_or_default();
    let alone = |why: String| vec![Planned { precision, against: Against::Themselves { why } }];
    let Some(directory) = options.golden else {
        return Ok(alone("no golden files were given".to_owned()));
    };
    if options.writes_golden {
        let precision = options.precision.unwrap_or_else(|| portable(device));
        return Ok(vec![Planned { precision, against: Against::New(directory.to_owned()) }]);
    }
    let all = golden::find(directory, &checkpoint.name)?;
    if all.is_empty() {
        return Ok(alone(format!("{} has no golden file of it", directory.display())));
    }
    let config = Config::read(&checkpoint.files.config);
    let config = config.map_err(ModelError::from).map_err(PanelError::from)?;
    let resolved = |wanted: WantedPrecision| -> Result<Precision, PanelError> {
        Ok(precision_of(&config, &checkpoint.files.weights, wanted, device.machine())?)
    };
    let wanted = options.precision.map(resolved).transpose()?;
    let (mut fitting, mut others) = (Vec::new(), Vec::new());
    for golden in all {
        let Head { device_kind, dtype, quantisation, .. } = &golden.head;
        others.push(format!("{device_kind} ({dtype}, {quantisation})"));
        let Some(precision) = precision_in(&golden.head) else { continue };
        // What this machine cannot multiply with was made on another kind.
        let Ok(here) = resolved(precision) else { continue };
        let is_same_kind = golden::device_kind(device, here) == golden.head.device_kind;
        if is_same_kind && wanted.is_none_or(|wanted| wanted == here) {
            fitting.push(Planned { precision, against: Against::Golden(Box::new(golden)) });
        }
    }
    if !fitting.is_empty() {
        return Ok(fitting);
    }
    let here = resolved(precision)?;
    let kind = golden::device_kind(device, here);
    Ok(alone(format!(
        "the golden files are of {}, and this is {kind} ({}, {})",
        some(&others),
        here.stored,
        here.quantisation
    )))
}

/// How numbers are kept in a golden file where nobody says: on a CPU so that every other one of its architecture has equal bits, which
/// those that multiply bf16 by their own instructions do not have with weights as they are.
fn portable(device: &Device) -> WantedPrecision {
    match device {
        Device::Cpu(_) => {
            WantedPrecision { quantisation: Quantisation::Q4K, ..WantedPrecision::default() }
        }
        Device::Cuda(_) | Device::Metal(_) => WantedPrecision::default(),
    }
}

/// How a golden file's numbers are kept; `None` where this version knows no such way.
fn precision_in(head: &Head) -> Option<WantedPrecision> {
    Some(WantedPrecision {
        dtype: head.dtype.parse().ok()?,
        quantisation: head.quantisation.parse().ok()?,
        kv: head.kv_dtype.parse().ok()?,
    })
}

/// What answers were compared with, and where they differ from it.
struct Comparison {
    compared: Compared,
    differences: Vec<Difference>,
}

/// Asks the calls; what a batch gives as well is written where that is wanted.
fn compare(
    backbone: &Backbone,
    calls: &[Call],
    against: &Against,
    here: &Head,
) -> Result<Comparison, Failure> {
    match against {
        Against::Golden(golden) => {
            let found = answer(backbone, calls, Way::AsTold)?;
            let differences = differences(&golden.answers, &found, "the golden file");
            Ok(Comparison { compared: Compared::Golden { path: golden.path.clone() }, differences })
        }
        Against::Themselves { why } => {
            let differences = both_ways(backbone, calls)?.differences;
            Ok(Comparison { compared: Compared::Themselves { why: why.clone() }, differences })
        }
        Against::New(directory) => {
            let BothWays { alone, differences } = both_ways(backbone, calls)?;
            if let Some(Difference { call, what, .. }) = differences.first() {
                let (model, difference) = (here.model.clone(), format!("{call}: {what}"));
                return Err(SelftestError::Unrepeatable { model, difference }.into());
            }
            let path = golden::path(directory, &here.model, &here.device_kind);
            let golden = Golden { path, head: here.clone(), answers: alone };
            golden.write()?;
            Ok(Comparison { compared: Compared::Written { path: golden.path }, differences })
        }
    }
}

/// What calls gave alone, and where a batch gave something else.
struct BothWays {
    alone: Vec<Answer>,
    differences: Vec<Difference>,
}

fn both_ways(backbone: &Backbone, calls: &[Call]) -> Result<BothWays, Failure> {
    let alone = answer(backbone, calls, Way::Alone)?;
    let together = answer(backbone, calls, Way::Together)?;
    let differences = differences(&alone, &together, "the same call alone");
    Ok(BothWays { alone, differences })
}

/// A line for a trial, or one for each call that differs.
fn checks(trial: &TrialReport) -> Vec<Check> {
    if !trial.differences.is_empty() {
        let found = trial.differences.iter().map(|one| format!("{}: {}", one.call, one.what));
        return found.map(|found| Check::differs("calls", found)).collect();
    }
    let Head { device_kind, dtype, quantisation, kv_dtype, .. } = &trial.head;
    let how = format!(
        "{} calls on {device_kind} ({dtype}, {quantisation}, keys and values {kv_dtype})",
        trial.calls
    );
    let batch = format!("alone as in batches of {BATCH}");
    vec![match &trial.compared {
        Compared::Golden { path } => Check::ok("calls", format!("{how}: as {}", path.display())),
        Compared::Themselves { why } => {
            Check::ok("calls", format!("{how}: {batch}; compared with themselves, since {why}"))
        }
        Compared::Written { path } => {
            Check::note("calls", format!("{how}: {batch}; written to {}", path.display()))
        }
    }]
}
