//! The flags shared by several commands.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Arg, Args, ValueEnum};
use itertools::Itertools;

use super::progress::Terminal;
use crate::analysis::notes::{self, CorrectionScorer, Pairs, ScoresByPair};
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::contents::Contents;
use crate::experiment::hardware::Hardware;
use crate::experiment::plan::Plan;
use crate::experiment::spec::Spec;
use crate::hub::{self, HubOptions, OfflineReason};

/// How models are found.
#[derive(Clone, Debug, Default, Args)]
pub struct HubFlags {
    /// Open no network connection, as HF_HUB_OFFLINE=1 does
    #[arg(long, help_heading = "Hub", env = "WARDROUND_OFFLINE")]
    pub offline: bool,
}

impl HubFlags {
    pub fn options(&self, quiet: bool) -> Result<HubOptions, Failure> {
        let mut options = HubOptions::capture()?;
        if self.offline {
            options.offline = Some(OfflineReason::Flag);
        }
        options.quiet = quiet;
        Ok(options)
    }
}

/// The folder of an encoder or a reranker, named by its directory or its card; files of a card that are not cached are downloaded.
pub fn model_folder(named: &Path) -> Result<PathBuf, Failure> {
    Ok(hub::folder(named, &HubOptions::capture()?)?)
}

/// Refuses to write over a file, or into a folder with something in it: what is there took a model's time.
pub fn refuse_existing(out: &Path) -> Result<(), Failure> {
    let is_free = !out.exists() || out.is_dir() && fs_err::read_dir(out)?.next().is_none();
    let taken =
        || Failure::usage(format!("{} exists already", out.display()), "choose another --out");
    is_free.then_some(()).ok_or_else(taken)
}

/// The flag of the commands that show progress.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct QuietFlag {
    /// Print no progress
    #[arg(long, env = "WARDROUND_QUIET")]
    pub quiet: bool,
}

impl QuietFlag {
    /// The first that is seen of runs: what is loaded, which takes its time.
    pub fn loading(self, runs: &[Spec]) -> Result<(), Failure> {
        let data = runs.iter().map(|spec| spec.data.display().to_string()).unique().join(", ");
        let models = runs.iter().map(Spec::slot_models).collect::<Result<Vec<_>, _>>()?;
        self.note(format!("loading {data} and {}", models.concat().iter().unique().join(", ")));
        Ok(())
    }

    /// Prints a line of progress.
    pub fn note(self, line: impl AsRef<str>) {
        if !self.quiet {
            console::note(line);
        }
    }
}

/// Keeps flags that do nothing in a verb, or are refused there, out of its help.
pub fn hidden<const N: usize>(names: [&'static str; N]) -> impl Fn(Arg) -> Arg {
    move |flag| {
        let is_idle = names.contains(&flag.get_id().as_str());
        flag.hide(is_idle)
    }
}

/// New places of a plan's models and corpora, and the machine.
#[derive(Clone, Debug, Args)]
pub struct MovedFlags {
    /// The models, where they have moved
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    pub panel: Vec<String>,
    /// The corpora, where they have moved
    #[arg(long, help_heading = "Retrieval", value_delimiter = ',', value_name = "DIR,DIR")]
    pub corpus: Vec<PathBuf>,
    /// The reranker, where it has moved
    #[arg(long, help_heading = "Retrieval", value_name = "DIR")]
    pub reranker: Option<PathBuf>,
    #[command(flatten)]
    pub hardware: Hardware,
}

impl MovedFlags {
    /// The spec that repeats `plan`, on models and corpora that may have moved.
    pub fn again(self, plan: &Plan, execution: &ExecutionFlags) -> Result<Spec, Failure> {
        let mut spec = plan.again(self.hardware, execution.hub_options()?)?;
        if !self.panel.is_empty() {
            spec.panel = self.panel;
            spec.slots.clear();
        }
        if let Some(spec) = &mut spec.corpus {
            if !self.corpus.is_empty() {
                spec.directories = self.corpus;
            }
            if let Some(named) = self.reranker {
                spec.reranker = Some(model_folder(&named)?);
            }
        }
        Ok(spec)
    }
}

/// Where models and data come from, and what is said meanwhile.
#[derive(Clone, Debug, Args)]
pub struct ExecutionFlags {
    #[command(flatten)]
    pub hub: HubFlags,
    #[command(flatten)]
    pub progress: QuietFlag,
}

impl ExecutionFlags {
    pub fn hub_options(&self) -> Result<HubOptions, Failure> {
        self.hub.options(self.progress.quiet)
    }

    pub fn observer(&self) -> Arc<Terminal> {
        Arc::new(Terminal::new(self.progress.quiet))
    }
}

/// The models and parameters of metrics that compare texts.
#[derive(Clone, Debug, Default, Args)]
pub struct ScorerFlags {
    /// Directory with the BERTScore and BLEURT models, each in a folder named after its card (`models fetch bleurt-20 --to DIR/bleurt-20`)
    #[arg(long, help_heading = "Metrics", env = "WARDROUND_SCORERS", value_name = "DIR")]
    pub scorers: Option<PathBuf>,
    /// Keywords per note for KPCS, a JSON object of lists by id [default: those of the notes file, else the words that the reference correction changes]
    #[arg(long, help_heading = "Metrics", value_name = "FILE")]
    pub keywords: Option<PathBuf>,
}

impl ScorerFlags {
    /// The scorer of the corrections in these runs.
    pub fn correction_scorer<'a>(
        &self,
        runs: impl IntoIterator<Item = &'a Contents>,
    ) -> Result<CorrectionScorer, Failure> {
        let mut scorer = CorrectionScorer {
            neural: self.score(&notes::pairs(runs))?,
            ..CorrectionScorer::default()
        };
        if let Some(path) = &self.keywords {
            scorer.keywords.read(path)?;
        }
        Ok(scorer)
    }

    /// BERTScore and BLEURT of pairs; empty without their weights.
    pub fn score(&self, pairs: &Pairs) -> Result<ScoresByPair, Failure> {
        let Some(folder) = &self.scorers else { return Ok(ScoresByPair::default()) };
        if !folder.is_dir() {
            let message = format!("there is no directory {}", folder.display());
            return Err(Failure::missing(
                message,
                "`wardround models fetch bleurt-20 --to DIR/bleurt-20` brings one of its models",
            ));
        }
        if pairs.values().all(|pairs| pairs.is_empty()) {
            return Ok(ScoresByPair::default());
        }
        let (scores, missing) = notes::score_pairs(folder, pairs)?;
        for card in missing {
            console::note(format!(
                "note: there is no {}: its metric is not computed",
                folder.join(card).display()
            ));
        }
        Ok(scores)
    }
}

/// How tables are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Aligned tables, rounded, folded to the terminal
    Text,
    /// Markdown tables, rounded
    Md,
    /// JSON, full precision
    Json,
    /// CSV, full precision; a line with # and its name before each of several tables
    Csv,
}
