//! The flags that verbs which run a panel share, besides those of a [`Spec`].

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Arg, Args};

use super::options::{HubFlags, QuietFlag, model_folder};
use super::progress::Terminal;
use crate::cli::exit::Failure;
use crate::experiment::hardware::Hardware;
use crate::experiment::plan::Plan;
use crate::experiment::spec::Spec;
use crate::hub::HubOptions;

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

/// Where models come from, and what is said of the run.
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
