//! `check`: checks one clinical note and prints the result.

#[cfg(test)]
mod silence;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;

use super::options::HubFlags;
use super::sandboxed::Paths;
use crate::analysis::notes::Finding;
use crate::cli::exit::{Failure, on_interrupt};
use crate::console;
use crate::data::{self, Dataset, Format};
use crate::experiment::case::Worked;
use crate::experiment::library::Shared;
use crate::experiment::models::Models;
use crate::experiment::run::Run;
use crate::experiment::spec::Spec;
use crate::outside;
use crate::panel::recorder::Telling;
use crate::systems::{Task, Which};

/// The name of a note from stdin.
const STDIN: &str = "stdin";

#[derive(Debug, Args)]
pub struct Check {
    /// The note, a text file; without one, or with -, stdin
    note: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Exit with 1 if an error was found, no answer was accepted or nothing could be read
    #[arg(long)]
    gate: bool,
    /// The system that reads the note (see `systems ls`), or the TOML file of another
    #[arg(long, default_value = "medguards", value_name = "SYSTEM")]
    system: String,
    #[command(flatten)]
    spec: Spec,
    #[command(flatten)]
    hub: HubFlags,
}

/// The gate: only an answer that says that there is no error opens it.
fn pass(finding: &Finding) -> Result<(), Failure> {
    let message = match finding.has_error {
        Some(false) => return Ok(()),
        Some(true) => format!("an error was found in {}", finding.note),
        None => format!("whether {} has an error could not be told", finding.note),
    };
    Err(Failure::outcome(message, None))
}

impl Check {
    /// The note's; `None`: stdin.
    fn path(&self) -> Option<&Path> {
        self.note.as_deref().filter(|path| *path != Path::new("-"))
    }

    pub fn run(self, given: Paths) -> Result<(), Failure> {
        let path = self.path();
        let spec = self.spec(path)?;
        given.run(&spec)?.enter()?;
        // A note may take minutes: a terminal shows that the process is at work.
        let spinner = ProgressBar::new_spinner().with_message("checking the note");
        let work = || -> Result<Worked, Failure> {
            let note = read(path)?;
            let mut shared = Shared::default();
            let inputs = spec.read_beside(note, &mut shared)?;
            let models = spec.describe_models(&mut shared)?;
            let run = spec.resolve(inputs, &models, &mut shared)?;
            if run.plan.synthetic {
                let noise =
                    "note: synthetic weights answer noise: this says nothing about the note";
                spinner.suspend(|| console::note(noise));
            }
            ask(run, models)
        };
        spinner.enable_steady_tick(Duration::from_millis(250));
        let worked = work();
        spinner.finish_and_clear();
        let Worked { line, calls, .. } = worked?;
        if let Some(error) = line.error() {
            return Err(Failure::outcome(format!("{}: {error}", line.item()), None));
        }
        let other = || Failure::mismatch(format!("{} is a question, not a note", line.item()));
        let finding = Finding::of(line.note().ok_or_else(other)?, &calls);
        match self.json {
            true => console::say(format!("{:#}", json!(finding)))?,
            false => console::write(&finding.text())?,
        }
        if self.gate { pass(&finding) } else { Ok(()) }
    }

    fn spec(&self, path: Option<&Path>) -> Result<Spec, Failure> {
        let path = path.unwrap_or(Path::new(STDIN));
        let system = Which::read(&self.system)?.entry()?;
        let mut spec = self.spec.clone().of(system, path, Format::Notes)?;
        spec.refuse_other_items()?;
        spec.hub = self.hub.options(true)?;
        Ok(spec)
    }
}

/// The note of a file, or of stdin.
fn read(path: Option<&Path>) -> Result<Dataset, Failure> {
    let text = match path {
        Some(path) => outside::file(path)?,
        None => {
            let mut text = Vec::new();
            std::io::stdin().read_to_end(&mut text)?;
            text
        }
    };
    Ok(data::note(path.unwrap_or(Path::new(STDIN)), text)?)
}

/// Runs the system on the note.
fn ask(run: Run, models: Models) -> Result<Worked, Failure> {
    let (recorder, calls, _) = Telling::new();
    let panel = run.panel(&models.start()?.models, Box::new(recorder), on_interrupt())?;
    let (dataset, item) = (&run.plan.dataset.name, &run.items[0]);
    let line = run.system.answer(&Task { panel: &panel, dataset, item, run: 1 })?;
    Ok(Worked::of(line, calls.try_iter().collect()))
}
