//! `bench embed`: the throughput of an encoder of BERT-base's size, in texts per second.

use clap::Args;

use crate::bench::embed::{EmbedMeasurement, EmbedReport, EmbedWorkload, time};
use crate::bench::environment::Environment;
use crate::bench::output::OutputFormat;
use crate::cli::exit::Failure;
use crate::cli::options::QuietFlag;
use crate::console;
use crate::encoder::EncoderError;
use crate::experiment::hardware::Compute;
use crate::experiment::run;
use crate::model::BERT_BASE;
use crate::model::WantedType;
use crate::ops::{Device, Precision, StoredType};

#[derive(Debug, Args)]
pub struct EmbedBench {
    /// Lengths of texts to measure, in tokens
    #[arg(long, value_delimiter = ',', default_value = "200", value_name = "T,T", value_parser = clap::value_parser!(u16).range(1..=512))]
    tokens: Vec<u16>,
    /// Texts per repetition
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    texts: u16,
    /// Repetitions of each test, after a warm-up
    #[arg(short, long, default_value_t = 5, value_name = "R", value_parser = clap::value_parser!(u16).range(1..))]
    repetitions: u16,
    /// Output format
    #[arg(long, value_enum, default_value = "md")]
    format: OutputFormat,
    #[command(flatten)]
    compute: Compute,
    #[command(flatten)]
    progress: QuietFlag,
}

impl EmbedBench {
    pub fn run(self) -> Result<(), Failure> {
        let device = self.compute.one_device()?;
        let wanted = self.compute.precision();
        let stored = match wanted.dtype {
            WantedType::Auto => StoredType::F32,
            WantedType::Exactly(stored) => stored,
        };
        let precision = Precision { quantisation: wanted.quantisation, ..Precision::from(stored) };
        let mut timed = Vec::new();
        for &tokens in &self.tokens {
            let workload = EmbedWorkload {
                tokens: usize::from(tokens),
                texts: usize::from(self.texts),
                repetitions: usize::from(self.repetitions),
            };
            self.progress.note(format!("{} texts of {tokens} tokens", self.texts));
            let durations = match &device {
                Device::Cpu(cpu) => time(cpu, &BERT_BASE, precision, workload)?,
                Device::Cuda(gpu) => {
                    time(&gpu.for_encoder(precision)?, &BERT_BASE, precision, workload)?
                }
                Device::Metal(_) => {
                    return Err(EncoderError::Device { device: device.describe() }.into());
                }
            };
            timed.push((workload, durations));
        }
        self.progress.note("measuring the machine's limits");
        let environment = Environment::measure(run::host(), &device)?;
        let rate = environment.limits.matrix_rate(precision);
        let results = timed.iter().filter_map(|(workload, durations)| {
            EmbedMeasurement::new(&BERT_BASE, *workload, durations, rate)
        });
        let report = EmbedReport {
            results: results.collect(),
            model: "BERT-base",
            dtype: stored.to_string(),
            quantisation: wanted.quantisation.to_string(),
            environment,
        };
        let text = self.format.write(&report, "results", || report.markdown())?;
        Ok(console::say(text.trim_end())?)
    }
}
