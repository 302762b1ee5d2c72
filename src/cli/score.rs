//! `score`: scores a submission file by the rules of a shared task.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::options::{OutputFormat, ScorerFlags};
use super::terminal::print;
use crate::analysis::mediqa_corr::score::{Reference, SubmissionFigures, pairs};
use crate::analysis::mediqa_corr::submission::Submission;
use crate::analysis::notes::Pairs;
use crate::cli::exit::Failure;
use crate::cli::sandboxed::Paths;
use crate::console;
use crate::data::{self, Format, ItemKind};
use crate::experiment::spec::formats;
use crate::record::Language;

#[derive(Debug, Subcommand)]
pub enum Score {
    /// MEDIQA-CORR 2024: detection and correction of errors in clinical notes
    MediqaCorr(MediqaCorr),
}

#[derive(Debug, Args)]
pub struct MediqaCorr {
    /// Submission file, one line per note: ID FLAG SENTENCE-ID "CORRECTION"
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Notes with their reference corrections; figures are over all of them
    #[arg(long, value_name = "FILE")]
    gold: PathBuf,
    /// Format of the reference file
    #[arg(long, value_enum, default_value = "medec")]
    gold_format: Format,
    #[command(flatten)]
    scorers: ScorerFlags,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
}

run_each!(Score: MediqaCorr);

impl MediqaCorr {
    fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        let gold = data::load(&self.gold, self.gold_format)?;
        for notice in &gold.notices {
            console::note(format!("note: {notice}"));
        }
        let references = gold.notes().into_iter().map(Reference::of);
        let references = references.collect::<Result<Vec<Reference>, _>>()?;
        if references.is_empty() {
            return Err(Failure::usage(
                format!("{} holds no notes", self.gold.display()),
                &format!("give --gold-format one of {}", formats(ItemKind::Notes)),
            ));
        }
        let submission = Submission::read(&self.run)?;
        for line in &submission.invalid_lines {
            console::note(format!(
                "note: {}:{line}: an invalid line, which counts as missing",
                self.run.display()
            ));
        }
        if !references.iter().any(|note| submission.predictions.contains_key(&note.id)) {
            let (run, gold) = (self.run.display(), self.gold.display());
            let message = format!("no note of {gold} has an id of {run}: nothing could be scored");
            return Err(Failure::usage(message, "give the file that the submission is of"));
        }
        let pairs = pairs(&references, &submission).into_iter().collect();
        let scores = self.scorers.score(&Pairs::from([(Language::English, pairs)]))?;
        let figures = SubmissionFigures::of(&references, &submission, &scores);
        print(&figures.tables(), self.format, &figures)
    }
}
