//! `compare`: compares runs over the same questions.

use std::path::PathBuf;

use clap::Args;

use super::options::{FigureFormat, OutputFormat};
use super::report::print;
use crate::analysis::comparison::compare_runs;
use crate::cli::exit::Failure;
use crate::cli::sandboxed::Paths;

#[derive(Debug, Args)]
pub struct Compare {
    /// Run directories; the first is compared with each of the others, on the items that all of them ran
    #[arg(required = true, num_args = 2.., value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "md")]
    format: OutputFormat,
}

impl Compare {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        let comparison = compare_runs(&self.runs)?;
        let format = match self.format {
            OutputFormat::Md => FigureFormat::Md,
            OutputFormat::Json => FigureFormat::Json,
            OutputFormat::Csv => return print(&comparison.tables(), self.format),
        };
        Ok(format.print(&comparison, || comparison.markdown())?)
    }
}
