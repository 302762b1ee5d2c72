//! What a run computes on. Of it only the number formats, `fast` and the context change an answer.

use crate::model::{WantedPrecision, WantedType};
use crate::ops::{Device, OpsError, Quantisation};
use crate::panel::memory::KvBudget;
use crate::panel::remote::RemoteOptions;

/// Tokens of a prompt and its completion together.
pub const DEFAULT_CONTEXT: usize = 16_384;

#[derive(Clone)]
pub struct Hardware {
    /// `cpu`, `cuda`, several GPUs as `cuda:0,cuda:1`, or `metal`.
    pub device: String,
    /// `None`: one per core.
    pub threads: Option<usize>,
    /// How weights are kept.
    pub dtype: WantedType,
    pub quantisation: Quantisation,
    /// How keys and values are kept.
    pub kv_dtype: WantedType,
    /// Whether products may be summed in the fastest order: no run can then be repeated byte for byte.
    pub fast: bool,
    /// Sequences that each engine runs at once; `None`: 16, on GPUs what their memory holds.
    pub max_batch: Option<usize>,
    /// Tokens that each sequence drafts a step.
    pub draft: Option<usize>,
    pub context: Option<usize>,
    pub kv: KvBudget,
    /// Whether engines have room for log-probabilities of prompts and of dictated tokens.
    pub known_logprobs: bool,
    /// How members behind an endpoint are asked.
    pub remote: RemoteOptions,
}

impl Default for Hardware {
    fn default() -> Hardware {
        Hardware {
            device: "cpu".to_owned(),
            threads: None,
            dtype: WantedType::Auto,
            quantisation: Quantisation::None,
            kv_dtype: WantedType::Auto,
            fast: false,
            max_batch: None,
            draft: None,
            context: None,
            kv: KvBudget::default(),
            known_logprobs: false,
            remote: RemoteOptions::default(),
        }
    }
}

impl Hardware {
    pub fn precision(&self) -> WantedPrecision {
        WantedPrecision { dtype: self.dtype, quantisation: self.quantisation, kv: self.kv_dtype }
    }

    /// # Errors
    /// A device that this machine or this build does not have.
    pub fn devices(&self) -> Result<Vec<Device>, OpsError> {
        let mut devices = Device::open(&self.device, self.threads())?;
        if self.fast {
            devices.iter_mut().try_for_each(Device::set_fast_math)?;
        }
        Ok(devices)
    }

    /// CPU threads.
    pub fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(cores)
    }

    pub fn draft(&self) -> usize {
        self.draft.unwrap_or(0)
    }

    pub fn context(&self) -> usize {
        self.context.unwrap_or(DEFAULT_CONTEXT)
    }
}
