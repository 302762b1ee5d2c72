//! `bench panel`: measures a system on questions, run as by `run` but without a run directory.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Instant;

use clap::Args;

use crate::bench::environment::Environment;
use crate::bench::panel::{EngineFigures, PanelFigures, PanelReport};
use crate::cli::exit::Failure;
use crate::cli::flags::ExecutionFlags;
use crate::cli::options::OutputFormat;
use crate::cli::progress::Terminal;
use crate::cli::sandboxed::Paths;
use crate::cli::terminal::print;
use crate::data::subset::Subset;
use crate::data::{DEMO_PATH, Format};
use crate::engine::EngineStats;
use crate::experiment::driver::Observer;
use crate::experiment::run::{Started, host};
use crate::experiment::spec::Spec;
use crate::panel::backbone::Description;
use crate::panel::{DecodingMode, PanelError};
use crate::record::CallLine;
use crate::systems::Which;
use crate::systems::in_flight::run_all;

#[derive(Clone, Debug, Args)]
pub struct PanelBench {
    /// The system (see `systems ls`), or the TOML file of another
    #[arg(long, default_value = "medmad", value_name = "SYSTEM")]
    system: String,
    #[command(flatten)]
    spec: Spec,
    /// The questions, or the notes [default: the eight built-in questions]
    #[arg(long, value_name = "FILE", requires = "data_format")]
    data: Option<PathBuf>,
    /// Format of the file
    #[arg(long, value_enum)]
    data_format: Option<Format>,
    #[command(flatten)]
    subset: Subset,
    /// Let every free completion run on to `--set max_tokens=N`, so that every call does the same work
    #[arg(long)]
    ignore_eos: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    execution: ExecutionFlags,
}

impl PanelBench {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        let (format, progress_flag, ignore_eos) =
            (self.format, self.execution.progress, self.ignore_eos);
        if ignore_eos && self.spec.decoding != Some(DecodingMode::Text) {
            return Err(Failure::usage("--ignore-eos needs free text", "give --decoding text"));
        }
        let spec = self.spec()?;
        given.run(&spec)?.enter()?;
        progress_flag.loading(std::slice::from_ref(&spec));
        let (run, models) = spec.prepare()?;
        let device = models.devices[0].clone();
        let progress = Arc::new(Terminal::new(progress_flag.quiet, None));
        progress.start(run.items.len() as u64, 0, run.most_calls.into());
        let (watcher, (sender, usages)) = (progress.clone(), channel());
        // The calls are not recorded, only counted.
        let recorder = move |call: &CallLine| {
            watcher.call(call);
            // The receiver outlives the calls.
            let _ = sender.send(call.usage);
        };
        let mut started = run.start(&models.start()?.models, Box::new(recorder), Arc::default())?;
        started.panel.settings.ignore_eos = ignore_eos;
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
        progress_flag.note("measuring the machine's limits");
        let environment = Environment::measure(host(), &device)?;
        let report = PanelReport {
            panel: PanelFigures::new(questions, errors, wall, &usages),
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
        print(&report.tables(), format, &report)
    }

    fn spec(self) -> Result<Spec, Failure> {
        self.spec.hardware.calls.refuse("a benchmark computes every call")?;
        let system = Which::read(&self.system)?.entry()?;
        let (data, format) = match (self.data, self.data_format) {
            (Some(data), Some(format)) => (data, format),
            _ => (DEMO_PATH.into(), Format::Mcq),
        };
        let mut spec = self.spec.of(system, data, format)?;
        spec.subset = self.subset;
        spec.hub = self.execution.hub_options()?;
        Ok(spec)
    }
}

/// Answers all questions; returns the number of those that errored.
fn answer_all(started: &Started, progress: &Terminal) -> Result<usize, Failure> {
    let plan = &started.plan;
    let errors = AtomicUsize::new(0);
    let jobs = started.items.iter().collect();
    let threads = plan.host.engine.max_in_flight;
    run_all(jobs, threads, &AtomicBool::new(false), |item| {
        let failed = started.answer(item, 1)?.error().is_some();
        errors.fetch_add(usize::from(failed), Ordering::Relaxed);
        progress.item();
        Ok::<_, Failure>(())
    })?;
    Ok(errors.into_inner())
}
