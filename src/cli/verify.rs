//! `verify`: whether a run directory still says what it said.

use std::path::PathBuf;

use clap::Args;

use crate::analysis::results;
use crate::cli::exit::Failure;
use crate::console;

#[derive(Debug, Args)]
pub struct Verify {
    /// The run directory
    directory: PathBuf,
    /// The head that was noted when the run ended
    #[arg(long, value_name = "SHA256")]
    head: Option<String>,
}

impl Verify {
    pub fn run(self) -> Result<(), Failure> {
        let (verified, note) = results::verify(&self.directory, self.head.as_deref())?;
        let heads = &verified.heads;
        console::say(format!("plan   {}", heads.plan))?;
        console::say(format!("calls  {} ({} lines)", heads.calls, heads.call_lines))?;
        console::say(format!("items  {} ({} lines)", heads.items, heads.item_lines))?;
        if let [_, _, ..] = verified.contents.versions[..] {
            let versions = verified.contents.versions.join(", ");
            console::say(format!("note   versions {versions} of wardround wrote the run"))?;
        }
        for path in &verified.torn {
            console::say(format!(
                "note   the last line of {} is cut short; `wardround resume` drops it",
                path.display()
            ))?;
        }
        match verified.results {
            Some(results) => {
                if let Some(note) = note {
                    console::say(format!("note   {note}"))?;
                }
                console::say(format!("head   {}\nintact", results.head))?;
            }
            None => console::say("intact so far; the run has not finished")?,
        }
        Ok(())
    }
}
