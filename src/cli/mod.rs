//! The verbs. stdout is data, stderr is progress; every flag has an environment variable.

mod bench;
mod check;
mod compare;
mod completions;
mod crew;
mod demo;
mod doctor;
pub mod exit;
mod generate;
mod inspect;
mod interrupt;
mod keywords;
mod logprobs;
mod merge;
mod models;
mod options;
mod order;
mod prepare;
mod progress;
mod rate;
mod recipe;
mod replay;
mod report;
mod run;
mod score;
mod summary;
mod synthetic;
#[cfg(test)]
mod tests;
mod tokenize;
mod verify;
mod workplace;

use clap::{Parser, Subcommand};

use crate::cli::exit::Failure;

/// Panels of small open language models for medical questions, offline and reproducible
#[derive(Debug, Parser)]
#[command(name = "wardround", version, max_term_width = 110)]
pub struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a debate of three tiny synthetic models on questions of our own
    Demo(demo::Demo),
    /// Run a system on a file of questions or notes
    Run(Box<run::Run>),
    /// Have a model name the keywords of wrong notes, for KPCS
    Keywords(Box<keywords::Keywords>),
    /// Check one note for an error: where it is, what would be right, how sure the agents are
    Check(Box<check::Check>),
    /// Write the page of a run again
    Report(report::Report),
    /// Check a run's hash chains, plan and results
    Verify(verify::Verify),
    /// Generate a run's calls again and compare
    Replay(replay::Replay),
    /// Set runs over the same questions side by side: what flips, whether by chance, at what cost
    Compare(compare::Compare),
    /// Have clinicians rate what runs proposed, blinded, and score their ratings
    Rate(rate::Rate),
    /// Make the shards of a run, or of a recipe, one
    Merge(merge::Merge),
    /// Score a file of answers by the rules of a shared task
    Score(score::Score),
    /// List, fetch, verify or synthesise models
    Models(models::Models),
    /// Complete one prompt
    Generate(generate::Generate),
    /// Give what a model expects after each of some token ids
    Logprobs(logprobs::Logprobs),
    /// Give the token ids of texts, one JSON string a line on stdin, or of a chat
    Tokenize(tokenize::Tokenize),
    /// Measure how fast a model or a panel is here
    Bench(Box<bench::Bench>),
    /// Say what this machine and this build can do
    Doctor(doctor::Doctor),
    /// Print shell completions
    Completions(completions::Completions),
    /// Write man pages to a directory
    Man(completions::Man),
}

/// Runs the verb that the command line names.
///
/// # Errors
/// Whatever kept it from ending well.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.verb {
        Verb::Demo(demo) => demo.run(),
        Verb::Run(run) => run.run(),
        Verb::Keywords(keywords) => keywords.run(),
        Verb::Check(check) => check.run(),
        Verb::Report(report) => report.run(),
        Verb::Verify(verify) => verify.run(),
        Verb::Replay(replay) => replay.run(),
        Verb::Compare(compare) => compare.run(),
        Verb::Rate(rate) => rate.run(),
        Verb::Merge(merge) => merge.run(),
        Verb::Score(score) => score.run(),
        Verb::Models(models) => models.run(),
        Verb::Generate(generate) => generate.run(),
        Verb::Logprobs(logprobs) => logprobs.run(),
        Verb::Tokenize(tokenize) => tokenize.run(),
        Verb::Bench(bench) => bench.run(),
        Verb::Doctor(doctor) => doctor.run(),
        Verb::Completions(completions) => completions.run(),
        Verb::Man(man) => man.run(),
    }
}
