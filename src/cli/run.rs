//! `run`: a system on a file of questions or notes, into a run directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

use super::options::{HubFlags, MachineFlags, ScorerFlags, SubsetFlags};
use super::order::{Order, Share};
use super::recipe::RecipeRun;
use super::workplace::Workplace;
use super::{interrupt, summary};
use crate::cli::exit::Failure;
use crate::data::Format;
use crate::experiment::directory::{Directory, Finished};
use crate::experiment::error::RunError;
use crate::experiment::plan::{self, Plan};
use crate::experiment::recipe::Recipe;
use crate::experiment::recipe::begun::Begun;
use crate::experiment::shard::Shard;
use crate::hub::HubOptions;
use crate::model::WantedType;
use crate::ops::Quantisation;
use crate::systems::settings::pairs;
use crate::systems::{SYSTEMS, SystemConfig};

pub const DEFAULT_PANEL: [&str; 3] = ["gemma3-4b", "llama3.2-3b", "qwen3-4b"];
pub const DEFAULT_SEED: u64 = 42;

#[derive(Debug, Args)]
pub struct Run {
    /// The system to run; or give --plan
    #[arg(value_parser = systems(), required_unless_present_any = ["plan", "resume", "recipe"])]
    system: Option<String>,
    /// Run every cell of a table or figure that is not in --out yet, then print it: table1, figure5, …, or a file
    #[arg(long, env = "WARDROUND_RECIPE", value_name = "RECIPE", conflicts_with_all = ["system", "plan", "data"], requires = "data_dir")]
    recipe: Option<String>,
    /// Where the recipe's datasets lie, as medqa/us_5opt_test.jsonl, pubmedqa/ori_pqal.json, medec/MEDEC-MS-TestSet-with-GroundTruth-and-ErrorType.csv
    #[arg(
        long,
        env = "WARDROUND_DATA_DIR",
        value_name = "DIR",
        requires = "recipe"
    )]
    data_dir: Option<PathBuf>,
    /// Run the recipe under grammars instead of with free text, as a table of its own
    #[arg(long, env = "WARDROUND_CONSTRAINED", requires = "recipe")]
    constrained: bool,
    /// The folder of all-MiniLM-L6-v2, by which recipes measure how alike texts are
    #[arg(long, env = "WARDROUND_ENCODER", value_name = "DIR")]
    encoder: Option<PathBuf>,
    #[command(flatten)]
    scorers: ScorerFlags,
    /// The questions, or the notes
    #[arg(long, env = "WARDROUND_DATA_FILE", value_name = "FILE", requires = "format", required_unless_present_any = ["plan", "resume", "recipe"])]
    data: Option<PathBuf>,
    /// What the file is
    #[arg(long, env = "WARDROUND_FORMAT", value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    subset: SubsetFlags,
    /// Run one part of N: of every N items the I-th; `merge` makes the parts one run
    #[arg(long, env = "WARDROUND_SHARD", value_name = "I/N")]
    shard: Option<Shard>,
    /// Independent runs over the same items [default: 1]
    #[arg(long, env = "WARDROUND_RUNS", value_name = "R", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// The models in the order of the system's roles, or one for all: cards, hub ids or directories
    /// [default: gemma3-4b,llama3.2-3b,qwen3-4b, or their first where the system takes one]
    #[arg(
        long,
        env = "WARDROUND_PANEL",
        value_delimiter = ',',
        value_name = "A,B,C"
    )]
    panel: Vec<String>,
    /// Change a setting of the system, such as t_max=2, or an agent's model, such as slot.sym=qwen3-4b
    #[arg(long = "set", env = "WARDROUND_SET", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// What every draw of the run derives from [default: 42]
    #[arg(long, env = "WARDROUND_SEED", value_name = "S")]
    seed: Option<u64>,
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
    #[arg(long, env = "WARDROUND_PLAN", value_name = "FILE", conflicts_with_all = ["system", "data"])]
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
        if let Some(begun) = self.recipe()? {
            return self.run_recipe(begun);
        }
        let (quiet, dry_run, resume) = (self.quiet, self.dry_run, self.resume);
        let out = self.out.clone();
        let (order, promised, part) = self.order()?;
        let inputs = order.read()?;
        let crew = order.crew()?;
        let prepared = order.prepare(inputs, &crew)?;
        if let Some((path, plan)) = promised {
            check_promise(&path, &plan, &prepared.plan)?;
        }
        let prepared = match part {
            Some(part) => prepared.shard(part)?,
            None => prepared,
        };
        if dry_run {
            return Ok(summary::announce(&prepared, &crew)?);
        }
        let out = out.unwrap_or_else(|| default_directory(&prepared.plan));
        let (directory, finished) = match resume {
            true => Directory::resume(&out, &prepared.plan, &prepared.texts)?,
            false => (
                Directory::create(&out, &prepared.plan, &prepared.texts)?,
                Finished::default(),
            ),
        };
        let workplace = Workplace {
            crew: crew.start()?,
            stop: interrupt::watch(),
            shared: Arc::default(),
            quiet,
        };
        workplace.run(prepared, (directory, finished), &out)
    }

    /// The recipe that was named, or that --out was begun with.
    fn recipe(&self) -> Result<Option<Begun>, Failure> {
        let Some(name) = &self.recipe else {
            return match &self.out {
                Some(out) if self.resume && self.data.is_none() => {
                    let begun = Begun::read(out)?;
                    match (&begun, self.shard) {
                        (Some(begun), Some(part)) if begun.shard != Some(part) => {
                            Err(Failure::usage(
                                format!("--shard was given, but {} settles it", out.display()),
                                "leave the flag out, or begin another folder with --recipe and another --out",
                            ))
                        }
                        _ => Ok(begun),
                    }
                }
                _ => Ok(None),
            };
        };
        if self.subset.ids.is_some() || self.subset.sample_seed.is_some() {
            return Err(Failure::usage(
                "a recipe brings its own lists of ids",
                "shorten them with --limit, or write a recipe of your own",
            ));
        }
        let mut recipe = Recipe::find(name)?;
        recipe.runs = self.runs.unwrap_or(recipe.runs);
        recipe.free = !self.constrained;
        if !self.panel.is_empty() {
            recipe.panel = self.panel.clone();
        }
        let settings = pairs(&self.set)?.into_iter().collect();
        let data_dir = self.data_dir.as_deref().unwrap_or(Path::new("."));
        let prompts = self
            .prompts
            .as_deref()
            .map(std::path::absolute)
            .transpose()?;
        Ok(Some(Begun {
            name: name.clone(),
            seed: self.seed.unwrap_or(DEFAULT_SEED),
            limit: self.subset.limit,
            shard: self.shard,
            data_dir: std::path::absolute(data_dir)?.display().to_string(),
            prompts: prompts.map(|path| path.display().to_string()),
            settings,
            recipe,
        }))
    }

    fn run_recipe(self, begun: Begun) -> Result<(), Failure> {
        let stem = Path::new(&begun.name).file_stem().unwrap_or_default();
        let default = || PathBuf::from(format!("wardround-{}", stem.to_string_lossy()));
        let run = RecipeRun {
            out: self.out.unwrap_or_else(default),
            machine: self.machine,
            max_in_flight: self.max_in_flight.map(usize::from),
            hub: self.hub.options(self.quiet)?,
            encoder: self.encoder,
            scorers: self.scorers,
            dry_run: self.dry_run,
            quiet: self.quiet,
            begun,
        };
        run.run()
    }

    /// What to run, the plan that it must come out as, if one was given, and the part of that to run.
    fn order(self) -> Result<(Order, Option<(PathBuf, Plan)>, Option<Shard>), Failure> {
        let hub = self.hub.options(self.quiet)?;
        let plan = match (&self.plan, &self.out) {
            (Some(path), _) => Some(path.clone()),
            (None, Some(out)) if self.resume && self.data.is_none() => Some(own_plan(out)?),
            _ => None,
        };
        if let Some(path) = plan {
            return self.order_of_plan(path, hub);
        }
        let (Some(system), Some(data), Some(format)) = (self.system, self.data, self.format) else {
            return Err(Failure::usage(
                "no --data was given",
                "name a file and its --format",
            ));
        };
        let (slots, pairs) = slots(self.set);
        let protocol = SystemConfig::parse(&system, &pairs)?;
        let order = Order {
            data,
            format,
            subset: self.subset.subset(),
            share: self.shard.map_or(Share::All, Share::Shard),
            runs: self.runs.unwrap_or(1),
            panel: match self.panel.is_empty() {
                true => DEFAULT_PANEL[..protocol.default_models().min(DEFAULT_PANEL.len())]
                    .iter()
                    .map(|name| name.to_string())
                    .collect(),
                false => self.panel,
            },
            slots,
            protocol,
            seed: self.seed.unwrap_or(DEFAULT_SEED),
            free: self.free,
            prompts: self.prompts,
            machine: self.machine,
            max_in_flight: self.max_in_flight.map(usize::from),
            hub,
        };
        Ok((order, None, None))
    }

    /// The order that the plan in the file `path` gives. Flags may say where its models lie now and how fast it runs.
    fn order_of_plan(
        self,
        path: PathBuf,
        hub: HubOptions,
    ) -> Result<(Order, Option<(PathBuf, Plan)>, Option<Shard>), Failure> {
        let plan = Plan::load(&path)?;
        let mut share = None;
        // A whole plan from elsewhere may be run in parts; a run that was begun stays the part that it is.
        if let (Some(part), None, true) = (self.shard, &plan.dataset.shard, self.plan.is_some()) {
            share = Some(part);
        }
        let is_other_shard = share.is_none()
            && self.shard.is_some_and(|part| {
                let planned = plan.dataset.shard.as_ref();
                planned.is_none_or(|planned| planned.part != part)
            });
        let contexts = plan.panel.iter().map(|member| member.context as u32);
        let is_other_context =
            self.machine.context.is_some() && self.machine.context != contexts.max();
        let is_other_dtype = match self.machine.compute.dtype {
            WantedType::Auto => false,
            WantedType::Exactly(stored) => {
                let stored = stored.to_string();
                plan.panel
                    .iter()
                    .any(|member| !member.is_remote() && member.dtype != stored)
            }
        };
        let quant = self.machine.compute.quant;
        let is_other_quant = quant != Quantisation::None
            && plan
                .panel
                .iter()
                .any(|member| !member.is_remote() && member.quantisation != quant.name());
        let settled = [
            ("--set", !self.set.is_empty()),
            ("--seed", self.seed.is_some_and(|seed| seed != plan.seed)),
            ("--runs", self.runs.is_some_and(|runs| runs != plan.runs)),
            ("--free", self.free && !plan.free),
            ("--prompts", self.prompts.is_some()),
            ("--context", is_other_context),
            ("--dtype", is_other_dtype),
            ("--quant", is_other_quant),
            ("--limit", self.subset.limit.is_some()),
            ("--ids", self.subset.ids.is_some()),
            ("--shard", is_other_shard),
        ];
        if let Some((flag, _)) = settled.iter().find(|(_, is_given)| *is_given) {
            let message = format!("{flag} was given, but {} settles it", path.display());
            return Err(Failure::usage(
                message,
                "leave the flag out, or begin another run with --data and another --out",
            ));
        }
        let mut order = Order::from_plan(&plan, self.machine, hub)?;
        if !self.panel.is_empty() {
            (order.panel, order.slots) = (self.panel, BTreeMap::new());
        }
        if let Some(count) = self.max_in_flight {
            order.max_in_flight = Some(usize::from(count));
        }
        Ok((order, Some((path, plan)), share))
    }
}

/// The systems by their names; where a plan has another name for one, by that too.
fn systems() -> PossibleValuesParser {
    let systems = SYSTEMS.iter().map(|system| {
        let in_plans = Some(system.plan_name).filter(|other| *other != system.name);
        PossibleValue::new(system.name).aliases(in_plans)
    });
    PossibleValuesParser::new(systems)
}

/// The models that `slot.AGENT=MODEL` pairs give to agents, and the other pairs.
pub fn slots(pairs: Vec<String>) -> (BTreeMap<String, String>, Vec<String>) {
    let mut slots = BTreeMap::new();
    let mut others = Vec::new();
    for pair in pairs {
        let slot = pair
            .strip_prefix("slot.")
            .and_then(|slot| slot.split_once('='));
        match slot {
            Some((agent, model)) => {
                slots.insert(agent.trim().to_owned(), model.trim().to_owned());
            }
            None => others.push(pair),
        }
    }
    (slots, others)
}

fn own_plan(out: &Path) -> Result<PathBuf, RunError> {
    let plan = out.join(plan::FILE);
    match fs_err::exists(&plan)? {
        true => Ok(plan),
        false => Err(RunError::NoPlan {
            path: out.to_owned(),
        }),
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
    Err(Failure::mismatch(format!(
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
    let shard = plan.dataset.shard.as_ref();
    // The parts of an array job may begin in the same second.
    let part = shard.map_or_else(String::new, |shard| {
        format!("-{}-of-{}", shard.part.index() + 1, shard.part.of())
    });
    PathBuf::from(format!(
        "wardround-{}-{}-{time}{part}",
        plan.system, plan.dataset.name
    ))
}
