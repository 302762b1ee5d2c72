//! The flags shared by several commands.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::analysis::notes::{self, CorrectionScorer, Pairs, ScoresByPair};
use crate::cli::exit::Failure;
use crate::console;
use crate::data::BadRows;
use crate::data::subset::Subset;
use crate::experiment::contents::Contents;
use crate::experiment::hardware::Hardware;
use crate::hub::{self, DatasetCard, Environment, HubOptions, OfflineReason};
use crate::model::{WantedPrecision, WantedType};
use crate::ops::{Device, Quantisation};
use crate::panel::memory::KvBudget;
use crate::panel::remote::RemoteOptions;
use crate::panel::sampling::{self, SamplingChoice};

pub const MOST_DRAFT: i64 = 31;
pub const DEFAULT_CONTEXT: u32 = 16_384;

/// How models are found.
#[derive(Clone, Debug, Default, Args)]
pub struct HubFlags {
    /// Open no network connection, as HF_HUB_OFFLINE=1 does
    #[arg(long, help_heading = "Hub", env = "WARDROUND_OFFLINE")]
    pub offline: bool,
}

impl HubFlags {
    pub fn options(&self, quiet: bool) -> Result<HubOptions, Failure> {
        let mut options = HubOptions::new(Environment::capture()?);
        options.offline = self.offline.then_some(OfflineReason::Flag);
        options.quiet = quiet;
        Ok(options)
    }
}

/// The flags of the commands that download datasets and the sources of corpora.
#[derive(Clone, Debug, Args)]
pub struct FetchFlags {
    /// Directory to write to; existing files with the right checksum are kept
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
    /// Mirror of the hub and of raw.githubusercontent.com, with the paths of both
    #[arg(long, help_heading = "Hub", env = "WARDROUND_DATA_ENDPOINT", value_name = "URL")]
    endpoint: Option<String>,
    #[command(flatten)]
    progress: QuietFlag,
    #[command(flatten)]
    hub: HubFlags,
}

impl FetchFlags {
    pub fn options(&self) -> Result<HubOptions, Failure> {
        self.hub.options(self.progress.quiet)
    }

    /// Downloads the files of a dataset, and prints their paths.
    pub fn fetch(&self, card: &DatasetCard, options: &HubOptions) -> Result<(), Failure> {
        for path in hub::fetch_dataset(card, &self.to, self.endpoint.as_deref(), options)? {
            console::say(path.display().to_string())?;
        }
        Ok(())
    }
}

/// The folder of an encoder or a reranker, named by its directory or its card; files of a card that are not cached are downloaded.
///
/// # Errors
/// A card whose files are missing and may not be downloaded.
pub fn model_folder(named: &Path) -> Result<PathBuf, Failure> {
    Ok(hub::folder(named, &HubOptions::new(Environment::capture()?))?)
}

/// The flag of the commands that show progress.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct QuietFlag {
    /// Print no progress
    #[arg(long, env = "WARDROUND_QUIET")]
    pub quiet: bool,
}

impl QuietFlag {
    /// Prints a line of progress.
    pub fn note(self, line: impl AsRef<str>) {
        if !self.quiet {
            console::note(line);
        }
    }
}

/// The source of the prompts.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
pub struct PromptFlags {
    /// A directory of prompts that override the built-in ones
    #[arg(long, value_name = "DIR")]
    pub prompts: Option<PathBuf>,
}

/// Sampling parameters that override the models' defaults.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct SamplingFlags {
    /// Sampling temperature; 0 is greedy [default: the model's]
    #[arg(long, help_heading = "Decoding", value_name = "T", allow_negative_numbers = true, value_parser = sampling::temperature)]
    pub temperature: Option<f32>,
    /// Nucleus sampling: sample from the most likely tokens whose probabilities add up to P [default: the model's]
    #[arg(long, help_heading = "Decoding", value_name = "P", value_parser = sampling::share::<f32>)]
    pub top_p: Option<f32>,
    /// Sample from the K most likely tokens; 0 for all [default: the model's]
    #[arg(long, help_heading = "Decoding", value_name = "K")]
    pub top_k: Option<u32>,
    /// Leave out tokens less likely than P times the most likely one [default: the model's]
    #[arg(long, help_heading = "Decoding", value_name = "P", value_parser = sampling::share::<f32>)]
    pub min_p: Option<f32>,
}

impl SamplingFlags {
    pub fn choice(self) -> SamplingChoice {
        let SamplingFlags { temperature, top_p, top_k, min_p } = self;
        SamplingChoice { temperature, top_p, top_k, min_p, ..SamplingChoice::default() }
    }
}

/// The models and parameters of metrics that compare texts.
#[derive(Clone, Debug, Default, Args)]
pub struct ScorerFlags {
    /// Directory with the BERTScore and BLEURT models, each in a folder named after its card (`models fetch bleurt-20 --to DIR/bleurt-20`)
    #[arg(long, help_heading = "Metrics", env = "WARDROUND_SCORERS", value_name = "DIR")]
    pub scorers: Option<PathBuf>,
    /// Additional keyword weight (alpha) for KPCS, besides 0.2, 0.5 and 0.8
    #[arg(long, help_heading = "Metrics", value_name = "ALPHA", value_parser = sampling::share::<f64>)]
    pub alpha: Option<f64>,
    /// Keywords per note for KPCS, as written by `keywords` [default: those of the notes file, else the words that the reference correction changes]
    #[arg(long, help_heading = "Metrics", value_name = "FILE")]
    pub keywords: Option<PathBuf>,
    /// Words that count as a keyword in the case-folded KPCS: a JSON object from word to a list of words
    #[arg(long, help_heading = "Metrics", value_name = "FILE")]
    pub synonyms: Option<PathBuf>,
}

impl ScorerFlags {
    /// The scorer of the corrections in these runs.
    ///
    /// # Errors
    /// Weights that are all missing, or damaged; a malformed file of keywords or synonyms.
    pub fn correction_scorer<'a>(
        &self,
        runs: impl IntoIterator<Item = &'a Contents>,
    ) -> Result<CorrectionScorer, Failure> {
        let mut scorer = CorrectionScorer {
            neural: self.score(&notes::pairs(runs))?,
            ..CorrectionScorer::default()
        };
        scorer.alphas.extend(self.alpha);
        scorer.alphas.sort_by(f64::total_cmp);
        scorer.alphas.dedup();
        if let Some(path) = &self.keywords {
            scorer.keywords.read(path)?;
        }
        if let Some(path) = &self.synonyms {
            scorer.keywords.read_synonyms(path)?;
        }
        Ok(scorer)
    }

    /// BERTScore and BLEURT of pairs; empty without their weights.
    ///
    /// # Errors
    /// Weights that are all missing, or damaged.
    pub fn score(&self, pairs: &Pairs) -> Result<ScoresByPair, Failure> {
        let Some(folder) = self.scorers.as_ref().filter(|_| !pairs.is_empty()) else {
            return Ok(ScoresByPair::default());
        };
        let (scores, missing) = notes::score_pairs(folder, pairs)?;
        for card in missing {
            console::note(format!(
                "note: {} has no {card}: its metric is not computed",
                folder.display()
            ));
        }
        Ok(scores)
    }
}

/// The device.
#[derive(Clone, Debug, Args)]
pub struct DeviceFlags {
    /// Device: cpu, cuda, metal, or several GPUs as cuda:0,cuda:1
    #[arg(
        long,
        help_heading = "Device",
        env = "WARDROUND_DEVICE",
        default_value = "cpu",
        value_name = "DEVICE"
    )]
    pub device: String,
    /// Number of CPU threads [default: one per core]
    #[arg(long, help_heading = "Device", env = "WARDROUND_THREADS", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

impl DeviceFlags {
    pub fn hardware(&self) -> Hardware {
        Hardware {
            device: self.device.clone(),
            threads: self.threads.map(usize::from),
            ..Hardware::default()
        }
    }

    /// The device of a command that runs a single model.
    pub fn one_device(&self) -> Result<Device, Failure> {
        one_device(&self.hardware())
    }
}

fn one_device(hardware: &Hardware) -> Result<Device, Failure> {
    let mut devices = hardware.devices()?;
    match (devices.pop(), devices.is_empty()) {
        (Some(device), true) => Ok(device),
        _ => Err(Failure::usage(
            format!("one model runs on one device, not on `{}`", hardware.device),
            "name one device",
        )),
    }
}

/// The device and the precision. Only --dtype, --quant, --kv-dtype and --fast change the output.
#[derive(Clone, Debug, Args)]
pub struct ComputeFlags {
    #[command(flatten)]
    pub on: DeviceFlags,
    /// Data type of the weights: auto (as stored), f32 or bf16
    #[arg(long, help_heading = "Device", default_value = "auto")]
    pub dtype: WantedType,
    /// Weight quantisation on load: none, q8_0 (8.5 bits per weight), int8 (8; CPU), q4_k (5.3)
    #[arg(long, help_heading = "Device", default_value = "none", value_name = "FORMAT")]
    pub quant: Quantisation,
    /// Data type of keys and values: auto (bf16, but f32 beside unquantised f32 weights on the CPU), f32 or bf16
    #[arg(long, help_heading = "Device", default_value = "auto", value_name = "TYPE")]
    pub kv_dtype: WantedType,
    /// Faster matrix products on a GPU; output is no longer reproducible byte for byte
    #[arg(long, help_heading = "Device")]
    pub fast: bool,
}

impl ComputeFlags {
    pub fn hardware(&self) -> Hardware {
        Hardware {
            dtype: self.dtype,
            quantisation: self.quant,
            kv_dtype: self.kv_dtype,
            fast: self.fast,
            ..self.on.hardware()
        }
    }

    /// The device of a command that runs a single model, with --fast.
    pub fn one_device(&self) -> Result<Device, Failure> {
        one_device(&self.hardware())
    }

    /// The precision of weights and KV cache.
    pub fn weights(&self) -> WantedPrecision {
        self.hardware().precision()
    }
}

/// The machine that a panel runs on. Only --dtype, --quant, --kv-dtype, --fast and --context change the output.
#[derive(Clone, Debug, Args)]
pub struct MachineFlags {
    #[command(flatten)]
    pub compute: ComputeFlags,
    /// Maximum batch size: sequences that each model runs at once [default: 16; on a GPU whose memory holds them, up to 128]
    #[arg(long, help_heading = "Device", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub max_batch: Option<u16>,
    /// Speculative decoding: tokens to draft per step by prompt lookup [default: 0]
    #[arg(long, help_heading = "Device", value_name = "N", value_parser = clap::value_parser!(u16).range(..=MOST_DRAFT))]
    pub draft: Option<u16>,
    /// Context length in tokens: prompt and completion together [default: 16384]
    #[arg(long, help_heading = "Device", value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub context: Option<u32>,
    /// KV cache size in tokens, per model [default: what memory allows]
    #[arg(long, help_heading = "Device", value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub kv_tokens: Option<u32>,
    /// Fraction of the memory left after loading weights to use for the KV cache [default: 0.8]
    #[arg(long, help_heading = "Device", value_name = "FRACTION", value_parser = fraction, conflicts_with = "kv_tokens")]
    pub kv_fraction: Option<f64>,
    #[command(flatten)]
    pub remote: RemoteFlags,
}

/// The requests to members behind an endpoint, openai:MODEL@URL.
#[derive(Clone, Debug, Default, Args)]
pub struct RemoteFlags {
    /// Timeout of a request in seconds [default: 600]
    #[arg(long, help_heading = "Remote endpoints", value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub remote_timeout: Option<u32>,
    /// Attempts per request, retries included [default: 6]
    #[arg(long, help_heading = "Remote endpoints", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub remote_attempts: Option<u32>,
    /// Maximum concurrent requests per endpoint [default: 16]
    #[arg(long, help_heading = "Remote endpoints", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub remote_in_flight: Option<u16>,
    /// Maximum requests per minute and endpoint [default: no limit]
    #[arg(long, help_heading = "Remote endpoints", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub remote_rate: Option<u32>,
}

impl RemoteFlags {
    pub fn options(&self) -> RemoteOptions {
        let default = RemoteOptions::default();
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
        RemoteOptions {
            timeout: self.remote_timeout.map_or(default.timeout, seconds),
            attempts: self.remote_attempts.unwrap_or(default.attempts),
            max_in_flight: self.remote_in_flight.map_or(default.max_in_flight, usize::from),
            requests_per_minute: self.remote_rate,
            ..default
        }
    }
}

impl MachineFlags {
    pub fn hardware(&self) -> Hardware {
        Hardware {
            max_batch: self.max_batch.map(usize::from),
            draft: self.draft.map(usize::from),
            context: self.context.map(|tokens| tokens as usize),
            kv: KvBudget {
                tokens: self.kv_tokens.map(|tokens| tokens as usize),
                fraction: self.kv_fraction,
                at_start: false,
            },
            remote: self.remote.options(),
            ..self.compute.hardware()
        }
    }
}

fn fraction(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    number
        .filter(|number| *number > 0.0 && *number <= 1.0)
        .ok_or_else(|| "expected a number above 0, up to 1".to_owned())
}

/// How malformed rows of a data file are handled.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct RowFlags {
    /// Skip malformed rows, and list them in the plan and the report; without it such a file is refused
    #[arg(long, help_heading = "Data")]
    pub skip_bad_rows: bool,
}

impl RowFlags {
    pub fn bad_rows(self) -> BadRows {
        BadRows::skip_where(self.skip_bad_rows)
    }
}

/// The items that run.
#[derive(Clone, Debug, Default, Args)]
pub struct SubsetFlags {
    /// Maximum number of items: the first N, or a random sample with --sample-seed
    #[arg(long, help_heading = "Data", value_name = "N")]
    pub limit: Option<usize>,
    /// Random seed of the sample that --limit takes
    #[arg(long, help_heading = "Data", value_name = "S", requires = "limit")]
    pub sample_seed: Option<u64>,
    /// File with the ids of the items to run, one per line
    #[arg(long, help_heading = "Data", value_name = "FILE", conflicts_with = "limit")]
    pub ids: Option<PathBuf>,
}

impl SubsetFlags {
    pub fn subset(self) -> Subset {
        match (self.ids, self.limit, self.sample_seed) {
            (Some(path), _, _) => Subset::IdsFile { path },
            (None, Some(limit), Some(seed)) => Subset::Sample { limit, seed },
            (None, Some(limit), None) => Subset::First { limit },
            (None, None, _) => Subset::All,
        }
    }
}
