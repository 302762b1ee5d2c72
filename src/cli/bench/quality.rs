//! `bench quality`: what rounding weights, or keys and values, does to a model's predictions.

use std::path::PathBuf;

use clap::Args;

use crate::bench::model::Subject;
use crate::bench::output::OutputFormat;
use crate::bench::quality::{Format, QualityReport, Reader, Sums, TEXT, Text, compare, windows};
use crate::cli::exit::Failure;
use crate::cli::options::{HubFlags, QuietFlag};
use crate::console;
use crate::experiment::hardware::DeviceChoice;
use crate::hub::resolve;
use crate::model::{ModelError, precision_of};
use crate::ops::{Backend, Cpu, Device, Machine};
use crate::outside;
use crate::panel::PanelError;
use crate::panel::backbone::Description;

#[derive(Debug, Args)]
pub struct QualityBench {
    /// Model: a card's name, a hub id or a directory
    #[arg(long, value_name = "MODEL")]
    model: String,
    /// Formats to compare with f32
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "bf16,q8_0,int8,q4_k,kv-bf16",
        value_name = "F,F"
    )]
    formats: Vec<Format>,
    /// Text to read, a file in UTF-8 [default: medical prose, a chat and code in four languages, built in]
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Tokens per window; each is read by itself
    #[arg(long, default_value_t = 512, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(2..))]
    window: u32,
    /// Windows to read, from the start [default: all whole ones]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    windows: Option<u32>,
    /// Output format
    #[arg(long, value_enum, default_value = "md")]
    format: OutputFormat,
    #[command(flatten)]
    device: DeviceChoice,
    #[command(flatten)]
    hub: HubFlags,
    #[command(flatten)]
    progress: QuietFlag,
}

impl QualityBench {
    pub fn run(self) -> Result<(), Failure> {
        let device = self.device.one_device()?;
        let checkpoint = resolve(&self.model, &self.hub.options(self.progress.quiet)?)?;
        let window = self.window as usize;
        let exact = Format::F32.precision(Machine::Cpu);
        let mut description = Description::read(checkpoint, exact, Machine::Cpu, window)?;
        if description.context < window {
            return Err(Failure::usage(
                format!(
                    "a window takes {window} positions, and the model was made for {}",
                    description.context
                ),
                "lower --window",
            ));
        }
        // Before anything is loaded: a format that the device does not have.
        for &format in &self.formats {
            self.set_format(&mut description, format, device.machine())?;
        }
        self.set_format(&mut description, Format::F32, Machine::Cpu)?;
        let (text, read) = self.text(&description)?;
        let model = Subject::new(&description);
        let cpu = match &device {
            Device::Cpu(cpu) => cpu.clone(),
            other => Cpu::new(other.threads())?,
        };
        self.progress.note(format!("loading {} in f32", model.name));
        let decoder = description.load(&cpu, window)?;
        let mut exact = Reader::new(cpu, decoder, window).map_err(ModelError::from)?;
        let (mut results, mut perplexity) = (Vec::new(), f64::NAN);
        for &format in &self.formats {
            self.progress.note(format!("reading {} windows in {}", read.len(), format.name()));
            self.set_format(&mut description, format, device.machine())?;
            let sums = match &device {
                Device::Cpu(cpu) => measure(cpu.clone(), &description, &read, &mut exact)?,
                Device::Cuda(gpu) => measure(gpu.for_engine()?, &description, &read, &mut exact)?,
                Device::Metal(gpu) => measure(gpu.for_engine()?, &description, &read, &mut exact)?,
            };
            let Description { config, precision, .. } = &description;
            let bytes = config.weight_bytes(*precision) as f64 / config.parameters() as f64;
            results.push(sums.quality(format, bytes));
            perplexity = sums.exact_perplexity();
        }
        let report = QualityReport {
            results,
            model,
            text,
            perplexity,
            device_kind: device.describe(),
            version: env!("CARGO_PKG_VERSION"),
        };
        let text = self.format.write(&report, "results", || report.markdown())?;
        Ok(console::say(text.trim_end())?)
    }

    fn set_format(
        &self,
        description: &mut Description,
        format: Format,
        machine: Machine,
    ) -> Result<(), ModelError> {
        let files = &description.checkpoint.files.weights;
        let wanted = format.precision(machine);
        description.precision = precision_of(&description.config, files, wanted, machine)?;
        Ok(())
    }

    /// What is read, and its windows.
    fn text(&self, description: &Description) -> Result<(Text, Vec<Vec<u32>>), Failure> {
        let (name, text) = match &self.text {
            Some(path) => {
                let text = outside::text(path).map_err(|error| {
                    Failure::usage(error.to_string(), "--text names a file in UTF-8")
                })?;
                (path.display().to_string(), text)
            }
            None => ("built-in text".to_owned(), TEXT.to_owned()),
        };
        let tokenizer = &description.tokenizer;
        let tokens = tokenizer.encode(&text).map_err(PanelError::from)?;
        let before = tokenizer.encode_with("", true).map_err(PanelError::from)?;
        let before = if tokenizer.adds_bos() { &before[..1] } else { &[] };
        let window = self.window as usize;
        let mut read = windows(&tokens, before, window);
        let wanted = self.windows.unwrap_or(1) as usize;
        if read.len() < wanted {
            return Err(Failure::usage(
                format!("{name} has {} tokens, too few for {wanted} of {window}", tokens.len()),
                "lower --window or --windows, or give a longer --text",
            ));
        }
        read.truncate(self.windows.map_or(usize::MAX, |windows| windows as usize));
        let text = Text {
            name,
            window,
            windows: read.len(),
            positions: read.iter().map(|window| window.len() - 1).sum(),
        };
        Ok((text, read))
    }
}

/// Loads the description's format, and reads all windows in it and in f32.
fn measure<B: Backend>(
    ops: B,
    description: &Description,
    windows: &[Vec<u32>],
    exact: &mut Reader<Cpu>,
) -> Result<Sums, Failure> {
    let longest = windows.iter().map(Vec::len).max().unwrap_or(0);
    let decoder = description.load(&ops, longest)?;
    let mut rounded = Reader::new(ops, decoder, longest).map_err(ModelError::from)?;
    let mut sums = Sums::default();
    for window in windows {
        if !compare(exact, &mut rounded, window, &mut sums).map_err(ModelError::from)? {
            return Err(Failure::missing(
                format!("{} gives logits that are no numbers", description.checkpoint.name),
                "`wardround models verify` tells whether its files are whole",
            ));
        }
    }
    Ok(sums)
}
