//! `doctor`: shows what this machine and this build can do, for a bug report or before a long run.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::json;

use super::models::state;
use super::options::HubFlags;
use super::sandboxed::Paths;
use crate::build_info::BuildInfo;
use crate::cli::exit::Failure;
use crate::console;
use crate::hub::Card;
use crate::model::available_memory;
use crate::ops::{Cpu, Cuda, Metal};
use crate::panel::memory::gibibytes;

#[derive(Debug, Args)]
pub struct Doctor {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    hub: HubFlags,
}

impl Doctor {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        let options = self.hub.options(true)?;
        let build = BuildInfo::own();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let fetching = if cfg!(feature = "hub") { "can fetch models" } else { "no HTTP stack" };
        let changed = if build.dirty { ", changed" } else { "" };
        let commit = build.commit.as_deref().unwrap_or("not stated");
        let epoch =
            build.source_date_epoch.map_or("not stated".to_owned(), |epoch| epoch.to_string());
        let mut rows = vec![
            ("version", format!("{} ({fetching})", build.version)),
            ("commit", format!("{commit}{changed}")),
            ("rustc", build.rustc.clone()),
            ("target", build.target.clone()),
            ("profile", build.profile.clone()),
            ("features", build.features.join(", ")),
            ("epoch", epoch),
            ("device", format!("cpu: {}, {threads} threads", Cpu::new(threads)?.describe())),
        ];
        let gpus = [Cuda::describe_all(), Metal::describe_all()].concat();
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
        let here = options.local();
        rows.extend(
            Card::all()
                .iter()
                .map(|card| ("model", format!("{}: {}", card.name, state(card, &here)))),
        );
        // Last, for it stays.
        let held = given.enter()?.unwrap_or_else(|| "off".to_owned());
        rows.push(("sandbox", held.trim_start_matches("sandbox: ").to_owned()));
        if !self.json {
            let mut lines = rows.into_iter().map(|(name, text)| format!("{name:10} {text}"));
            return Ok(lines.try_for_each(console::say)?);
        }
        let mut told: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (name, text) in rows {
            told.entry(name).or_default().push(text);
        }
        Ok(console::say(json!({ "build": build, "here": told }).to_string())?)
    }
}
