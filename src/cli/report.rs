//! `report`: the page of a run, from its records.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::console;
use crate::exit::Failure;
use crate::run::contents::Contents;
use crate::run::private_file;

/// The page's name in the run directory.
pub const FILE: &str = "report.html";

#[derive(Debug, Args)]
pub struct Report {
    /// The run directory
    directory: PathBuf,
}

impl Report {
    pub fn run(self) -> Result<(), Failure> {
        write(&Contents::read(&self.directory)?, &self.directory)?;
        Ok(console::say(
            self.directory.join(FILE).display().to_string(),
        )?)
    }
}

/// Writes the page of a run, finished or not, into its directory.
pub fn write(contents: &Contents, directory: &Path) -> Result<(), Failure> {
    let (items, calls) = (&contents.items.records, &contents.calls.records);
    let page = crate::report::render(&contents.plan, items, calls)?;
    Ok(private_file::write(&directory.join(FILE), page.as_bytes())?)
}
