//! `compare`: compares runs over the same questions.

use std::path::PathBuf;

use clap::Args;

use super::options::OutputFormat;
use super::terminal::print;
use crate::analysis::comparison::compare_runs;
use crate::cli::exit::Failure;
use crate::cli::sandboxed::Paths;

#[derive(Debug, Args)]
pub struct Compare {
    /// Run directories; the first is compared with each of the others, on the items that all of them ran
    #[arg(required = true, num_args = 2.., value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
}

impl Compare {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        let comparison = compare_runs(&self.runs)?;
        print(&comparison.tables(), self.format, &comparison)
    }
}
