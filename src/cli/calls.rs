//! `calls`: shows, checks and clears a store of calls, and takes calls out of it and into it.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};

use super::summary::count;
use crate::calls::Key;
use crate::calls::upkeep::{Chosen, Cleared, Held, clear, export, import, inspect};
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::contents::Contents;

const DAY: u64 = 24 * 60 * 60;

#[derive(Debug, Subcommand)]
pub enum CallsVerb {
    /// Show what a store holds
    Info(Info),
    /// Check every call of a store; damaged ones are never used
    Verify(Verify),
    /// Put the calls of a store into one file, each once, without damaged and unwanted ones
    Gc(Gc),
    /// Write calls to one new file, for another store
    Export(Export),
    /// Add the calls of an exported file to a store
    Import(Import),
}

#[derive(Debug, Args)]
pub struct Info {
    /// The store
    directory: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct Verify {
    /// The store
    directory: PathBuf,
}

#[derive(Debug, Args)]
pub struct Gc {
    /// The store
    directory: PathBuf,
    /// Drop calls that were kept more days ago
    #[arg(long, value_name = "DAYS")]
    older_than: Option<u32>,
    #[command(flatten)]
    runs: RunsFlag,
}

#[derive(Debug, Args)]
pub struct Export {
    /// The store
    directory: PathBuf,
    /// The file to write
    out: PathBuf,
    #[command(flatten)]
    runs: RunsFlag,
}

#[derive(Debug, Args)]
pub struct Import {
    /// The store
    directory: PathBuf,
    /// A file that `export` wrote
    file: PathBuf,
}

#[derive(Debug, Args)]
struct RunsFlag {
    /// Only the calls of local models in these run directories
    #[arg(long, value_name = "RUN", num_args = 1..)]
    runs: Vec<PathBuf>,
}

run_each!(CallsVerb: Info, Verify, Gc, Export, Import);

impl RunsFlag {
    /// The keys of the runs' calls; `None` where no run was named.
    fn keys(&self) -> Result<Option<HashSet<Key>>, Failure> {
        if self.runs.is_empty() {
            return Ok(None);
        }
        let mut keys = HashSet::new();
        for run in &self.runs {
            let calls = Contents::read(run)?.calls.records;
            let local = calls.iter().filter(|call| !call.request.is_empty());
            keys.extend(local.map(|call| Key::of(&call.request, None)));
        }
        Ok(Some(keys))
    }
}

impl Info {
    fn run(self) -> Result<(), Failure> {
        let info = inspect(&self.directory)?;
        if self.json {
            return Ok(console::say(serde_json::to_string(&info).map_err(std::io::Error::from)?)?);
        }
        let Held { files, bytes, calls, twice, elsewhere, completion_tokens, .. } = info;
        console::say(format!("calls      {calls}, {completion_tokens} tokens of completions"))?;
        let seconds = info.elapsed_ms as f64 / 1000.0;
        console::say(format!("computed   in {seconds:.1} seconds, all calls together"))?;
        console::say(format!("size       {bytes} bytes in {}", count(files, "file")))?;
        if elsewhere > 0 {
            console::say(format!(
                "endpoints  answered {elsewhere} of them: those may differ when asked again"
            ))?;
        }
        if twice > 0 {
            console::say(format!(
                "twice      {}: `wardround calls gc` drops them",
                count(twice, "line")
            ))?;
        }
        if !info.damaged.is_empty() {
            let damaged = count(info.damaged.len(), "line");
            console::say(format!("damaged    {damaged}: `wardround calls verify` lists them"))?;
        }
        Ok(())
    }
}

impl Verify {
    fn run(self) -> Result<(), Failure> {
        let info = inspect(&self.directory)?;
        for path in &info.unfinished {
            let path = path.display();
            console::say(format!(
                "note   the last line of {path} is cut short: a process writes it, or was killed"
            ))?;
        }
        for damage in &info.damaged {
            console::say(format!(
                "{}, line {}: {}",
                damage.path.display(),
                damage.line,
                damage.defect
            ))?;
        }
        match info.damaged.len() {
            0 => Ok(console::say(format!("{} intact", count(info.calls, "call")))?),
            damaged => Err(Failure::missing(
                format!("{} of {} damaged", count(damaged, "line"), self.directory.display()),
                "`wardround calls gc` drops them; the calls are made again",
            )),
        }
    }
}

impl Gc {
    fn run(self) -> Result<(), Failure> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let since = self.older_than.map(|days| now.saturating_sub(u64::from(days) * DAY));
        let chosen = Chosen { keys: self.runs.keys()?, since };
        let Cleared { kept, dropped, busy } = clear(&self.directory, &chosen)?;
        console::say(format!("{} kept, {} dropped", count(kept, "call"), count(dropped, "line")))?;
        if busy > 0 {
            console::say(format!(
                "{} left as they are: other processes write them",
                count(busy, "file")
            ))?;
        }
        Ok(())
    }
}

impl Export {
    fn run(self) -> Result<(), Failure> {
        let chosen = Chosen { keys: self.runs.keys()?, since: None };
        let wanted = chosen.keys.as_ref().map(HashSet::len);
        let written = export(&self.directory, &chosen, &self.out)?;
        console::say(format!("{} written to {}", count(written, "call"), self.out.display()))?;
        match wanted.filter(|wanted| *wanted > written) {
            None => Ok(()),
            Some(wanted) => Err(Failure::outcome(
                format!(
                    "the runs made {wanted} calls, of which the store lacks {}",
                    wanted - written
                ),
                Some("name the store that they were made with".to_owned()),
            )),
        }
    }
}

impl Import {
    fn run(self) -> Result<(), Failure> {
        let taken = import(&self.directory, &self.file)?;
        Ok(console::say(format!("{} added to {}", count(taken, "call"), self.directory.display()))?)
    }
}
