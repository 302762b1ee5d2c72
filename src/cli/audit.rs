//! `audit`: checks and shows an audit trail, and deletes the texts that it keeps; the trail of the commands that write one.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::sandboxed::Paths;
use super::summary::count;
use crate::audit::forget::forget;
use crate::audit::survey::{Survey, verify};
use crate::audit::{AuditContent, AuditOptions, Event, Trail, own, random_name};
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::contents::Contents;
use crate::experiment::driver::Began;

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
        for (many, what) in [
            (open, "calls were begun and have no end: they run, or their process was killed"),
            (
                found.strays,
                "texts belong to no line, of a process that was killed: the next start deletes them",
            ),
            (
                chain.torn_bytes as usize,
                "bytes are of a line that was cut short: the next start cuts them off",
            ),
        ] {
            if many > 0 {
                console::say(format!("note   {many} {what}"))?;
            }
        }
        console::say(format!("head   {} {}", chain.lines, chain.head))?;
        match found.missing {
            0 => Ok(console::say("intact")?),
            missing => Err(Failure::outcome(
                format!("{missing} texts are not there, and no line says that they were deleted"),
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
        let trail = Trail::open(&AuditOptions::new(&directory), "audit forget")?;
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

/// The trail that a command writes, and what it keeps.
#[derive(Clone, Debug, Args)]
pub struct AuditFlags {
    #[command(flatten)]
    directory: AuditDirectory,
    /// What the trail keeps of texts
    #[arg(
        long,
        help_heading = "Audit",
        value_enum,
        default_value = "hash",
        requires = "audit",
        env = "WARDROUND_AUDIT_CONTENT"
    )]
    audit_content: AuditContent,
    /// Delete kept texts after this many days
    #[arg(long, help_heading = "Audit", value_name = "DAYS", requires = "audit", value_parser = clap::value_parser!(u32).range(1..), env = "WARDROUND_AUDIT_KEEP")]
    audit_keep: Option<u32>,
}

/// Where a trail is written.
#[derive(Clone, Debug, Args)]
pub struct AuditDirectory {
    /// Write an audit trail to this directory: a line per answer and deletion. Each process has a trail of its own
    #[arg(long, help_heading = "Audit", value_name = "DIR", env = "WARDROUND_AUDIT")]
    audit: Option<PathBuf>,
}

impl AuditDirectory {
    /// Allows writing the trail.
    pub fn within(&self, paths: Paths) -> Result<Paths, Failure> {
        self.audit.iter().try_fold(paths, |paths, directory| paths.write(directory))
    }

    pub fn options(self) -> Option<AuditOptions> {
        self.audit.map(AuditOptions::new)
    }
}

impl AuditFlags {
    pub fn within(&self, paths: Paths) -> Result<Paths, Failure> {
        self.directory.within(paths)
    }

    pub fn options(self) -> Option<AuditOptions> {
        Some(AuditOptions {
            content: self.audit_content,
            keep_days: self.audit_keep,
            ..self.directory.options()?
        })
    }
}

/// The trail of a command that executes runs, one after another.
#[derive(Clone)]
pub struct RunTrail {
    trail: Trail,
    /// Joins the lines of a run.
    call: String,
}

impl RunTrail {
    pub fn open(options: Option<&AuditOptions>, verb: &str) -> Result<Option<RunTrail>, Failure> {
        let Some(options) = options else { return Ok(None) };
        let trail = Trail::open(options, verb)?;
        Ok(Some(RunTrail { trail, call: random_name()? }))
    }

    /// What `worked` is, once the trail has the end of the command.
    pub fn end<T>(of: Option<RunTrail>, worked: Result<T, Failure>) -> Result<T, Failure> {
        of.map_or(Ok(()), |own| own.trail.finish())?;
        worked
    }

    pub fn began(&self, run: &Began<'_>) -> Result<(), Failure> {
        self.trail.write(self.event("begun", run))
    }

    pub fn ended(&self, run: &Began<'_>, contents: Option<&Contents>) -> Result<(), Failure> {
        let event = self
            .event("run", run)
            .with("items", contents.map(|run| run.items.records.len()))
            .with("calls_head", contents.map(|run| run.calls.head.as_str()))
            .with("status", if contents.is_some() { "done" } else { "failed" });
        self.trail.write(event)
    }

    fn event(&self, name: &str, run: &Began<'_>) -> Event {
        own(name)
            .with("call", self.call.as_str())
            .with("directory", run.directory.display().to_string())
            .with("system", run.system.as_str())
            .with("data_sha256", run.data_sha256.as_str())
            .with("plan", run.plan_sha256.as_str())
    }
}
