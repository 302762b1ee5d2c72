//! `doctor`: shows what this machine and this build can do, for a bug report or before a long run.

use clap::Args;

use super::options::HubFlags;
use super::sandboxed::Paths;
use crate::cli::exit::Failure;
use crate::console;
use crate::model::available_memory;
use crate::ops::{Candle, Cpu, Cuda};
use crate::panel::memory::gibibytes;

/// The features that a build may have, and whether this one has them.
const FEATURES: [(&str, bool); 8] = [
    ("airgap", cfg!(feature = "airgap")),
    ("candle-cuda", cfg!(feature = "candle-cuda")),
    ("cuda", cfg!(feature = "cuda")),
    ("cuda-emulated", cfg!(feature = "cuda-emulated")),
    ("hub", cfg!(feature = "hub")),
    ("metal", cfg!(feature = "metal")),
    ("remote", cfg!(feature = "remote")),
    ("serve", cfg!(feature = "serve")),
];

#[derive(Debug, Args)]
pub struct Doctor {
    #[command(flatten)]
    hub: HubFlags,
}

impl Doctor {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        let options = self.hub.options(true)?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let features = FEATURES.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| *name);
        // What the build was told, where it was told.
        let told = |value: Option<&str>| value.unwrap_or("not stated").to_owned();
        let mut rows = vec![
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("commit", told(option_env!("WARDROUND_COMMIT"))),
            ("rustc", env!("WARDROUND_RUSTC").to_owned()),
            ("target", env!("WARDROUND_TARGET").to_owned()),
            ("profile", env!("WARDROUND_PROFILE").to_owned()),
            ("features", features.collect::<Vec<_>>().join(", ")),
            ("epoch", told(option_env!("SOURCE_DATE_EPOCH"))),
            ("device", format!("cpu: {}, {threads} threads", Cpu::new(threads)?.describe())),
        ];
        let gpus = [Cuda::describe_all(), Candle::describe_all()].concat();
        let missing = gpus.is_empty().then(|| Cuda::open(0).err()).flatten();
        rows.extend(gpus.into_iter().map(|gpu| ("device", gpu)));
        rows.extend(missing.map(|reason| ("device", reason.to_string())));
        rows.push(("memory", format!("{} free", gibibytes(available_memory()))));
        let connections = match options.fetch_refusal() {
            Some(reason) => format!("none: {reason}"),
            None => format!("to {} when a model is missing", options.endpoint),
        };
        rows.push(("network", connections));
        rows.push(("cache", options.cache()?.display().to_string()));
        // Last, for it stays.
        let held = given.enter()?.unwrap_or_else(|| "off".to_owned());
        rows.push(("sandbox", held.trim_start_matches("sandbox: ").to_owned()));
        let mut lines = rows.into_iter().map(|(name, text)| format!("{name:10} {text}"));
        Ok(lines.try_for_each(console::say)?)
    }
}
