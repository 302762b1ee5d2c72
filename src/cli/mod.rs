//! The commands. stdout has data, stderr progress. Settings of the machine have environment variables, settings of a run only flags.

/// `run` of an enum of commands: that of the command it holds. Each is given what its arguments name, says what else it reads and writes, and
/// enters the sandbox before its first thread.
macro_rules! run_each {
    ($verbs:ident: $($(#[$condition:meta])? $verb:ident),+ $(,)?) => {
        impl $verbs {
            pub fn run(self, given: $crate::cli::sandboxed::Paths) -> Result<(), $crate::diagnosis::Failure> {
                match self {
                    $($(#[$condition])? $verbs::$verb(verb) => verb.run(given)),+
                }
            }
        }
    };
}

mod audit;
mod bench;
#[cfg(feature = "airgap")]
mod bundle;
mod check;
mod compare;
mod corpus;
mod data;
mod demo;
mod doctor;
pub mod exit;
mod forecast;
mod generate;
#[cfg(feature = "serve")]
mod keys;
mod models;
mod options;
mod parse;
mod progress;
mod rate;
mod reasons;
mod recipe;
mod recipes;
mod replay;
mod report;
mod resume;
mod run;
mod sandboxed;
mod selftest;
#[cfg(feature = "serve")]
mod serve;
mod speed;
mod summary;
mod systems;
mod terminal;
#[cfg(test)]
mod tests;
mod verify;

use std::fmt::Write;

use clap::{Arg, ArgAction, Command, CommandFactory, Parser, Subcommand};

use self::models::Models;
pub use self::parse::parse;
use self::sandboxed::Paths;

use crate::cli::exit::Failure;
use crate::sandbox::SandboxMode;

/// Panels of small open language models for medical questions, offline and reproducible
#[derive(Debug, Parser)]
#[command(name = "wardround", version, max_term_width = 110, after_long_help = after_help())]
pub struct Arguments {
    /// What the arguments of this process name that is there; `None`: they are not a process's own, which enters no sandbox for them.
    #[arg(skip)]
    given: Option<Paths>,
    /// Sandbox the process: its own files, no other network or programs
    #[arg(
        long,
        global = true,
        help_heading = "Sandbox",
        value_enum,
        default_value = "auto",
        env = "WARDROUND_SANDBOX"
    )]
    sandbox: SandboxMode,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a small debate on built-in questions with tiny synthetic models
    Demo(demo::Demo),
    /// Run a system on a file of questions or notes
    Run(Box<run::RunVerb>),
    /// Run every cell of a paper's table or figure, then print it (or ls, show)
    Recipe(Box<recipes::Recipes>),
    /// Continue a run or a recipe where it stopped
    Resume(Box<resume::Resume>),
    /// Check one clinical note for an error
    Check(Box<check::Check>),
    /// Write the report of a run again, or print its tables
    Report(report::Report),
    /// Check a run's hash chains, plan and results
    Verify(Box<verify::Verify>),
    /// Repeat a run's model calls and compare the output
    Replay(Box<replay::Replay>),
    /// Compare runs over the same questions: flips, significance, cost
    Compare(compare::Compare),
    /// Blinded rating of runs by clinicians: write the page, score the ratings
    #[command(subcommand)]
    Rate(rate::Rate),
    /// Datasets of recipes: download, list, verify; reasons of exemplars
    #[command(subcommand)]
    Data(data::Data),
    /// Build, check or search the corpora that systems retrieve passages from
    #[command(subcommand)]
    Corpus(Box<corpus::CorpusVerb>),
    /// List, download, verify, import or synthesise models
    #[command(subcommand)]
    Models(models::Models),
    /// List the systems, or print the file that describes one
    #[command(subcommand)]
    Systems(systems::Systems),
    /// Serve models over an OpenAI-compatible HTTP API
    #[cfg(feature = "serve")]
    Serve(Box<serve::Serve>),
    /// Make or revoke the API keys of a server
    #[cfg(feature = "serve")]
    #[command(subcommand)]
    Keys(keys::KeysVerb),
    /// Signed bundles of models and program for an air gap: make, check
    #[cfg(feature = "airgap")]
    #[command(subcommand)]
    Bundle(bundle::BundleVerb),
    /// Check or show an audit trail, or delete texts that it keeps
    #[command(subcommand)]
    Audit(audit::AuditVerb),
    /// Generate one completion, or print logits
    Generate(Box<generate::Generate>),
    /// Measure the speed of a model
    Bench(Box<bench::Bench>),
    /// Show this build, and the devices and memory available here
    Doctor(doctor::Doctor),
    /// Check each model's files, and that its answers are equal in every batch
    Selftest(Box<selftest::Selftest>),
}

run_each! { Verb:
    Demo, Run, Recipe, Resume, Check, Report, Verify, Replay, Compare, Rate, Data, Corpus, Models, Systems,
    #[cfg(feature = "serve")] Serve,
    #[cfg(feature = "serve")] Keys,
    #[cfg(feature = "airgap")] Bundle,
    Audit, Generate, Bench, Doctor, Selftest,
}

/// The verbs by what they are for, as help lists them.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Start", &["demo", "run", "recipe", "resume", "report", "compare", "check"]),
    ("Data and models", &["data", "corpus", "models", "systems", "rate"]),
    ("Serve", &["serve", "keys", "bench", "doctor"]),
    ("Prove", &["verify", "replay", "selftest", "bundle", "audit"]),
    ("More", &["generate"]),
];

/// Verbs with more flags than a screen has lines: `--help` gives each a line or two, `wardround help VERB` all that is to say.
const BRIEF: [&str; 5] = ["run", "recipe", "resume", "check", "serve"];

/// The command line, with its verbs in groups. A verb that this build has not is in none.
pub fn command() -> Command {
    let mut command = Arguments::command();
    let mut listed = String::new();
    for (group, verbs) in GROUPS {
        let _ = writeln!(listed, "{group}:");
        for name in verbs {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            if let Some(about) = about {
                let _ = writeln!(listed, "  {name:12} {about}");
            }
        }
        listed.push('\n');
    }
    for name in BRIEF {
        if command.find_subcommand(name).is_some() {
            command = command.mut_subcommand(name, brief);
        }
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{listed}Options:\n{{options}}{{after-help}}"
    ))
}

fn brief(verb: Command) -> Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort).global(true);
    let more = format!(
        "`wardround help {}` explains the values, `wardround systems show NAME` what a system can be set to.",
        verb.get_name()
    );
    verb.disable_help_flag(true).arg(help.help("Print help")).after_help(more)
}

/// The environment variables, which mean the same for all commands. Those of flags are also shown with the flags.
const ENVIRONMENT: &str = "\
Environment variables:
  WARDROUND_OFFLINE             open no network connection (--offline)
  WARDROUND_DEVICE              device (--device)
  WARDROUND_THREADS             number of CPU threads (--threads)
  WARDROUND_QUIET               print no progress (--quiet)
  WARDROUND_SCORERS             directory of the BERTScore and BLEURT models (--scorers)
  WARDROUND_ENCODER             directory of the sentence encoder (--encoder)
  WARDROUND_SANDBOX             whether the process is restricted (--sandbox)
  WARDROUND_AUDIT               directory of the audit trail of `serve` (--audit)
  WARDROUND_AUDIT_CONTENT       what it keeps of texts (--audit-content)
  WARDROUND_AUDIT_KEEP          days after which it deletes them (--audit-keep)
  WARDROUND_KEYS                file of API keys of a server (--keys)
  WARDROUND_API_KEY             key for remote endpoints; WARDROUND_API_KEY_<HOST> for one of them
  OPENAI_API_KEY                key for api.openai.com
  WARDROUND_PROXY               proxy of the hub and of endpoints
  HF_HOME, HF_HUB_CACHE         cache of the Hugging Face hub
  HF_HUB_OFFLINE                open no network connection, as --offline
  HF_TOKEN, HF_TOKEN_PATH       token for the hub
  HF_ENDPOINT                   mirror of the hub
  NO_COLOR                      no colours";

fn after_help() -> String {
    format!("{ENVIRONMENT}\n\n{}", exit::EXIT_CODES)
}

/// Runs the command of the command line.
///
/// # Errors
/// The failure of the command.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { given, sandbox, verb } = arguments;
    let mode = given.as_ref().map_or(SandboxMode::Off, |_| sandbox);
    let are_here = matches!(verb, Verb::Selftest(_) | Verb::Models(Models::Verify { .. }));
    let given = given.unwrap_or_default().named(are_here);
    let done = given.and_then(|given| verb.run(Paths { mode, ..given }));
    sandboxed::remove_empty();
    done
}
