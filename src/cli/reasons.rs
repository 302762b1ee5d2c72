//! `data reasons`: has a model explain why each exemplar is right or wrong; it is given the gold annotation and must not mention it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;

use clap::{Args, ValueEnum};

use super::options::{HubFlags, refuse_existing};
use super::sandboxed::Paths;
use crate::cli::exit::{Failure, on_interrupt};
use crate::console;
use crate::data::{self, Format, Item, ItemKind, Note};
use crate::experiment::exemplars::ReasonsFile;
use crate::experiment::hardware::Hardware;
use crate::experiment::models::Models;
use crate::experiment::spec::{DEFAULT_PANEL, DEFAULT_SEED, formats};
use crate::experiment::whole_file;
use crate::panel::recorder::Telling;
use crate::panel::{CallSettings, DecodingMode, Member, Panel, PanelError, SamplingChoice};
use crate::prompts::{PromptSet, fill};
use crate::record::{Parse, Stage, count};
use crate::systems::case::{Case, Step, Task};
use crate::systems::decoding::{Decoding, MAX_TOKENS};
use crate::systems::in_flight::run_all;
use crate::systems::messages::{messages, numbered};
use crate::systems::reading::reply::passage;

const AGENT: &str = "reasons";

/// Style of the reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Style {
    /// What follows "contains an error because", as knowlab shows it
    Reason,
    /// As a physician solves a case, as IKIM's chains of thought
    Solve,
}

#[derive(Debug, Args)]
pub struct Reasons {
    /// Style of the reasons
    #[arg(long, value_enum)]
    style: Style,
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
    out: PathBuf,
    #[command(flatten)]
    hardware: Hardware,
    #[command(flatten)]
    hub: HubFlags,
}

/// The prompts, and what they say of a note's gold.
struct Asking {
    template: String,
    wrong: String,
    right: String,
}

impl Asking {
    fn of(style: &str) -> Result<Asking, Failure> {
        let prompts = PromptSet::embedded();
        Ok(Asking {
            template: prompts.get(&format!("reasons/{style}"), &["note", "gold"])?,
            wrong: prompts.get("reasons/gold-wrong", &["id", "wrong", "corrected"])?,
            right: prompts.get("reasons/gold-right", &[])?,
        })
    }

    /// A reason that could be read and does not mention the gold.
    fn ask(&self, case: &Case<'_, Note>) -> Result<Option<String>, PanelError> {
        let values = [("note", numbered(case.item)), ("gold", self.gold(case.item))];
        let step = Step::new(Stage::Aside, 0, "reason", Decoding::default().passage());
        let call = case.call(&step, 0, AGENT, messages("", fill(&self.template, &values)));
        let asked = case.ask(call, |text, _| passage(text))?;
        let is_read = !matches!(asked.call.parse, Parse::Refused | Parse::Unread);
        Ok(Some(asked.value.said).filter(|text| is_read && !mentions_gold(text)))
    }

    fn gold(&self, note: &Note) -> String {
        let Some(error) = note.error() else { return self.right.clone() };
        let id = error.sentence_id.map(|id| id.to_string()).unwrap_or_default();
        let kind = error.kind.as_deref().unwrap_or("not given");
        let [sentence, correction] = [&error.sentence, &error.correction]
            .map(|text| text.as_deref().unwrap_or_default().trim());
        let values =
            [("id", id.as_str()), ("wrong", sentence), ("corrected", correction), ("kind", kind)];
        fill(&self.wrong, &values)
    }
}

impl Reasons {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        given.store(self.hardware.calls.as_ref())?.write_beside(&self.out)?.enter()?;
        let style = self.style.to_string();
        let found = self.ask(&Asking::of(&style)?)?;
        let total = found.len();
        let reasons: BTreeMap<String, String> =
            found.into_iter().filter_map(|(id, reason)| Some((id, reason?))).collect();
        let without = total - reasons.len();
        let file = ReasonsFile { style, reasons };
        let text = serde_json::to_string_pretty(&file).map_err(std::io::Error::from)?;
        whole_file::write_private(&self.out, format!("{text}\n").as_bytes())?;
        console::note(format!(
            "{}; {without} without a reason, or with one that mentions the gold annotation",
            count(total, "note")
        ));
        Ok(console::say(self.out.display().to_string())?)
    }

    /// The reason for each note with gold, by the note's id.
    fn ask(&self, asking: &Asking) -> Result<BTreeMap<String, Option<String>>, Failure> {
        refuse_existing(&self.out)?;
        if self.format.kind() != ItemKind::Notes {
            return Err(Failure::usage(
                format!("reasons are of notes, and {} files hold questions", self.format),
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
        let stop = on_interrupt();
        let members = models.start()?.models.into_iter().map(|source| Member {
            agent: AGENT.to_owned(),
            source,
            sampling: SamplingChoice::default(),
        });
        let panel = Panel {
            members: members.collect(),
            // The calls are not recorded.
            recorder: Box::new(Telling::new().0),
            run_seed: DEFAULT_SEED,
            settings: CallSettings {
                decoding: DecodingMode::Grammar,
                thinking: Some(false),
                max_tokens: Some(self.max_tokens),
                sends_seed: true,
            },
            salt: None,
            stop: stop.clone(),
            retriever: None,
        };
        let items = dataset.items.iter();
        let is_graded = |item: &&Item| item.note().is_some_and(|note| note.gold.is_some());
        let (sender, found) = channel();
        run_all(items.filter(is_graded).collect(), at_once, &stop, |item| {
            let task = Task { panel: &panel, dataset: &dataset.name, item, run: 1 };
            let reason = asking.ask(&task.note()?)?;
            // The receiver outlives the jobs.
            let _ = sender.send((item.id().to_owned(), reason));
            Ok::<_, PanelError>(())
        })?;
        if stop.load(Ordering::Relaxed) {
            return Err(PanelError::Interrupted.into());
        }
        drop(sender);
        Ok(found.into_iter().collect())
    }
}

/// Whether a reason reveals that the model was given the answer.
fn mentions_gold(text: &str) -> bool {
    const WORDS: [&str; 10] = [
        "i was told",
        "we are told",
        "what is known",
        "gold",
        "the given correction",
        "the provided correction",
        "correction provided",
        "correction given",
        "as indicated by the correction",
        "the corrected sentence",
    ];
    let text = text.to_lowercase();
    WORDS.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_mentions_its_gold_is_told() {
        assert!(mentions_gold("The provided correction names artesunate."));
        assert!(!mentions_gold("Severe malaria calls for artesunate, not aspirin."));
    }
}
