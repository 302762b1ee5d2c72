//! What a run computes on, as flags say it. Of it only the number formats and the context change an answer.

use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;
use serde::{Deserialize, Serialize};

use crate::diagnosis::Failure;
use crate::model::{WantedPrecision, WantedType};
use crate::ops::{Device, OpsError, Quantisation};
use crate::panel::memory::Limits;

/// Tokens of a prompt and its completion together.
pub const DEFAULT_CONTEXT: u32 = 16_384;
/// Tokens that a sequence may draft a step.
pub const MOST_DRAFT: i64 = 31;

/// The device.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct DeviceChoice {
    /// Device: cpu, cuda, candle, candle-cuda, metal; several GPUs: cuda:0,cuda:1
    #[arg(
        long,
        help_heading = "Device",
        env = "WARDROUND_DEVICE",
        default_value = "cpu",
        value_name = "DEVICE"
    )]
    pub device: String,
    /// Number of CPU threads [default: one per core]
    #[arg(long, help_heading = "Device", env = "WARDROUND_THREADS", value_name = "N", value_parser = clap::value_parser!(u16).range(1..).map(usize::from))]
    pub threads: Option<usize>,
}

/// The device and the precision. Only --dtype, --quant and --kv-dtype change the output.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default)]
pub struct Compute {
    #[command(flatten)]
    #[serde(skip)]
    pub on: DeviceChoice,
    /// Data type of the weights: auto (as stored), f32 or bf16
    #[arg(long, help_heading = "Device", default_value = "auto")]
    #[serde(skip_serializing_if = "is_open")]
    pub dtype: WantedType,
    /// Weight quantisation on load: none, q8_0, int8 (CPU) or q4_k
    #[arg(long, help_heading = "Device", default_value = "none", value_name = "FORMAT")]
    pub quant: Quantisation,
    /// Data type of the KV cache: auto, f32 or bf16
    #[arg(long, help_heading = "Device", default_value = "auto", value_name = "TYPE")]
    #[serde(skip_serializing_if = "is_open")]
    pub kv_dtype: WantedType,
}

/// The machine that a panel runs on. Only --dtype, --quant, --kv-dtype and --context change the output: plans and recipes keep them,
/// the rest each machine says for itself.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default)]
pub struct Hardware {
    #[command(flatten)]
    #[serde(flatten)]
    pub compute: Compute,
    /// Maximum batch size: sequences that each model runs at once [default: 16; on a GPU whose memory holds them, up to 128]
    #[arg(long, help_heading = "Device", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024).map(usize::from))]
    #[serde(skip)]
    pub max_batch: Option<usize>,
    /// Speculative decoding: tokens to draft from the prompt [default: 0]
    #[arg(long, help_heading = "Device", value_name = "N", value_parser = clap::value_parser!(u16).range(..=MOST_DRAFT).map(usize::from))]
    #[serde(skip)]
    pub draft: Option<usize>,
    /// Context length: tokens of prompt and completion [default: 16384]
    #[arg(long, help_heading = "Device", value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..).map(|tokens| tokens as usize))]
    pub context: Option<usize>,
    /// KV cache size in tokens, per model [default: what memory allows]
    #[arg(long, help_heading = "Device", value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..).map(|tokens| tokens as usize))]
    #[serde(skip)]
    pub kv_tokens: Option<usize>,
    /// See [`Limits::serves`].
    #[arg(skip)]
    #[serde(skip)]
    pub serves: bool,
    /// Attempts per request to an endpoint, retries included [default: 6]
    #[arg(long, help_heading = "Remote endpoints", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    #[serde(skip)]
    pub remote_attempts: Option<u32>,
    /// Store of calls: take from it what it holds, and add the rest
    #[arg(long, help_heading = "Store of calls", value_name = "DIR")]
    #[serde(skip)]
    pub calls: Option<PathBuf>,
}

impl Default for DeviceChoice {
    fn default() -> DeviceChoice {
        DeviceChoice { device: "cpu".to_owned(), threads: None }
    }
}

impl DeviceChoice {
    /// # Errors
    /// A device that this machine or this build does not have.
    pub fn devices(&self) -> Result<Vec<Device>, OpsError> {
        Device::open(&self.device, self.threads())
    }

    /// CPU threads.
    pub fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(cores)
    }

    /// Where encoders and rerankers run beside models: on the first device, or on the CPU where that is one that cannot run them.
    pub fn of_encoders(&self, devices: &[Device]) -> Result<Device, OpsError> {
        match devices.first() {
            Some(device @ (Device::Cpu(_) | Device::Cuda(_))) => Ok(device.clone()),
            _ => Device::cpu(self.threads()),
        }
    }

    /// The device of what runs a single model.
    pub fn one_device(&self) -> Result<Device, Failure> {
        let mut devices = self.devices()?;
        match (devices.pop(), devices.is_empty()) {
            (Some(device), true) => Ok(device),
            _ => Err(Failure::usage(
                format!("one model runs on one device, not on `{}`", self.device),
                "name one device",
            )),
        }
    }
}

impl Compute {
    /// Of weights and of keys and values.
    pub fn precision(&self) -> WantedPrecision {
        WantedPrecision { dtype: self.dtype, quantisation: self.quant, kv: self.kv_dtype }
    }
}

impl Hardware {
    pub fn limits(&self) -> Limits {
        Limits {
            sequences: self.max_batch,
            draft: self.draft(),
            kv_tokens: self.kv_tokens,
            serves: self.serves,
        }
    }

    /// Refuses a store of calls where every call must be computed.
    pub fn refuse_calls(&self, why: &str) -> Result<(), Failure> {
        match self.calls {
            None => Ok(()),
            Some(_) => Err(Failure::usage(format!("--calls: {why}"), "leave --calls out")),
        }
    }

    pub fn draft(&self) -> usize {
        self.draft.unwrap_or(0)
    }

    pub fn context(&self) -> usize {
        self.context.unwrap_or(DEFAULT_CONTEXT as usize)
    }

    /// The same with what a plan or a recipe keeps, where no flag says otherwise.
    pub fn with_kept(mut self, kept: &Hardware) -> Hardware {
        let (own, kept_compute) = (&mut self.compute, &kept.compute);
        if is_open(&own.dtype) {
            own.dtype = kept_compute.dtype;
        }
        if is_open(&own.kv_dtype) {
            own.kv_dtype = kept_compute.kv_dtype;
        }
        if own.quant.is_none() {
            own.quant = kept_compute.quant;
        }
        self.context = self.context.or(kept.context);
        self
    }

    /// Whether nothing of it is kept.
    pub fn is_plain(&self) -> bool {
        Hardware::default().with_kept(self) == Hardware::default()
    }
}

fn is_open(wanted: &WantedType) -> bool {
    *wanted == WantedType::Auto
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::StoredType;

    #[test]
    fn a_recipe_goes_on_with_the_flags_that_it_was_begun_with() {
        let mut begun = Hardware { context: Some(4096), max_batch: Some(3), ..Hardware::default() };
        begun.compute.dtype = WantedType::Exactly(StoredType::Bf16);
        begun.compute.quant = Quantisation::Q8_0;
        let text = toml::to_string(&begun).unwrap();
        assert_eq!(text, "dtype = \"bf16\"\nquant = \"q8_0\"\ncontext = 4096\n");
        let read: Hardware = toml::from_str(&text).unwrap();
        assert_eq!(read, Hardware { max_batch: None, ..begun });
        assert_eq!(Hardware::default().with_kept(&read), read);
        let flag = Hardware { context: Some(8192), ..Hardware::default() };
        assert_eq!(flag.with_kept(&read).context, Some(8192));
        assert!(Hardware { max_batch: Some(3), ..Hardware::default() }.is_plain());
        assert!(!read.is_plain());
    }
}
