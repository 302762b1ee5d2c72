//! `run`: runs a system on a file of questions or notes, into a run directory.

use std::path::{Path, PathBuf};

use clap::{Arg, Args, Command};

use super::forecast::Outlook;
use super::options::{ExecutionFlags, MovedFlags};
use super::resume::Resume;
use super::sandboxed::Paths;
use super::summary;
use crate::cli::exit::{Failure, on_interrupt};
use crate::console;
use crate::data::Format;
use crate::data::subset::Subset;
use crate::experiment::contents::Contents;
use crate::experiment::directory::Directory;
use crate::experiment::driver::{Driver, refuse_failed};
use crate::experiment::library::Shared;
use crate::experiment::models::Models;
use crate::experiment::plan::Plan;
use crate::experiment::run::Run;
use crate::experiment::spec::{MOST_RUNS, Shard, Spec};
use crate::experiment::utc_now;
use crate::retrieval::CorpusSpec;
use crate::systems::Which;

#[derive(Clone, Debug, Args)]
#[command(mut_args(beside_plan))]
pub struct RunVerb {
    /// The system (see `systems ls`), or the TOML file of another
    #[arg(required_unless_present = "plan")]
    system: Option<String>,
    /// The questions, or the notes
    #[arg(long, value_name = "FILE", requires = "format", required_unless_present = "plan")]
    data: Option<PathBuf>,
    /// Format of the file
    #[arg(long, value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    subset: Subset,
    /// Only every Nth item from the Ith on, counted from 1
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Runs over the same items
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RUNS)))]
    runs: u32,
    #[command(flatten)]
    spec: Spec,
    #[command(flatten)]
    execution: ExecutionFlags,
    /// Show what would run, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// The run directory; an unfinished one of the same run goes on [default: a new one]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Run this plan again; its files must be what they were
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
}

/// A plan settles what `resume` cannot be told either.
fn beside_plan(flag: Arg) -> Arg {
    let resume = Resume::augment_args(Command::new("resume"));
    let mut told = resume.get_arguments().map(Arg::get_id);
    let own = ["plan", "out", "dry_run"];
    match told.any(|id| id == flag.get_id()) || own.iter().any(|own| flag.get_id() == *own) {
        true => flag,
        false => flag.conflicts_with("plan"),
    }
}

impl RunVerb {
    /// The spec, and the plan that it repeats with its path.
    fn asked(self) -> Result<(Spec, Option<(Plan, PathBuf)>), Failure> {
        let Some(path) = self.plan.clone() else { return Ok((self.spec()?, None)) };
        let plan = Plan::load(&path)?;
        Ok((self.again(&plan)?, Some((plan, path))))
    }

    /// `given` are the paths that the command may access; `enter` seals the process so.
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        let execution = self.execution.clone();
        let (out, dry_run) = (self.out.clone(), self.dry_run);
        let (mut spec, repeated) = self.asked()?;
        let out = out.unwrap_or_else(|| default_directory(&spec));
        let mut outlook = None;
        if dry_run {
            let mut here = spec.clone();
            here.hardware.calls = None;
            here.hub = here.hub.local();
            given.run(&here)?.enter()?;
            let (name, text) = (spec.config.entry.name, spec.decoding().adjective());
            let label = format!("{name}, {text} text, on {}", spec.data.display());
            let told = Outlook::of(&[(label, spec.clone())])?;
            if !told.is_whole {
                return told.tell();
            }
            spec.hub = spec.hub.local();
            outlook = Some(told);
        } else {
            // Its directory is made before the process is sealed, which writes nowhere else.
            given.run(&spec)?.write(&out)?.enter()?;
            execution.progress.loading(std::slice::from_ref(&spec))?;
        }
        let mut shared = Shared::default();
        let inputs = spec.read(&mut shared)?;
        if let (Some(shard), true) = (spec.shard, inputs.dataset().items.is_empty()) {
            console::note(format!("shard {shard} has none of the items: there is nothing to run"));
            return Ok(());
        }
        let models = spec.describe_models(&mut shared)?;
        let run: Run = spec.resolve(inputs, &models, &mut shared)?;
        if let Some((plan, path)) = &repeated {
            run.plan.keep_to(plan, path, false)?;
        }
        if let Some(outlook) = outlook {
            summary::announce(&run, &models)?;
            return outlook.tell();
        }
        go_on(run, models, &out, &execution)
    }

    fn spec(self) -> Result<Spec, Failure> {
        let (Some(system), Some(data), Some(format)) = (self.system, self.data, self.format) else {
            let hint = "name a file and its --format";
            return Err(Failure::usage("no --data was given", hint));
        };
        let mut spec = self.spec.of(Which::read(&system)?.entry()?, data, format)?;
        (spec.subset, spec.shard, spec.runs) = (self.subset, self.shard, self.runs);
        spec.hub = self.execution.hub_options()?;
        Ok(spec)
    }

    /// The spec of `plan`. Flags may give new paths of its models and change how fast it runs.
    fn again(self, plan: &Plan) -> Result<Spec, Failure> {
        let Spec { panel, hardware, corpus, .. } = self.spec;
        let CorpusSpec { directories: corpus, reranker, .. } = corpus.unwrap_or_default();
        MovedFlags { panel, corpus, reranker, hardware }.again(plan, &self.execution)
    }
}

/// A new directory's name: the system, the file, the time, and the part, since those of an array job may begin in the same second.
fn default_directory(spec: &Spec) -> PathBuf {
    let time: String = utc_now().chars().filter(char::is_ascii_digit).collect();
    let part = spec
        .shard
        .map_or(String::new(), |one| format!("-{}", one.to_string().replace('/', "-of-")));
    let data = spec.data.file_stem().unwrap_or_default().display();
    PathBuf::from(format!("wardround-{}-{data}-{time}{part}", spec.config.entry.name))
}

/// Does what is left to do of a run in its directory, which may be new, and prints what came of it.
pub fn go_on(
    run: Run,
    models: Models,
    out: &Path,
    execution: &ExecutionFlags,
) -> Result<(), Failure> {
    let begun = Directory::begin(out, &run.plan, &run.items)?;
    if begun.is_complete {
        console::note(format!("{} is finished: there is nothing left to do", out.display()));
        let contents = Contents::read(out)?;
        summary::write_missing_page(&contents)?;
        return refuse_failed(&contents);
    }
    let (loaded, observer) = (models.start()?, execution.observer());
    let driver = Driver { loaded, observer, stop: on_interrupt(), folder: out.to_owned() };
    let executed = driver.execute(run, begun, out)?;
    summary::finish(&executed)
}
