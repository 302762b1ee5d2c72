//! `compare`: compares runs over the same questions.

use std::path::{Path, PathBuf};

use clap::Args;

use super::options::OutputFormat;
use super::report::FILE;
use super::terminal::print;
use crate::analysis::comparison::{self, Comparison, compare_runs};
use crate::cli::exit::Failure;
use crate::cli::sandboxed::{Paths, folder_of};
use crate::console;
use crate::experiment::contents::Contents;
use crate::experiment::whole_file;
use crate::report::beside::Column;
use crate::report::compare;

#[derive(Debug, Args)]
pub struct Compare {
    /// Run directories; the first is compared with each of the others, on the items that all of them ran
    #[arg(required = true, num_args = 2.., value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    /// Write a page with every item's answers side by side instead, those that differ first
    #[arg(long, value_name = "PAGE", conflicts_with = "format")]
    out: Option<PathBuf>,
}

impl Compare {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        let given = match &self.out {
            Some(page) => given.write_beside(page)?,
            None => given,
        };
        given.enter()?;
        let comparison = compare_runs(&self.runs)?;
        match &self.out {
            Some(page) => self.write(&comparison, page),
            None => print(&comparison.tables(), self.format, &comparison),
        }
    }

    fn write(&self, comparison: &Comparison, page: &Path) -> Result<(), Failure> {
        let folder = folder_of(page);
        fs_err::create_dir_all(&folder)?;
        let runs = self.runs.iter().map(|run| Contents::read(run));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        let columns = self.runs.iter().zip(&runs).map(|(run, contents)| {
            let (page, label) = (seen_from(&folder, run)?, run.display().to_string());
            Ok::<_, Failure>(Column { page, label, contents })
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let text = compare::render(comparison, &columns, &comparison::shared(&runs)?)?;
        whole_file::write_private(page, text.as_bytes())?;
        Ok(console::say(page.display().to_string())?)
    }
}

/// Where a run's own page lies, as a link in a folder has it.
fn seen_from(folder: &Path, run: &Path) -> Result<String, Failure> {
    let (folder, page) = (fs_err::canonicalize(folder)?, fs_err::canonicalize(run)?.join(FILE));
    let shared = folder.components().zip(page.components()).take_while(|(one, other)| one == other);
    let shared = shared.count();
    let mut link = "../".repeat(folder.components().count() - shared);
    let below: PathBuf = page.components().skip(shared).collect();
    // What a link would take for its end or for a code.
    link +=
        &below.display().to_string().replace('%', "%25").replace('#', "%23").replace('?', "%3F");
    Ok(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_linked_to_from_where_the_page_lies() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("pages");
        let run = scratch.path().join("runs/50%#1");
        for made in [&folder, &run] {
            fs_err::create_dir_all(made).unwrap();
        }
        assert_eq!(seen_from(&folder, &run).unwrap(), "../runs/50%25%231/report.html");
        assert_eq!(seen_from(scratch.path(), &folder).unwrap(), "pages/report.html");
    }
}
