//! The demonstration with a real model: SmolLM2-135M-Instruct plays all three doctors.

use std::path::{Path, PathBuf};

use super::super::options::{HubFlags, QuietFlag};
use super::super::synthetic::SyntheticModels;
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::contents::Contents;
use crate::experiment::spec::Spec;
use crate::hub::{self, Card};
use crate::record::AnswerLine;

const CARD: &str = "smollm2-135m";
/// The folders in `--models` that may have it, beside that one itself.
const FOLDERS: [&str; 3] = ["", CARD, "smollm2"];
/// One round of debate, and of the record what a small model can fill in: reasons, an option's text, a confidence.
pub const SETTINGS: [&str; 3] = ["t_max=1", "record=short", "max_tokens=200"];
pub const LAST: &str = "One model of 135 million parameters played all three doctors: it writes as models write and knows no medicine.";
/// Characters of a reply that the terminal shows.
const SHOWN: usize = 240;

/// Has `spec` run on the model: that of `--models`, else that of the hub's cache, into which it is fetched if need be.
pub fn choose(
    spec: &mut Spec,
    models: &SyntheticModels,
    hub: HubFlags,
    progress: QuietFlag,
) -> Result<(), Failure> {
    spec.hub = hub.options(progress.quiet)?;
    spec.panel = vec![match models.given() {
        Some(directory) => found_in(directory)?.display().to_string(),
        None => {
            announce(spec, progress);
            CARD.to_owned()
        }
    }];
    Ok(())
}

fn found_in(directory: &Path) -> Result<PathBuf, Failure> {
    let mut folders = FOLDERS.iter().map(|name| directory.join(name));
    folders.find(|folder| folder.join("config.json").is_file()).ok_or_else(|| {
        let message = format!("{} has no folder {CARD}", directory.display());
        let hint = "`wardround models fetch smollm2-135m --to DIR/smollm2-135m` makes one; without --models the hub's cache has it";
        Failure::missing(message, hint)
    })
}

/// Says what will be downloaded, and under what licence, before it is.
fn announce(spec: &Spec, progress: QuietFlag) {
    let is_here = hub::resolve(CARD, &spec.hub.local()).is_ok();
    let Some(card) = Card::find(CARD).filter(|_| !is_here && spec.hub.fetch_refusal().is_none())
    else {
        return;
    };
    let megabytes = card.size_bytes().unwrap_or_default() / 1_000_000;
    progress.note(format!(
        "fetching {} into the hub's cache: {megabytes} MB, {} ({})",
        card.repository, card.licence.name, card.licence.url
    ));
}

/// The item with the most replies that could be read.
pub fn best_read(contents: &Contents) -> Option<&AnswerLine> {
    let read = |item: &AnswerLine| {
        let answers = item.rounds.iter().flat_map(|round| &round.answers);
        answers.filter(|answer| !answer.is_empty()).count()
    };
    contents.answers().into_values().max_by_key(|item| (read(item), &item.item))
}

/// Prints what the doctors wrote on an item, shortened.
pub fn print_replies(item: &AnswerLine, contents: &Contents) -> std::io::Result<()> {
    console::say("  what they wrote")?;
    let calls = contents.calls.records.iter().filter(|call| call.item == item.item);
    for call in calls {
        let words: Vec<&str> = call.text.split_whitespace().collect();
        let text = words.join(" ");
        let mut shown: String = text.chars().take(SHOWN).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        console::say(format!("    {:6} in round {}: {shown}", call.agent, call.round))?;
    }
    Ok(())
}
