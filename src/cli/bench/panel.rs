//! `bench panel`: a system over questions, as `run` would do it, but for the run directory.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Instant;

use clap::Args;

use crate::bench::environment::Environment;
use crate::bench::output::OutputFormat;
use crate::bench::panel::{EngineFigures, PanelFigures, PanelReport};
use crate::cli::exit::Failure;
use crate::cli::options::{HubFlags, MachineFlags, SubsetFlags};
use crate::cli::order::{Order, Share};
use crate::cli::prepare::{self, Started};
use crate::cli::progress::Progress;
use crate::cli::run::DEFAULT_PANEL;
use crate::cli::synthetic;
use crate::console;
use crate::data::{DEMO_PATH, Format};
use crate::engine::EngineStats;
use crate::panel::PanelError;
use crate::panel::backbone::Description;
use crate::panel::recorder::Recorder;
use crate::synth::Shape;
use crate::systems::in_flight::run_all;
use crate::systems::{SystemConfig, Task};

/// What random weights say fills whatever the grammar allows: this keeps records as long as trained models' are.
const SYNTHETIC_RECORD_CHARS: usize = 32;

#[derive(Debug, Args)]
pub struct PanelBench {
    /// Three models in the order of the roles, or one for all: cards, hub ids or directories
    /// [default: gemma3-4b,llama3.2-3b,qwen3-4b]
    #[arg(
        long,
        env = "WARDROUND_PANEL",
        value_delimiter = ',',
        value_name = "A,B,C"
    )]
    panel: Vec<String>,
    /// Synthetic models of the three families instead, with records of 32 characters a string
    #[arg(long, env = "WARDROUND_SYNTH_PANEL", conflicts_with = "panel")]
    synth: bool,
    /// The synthetic models' sizes
    #[arg(long, env = "WARDROUND_SHAPE", value_enum, default_value = "tiny")]
    shape: Shape,
    /// Where synthetic models are kept [default: the user's cache]
    #[arg(long, env = "WARDROUND_SYNTH_MODELS", value_name = "DIR")]
    models: Option<PathBuf>,
    /// The questions [default: eight of our own]
    #[arg(
        long,
        env = "WARDROUND_DATA_FILE",
        value_name = "FILE",
        requires = "data_format"
    )]
    data: Option<PathBuf>,
    /// What the file of questions is
    #[arg(long, env = "WARDROUND_FORMAT", value_enum)]
    data_format: Option<Format>,
    #[command(flatten)]
    subset: SubsetFlags,
    /// Change a setting of the system, such as t_max=2
    #[arg(long = "set", env = "WARDROUND_SET", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// What every draw derives from
    #[arg(long, env = "WARDROUND_SEED", default_value_t = 42, value_name = "S")]
    seed: u64,
    /// Take free text instead of text under a grammar
    #[arg(long, env = "WARDROUND_FREE")]
    free: bool,
    /// Let every free completion run on to `--set max_tokens=N`, so that every call does the same work
    #[arg(long, env = "WARDROUND_IGNORE_EOS", requires = "free")]
    ignore_eos: bool,
    /// How the figures are printed
    #[arg(
        long,
        env = "WARDROUND_OUTPUT_FORMAT",
        value_enum,
        default_value = "md"
    )]
    format: OutputFormat,
    #[command(flatten)]
    machine: MachineFlags,
    /// Questions worked on at once [default: twice --max-batch]
    #[arg(long, env = "WARDROUND_MAX_IN_FLIGHT", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    max_in_flight: Option<u16>,
    #[command(flatten)]
    hub: HubFlags,
    /// Write no progress to stderr
    #[arg(long, env = "WARDROUND_QUIET")]
    quiet: bool,
}

impl PanelBench {
    pub fn run(self) -> Result<(), Failure> {
        let (format, quiet, ignore_eos) = (self.format, self.quiet, self.ignore_eos);
        let order = self.order()?;
        let inputs = order.read()?;
        let crew = order.crew()?;
        let prepared = order.prepare(inputs, &crew)?;
        let device = crew.devices[0].clone();
        let progress = Arc::new(Progress::start(prepared.items.len() as u64, 0, quiet));
        let (watcher, (told, usages)) = (progress.clone(), channel());
        // Nobody reads the calls: of what is measured, only the figures are kept.
        let recorder = Recorder::Replay(channel().0);
        let mut started =
            prepared.start(&crew.start()?, recorder, Arc::default(), move |call| {
                watcher.call(call);
                // The receiver outlives the calls.
                let _ = told.send(call.usage);
            })?;
        started.panel.ignore_eos = ignore_eos;
        let clock = Instant::now();
        let errors = answer_all(&started, &progress)?;
        let wall = clock.elapsed();
        progress.finish();

        let (plan, questions) = (started.plan, started.items.len());
        let backbones = started.panel.into_backbones();
        let usages: Vec<_> = usages.into_iter().collect();
        let counted = backbones
            .into_iter()
            .map(|backbone| Ok((backbone.description, backbone.engine.finish()?)))
            .collect::<Result<Vec<(Description, EngineStats)>, PanelError>>()?;
        if !quiet {
            console::note("measuring the machine's limits");
        }
        let environment = Environment::measure(prepare::host(), &device)?;
        let stats: Vec<&EngineStats> = counted.iter().map(|(_, stats)| stats).collect();
        let report = PanelReport {
            panel: PanelFigures::new((questions, errors), wall, &usages, &stats),
            engines: counted
                .iter()
                .map(|(description, stats)| {
                    let (name, precision) = (&description.checkpoint.name, description.precision);
                    EngineFigures::new(name, stats, &environment.limits, precision)
                })
                .collect(),
            plan,
            environment,
        };
        let text = format.write(&report, "engines", || report.markdown())?;
        Ok(console::say(text.trim_end())?)
    }

    fn order(self) -> Result<Order, Failure> {
        let mut settings = self.set;
        let panel = if self.synth {
            settings.insert(0, format!("record_chars={SYNTHETIC_RECORD_CHARS}"));
            let root = self.models.unwrap_or_else(synthetic::cache_directory);
            synthetic::panel(&root, self.shape, self.quiet)?
        } else if self.panel.is_empty() {
            DEFAULT_PANEL.map(str::to_owned).to_vec()
        } else {
            self.panel
        };
        let (data, format) = match (self.data, self.data_format) {
            (Some(data), Some(format)) => (data, format),
            _ => (DEMO_PATH.into(), Format::Mcq),
        };
        Ok(Order {
            data,
            format,
            subset: self.subset.subset(),
            share: Share::All,
            runs: 1,
            panel,
            slots: BTreeMap::new(),
            protocol: SystemConfig::parse("medmad", &settings)?,
            seed: self.seed,
            free: self.free,
            prompts: None,
            machine: self.machine,
            max_in_flight: self.max_in_flight.map(usize::from),
            hub: self.hub.options(self.quiet)?,
        })
    }
}

/// Gives the number of questions that ended in an error.
fn answer_all(started: &Started, progress: &Progress) -> Result<usize, Failure> {
    let plan = &started.plan;
    let errors = AtomicUsize::new(0);
    let jobs = started.items.iter().collect();
    let threads = plan.engine.max_in_flight;
    run_all(jobs, threads, &AtomicBool::new(false), |item| {
        let dataset = &plan.dataset.name;
        match started.system.answer(&Task {
            panel: &started.panel,
            dataset,
            item,
            run: 1,
        }) {
            Ok(_) => {}
            Err(error) if error.concerns_item() => {
                errors.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => return Err(error),
        }
        progress.item();
        Ok(())
    })?;
    Ok(errors.into_inner())
}
