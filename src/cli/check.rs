//! `check`: one note, one readable answer.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;

use clap::Args;

use super::crew::Crew;
use super::interrupt;
use super::options::{HubFlags, MachineFlags};
use super::order::{Order, Share};
use super::prepare::{Inputs, Prepared};
use super::run::{DEFAULT_PANEL, DEFAULT_SEED, slots};
use super::workplace::Workplace;
use crate::analysis::notes::Finding;
use crate::cli::exit::Failure;
use crate::console;
use crate::data::subset::Subset;
use crate::data::{self, Format};
use crate::experiment::directory::{Directory, Finished};
use crate::panel::recorder::Recorder;
use crate::record::{CallLine, ItemLine, NoteLine};
use crate::systems::{SystemConfig, Task};

/// What a note from stdin is called.
const STDIN: &str = "stdin";

#[derive(Debug, Args)]
pub struct Check {
    /// The note, a text file; without one, or with -, stdin
    note: Option<PathBuf>,
    /// Print JSON
    #[arg(long, env = "WARDROUND_JSON")]
    json: bool,
    /// Exit with 1 where an error was found, or the agents could not be read
    #[arg(long, env = "WARDROUND_GATE")]
    gate: bool,
    /// Keep the run in this directory; else nothing is written
    #[arg(long, env = "WARDROUND_OUT", value_name = "DIR")]
    out: Option<PathBuf>,
    /// One model for every agent, or three: both who work alone, and the arbiter, who also corrects [default: gemma3-4b]
    #[arg(
        long,
        env = "WARDROUND_PANEL",
        value_delimiter = ',',
        value_name = "A,B,C"
    )]
    panel: Vec<String>,
    /// Change a setting of MedGuards, such as agents=3, or an agent's model, such as slot.det2=qwen3-4b
    #[arg(long = "set", env = "WARDROUND_SET", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// What every draw derives from [default: 42]
    #[arg(long, env = "WARDROUND_SEED", value_name = "S")]
    seed: Option<u64>,
    /// Take free text, as the paper does, instead of text under a grammar
    #[arg(long, env = "WARDROUND_FREE")]
    free: bool,
    /// A directory of prompts that override the built-in ones
    #[arg(long, env = "WARDROUND_PROMPTS", value_name = "DIR")]
    prompts: Option<PathBuf>,
    #[command(flatten)]
    machine: MachineFlags,
    #[command(flatten)]
    hub: HubFlags,
}

impl Check {
    pub fn run(self) -> Result<(), Failure> {
        let (json, gate, out) = (self.json, self.gate, self.out.clone());
        let path = self.note.clone().filter(|path| path != Path::new("-"));
        let order = self.order(path.as_deref())?;
        let inputs = match &path {
            Some(path) => order.read_prompts(data::note(path, fs_err::read(path)?)?)?,
            None => {
                if out.is_some() {
                    return Err(Failure::usage(
                        "a note from stdin cannot be kept with --out",
                        "give a file: a run names the file that it read",
                    ));
                }
                let mut text = Vec::new();
                std::io::stdin().read_to_end(&mut text)?;
                order.read_prompts(data::note(Path::new(STDIN), text)?)?
            }
        };
        let (record, calls) = match &out {
            Some(out) => keep(order, inputs, out)?,
            None => ask(order, inputs)?,
        };
        if let Some(error) = record.error {
            return Err(Failure::outcome(format!("{}: {error}", record.item), None));
        }
        let finding = Finding::of(&record, &calls);
        match json {
            true => console::say(format!("{:#}", serde_json::json!(finding)))?,
            false => console::write(&finding.text())?,
        }
        match (gate, finding.has_error) {
            (false, _) | (true, Some(false)) => Ok(()),
            (true, Some(true)) => Err(Failure::outcome(
                format!("an error was found in {}", finding.note),
                None,
            )),
            (true, None) => Err(Failure::outcome(
                format!("whether {} has an error could not be told", finding.note),
                None,
            )),
        }
    }

    fn order(self, path: Option<&Path>) -> Result<Order, Failure> {
        let hub = self.hub.options(true)?;
        let (slots, pairs) = slots(self.set);
        let protocol = SystemConfig::parse("medguards", &pairs)?;
        let panel = match self.panel.is_empty() {
            true => DEFAULT_PANEL[..protocol.default_models()]
                .iter()
                .map(|name| name.to_string())
                .collect(),
            false => self.panel,
        };
        Ok(Order {
            data: path.unwrap_or(Path::new(STDIN)).to_owned(),
            format: Format::Notes,
            subset: Subset::All,
            share: Share::All,
            runs: 1,
            panel,
            slots,
            protocol,
            seed: self.seed.unwrap_or(DEFAULT_SEED),
            free: self.free,
            prompts: self.prompts,
            machine: self.machine,
            max_in_flight: Some(1),
            hub,
        })
    }
}

type Asked = (NoteLine, Vec<CallLine>);

fn prepare(order: Order, inputs: Inputs) -> Result<(Prepared, Crew), Failure> {
    let crew = order.crew()?;
    let prepared = order.prepare(inputs, &crew)?;
    if prepared.plan.synthetic {
        console::note("note: synthetic weights answer noise: this says nothing about the note");
    }
    Ok((prepared, crew))
}

/// Asks the agents, and writes nothing.
fn ask(order: Order, inputs: Inputs) -> Result<Asked, Failure> {
    let (prepared, crew) = prepare(order, inputs)?;
    let (sender, calls) = channel();
    let stop = interrupt::watch();
    let started = prepared.start(&crew.start()?, Recorder::Replay(sender), stop, |_| {})?;
    let dataset = &started.plan.dataset.name;
    let item = &started.items[0];
    let record = started.system.answer(&Task {
        panel: &started.panel,
        dataset,
        item,
        run: 1,
    })?;
    Ok((note_record(record)?, calls.try_iter().collect()))
}

/// Asks the agents in a run directory.
fn keep(order: Order, inputs: Inputs, out: &Path) -> Result<Asked, Failure> {
    let (prepared, crew) = prepare(order, inputs)?;
    let directory = Directory::create(out, &prepared.plan, &prepared.texts)?;
    let workplace = Workplace {
        crew: crew.start()?,
        stop: interrupt::watch(),
        shared: Arc::default(),
        quiet: true,
    };
    let (_, contents) = workplace.work(prepared, (directory, Finished::default()), out)?;
    let mut records = contents.outcomes().into_values().cloned();
    let record = records.next().map(note_record).transpose()?;
    let calls = contents.calls.records.clone();
    let missing = || Failure::mismatch(format!("{} holds no note", out.display()));
    Ok((record.ok_or_else(missing)?, calls))
}

fn note_record(record: ItemLine) -> Result<NoteLine, Failure> {
    match record {
        ItemLine::Note(record) => Ok(record),
        ItemLine::Answer(record) => Err(Failure::mismatch(format!(
            "{} is a question, not a note",
            record.item
        ))),
    }
}
