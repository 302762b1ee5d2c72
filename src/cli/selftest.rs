//! `selftest`: checks an installation and compares the models' tokens with the golden files of the release; prints a table, and
//! writes selftest.json and selftest.html.

use std::path::{Path, PathBuf};

use clap::Args;

use super::options::{HubFlags, QuietFlag};
use super::sandboxed::{Made, Paths, SandboxFlag};
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::hardware::DeviceChoice;
use crate::experiment::whole_file::write_public;
use crate::hub::{self, Card, HubError, HubOptions, Kind};
use crate::model::{WantedPrecision, WantedType};
use crate::ops::Quantisation;
use crate::report;
use crate::selftest::JSON;
use crate::selftest::{Check, Report, SelftestError, SelftestOptions, modes, run};

/// The file name of the page.
const PAGE: &str = "selftest.html";

#[derive(Debug, Args)]
pub struct Selftest {
    /// An installed version of a bundle, or a bundle: its MANIFEST.json, models/ and golden/
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Models to test: names below models/ of --root, cards or directories [default: all below --root, else those in the cache]
    #[arg(long, value_name = "MODEL", num_args = 1..)]
    model: Vec<String>,
    /// Directory of golden files [default: golden/ of --root]
    #[arg(long, value_name = "DIR")]
    golden: Option<PathBuf>,
    /// Write golden files instead of comparing with them
    #[arg(long)]
    write_golden: bool,
    /// Directory for selftest.json and selftest.html [default: the working directory; with --write-golden neither is written]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Directory of an audit trail whose file modes are checked
    #[arg(long, value_name = "DIR", env = "WARDROUND_AUDIT")]
    audit: Option<PathBuf>,
    #[command(flatten)]
    sandbox: SandboxFlag,
    #[command(flatten)]
    compute: SelftestCompute,
    #[command(flatten)]
    progress: QuietFlag,
}

/// The device and the precision.
#[derive(Clone, Debug, Args)]
struct SelftestCompute {
    #[command(flatten)]
    on: DeviceChoice,
    /// Data type of the weights: auto (as stored), f32 or bf16 [default: the golden file's, else auto]
    #[arg(long, help_heading = "Device", value_name = "TYPE")]
    dtype: Option<WantedType>,
    /// Weight quantisation on load: none, q8_0, int8 or q4_k [default: the golden file's, else none; with --write-golden on a CPU q4_k, whose
    /// tokens are the same on all CPUs of an architecture]
    #[arg(long, help_heading = "Device", value_name = "FORMAT")]
    quant: Option<Quantisation>,
    /// Data type of keys and values: auto, f32 or bf16 [default: the golden file's, else auto]
    #[arg(long, help_heading = "Device", value_name = "TYPE")]
    kv_dtype: Option<WantedType>,
}

impl SelftestCompute {
    /// `None` if no flag of the precision is given.
    fn precision(&self) -> Option<WantedPrecision> {
        let Self { dtype, quant, kv_dtype, on: _ } = self;
        let is_given = dtype.is_some() || quant.is_some() || kv_dtype.is_some();
        is_given.then(|| WantedPrecision {
            dtype: dtype.unwrap_or_default(),
            quantisation: quant.unwrap_or_default(),
            kv: kv_dtype.unwrap_or_default(),
        })
    }
}

impl Selftest {
    pub fn run(self) -> Result<(), Failure> {
        let hub = HubFlags::default().options(true)?.local();
        let models = self.models(&hub)?;
        let golden = self.golden_directory()?;
        let found = self.modes()?;
        let written = self.written(golden.as_deref()).into_iter().map(Made::directory);
        let _made = written.collect::<Result<Vec<_>, _>>()?;
        self.test(&models, golden.as_deref(), found, &hub)
    }

    /// Runs the selftest and writes its report; a failed selftest is an error.
    fn test(
        &self,
        models: &[String],
        golden: Option<&Path>,
        mut found: Vec<Check>,
        hub: &HubOptions,
    ) -> Result<(), Failure> {
        let binary = std::env::current_exe()?;
        let mut paths = Paths::default().read(&self.root).read(golden).read([&binary]);
        for directory in self.written(golden) {
            paths = paths.write(directory)?;
        }
        let paths = paths.models(models, hub)?;
        let entered = paths.enter(self.sandbox, &self.compute.on.device)?;
        let entered = entered.sealed(true)?;
        let held = entered.report();
        let held = held.as_deref().map(|held| held.trim_start_matches("sandbox: "));
        found.push(Check::note("sandbox", held.unwrap_or("none")));
        let tell = |what: &str| self.progress.note(format!("testing {what}"));
        let report = run(&SelftestOptions {
            root: self.root.as_deref(),
            models,
            hub,
            device: self.compute.on.clone(),
            precision: self.compute.precision(),
            golden,
            writes_golden: self.write_golden,
            binary: &binary,
            found,
            tell: &tell,
        })?;
        if let Some(out) = self.out() {
            write(&report, out)?;
            self.progress.note(format!("written: {} and {PAGE}", out.join(JSON).display()));
        }
        console::write(&report.table())?;
        report.verdict()
    }

    /// The models to test: those of --model, else all that are installed.
    fn models(&self, hub: &HubOptions) -> Result<Vec<String>, Failure> {
        let folder = match &self.root {
            Some(root) if !root.is_dir() => {
                return Err(SelftestError::NoRoot { path: root.clone() }.into());
            }
            root => root.as_ref().map(|root| root.join("models")),
        };
        let below = |name: &String| match &folder {
            Some(folder) if folder.join(name).is_dir() => folder.join(name).display().to_string(),
            _ => name.clone(),
        };
        if !self.model.is_empty() {
            return Ok(self.model.iter().map(below).collect());
        }
        let Some(folder) = folder else { return cached(hub) };
        let mut models = Vec::new();
        if folder.is_dir() {
            for entry in fs_err::read_dir(&folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    models.push(path.display().to_string());
                }
            }
        }
        models.sort();
        match models.is_empty() {
            false => Ok(models),
            true => Err(SelftestError::NoModels { path: folder }.into()),
        }
    }

    fn golden_directory(&self) -> Result<Option<PathBuf>, Failure> {
        match (&self.golden, &self.root) {
            (Some(golden), _) if !self.write_golden && !golden.is_dir() => {
                Err(SelftestError::NoGolden { path: golden.clone() }.into())
            }
            (Some(golden), _) => Ok(Some(golden.clone())),
            (None, Some(root)) => Ok(Some(root.join("golden"))),
            (None, None) if self.write_golden => Err(Failure::usage(
                "nothing says where golden files are written",
                "give --golden DIR, or --root DIR",
            )),
            (None, None) => Ok(None),
        }
    }

    /// The directory of the report.
    fn out(&self) -> Option<&Path> {
        match (&self.out, self.write_golden) {
            (Some(out), _) => Some(out),
            (None, false) => Some(Path::new(".")),
            (None, true) => None,
        }
    }

    /// The directories that are written to.
    fn written<'a>(&'a self, golden: Option<&'a Path>) -> Vec<&'a Path> {
        self.out().into_iter().chain(golden.filter(|_| self.write_golden)).collect()
    }

    /// Checks file modes, before the sandbox is entered.
    fn modes(&self) -> Result<Vec<Check>, Failure> {
        let mut found = Vec::new();
        if let Some(root) = self.root.as_ref().filter(|_| !self.write_golden) {
            found.push(modes::check_root(root)?);
        }
        if let Some(audit) = &self.audit {
            found.push(modes::check_audit(audit)?);
        }
        Ok(found)
    }
}

/// The names of the language models whose files are in the cache.
fn cached(hub: &HubOptions) -> Result<Vec<String>, Failure> {
    let mut models = Vec::new();
    for card in Card::all().iter().filter(|card| card.kind == Kind::Decoder) {
        match hub::resolve(&card.name, hub) {
            Ok(_) => models.push(card.name.clone()),
            Err(HubError::NotCached(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    match models.is_empty() {
        false => Ok(models),
        true => Err(Failure::usage(
            format!("no model of a card is in {}", hub.cache()?.root().display()),
            "name models by --model, or the root of a bundle by --root",
        )),
    }
}

fn write(report: &Report, out: &Path) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(report).map_err(std::io::Error::from)?;
    let page = report::selftest::render(report)?;
    write_public(&out.join(JSON), format!("{json}\n").as_bytes())?;
    Ok(write_public(&out.join(PAGE), page.as_bytes())?)
}
