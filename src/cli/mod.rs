//! The commands. stdout has data, stderr progress. Settings of the machine have environment variables, settings of a run only flags.

/// `run` of an enum of commands: that of the command it holds.
macro_rules! run_each {
    ($verbs:ident: $($(#[$condition:meta])? $verb:ident),+ $(,)?) => {
        impl $verbs {
            pub fn run(self) -> Result<(), $crate::diagnosis::Failure> {
                match self {
                    $($(#[$condition])? $verbs::$verb(verb) => verb.run()),+
                }
            }
        }
    };
}

mod asking;
mod audit;
mod bench;
#[cfg(feature = "airgap")]
mod bundle;
mod check;
mod compare;
mod completions;
mod corpus;
mod data;
mod demo;
mod doctor;
pub mod exit;
mod flags;
mod forecast;
mod generate;
mod inspect;
mod interrupt;
#[cfg(feature = "serve")]
mod keys;
mod keywords;
mod list;
mod logprobs;
mod models;
mod options;
mod parse;
mod progress;
mod rate;
mod reasons;
mod recipe;
mod replay;
mod report;
mod resume;
mod run;
mod sandboxed;
mod score;
mod selftest;
#[cfg(feature = "serve")]
mod serve;
mod summary;
mod synthetic;
mod systems;
#[cfg(test)]
mod tests;
mod tokenize;
mod verify;
mod version;

use clap::{Parser, Subcommand};

pub use self::parse::parse;

use crate::cli::exit::Failure;

/// Panels of small open language models for medical questions, offline and reproducible
#[derive(Debug, Parser)]
#[command(name = "wardround", version, max_term_width = 110, after_long_help = after_help())]
pub struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a small debate on built-in questions with tiny synthetic models
    Demo(demo::Demo),
    /// Run a system on a file of questions or notes
    Run(Box<run::Run>),
    /// Run every cell of a paper's table or figure, then print it
    Recipe(Box<recipe::RecipeVerb>),
    /// Continue a run or a recipe where it stopped
    Resume(Box<resume::Resume>),
    /// Extract keywords from erroneous notes (input of the KPCS metric)
    Keywords(Box<keywords::Keywords>),
    /// Have a model that knows the gold explain why exemplars are right or wrong (input of --exemplar-reasons)
    Reasons(Box<reasons::Reasons>),
    /// Check one clinical note for an error
    Check(Box<check::Check>),
    /// Write the report of a run again, or print its tables
    Report(report::Report),
    /// Check a run's hash chains, plan and results, or an audit trail
    Verify(Box<verify::Verify>),
    /// Repeat a run's model calls and compare the output
    Replay(replay::Replay),
    /// Compare runs over the same questions: flips, significance, cost
    Compare(compare::Compare),
    /// Blinded rating of runs by clinicians: write the page, score the ratings
    #[command(subcommand)]
    Rate(rate::Rate),
    /// Score a submission file by the rules of a shared task
    #[command(subcommand)]
    Score(score::Score),
    /// Download, list or verify the datasets of recipes
    #[command(subcommand)]
    Data(data::Data),
    /// Build, list, check or search the corpora that systems retrieve passages from
    #[command(subcommand)]
    Corpus(Box<corpus::CorpusVerb>),
    /// List, download, verify, import or synthesise models
    #[command(subcommand)]
    Models(models::Models),
    /// List the systems, or print the file that describes one
    #[command(subcommand)]
    Systems(systems::Systems),
    /// Serve models over HTTP, as OpenAI's interface
    #[cfg(feature = "serve")]
    Serve(Box<serve::Serve>),
    /// Make, list or revoke the API keys of a server
    #[cfg(feature = "serve")]
    #[command(subcommand)]
    Keys(keys::KeysVerb),
    /// Signed bundles of models and program for an air gap: make, check
    #[cfg(feature = "airgap")]
    #[command(subcommand)]
    Bundle(bundle::BundleVerb),
    /// Read an audit trail, or delete texts that it keeps
    #[command(subcommand)]
    Audit(audit::AuditVerb),
    /// Generate one completion
    Generate(generate::Generate),
    /// Print next-token log-probabilities for a token sequence
    Logprobs(logprobs::Logprobs),
    /// Print the token ids of texts (one JSON string per line on stdin) or of a chat
    Tokenize(tokenize::Tokenize),
    /// Measure the speed of a model or a panel
    Bench(Box<bench::Bench>),
    /// Show the devices, memory, models and features available here
    Doctor(doctor::Doctor),
    /// Check each model's files, and whether its answers are equal in every batch and with the prefix cache
    Selftest(Box<selftest::Selftest>),
    /// Show the version and how it was built
    Version(version::Version),
    /// Print shell completions
    Completions(completions::Completions),
    /// Write man pages to a directory
    Man(completions::Man),
}

run_each! { Verb:
    Demo, Run, Recipe, Resume, Keywords, Reasons, Check, Report, Verify, Replay, Compare, Rate, Score, Data, Corpus, Models, Systems,
    #[cfg(feature = "serve")] Serve,
    #[cfg(feature = "serve")] Keys,
    #[cfg(feature = "airgap")] Bundle,
    Audit, Generate, Logprobs, Tokenize, Bench, Doctor, Selftest, Version, Completions, Man,
}

/// The environment variables, which mean the same for all commands. Those of flags are also shown with the flags.
const ENVIRONMENT: &str = "\
Environment variables:
  WARDROUND_OFFLINE             open no network connection (--offline)
  WARDROUND_DEVICE              device (--device)
  WARDROUND_THREADS             number of CPU threads (--threads)
  WARDROUND_QUIET               print no progress (--quiet)
  WARDROUND_DATA_ENDPOINT       mirror that `data fetch` downloads from (--endpoint)
  WARDROUND_SCORERS             directory of the BERTScore and BLEURT models (--scorers)
  WARDROUND_ENCODER             directory of the sentence encoder (--encoder)
  WARDROUND_SANDBOX             whether the process is restricted (--sandbox)
  WARDROUND_SYNTH_MODELS        directory of synthetic models (--models)
  WARDROUND_AUDIT               directory of the audit trail of `serve`, `check`, `run`, `resume`, `recipe` (--audit)
  WARDROUND_AUDIT_CONTENT       what it keeps of texts (--audit-content)
  WARDROUND_AUDIT_KEEP          days after which it deletes them (--audit-keep)
  WARDROUND_AUDIT_NO_ADDRESS    keep no addresses in it (--audit-no-address)
  WARDROUND_AUDIT_RESERVE       space to leave free on its disk (--audit-reserve)
  WARDROUND_KEYS                file of API keys of a server (--keys)
  WARDROUND_API_KEY             key for remote endpoints; WARDROUND_API_KEY_<HOST> for one of them
  OPENAI_API_KEY                key for api.openai.com
  HF_HOME, HF_HUB_CACHE         cache of the Hugging Face hub
  HF_HUB_OFFLINE                open no network connection, as --offline
  HF_TOKEN, HF_TOKEN_PATH       token for the hub
  HF_ENDPOINT                   mirror of the hub
  HF_HUB_DOWNLOAD_TIMEOUT, HF_HUB_ETAG_TIMEOUT, HF_HUB_DISABLE_PROGRESS_BARS
  NO_COLOR                      no colours";

fn after_help() -> String {
    format!("{ENVIRONMENT}\n\n{}", exit::EXIT_CODES)
}

/// Runs the command of the command line.
///
/// # Errors
/// The failure of the command.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    arguments.verb.run()
}
