//! `rate`: writes a blinded page for clinicians, and evaluates their ratings.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::options::{OutputFormat, refuse_existing};
use super::sandboxed::Paths;
use super::terminal::print_tables;
use crate::analysis::rating::draw::draw;
use crate::analysis::rating::key::{self, SheetKey};
use crate::analysis::rating::{rater, scores};
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::verify::read_finished;
use crate::experiment::whole_file;
use crate::report::rating;

#[derive(Debug, Subcommand)]
pub enum Rate {
    /// Write a blinded page on which clinicians rate the outputs of runs
    Export(Export),
    /// Unblind and score the raters' files: mean opinion score, agreement, Cohen's kappa
    Score(Score),
}

#[derive(Debug, Args)]
pub struct Export {
    /// Finished run directories over the same notes, or the same questions
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// New directory for rate.html (for the raters) and rate-key.json (which they must not see)
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Number of notes or questions to rate, for every run
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..))]
    notes: u32,
    /// Random seed of the sample and its order
    #[arg(long, default_value = "42")]
    seed: u64,
}

#[derive(Debug, Args)]
pub struct Score {
    /// The rate-key.json written beside the page
    key: PathBuf,
    /// Files exported from the page, one per rater
    #[arg(required = true, value_name = "RATINGS")]
    ratings: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
}

run_each!(Rate: Export, Score);

impl Export {
    fn run(self, given: Paths) -> Result<(), Failure> {
        let out = &self.out;
        given.write(out)?.enter()?;
        refuse_existing(out)?;
        let wanted = self.notes as usize;
        // Finished runs alone.
        let runs = self.runs.iter().map(|run| Ok(read_finished(run)?.0));
        let (sheet, key) = draw(&runs.collect::<Result<Vec<_>, Failure>>()?, wanted, self.seed)?;
        let page = rating::render(&sheet)?;
        whole_file::create_private_directory(out)?;
        key.write(&out.join(key::FILE))?;
        whole_file::write_private(&out.join(rating::FILE), page.as_bytes())?;
        let n_items = key.entries.len() / key.runs.len();
        if n_items < wanted {
            let kind = sheet.kind;
            console::note(format!("note: only {n_items} {kind} are finished in every run"));
        }
        console::note(format!("note: keep {} from the raters: it names the runs", key::FILE));
        Ok(console::say(out.join(rating::FILE).display().to_string())?)
    }
}

impl Score {
    fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        let key = SheetKey::read(&self.key)?;
        let (raters, entries) = rater::read_all(&key, &self.ratings)?;
        print_tables(&scores::tables(&key, &raters, &entries), self.format)
    }
}
