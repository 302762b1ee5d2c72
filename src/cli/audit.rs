//! `audit`: checks and shows an audit trail, and deletes the texts that it keeps.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::sandboxed::Paths;
use crate::audit::forget::forget;
use crate::audit::survey::{Survey, verify};
use crate::audit::{AuditOptions, Trail};
use crate::cli::exit::Failure;
use crate::console;
use crate::record::count;

#[derive(Debug, Subcommand)]
pub enum AuditVerb {
    /// Check that a trail, its texts and its heads are as they were
    Verify(Verify),
    /// Show the lines of a trail, as JSON
    Show(Show),
    /// Delete texts that a trail keeps; its lines stay, and another says who deleted what and why
    Forget(Forget),
}

run_each!(AuditVerb: Verify, Show, Forget);

#[derive(Debug, Args)]
pub struct Verify {
    /// The directory of the trail
    directory: PathBuf,
    /// A head that was kept elsewhere, the last word of `audit head NUMBER SHA256` on stderr: the trail must have its line
    #[arg(long, value_name = "SHA256")]
    head: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Show {
    /// The directory of the trail
    directory: PathBuf,
    /// The lines of an answer, by its `wardround.request`
    #[arg(long, value_name = "SHA256")]
    request: Option<String>,
}

#[derive(Debug, Args)]
pub struct Forget {
    /// The directory of the trail, which no other process writes meanwhile
    directory: PathBuf,
    /// The lines whose texts to delete, by number (`seq`)
    #[arg(value_name = "LINE", required = true)]
    lines: Vec<u64>,
    /// The reason, which the trail keeps; write no name into it
    #[arg(long, value_name = "TEXT", default_value = "")]
    why: String,
}

impl Verify {
    fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        let found = verify(&self.directory, &self.head)?;
        let chain = &found.survey.chain;
        console::say(format!("lines  {}", chain.lines))?;
        console::say(format!("texts  {} kept, {} deleted", found.kept, found.deleted))?;
        let open = found.survey.open.len();
        for (many, noun, what) in [
            (open, "call", "begun and not ended: still running, or killed with the process"),
            (
                found.strays,
                "text",
                "of no line, left by a killed process: deleted at the next start",
            ),
            (chain.torn_bytes as usize, "byte", "of an unfinished line: cut off at the next start"),
        ] {
            if many > 0 {
                console::say(format!("note   {} {what}", count(many, noun)))?;
            }
        }
        console::say(format!("head   {} {}", chain.lines, chain.head))?;
        match found.missing {
            0 => Ok(console::say("intact")?),
            missing => Err(Failure::outcome(
                format!(
                    "{} missing, and no line says that they were deleted",
                    count(missing, "text")
                ),
                None,
            )),
        }
    }
}

impl Show {
    fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        let lines = Survey::lines(&self.directory, self.request.as_deref())?;
        if let (Some(request), true) = (&self.request, lines.is_empty()) {
            return Err(Failure::outcome(format!("no line is of the answer {request}"), None));
        }
        for line in lines {
            console::say(serde_json::json!(line).to_string())?;
        }
        Ok(())
    }
}

impl Forget {
    fn run(self, given: Paths) -> Result<(), Failure> {
        let Forget { directory, mut lines, why } = self;
        lines.sort_unstable();
        lines.dedup();
        given.write_in(&directory).enter()?;
        let options = AuditOptions { directory, ..AuditOptions::default() };
        let trail = Trail::open(&options, "audit forget")?;
        let forgotten = forget(&trail, |line| lines.contains(&line.seq), &why);
        trail.finish()?;
        let forgotten = forgotten?;
        console::say(format!("{} deleted", count(forgotten, "text")))?;
        // Who asks for a text to go must know that one is not there.
        match lines.len().saturating_sub(forgotten) {
            0 => Ok(()),
            without => Err(Failure::outcome(
                format!("of {} the trail keeps no text", count(without, "line")),
                Some("`audit show` prints its lines, each with its number".to_owned()),
            )),
        }
    }
}
