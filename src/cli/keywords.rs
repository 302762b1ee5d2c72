//! `keywords`: what a correction of each wrong note must name, by a model that compares the wrong sentence with the right one (MedGuards, A.1).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::channel;

use clap::Args;
use serde_json::{Value, json};

use super::interrupt;
use super::options::{HubFlags, MachineFlags, SubsetFlags};
use super::order::{Order, Share};
use super::run::{DEFAULT_PANEL, DEFAULT_SEED};
use crate::cli::exit::Failure;
use crate::console;
use crate::data::{Format, Item, ItemKind, NoteError};
use crate::experiment::private_file;
use crate::panel::PanelError;
use crate::panel::recorder::Recorder;
use crate::prompts::{PromptSet, fill};
use crate::record::{Parse, Stage};
use crate::systems::SystemConfig;
use crate::systems::case::{Case, messages};
use crate::systems::decoding::Decoding;
use crate::systems::form;
use crate::systems::in_flight::run_all;
use crate::systems::reply::Reply;
use crate::systems::step::Step;

/// Keywords of a note at most.
const MOST: usize = 8;
const AGENT: &str = "keywords";

#[derive(Debug, Args)]
pub struct Keywords {
    /// The notes, with their gold
    #[arg(long, env = "WARDROUND_DATA_FILE", value_name = "FILE")]
    data: PathBuf,
    /// What the file is
    #[arg(long, env = "WARDROUND_FORMAT", value_enum)]
    format: Format,
    #[command(flatten)]
    subset: SubsetFlags,
    /// The model
    #[arg(long, env = "WARDROUND_PANEL", value_name = "MODEL", default_value = DEFAULT_PANEL[0])]
    panel: String,
    /// What every draw derives from [default: 42]
    #[arg(long, env = "WARDROUND_SEED", value_name = "S")]
    seed: Option<u64>,
    /// The file to write, which `--keywords` takes
    #[arg(long, env = "WARDROUND_OUT", value_name = "FILE")]
    out: PathBuf,
    /// A directory of prompts that override the built-in ones
    #[arg(long, env = "WARDROUND_PROMPTS", value_name = "DIR")]
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
        let template = prompts.get("keywords/keywords.txt", &["wrong", "corrected"])?;
        let order = Order {
            data: self.data,
            format: self.format,
            subset: self.subset.subset(),
            share: Share::All,
            runs: 1,
            panel: vec![self.panel],
            slots: BTreeMap::new(),
            // One seat, and notes.
            protocol: SystemConfig::named("base-llm")?,
            seed: self.seed.unwrap_or(DEFAULT_SEED),
            free: false,
            prompts: self.prompts,
            machine: self.machine,
            max_in_flight: None,
            hub: self.hub.options(true)?,
        };
        let inputs = order.read()?;
        let crew = order.crew()?;
        let prepared = order.prepare(inputs, &crew)?;
        // What is kept is the file.
        let recorder = Recorder::Replay(channel().0);
        let stop = interrupt::watch();
        let started = prepared.start(&crew.start()?, recorder, stop.clone(), |_| {})?;
        let dataset = &started.plan.dataset.name;
        let wrong: Vec<(&crate::data::Note, &NoteError)> = started
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Note(note) => Some((note, note.gold.as_ref()?.error.as_ref()?)),
                Item::Question(_) => None,
            })
            .collect();
        let total = wrong.len();
        let (teller, found) = channel();
        let threads = started.plan.engine.max_in_flight;
        run_all(wrong, threads, &stop, |(note, error)| {
            let case = Case::of_note(&started.panel, dataset, note, 1);
            let values = [
                ("wrong", error.sentence.as_str()),
                ("corrected", &error.correction),
            ];
            let decoding = Decoding {
                record_chars: error.correction.chars().count().max(1),
                ..Decoding::default()
            };
            let keywords = form::array(decoding.string(), 1, MOST);
            let step = Step {
                stage: Stage::Aside,
                round: 0,
                purpose: "keywords",
                shape: decoding.record(vec![("keywords", keywords)]),
            };
            let ask = step.ask(0, AGENT, messages("", fill(template, &values)));
            let call = case.ask(ask, &|text, finish_reason| {
                let reply = Reply::read(text, finish_reason, "keywords");
                (json!({"keywords": reply.get("keywords")}), reply.parse)
            })?;
            let named = match call.parse {
                Parse::Fallback | Parse::Refused => Vec::new(),
                Parse::Ok | Parse::Repaired => named(&call.record["keywords"], &error.correction),
            };
            // The receiver outlives the jobs.
            let _ = teller.send((note.id.clone(), named));
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
