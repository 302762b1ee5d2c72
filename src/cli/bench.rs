//! `bench`: measures one model with the tests of llama-bench, beside this machine's bandwidth.

use std::time::Duration;

use clap::Args;

use crate::bench::environment::Environment;
use crate::bench::model::{Measurement, ModelReport, Subject};
use crate::bench::trial::Trial;
use crate::bench::workload::{Extent, Workload};
use crate::cli::exit::Failure;
use crate::cli::options::{ExecutionFlags, OutputFormat};
use crate::cli::sandboxed::Paths;
use crate::cli::terminal::print;
use crate::experiment::hardware::Compute;
use crate::experiment::run;
use crate::hub::resolve;
use crate::model::{CostModel, ModelError};
use crate::ops::{Backend, Device, Machine, PAGE};
use crate::panel::backbone::Description;
use crate::panel::memory::{Limits, plan_memory};

#[derive(Debug, Args)]
pub struct Bench {
    /// Model: a card's name, a hub id or a directory
    #[arg(long, value_name = "MODEL")]
    model: String,
    /// Prompt lengths to measure, in tokens; 0 for none
    #[arg(short, long, value_delimiter = ',', default_value = "512", value_name = "P,P")]
    prompt_tokens: Vec<u32>,
    /// Generation lengths to measure, in tokens; 0 for none
    #[arg(short = 'n', long, value_delimiter = ',', default_value = "128", value_name = "N,N")]
    generate_tokens: Vec<u32>,
    /// Tokens already in the context before the test
    #[arg(short, long, value_delimiter = ',', default_value = "0", value_name = "D,D")]
    depth: Vec<u32>,
    /// Batch sizes
    #[arg(long, value_delimiter = ',', default_value = "1", value_name = "B,B", value_parser = clap::value_parser!(u16).range(1..=1024))]
    batch: Vec<u16>,
    /// Also measure decoding mixed with the prefill of another prompt
    #[arg(long)]
    mixed: bool,
    /// Repetitions of each test, after a warm-up
    #[arg(short, long, default_value_t = 5, value_name = "R", value_parser = clap::value_parser!(u16).range(1..))]
    repetitions: u16,
    /// Random seed
    #[arg(long, default_value_t = 42, value_name = "S")]
    seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    compute: Compute,
    #[command(flatten)]
    execution: ExecutionFlags,
}

impl Bench {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        let device = self.compute.on.one_device()?;
        let workloads = self.workloads(device.machine().prefill_rows());
        if workloads.is_empty() {
            return Err(Failure::usage(
                "there is nothing to measure",
                "give --prompt-tokens or --generate-tokens above 0",
            ));
        }
        let extent = Extent::of(&workloads);
        let description = self.describe(device.machine(), extent.positions)?;
        check_room(&description, &device, extent)?;
        let costs = CostModel::new(&description.config, description.precision, device.machine());
        self.execution.progress.note(format!("loading {}", description.checkpoint.name));
        let model = Subject::new(&description);
        let durations = match &device {
            Device::Cpu(cpu) => self.time(cpu.clone(), &description, &workloads)?,
            Device::Cuda(gpu) => self.time(gpu.for_engine()?, &description, &workloads)?,
            Device::Candle(candle) => self.time(candle.clone(), &description, &workloads)?,
        };
        self.execution.progress.note("measuring the machine's bandwidth");
        let environment = Environment::measure(run::host(), &device)?;
        let timed = workloads.iter().zip(&durations);
        let results = timed.filter_map(|(workload, durations)| {
            Measurement::new(workload, &costs, durations, environment.bytes_per_second)
        });
        let report = ModelReport {
            results: results.collect(),
            model,
            seed: self.seed,
            repetitions: usize::from(self.repetitions),
            environment,
        };
        print(&[report.table()], self.format, &report)
    }

    /// The durations of each test's repetitions.
    fn time<B: Backend>(
        &self,
        ops: B,
        description: &Description,
        workloads: &[Workload],
    ) -> Result<Vec<Vec<Duration>>, Failure> {
        let extent = Extent::of(workloads);
        let decoder = description.load(&ops, extent.positions)?;
        let mut trial = Trial::new(decoder, ops, extent, self.seed).map_err(ModelError::from)?;
        let mut durations = Vec::new();
        for (index, workload) in workloads.iter().enumerate() {
            let Workload { name, batch, depth, .. } = workload;
            let place = format!("{}/{}", index + 1, workloads.len());
            self.execution.progress.note(format!("{place} {name}, batch {batch}, depth {depth}"));
            let times = trial.measure(workload, usize::from(self.repetitions));
            durations.push(times.map_err(ModelError::from)?);
        }
        Ok(durations)
    }

    /// All tests, by depth, prompts first; a step computes up to `rows` rows of a prompt.
    fn workloads(&self, rows: usize) -> Vec<Workload> {
        let batches = || self.batch.iter().map(|&batch| usize::from(batch));
        let (prompt, generate) = (&self.prompt_tokens, &self.generate_tokens);
        let mut workloads = Vec::new();
        for depth in self.depth.iter().map(|&depth| depth as usize) {
            let mut add = |tokens: &[u32], make: &dyn Fn(usize, usize, usize) -> Workload| {
                for tokens in tokens.iter().map(|&tokens| tokens as usize) {
                    workloads.extend(batches().map(|batch| make(tokens, batch, depth)));
                }
            };
            add(prompt, &|tokens, batch, depth| Workload::prefill(tokens, batch, depth, rows));
            add(generate, &Workload::decode);
            if self.mixed {
                add(prompt, &|tokens, batch, depth| Workload::mixed(tokens, batch, depth, rows));
            }
        }
        workloads.retain(|workload| !workload.steps.is_empty());
        workloads
    }

    fn describe(&self, machine: Machine, positions: usize) -> Result<Description, Failure> {
        let checkpoint = resolve(&self.model, &self.execution.hub_options()?)?;
        Description::read(checkpoint, self.compute.precision(), machine, positions)
    }
}

fn check_room(description: &Description, device: &Device, extent: Extent) -> Result<(), Failure> {
    let (sequences, positions) = (extent.sequences, extent.positions);
    let most = description.config.max_position_embeddings;
    if positions > most {
        return Err(Failure::usage(
            format!("a test needs {positions} positions, and the model was made for {most}"),
            "lower --depth, --prompt-tokens or --generate-tokens",
        ));
    }
    let limits = Limits {
        sequences: Some(sequences),
        kv_tokens: Some(sequences * positions.next_multiple_of(PAGE)),
        ..Limits::default()
    };
    let planned = plan_memory(&[description], std::slice::from_ref(device), limits, &[]);
    let hint = "lower --batch or --depth, or keep weights as --dtype bf16 or --quant q8_0";
    planned.map(drop).map_err(|error| Failure::usage(error.to_string(), hint))
}
