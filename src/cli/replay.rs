//! `replay`: repeats the calls of a run or of an audit trail, and reports where the output differs.

use std::path::{Path, PathBuf};

use clap::Args;

#[cfg(feature = "serve")]
use super::flags::SystemFlags;
use super::flags::{ExecutionFlags, MovedCorpusFlags};
#[cfg(feature = "serve")]
use super::serve::sources::Sources;
use super::summary::count;
use super::{interrupt, run};
#[cfg(feature = "serve")]
use crate::audit::kept;
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::contents::Contents;
use crate::experiment::hardware::MOST_DRAFT;
use crate::experiment::replay::{Asked, replay};

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
}

#[cfg(not(feature = "serve"))]
impl Replay {
    fn audit(self) -> Result<(), Failure> {
        let hint = "build with the feature `serve`";
        Err(Failure::usage("what a server answered is not repeated without one", hint))
    }
}

#[cfg(feature = "serve")]
impl Replay {
    /// Repeats lines of an audit trail on the models that it names.
    fn audit(self) -> Result<(), Failure> {
        let directory = self.audit.clone().unwrap_or_default();
        let number = |text: &String| {
            text.parse().map_err(|_| {
                let hint = "`wardround audit show` lists them";
                Failure::usage(format!("{text} is not the number of a line"), hint)
            })
        };
        let numbers = self.what.iter().map(number).collect::<Result<Vec<u64>, _>>()?;
        let read = kept::read(&directory, "replay", &numbers)?;
        let missing = || Failure::mismatch("no line before them says which models were loaded");
        let arguments = read.configuration.ok_or_else(missing)?;
        let arguments = &arguments.fields["arguments"];
        let lines = read.kept;
        let unread = |error: serde_json::Error| Failure::mismatch(error.to_string());
        let mut systems: SystemFlags =
            serde_json::from_value(arguments["systems"].clone()).map_err(unread)?;
        let models: Vec<String> = match self.panel.is_empty() {
            true => serde_json::from_value(arguments["models"].clone()).map_err(unread)?,
            false => super::list::models(&self.panel)?,
        };
        let moved = &self.corpus;
        if !moved.corpus.is_empty() {
            systems.corpus.directories = moved.corpus.clone();
        }
        systems.corpus.reranker = moved.reranker.clone().or(systems.corpus.reranker);
        let hub = self.execution.hub_options()?;
        let hardware = &self.execution.hardware;
        let loaded = Sources::check(&models, &systems, hardware, hub)?.load()?;
        let differences = crate::serve::replay::replay(loaded, &lines, self.by_prefill)?;
        let replayed = format!("{} replayed", count(lines.len(), "line"));
        tell(&differences, &replayed, &directory)
    }
}

impl Replay {
    pub fn run(mut self) -> Result<(), Failure> {
        let hardware = &mut self.execution.hardware;
        hardware.calls.refuse("a replay computes every call again")?;
        if self.by_prefill {
            // Whatever the plan drafted.
            hardware.draft.get_or_insert(MOST_DRAFT as usize);
        }
        if self.audit.is_some() {
            return self.audit();
        }
        let [directory] = &self.what[..] else {
            let hint = "replay one after another; numbers of lines go with --audit DIR";
            return Err(Failure::usage("several run directories were given", hint));
        };
        let contents = Contents::read(Path::new(directory))?;
        let mut spec = run::again(&contents.plan, &self.execution, self.panel, self.corpus)?;
        spec.data = self.data.unwrap_or(spec.data);
        let (items, allow_version, by_prefill) = (&self.items, self.allow_version, self.by_prefill);
        let asked = Asked { items, allow_version, by_prefill };
        let replayed = replay(&contents, spec, &asked, interrupt::watch())?;
        let mut calls = count(replayed.calls, "call");
        if replayed.searches > 0 {
            calls += &format!(", {} of its searches made again", replayed.searches);
        }
        let told = format!("{}, {calls} replayed", count(replayed.items, "item"));
        tell(&replayed.differences, &told, Path::new(directory))
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
