//! Asks one model once about each note of a file; shared by `data keywords` and `data reasons`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;

use clap::Args;

use super::interrupt;
use super::options::{HubFlags, refuse_existing};
use super::sandboxed::Paths;
use crate::cli::exit::Failure;
use crate::console;
use crate::data::{self, Format, Item, ItemKind, Note};
use crate::experiment::hardware::Hardware;
use crate::experiment::models::Models;
use crate::experiment::spec::{DEFAULT_PANEL, DEFAULT_SEED, formats};
use crate::panel::{CallSettings, DecodingMode, Member, Panel, PanelError, SamplingChoice};
use crate::record::CallLine;
use crate::systems::case::{Case, Task};
use crate::systems::decoding::MAX_TOKENS;
use crate::systems::in_flight::run_all;

#[derive(Debug, Args)]
pub struct AskFlags {
    /// The notes, with their gold
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// Format of the file
    #[arg(long, value_enum)]
    format: Format,
    /// The model
    #[arg(long, value_name = "MODEL", default_value = DEFAULT_PANEL[0])]
    panel: String,
    /// Maximum tokens per completion
    #[arg(long, value_name = "N", default_value_t = MAX_TOKENS)]
    max_tokens: usize,
    /// The new file to write
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    #[command(flatten)]
    hardware: Hardware,
    #[command(flatten)]
    hub: HubFlags,
}

impl AskFlags {
    pub fn within(&self, given: Paths) -> Result<Paths, Failure> {
        given.store(&self.hardware.calls)?.write_beside(&self.out)
    }

    /// The result of `ask` on each wanted note, by the note's id.
    pub fn ask<T: Send>(
        &self,
        agent: &str,
        wanted: fn(&Note) -> bool,
        ask: impl Fn(&Case<'_, Note>) -> Result<T, PanelError> + Sync,
    ) -> Result<BTreeMap<String, T>, Failure> {
        refuse_existing(&self.out)?;
        if self.format.kind() != ItemKind::Notes {
            return Err(Failure::usage(
                format!("{agent} needs notes, and {} files hold questions", self.format),
                &format!("the formats of notes are {}", formats(ItemKind::Notes)),
            ));
        }
        let dataset = data::load(&self.data, self.format)?;
        for notice in &dataset.notices {
            console::note(format!("note: {notice}"));
        }
        let (hardware, hub) = (&self.hardware, self.hub.options(true)?);
        let models = Models::describe([&self.panel], hardware, &hub, |_| Ok(Vec::new()))?;
        let at_once = 2 * models.max_batch(hardware);
        let stop = interrupt::watch();
        let members = models.start()?.models.into_iter().map(|source| Member {
            agent: agent.to_owned(),
            source,
            sampling: SamplingChoice::default(),
        });
        let panel = Panel {
            members: members.collect(),
            // The calls are not recorded.
            recorder: Box::new(|_: &CallLine| {}),
            run_seed: DEFAULT_SEED,
            settings: CallSettings {
                decoding: DecodingMode::Grammar,
                thinking: Some(false),
                max_tokens: Some(self.max_tokens),
                sends_seed: true,
                ignore_eos: false,
            },
            salt: None,
            stop: stop.clone(),
            retriever: None,
        };
        let items = dataset.items.iter();
        let items: Vec<&Item> = items.filter(|item| item.note().is_some_and(wanted)).collect();
        let (sender, found) = channel();
        run_all(items, at_once, &stop, |item| {
            let task = Task { panel: &panel, dataset: &dataset.name, item, run: 1 };
            let answer = ask(&task.note()?)?;
            // The receiver outlives the jobs.
            let _ = sender.send((item.id().to_owned(), answer));
            Ok::<_, PanelError>(())
        })?;
        if stop.load(Ordering::Relaxed) {
            return Err(PanelError::Interrupted.into());
        }
        drop(sender);
        Ok(found.into_iter().collect())
    }
}
