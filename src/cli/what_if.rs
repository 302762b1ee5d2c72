//! `what-if`: what a run's answers would have been with something of the panel or the item changed, and which agents they rest on.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::interrupt;
use super::options::refuse_existing;
use super::replay::AgainFlags;
use super::summary::count;
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::contents::Contents;
use crate::experiment::what_if::{Asked, Change, Course, Swap, Vote, what_if};
use crate::experiment::whole_file::{create_private_directory, write_private};
use crate::panel::stand_in::Forced;
use crate::report;
use crate::text::ellipsis;

const JSON: &str = "what-if.json";
const PAGE: &str = "what-if.html";

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").required(true).multiple(true)
    .args(["without", "swap", "answer", "drop_sentence", "shapley"]))]
pub struct WhatIf {
    /// The run directory, in which nothing is written
    #[arg(value_name = "RUN")]
    directory: PathBuf,
    /// These items only
    #[arg(long, value_delimiter = ',', value_name = "ID,ID")]
    items: Vec<String>,
    /// Leave an agent out
    #[arg(long, value_name = "AGENT", help_heading = "What is changed, all of it at once")]
    without: Vec<String>,
    /// Have another model of this machine answer an agent's calls
    #[arg(long, value_name = "AGENT=MODEL", help_heading = "What is changed, all of it at once")]
    swap: Vec<Swap>,
    /// Make an agent give this answer in a round, 0 being that of the first answers: ddx@0=C
    #[arg(
        long,
        value_name = "AGENT@ROUND=LETTER",
        help_heading = "What is changed, all of it at once"
    )]
    answer: Vec<Forced>,
    /// Put the question or the note without this sentence; the first is 1
    #[arg(long, value_name = "N", help_heading = "What is changed, all of it at once")]
    drop_sentence: Vec<usize>,
    /// Have every coalition of the agents answer, of 6 at most, and compute each agent's Shapley value
    #[arg(long)]
    shapley: bool,
    /// Write what-if.json and the page what-if.html into this new directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Take the calls of another version of wardround for this one's
    #[arg(long)]
    allow_version: bool,
    #[command(flatten)]
    again: AgainFlags,
}

impl WhatIf {
    pub fn run(self) -> Result<(), Failure> {
        let contents = Contents::read(&self.directory)?;
        if let Some(out) = &self.out {
            let whole = std::path::absolute(out)?;
            let there = whole.ancestors().find(|path| path.exists()).unwrap_or(&whole);
            if fs_err::canonicalize(there)?.starts_with(fs_err::canonicalize(&self.directory)?) {
                let message = format!("--out {} is in the run", out.display());
                return Err(Failure::usage(message, "nothing is written into a run; name another"));
            }
            refuse_existing(out)?;
            create_private_directory(out)?;
        }
        let quiet = self.again.execution.progress;
        let spec = self.again.spec(&contents.plan)?;
        let changes = (self.without.into_iter().map(Change::Without))
            .chain(self.swap.into_iter().map(Change::Swap))
            .chain(self.answer.into_iter().map(Change::Answer))
            .chain(self.drop_sentence.into_iter().map(Change::DropSentence));
        let asked = Asked {
            items: &self.items,
            changes: &changes.collect::<Vec<_>>(),
            shapley: self.shapley,
            allow_version: self.allow_version,
            tell: &|what| quiet.note(what),
        };
        let found = what_if(&contents, spec, &asked, interrupt::watch())?;
        for course in &found.items {
            tell(course)?;
        }
        let changed = found.items.iter().filter(|course| course.is_changed()).count();
        let calls = &found.calls;
        console::say(format!(
            "{}, {} changed; calls: {} from the run, {} from the store, {} computed",
            count(found.items.len(), "answer"),
            changed,
            calls.logged,
            calls.stored,
            calls.computed
        ))?;
        if let Some(out) = &self.out {
            let json = serde_json::to_string_pretty(&found).map_err(std::io::Error::from)?;
            let page = report::what_if::render(&found, &contents.texts)?;
            write_private(&out.join(JSON), format!("{json}\n").as_bytes())?;
            write_private(&out.join(PAGE), page.as_bytes())?;
            quiet.note(format!("written: {} and {PAGE}", out.join(JSON).display()));
        }
        Ok(())
    }
}

/// Characters of an answer in words; the page and the JSON have all of it.
const SAID_CHARS: usize = 80;

/// Prints what became of an item.
fn tell(course: &Course) -> std::io::Result<()> {
    let shown = |said: &str| match said {
        "" => "none".to_owned(),
        said => ellipsis(said, SAID_CHARS),
    };
    let gold = course.gold.as_ref().map_or_else(String::new, |gold| format!(", gold {gold}"));
    let (before, after) = (shown(&course.before), shown(&course.after));
    let turned = if course.is_changed() { "" } else { " (unchanged)" };
    console::say(format!("{}, run {}: {before} → {after}{turned}{gold}", course.item, course.run))?;
    let mut lines = Vec::new();
    lines.extend(course.error.iter().map(|error| format!("failed: {error}")));
    lines.extend(course.dropped.iter().map(|sentence| format!("without: {sentence}")));
    let vote = |vote: &Vote| {
        let shown = |said: &Option<String>| said.as_deref().map_or("not asked".to_owned(), shown);
        let (before, after) = (shown(&vote.before), shown(&vote.after));
        let sample = if vote.sample > 0 { format!(" {}", vote.sample) } else { String::new() };
        format!("round {} {}{sample}: {before} → {after}", vote.round, vote.agent)
    };
    lines.extend(course.votes.iter().filter(|vote| vote.is_changed()).map(vote));
    if let Some(shapley) = &course.shapley {
        let values = shapley.values.iter().map(|value| format!("{} {value}", value.agent));
        lines.push(format!("Shapley values: {}", values.collect::<Vec<_>>().join(", ")));
    }
    lines.extend(course.diagnoses.in_words());
    lines.push(format!("calls: {} from the run, {} new", course.logged, course.new));
    lines.into_iter().try_for_each(|line| console::say(format!("  {line}")))
}
