//! `verify`: checks that a run directory or an audit trail is complete and unchanged.

use std::path::PathBuf;

use clap::Args;

use super::summary::count;
use crate::analysis::results;
use crate::audit::{head, verify};
use crate::cli::exit::Failure;
use crate::console;

#[derive(Debug, Args)]
pub struct Verify {
    /// The run directory
    #[arg(required_unless_present = "audit")]
    directory: Option<PathBuf>,
    /// The head that was noted when the run ended
    #[arg(long, value_name = "SHA256")]
    head: Option<String>,
    /// Check the audit trail of this directory instead
    #[arg(long, value_name = "DIR", conflicts_with_all = ["directory", "head"])]
    audit: Option<PathBuf>,
    /// Heads that were kept elsewhere, as `serve` writes them to stderr: a file with lines `audit head NUMBER SHA256`
    #[arg(long, value_name = "FILE", requires = "audit")]
    heads: Option<PathBuf>,
}

impl Verify {
    pub fn run(self) -> Result<(), Failure> {
        let Some(directory) = &self.directory else {
            return self.audit();
        };
        let (verified, note) = results::verify(directory, self.head.as_deref())?;
        let heads = &verified.heads;
        console::say(format!("plan   {}", heads.plan))?;
        console::say(format!("calls  {} ({} lines)", heads.calls, heads.call_lines))?;
        console::say(format!("items  {} ({} lines)", heads.items, heads.item_lines))?;
        if let [_, _, ..] = verified.contents.versions[..] {
            let versions = verified.contents.versions.join(", ");
            console::say(format!("note   versions {versions} of wardround wrote the run"))?;
        }
        for (path, bytes) in verified.contents.torn() {
            console::say(format!(
                "note   the last line of {} is cut short; `wardround resume` cuts its {bytes} bytes off",
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

    fn audit(&self) -> Result<(), Failure> {
        let directory = self.audit.clone().unwrap_or_default();
        let heads = self.heads.as_deref().map(head::read).transpose()?.unwrap_or_default();
        let found = verify::verify(&directory, &heads)?;
        let files = count(found.files, "file");
        console::say(format!("lines  {} in {files}", found.lines))?;
        console::say(format!("heads  {} compared", found.heads))?;
        let verify::Texts { kept, forgotten } = found.texts;
        console::say(format!("texts  {kept} kept, {forgotten} deleted"))?;
        for note in &found.notes {
            console::say(format!("note   {note}"))?;
        }
        for problem in &found.problems {
            console::say(format!("wrong  {problem}"))?;
        }
        if found.problem_count > 0 {
            let problems = count(found.problem_count, "problem");
            let message = format!("the audit trail {} has {problems}", directory.display());
            return Err(Failure::mismatch(message));
        }
        if let Some(head) = found.head {
            console::say(format!("head   {} {}", head.seq, head.hash))?;
        }
        Ok(console::say("intact")?)
    }
}
