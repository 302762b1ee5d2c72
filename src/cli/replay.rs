//! `replay`: repeats the calls of a run or of an audit trail, and reports where the output differs.

use std::path::{Path, PathBuf};

use clap::Args;
#[cfg(feature = "serve")]
use serde::Deserialize;

#[cfg(feature = "serve")]
use super::flags::SystemFlags;
use super::flags::{ExecutionFlags, MovedCorpusFlags};
use super::sandboxed::Paths;
#[cfg(feature = "serve")]
use super::serve::sources::Sources;
use super::summary::count;
use super::{interrupt, run};
#[cfg(feature = "serve")]
use crate::audit::kept;
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::contents::Contents;
use crate::experiment::hardware::{Hardware, MOST_DRAFT};
use crate::experiment::plan::Plan;
use crate::experiment::replay::{Asked, replay};
use crate::experiment::spec::Spec;

#[derive(Debug, Args)]
pub struct Replay {
    /// The run directory; with --audit the numbers of lines
    #[arg(required = true, value_name = "RUN")]
    what: Vec<String>,
    /// Repeat requests and cases of the audit trail in this directory, whose texts it keeps
    #[arg(long, value_name = "DIR", conflicts_with_all = ["items", "data", "allow_version"])]
    audit: Option<PathBuf>,
    /// Replay these items only
    #[arg(long, value_delimiter = ',', value_name = "ID,ID")]
    items: Vec<String>,
    /// Check logged completions all positions at once, at hardly more than the price of a prompt, instead of generating them token by
    /// token; what differs is found just as well
    #[arg(long)]
    by_prefill: bool,
    /// Replay the run of another version of wardround
    #[arg(long)]
    allow_version: bool,
    /// The models, where they have moved
    #[arg(long, value_name = "A,B,C")]
    panel: Vec<String>,
    /// The data file, where it has moved
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    #[command(flatten)]
    corpus: MovedCorpusFlags,
    #[command(flatten)]
    execution: ExecutionFlags,
    /// What its arguments name.
    #[arg(skip)]
    within: Paths,
}

/// What `serve` and `check` were told, as a trail keeps it.
#[cfg(feature = "serve")]
#[derive(Deserialize)]
struct Arguments {
    models: Vec<String>,
    systems: SystemFlags,
}

impl Replay {
    /// `None`: which models a trail needs is known once it is read.
    pub fn within(&mut self, given: Paths) -> Result<Option<Paths>, Failure> {
        if self.audit.is_some() {
            self.within = given;
            return Ok(None);
        }
        let plan = Plan::load(&Plan::find(self.directory()?)?)?;
        Ok(Some(given.run(&self.spec(&plan)?)?))
    }

    /// The one run directory.
    fn directory(&self) -> Result<&Path, Failure> {
        let hint = "replay one after another; numbers of lines go with --audit DIR";
        match &self.what[..] {
            [directory] => Ok(Path::new(directory)),
            _ => Err(Failure::usage("several run directories were given", hint)),
        }
    }

    fn hardware(&self) -> Result<Hardware, Failure> {
        let mut hardware = self.execution.hardware.clone();
        hardware.calls.refuse("a replay computes every call again")?;
        if self.by_prefill {
            // Whatever the plan drafted.
            hardware.draft.get_or_insert(MOST_DRAFT as usize);
        }
        Ok(hardware)
    }

    fn spec(&self, plan: &Plan) -> Result<Spec, Failure> {
        let execution = ExecutionFlags { hardware: self.hardware()?, ..self.execution.clone() };
        let mut spec = run::again(plan, &execution, self.panel.clone(), self.corpus.clone())?;
        spec.data = self.data.clone().unwrap_or(spec.data);
        Ok(spec)
    }

    pub fn run(self) -> Result<(), Failure> {
        if self.audit.is_some() {
            return self.audit();
        }
        let contents = Contents::read(self.directory()?)?;
        let spec = self.spec(&contents.plan)?;
        let (items, allow_version, by_prefill) = (&self.items, self.allow_version, self.by_prefill);
        let asked = Asked { items, allow_version, by_prefill };
        let replayed = replay(&contents, spec, &asked, interrupt::watch())?;
        let mut calls = count(replayed.calls, "call");
        if replayed.searches > 0 {
            calls += &format!(", {} of its searches made again", replayed.searches);
        }
        let told = format!("{}, {calls} replayed", count(replayed.items, "item"));
        tell(&replayed.differences, &told, &contents.path)
    }

    #[cfg(not(feature = "serve"))]
    fn audit(self) -> Result<(), Failure> {
        let hint = "build with the feature `serve`";
        Err(Failure::usage("what a server answered is not repeated without one", hint))
    }

    /// Repeats lines of an audit trail on the models that it names.
    #[cfg(feature = "serve")]
    fn audit(self) -> Result<(), Failure> {
        let trail = self.audit.clone().unwrap_or_default();
        let number = |text: &String| {
            text.parse().map_err(|_| {
                let hint = "`wardround audit show` lists them";
                Failure::usage(format!("{text} is not the number of a line"), hint)
            })
        };
        let numbers = self.what.iter().map(number).collect::<Result<Vec<u64>, _>>()?;
        let read = kept::read(&trail, "replay", &numbers)?;
        let missing = || Failure::mismatch("no line before them says which models were loaded");
        let told = read.configuration.ok_or_else(missing)?.fields["arguments"].clone();
        let told: Arguments =
            serde_json::from_value(told).map_err(|error| Failure::mismatch(error.to_string()))?;
        let Arguments { mut models, mut systems } = told;
        if !self.panel.is_empty() {
            models = super::list::models(&self.panel)?;
        }
        if !self.corpus.corpus.is_empty() {
            systems.corpus.directories = self.corpus.corpus.clone();
        }
        systems.corpus.reranker = self.corpus.reranker.clone().or(systems.corpus.reranker);
        let hub = self.execution.hub_options()?;
        let sources = Sources::check(&models, &systems, &self.hardware()?, hub.clone())?;
        sources.within(self.within, &systems, &hub)?.enter()?;
        let differences =
            crate::serve::replay::replay(sources.load()?, &read.kept, self.by_prefill)?;
        tell(&differences, &format!("{} replayed", count(read.kept.len(), "line")), &trail)
    }
}

/// Prints what came out differently, and errors where anything did.
fn tell(differences: &[String], replayed: &str, of: &Path) -> Result<(), Failure> {
    for difference in differences {
        console::say(difference)?;
    }
    console::say(format!("{replayed}, {}", count(differences.len(), "difference")))?;
    match differences.is_empty() {
        true => Ok(()),
        false => Err(Failure::outcome(format!("the replay differs from {}", of.display()), None)),
    }
}
