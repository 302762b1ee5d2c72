//! `keywords`: what a correction of each wrong note must name, by a model that compares the wrong sentence with the right one (MedGuards, A.1).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::channel;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::interrupt;
use super::options::{HubFlags, MachineFlags, RowFlags, SubsetFlags};
use crate::cli::exit::Failure;
use crate::console;
use crate::data::{self, Format, Item, ItemKind, NoteError};
use crate::experiment::models::Models;
use crate::experiment::private_file;
use crate::experiment::spec::{DEFAULT_PANEL, DEFAULT_SEED};
use crate::panel::{DecodingMode, Member, Panel, PanelError, SamplingChoice};
use crate::prompts::{PromptSet, fill};
use crate::record::{Parse, Stage};
use crate::systems::case::{Record, Step, Task};
use crate::systems::decoding::{Decoding, Shape};
use crate::systems::form;
use crate::systems::in_flight::run_all;
use crate::systems::messages::messages;
use crate::systems::reading::reply::Reply;

/// Keywords of a note at most.
const MOST: usize = 8;
const AGENT: &str = "keywords";

/// What a model names; any JSON.
#[derive(Serialize)]
struct Reading {
    keywords: Value,
}

impl Record for Reading {}

#[derive(Debug, Args)]
pub struct Keywords {
    /// The notes, with their gold
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// What the file is
    #[arg(long, value_enum)]
    format: Format,
    #[command(flatten)]
    subset: SubsetFlags,
    #[command(flatten)]
    rows: RowFlags,
    /// The model
    #[arg(long, value_name = "MODEL", default_value = DEFAULT_PANEL[0])]
    panel: String,
    /// Random seed [default: 42]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// The file to write, which `--keywords` takes
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// A directory of prompts that override the built-in ones
    #[arg(long, value_name = "DIR")]
    prompts: Option<PathBuf>,
    #[command(flatten)]
    machine: MachineFlags,
    #[command(flatten)]
    hub: HubFlags,
}

impl Keywords {
    pub fn run(self) -> Result<(), Failure> {
        if self.format.kind() != ItemKind::Notes {
            return Err(Failure::usage(
                format!("keywords are of notes, and {} holds questions", self.format),
                "the formats of notes are medec, mederrbench and notes",
            ));
        }
        let out = self.out.clone();
        let prompts = match &self.prompts {
            Some(directory) => PromptSet::with_directory(directory)?,
            None => PromptSet::embedded(),
        };
        let template = prompts.get("keywords/keywords", &["wrong", "corrected"])?;
        let mut dataset = data::load_with(&self.data, self.format, self.rows.bad_rows())?;
        dataset.items = self.subset.subset().choose(dataset.items)?;
        let (hardware, hub) = (self.machine.hardware(), self.hub.options(true)?);
        let models = Models::describe([&self.panel], &hardware, &hub)?;
        let stop = interrupt::watch();
        let decoding = Decoding::default();
        let members = models.start()?.into_iter().map(|source| Member {
            agent: AGENT.to_owned(),
            source,
            sampling: SamplingChoice::default(),
        });
        let panel = Panel {
            members: members.collect(),
            // What is kept is the file.
            recorder: Box::new(channel().0),
            run_seed: self.seed.unwrap_or(DEFAULT_SEED),
            decoding: DecodingMode::Grammar,
            thinking: decoding.thinking,
            max_tokens: decoding.max_tokens,
            ignore_eos: false,
            stop: stop.clone(),
            retriever: None,
            on_call: Box::new(|_| {}),
        };
        let name = &dataset.name;
        let items = dataset.items.iter();
        let wrong: Vec<(&Item, &NoteError)> = items
            .filter_map(|item| Some((item, item.note()?.gold.as_ref()?.error.as_ref()?)))
            .collect();
        let total = wrong.len();
        let (teller, found) = channel();
        let threads = 2 * hardware.max_batch();
        run_all(wrong, threads, &stop, |(item, error)| {
            let task = Task { panel: &panel, dataset: name, item, run: 1 };
            let case = task.note()?;
            let values = [("wrong", error.sentence.as_str()), ("corrected", &error.correction)];
            let decoding = Decoding {
                record_chars: error.correction.chars().count().max(1),
                ..Decoding::default()
            };
            let keywords = form::array(decoding.string(), 1, MOST);
            let step = Step {
                stage: Stage::Aside,
                round: 0,
                purpose: "keywords",
                shape: Shape::record(vec![("keywords", keywords)]),
            };
            let call = case.call(&step, 0, AGENT, messages("", fill(&template, &values)));
            let asked = case.ask(call, |text, finish_reason| {
                let reply = Reply::read(text, finish_reason, "keywords");
                let keywords = reply.get("keywords").clone();
                let parse = reply.parse.if_read(keywords.is_array());
                (Reading { keywords }, parse)
            })?;
            let named = match asked.call.parse {
                Parse::Fallback | Parse::Refused | Parse::Unread => Vec::new(),
                Parse::Ok | Parse::Repaired => named(&asked.value.keywords, &error.correction),
            };
            // The receiver outlives the jobs.
            let _ = teller.send((item.id().to_owned(), named));
            Ok::<_, PanelError>(())
        })?;
        if stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(PanelError::Interrupted.into());
        }
        drop(teller);
        let found: BTreeMap<String, Vec<String>> = found.into_iter().collect();
        let empty = found.values().filter(|named| named.is_empty()).count();
        private_file::write(&out, format!("{:#}\n", json!(found)).as_bytes())?;
        console::note(format!(
            "{total} wrong notes; of {empty} no keyword stands in the gold correction"
        ));
        Ok(console::say(out.display().to_string())?)
    }
}

/// Those that the gold correction has, each once: nobody can be asked for others.
fn named(keywords: &Value, correction: &str) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for keyword in keywords.as_array().into_iter().flatten() {
        let keyword = keyword.as_str().unwrap_or_default().trim();
        if !keyword.is_empty()
            && correction.contains(keyword)
            && !named.iter().any(|one| one == keyword)
        {
            named.push(keyword.to_owned());
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_stand_in_the_gold_correction_each_once() {
        let given = json!(["artesunate", " artesunate", "aspirin", "", 7, "IV"]);
        assert_eq!(named(&given, "Give IV artesunate."), ["artesunate", "IV"]);
        assert!(named(&json!("artesunate"), "Give artesunate.").is_empty());
    }
}
