//! `run`: a system on a file of questions, into a run directory.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::interrupt;
use super::options::{HubFlags, MachineFlags, SubsetFlags};
use super::prepare::{Order, Prepared, SYSTEM};
use super::progress::Progress;
use crate::console;
use crate::data::Format;
use crate::exit::Failure;
use crate::panel::PanelError;
use crate::panel::memory::{describe, gibibytes};
use crate::panel::recorder::Recorder;
use crate::run::contents::Contents;
use crate::run::directory::{Directory, Finished};
use crate::run::link::ItemKey;
use crate::run::log::Log;
use crate::run::plan::{self, Plan};
use crate::run::results::Results;
use crate::systems::in_flight::run_all;
use crate::systems::medmad::protocol::MedMad;
use crate::systems::medmad::settings::Settings;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum System {
    /// MED-MAD: three anonymous doctors debate multiple-choice questions
    Medmad,
}

#[derive(Debug, Args)]
pub struct Run {
    /// The system to run; or give --plan
    #[arg(value_enum, required_unless_present_any = ["plan", "resume"])]
    system: Option<System>,
    /// The questions
    #[arg(long, env = "WARDROUND_DATA_FILE", value_name = "FILE", requires = "format", required_unless_present_any = ["plan", "resume"])]
    data: Option<PathBuf>,
    /// What the file is
    #[arg(long, env = "WARDROUND_FORMAT", value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    subset: SubsetFlags,
    /// Independent runs over the same items
    #[arg(long, env = "WARDROUND_RUNS", default_value_t = 1, value_name = "R", value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Three models in the order of the roles, or one for all: cards, hub ids or directories
    #[arg(
        long,
        env = "WARDROUND_PANEL",
        value_delimiter = ',',
        default_value = "gemma3-4b,llama3.2-3b,qwen3-4b",
        value_name = "A,B,C"
    )]
    panel: Vec<String>,
    /// Change a setting of the system, such as t_max=2
    #[arg(long = "set", env = "WARDROUND_SET", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// What every draw of the run derives from
    #[arg(long, env = "WARDROUND_SEED", default_value_t = 42, value_name = "S")]
    seed: u64,
    /// Take free text, as the papers do, instead of text under a grammar
    #[arg(long, env = "WARDROUND_FREE")]
    free: bool,
    /// A directory of prompts that override the built-in ones
    #[arg(long, env = "WARDROUND_PROMPTS", value_name = "DIR")]
    prompts: Option<PathBuf>,
    #[command(flatten)]
    machine: MachineFlags,
    /// Items worked on at once [default: twice --max-batch]
    #[arg(long, env = "WARDROUND_MAX_IN_FLIGHT", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    max_in_flight: Option<u16>,
    /// The run directory [default: a new one, named after the run]
    #[arg(long, env = "WARDROUND_OUT", value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with the run in --out; its own plan holds if no --data is given
    #[arg(long, env = "WARDROUND_RESUME", requires = "out")]
    resume: bool,
    /// Run this plan again; its files must be what they were
    #[arg(long, env = "WARDROUND_PLAN", value_name = "FILE", conflicts_with_all = ["system", "data", "limit", "ids"])]
    plan: Option<PathBuf>,
    #[command(flatten)]
    hub: HubFlags,
    /// Say what would run, and run nothing
    #[arg(long, env = "WARDROUND_DRY_RUN")]
    dry_run: bool,
    /// Write no progress to stderr
    #[arg(long, env = "WARDROUND_QUIET")]
    quiet: bool,
}

impl Run {
    pub fn run(self) -> Result<(), Failure> {
        let (quiet, dry_run, resume) = (self.quiet, self.dry_run, self.resume);
        let out = self.out.clone();
        let (order, promised) = self.order()?;
        let prepared = order.prepare()?;
        if let Some((path, plan)) = promised {
            check_promise(&path, &plan, &prepared.plan)?;
        }
        if dry_run {
            return Ok(announce(&prepared)?);
        }
        let out = out.unwrap_or_else(|| default_directory(&prepared.plan));
        let (directory, finished) = match resume {
            true => Directory::resume(&out, &prepared.plan)?,
            false => (
                Directory::create(&out, &prepared.plan)?,
                Finished::default(),
            ),
        };
        execute(prepared, directory, finished, &out, quiet)
    }

    /// What to run, and the plan that it must come out as, if one was given.
    fn order(self) -> Result<(Order, Option<(PathBuf, Plan)>), Failure> {
        let hub = self.hub.options(self.quiet)?;
        let own_plan = self.out.as_ref().map(|out| out.join(plan::FILE));
        let given = self
            .plan
            .or_else(|| own_plan.filter(|_| self.resume && self.data.is_none()));
        if let Some(path) = given {
            let plan = Plan::load(&path)?;
            let order = Order::from_plan(&plan, self.machine, hub)?;
            return Ok((order, Some((path, plan))));
        }
        let (Some(data), Some(format)) = (self.data, self.format) else {
            return Err(Failure::usage(
                "no --data was given",
                "name a file and its --format",
            ));
        };
        let order = Order {
            data,
            format,
            subset: self.subset.subset(),
            runs: self.runs,
            panel: self.panel,
            settings: Settings::parse(&self.set)?,
            seed: self.seed,
            free: self.free,
            prompts: self.prompts,
            machine: self.machine,
            max_in_flight: self.max_in_flight.map(usize::from),
            hub,
        };
        Ok((order, None))
    }
}

/// A plan holds only while its files are what they were when it was made.
pub fn check_promise(path: &Path, promised: &Plan, found: &Plan) -> Result<(), Failure> {
    let differences = promised.differences(found)?;
    if differences.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = differences.iter().map(ToString::to_string).collect();
    let path = path.display();
    Err(Failure::Mismatch(format!(
        "{path} no longer matches what it names: {}",
        list.join("; ")
    )))
}

fn default_directory(plan: &Plan) -> PathBuf {
    let time: String = plan
        .created_at
        .chars()
        .filter(char::is_ascii_digit)
        .take(14)
        .collect();
    PathBuf::from(format!(
        "wardround-{}-{}-{time}",
        plan.system, plan.dataset.name
    ))
}

/// Runs what is not finished, then writes results and report.
///
/// # Errors
/// What stopped the run; items that errored, once everything else is done.
pub fn execute(
    prepared: Prepared,
    directory: Directory,
    finished: Finished,
    out: &Path,
    quiet: bool,
) -> Result<(), Failure> {
    for notice in prepared.notices.iter().filter(|_| !quiet) {
        console::note(format!("note: {notice}"));
    }
    let stop = interrupt::watch();
    let log = Log::start(directory)?;
    let total = prepared.questions.len() as u64 * u64::from(prepared.plan.runs);
    let done = finished.items.len() as u64;
    let progress = std::sync::Arc::new(Progress::start(total, done, quiet));
    let recorder = Recorder::Log {
        log: log.clone(),
        finished: finished.calls,
    };
    let watcher = progress.clone();
    let started = prepared.start(recorder, stop.clone(), move |call| watcher.call(call))?;
    let plan = &started.plan;
    let system = MedMad::new(
        &started.panel,
        &started.settings,
        &started.prompts,
        &plan.dataset.name,
    )?;
    let is_open = |item: &str, run| {
        let key = ItemKey {
            dataset: plan.dataset.name.clone(),
            run,
            item: item.to_owned(),
        };
        !finished.items.contains_key(&key)
    };
    // The runs of an item side by side: they share its prompt.
    let jobs = started
        .questions
        .iter()
        .flat_map(|question| (1..=plan.runs).map(move |run| (question, run)));
    let jobs = jobs
        .filter(|(question, run)| is_open(&question.id, *run))
        .collect();
    run_all(jobs, plan.engine.max_in_flight, &stop, |(question, run)| {
        let record = match system.answer(question, run) {
            Ok(record) => record,
            Err(error) if error.concerns_item() => system.error_record(question, run, &error),
            Err(error) => return Err(error),
        };
        log.item(record)?;
        progress.item();
        Ok(())
    })
    .map_err(Failure::from)
    .and_then(|()| match stop.load(std::sync::atomic::Ordering::Relaxed) {
        true => Err(Failure::Panel(PanelError::Interrupted)),
        false => Ok(()),
    })?;
    log.finish()?;
    progress.finish();
    let results = Results::write(out, progress.elapsed_ms())?;
    super::report::write(&Contents::read(out)?, out)?;
    summarise(&results, &started.plan, out)?;
    match results.n_errors {
        0 => Ok(()),
        errors => Err(Failure::Outcome(format!(
            "{errors} of {total} items errored; see {}",
            out.display()
        ))),
    }
}

fn summarise(results: &Results, plan: &Plan, out: &Path) -> std::io::Result<()> {
    let accuracy = results
        .accuracy
        .as_ref()
        .map_or_else(|| "no gold answers".to_owned(), ToString::to_string);
    console::say(format!(
        "{} on {}: {} items, {} runs",
        plan.system, plan.dataset.name, results.n_items, results.n_runs
    ))?;
    console::say(format!("accuracy   {accuracy}"))?;
    let tokens = &results.tokens;
    console::say(format!(
        "calls      {} ({} ok, {} repaired, {} fallback)",
        results.calls, results.parse.ok, results.parse.repaired, results.parse.fallback
    ))?;
    console::say(format!(
        "tokens     {} prompt ({} cached), {} completion ({} forced)",
        tokens.prompt, tokens.cached, tokens.completion, tokens.forced
    ))?;
    if plan.synthetic {
        console::say("note       synthetic weights answer noise: these figures mean nothing")?;
    }
    console::say(format!("head       {}", results.head))?;
    console::say(format!(
        "report     {}",
        out.join(super::report::FILE).display()
    ))
}

/// What would run.
fn announce(prepared: &Prepared) -> std::io::Result<()> {
    let plan = &prepared.plan;
    let calls = plan.panel.len() as u64 * (1 + u64::from(prepared.settings.t_max));
    let items = prepared.questions.len() as u64;
    console::say(format!(
        "system     {SYSTEM}, {} text",
        if plan.free { "free" } else { "constrained" }
    ))?;
    console::say(format!(
        "dataset    {} ({}), {items} items, {} runs",
        plan.dataset.name, plan.dataset.path, plan.runs
    ))?;
    console::say(format!(
        "calls      at most {}",
        items * u64::from(plan.runs) * calls
    ))?;
    for notice in &prepared.notices {
        console::say(format!("note       {notice}"))?;
    }
    for member in &plan.panel {
        console::say(format!(
            "{:10} {} ({}, {})",
            member.agent, member.backbone, member.family, member.dtype
        ))?;
    }
    let mut total = 0;
    for (description, allotment) in prepared.descriptions.iter().zip(&prepared.allotments) {
        total += allotment.footprint.total();
        console::say(format!(
            "memory     {}: {}; context {} tokens, pool {} tokens",
            description.checkpoint.name,
            describe(&allotment.footprint),
            description.context,
            allotment.options.pages * crate::ops::PAGE
        ))?;
    }
    console::say(format!(
        "memory     {} in all, {} free",
        gibibytes(total),
        gibibytes(crate::model::available_memory())
    ))?;
    let lengths = initial_prompt_tokens(prepared);
    console::say(format!(
        "prompts    round 0: {} tokens, the longest {}",
        lengths.0, lengths.1
    ))
}

/// Tokens of all first prompts together, and of the longest.
fn initial_prompt_tokens(prepared: &Prepared) -> (usize, usize) {
    let Ok(messages) =
        crate::systems::medmad::messages::Messages::new(&prepared.prompts, &prepared.settings)
    else {
        return (0, 0);
    };
    let (mut sum, mut longest) = (0, 0);
    for question in &prepared.questions {
        for (agent, &index) in prepared.backbone_of.iter().enumerate() {
            let chat = messages.initial(prepared.settings.roles[agent], question);
            let tokens = prepared.descriptions[index].tokenise(&chat, prepared.settings.thinking);
            let count = tokens.map_or(0, |tokens| tokens.len());
            sum += count;
            longest = longest.max(count);
        }
    }
    (sum * prepared.plan.runs as usize, longest)
}
