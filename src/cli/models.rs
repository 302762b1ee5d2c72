//! `models`: lists the model cards, downloads and verifies models, imports those of llama.cpp, and makes synthetic ones.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::options::{ExecutionFlags, HubFlags, QuietFlag};
use super::sandboxed::Paths;
use super::terminal;
use crate::analysis::table::{Cell, Table};
use crate::chat::{ChatError, ChatTemplate, Message};
use crate::cli::exit::Failure;
use crate::console;
use crate::hub::{self, Card, Checkpoint, FileCheck, HubOptions, Kind, Status};
use crate::model::config::ConfigError;
use crate::model::{Config, Family};
use crate::record::count;
use crate::synth::{Recipe, Shape, write_checkpoint};
use crate::tokenizer::Tokenizer;

#[derive(Debug, Subcommand)]
pub enum Models {
    /// List the known models and whether their files are here
    Ls(HubFlags),
    /// Download a model into the cache or a directory
    Fetch(Fetch),
    /// Check a model's files against their recorded SHA-256 checksums, then read its configuration, tokenizer and chat template
    Verify {
        /// Model: a card's name, a hub id or a directory
        model: String,
    },
    /// Make a model's directory of a GGUF file: Llama, Gemma 3 or Qwen 3
    Import(Import),
    /// Write a synthetic model: the true architecture with random weights
    Synth(Synth),
}

#[derive(Debug, Args)]
pub struct Fetch {
    /// Model: a card's name or a hub id, optionally with @REVISION
    model: String,
    /// Directory to write to instead of the cache
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    #[command(flatten)]
    execution: ExecutionFlags,
}

#[derive(Debug, Args)]
pub struct Import {
    /// GGUF file, whole
    file: PathBuf,
    /// New or empty directory to write to
    directory: PathBuf,
    #[command(flatten)]
    progress: QuietFlag,
}

#[derive(Debug, Args)]
pub struct Synth {
    /// Architecture
    #[arg(value_enum)]
    family: Family,
    /// New or empty directory to write to
    directory: PathBuf,
    /// Size
    #[arg(long, value_enum, default_value = "tiny")]
    shape: Shape,
    /// Random seed
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Tokenizer to use: a tokenizer.json, or a directory with one and a chat template [default: a small one trained on the prompts]
    #[arg(long, value_name = "PATH")]
    tokenizer: Option<PathBuf>,
}

impl Models {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        match self {
            Models::Ls(flags) => {
                given.enter()?;
                list(&flags.options(true)?.local())
            }
            Models::Fetch(fetch) => fetch.run(given),
            Models::Verify { model } => {
                given.enter()?;
                let hub = HubFlags::default().options(true)?.local();
                let checkpoint = hub::resolve(&model, &hub)?;
                tell_checks(&hub::verify(&checkpoint)?, &checkpoint.directory)?;
                try_out(&checkpoint)
            }
            Models::Import(import) => import.run(given),
            Models::Synth(synth) => synth.run(given),
        }
    }
}

fn list(options: &HubOptions) -> Result<(), Failure> {
    let kind = |card: &Card| match card.kind {
        Kind::Decoder => "language model",
        Kind::Encoder => "encoder",
    };
    let gigabytes = |card: &Card| Some(Cell::Number(card.size_bytes()? as f64 / 1e9, 1));
    let is_here =
        |card: &Card| if hub::resolve(&card.name, options).is_ok() { "yes" } else { "no" };
    let table = Table::of("models", "Models of cards", Card::all())
        .text("model", |card| &card.name)
        .text("kind", kind)
        .number("GB", gigabytes)
        .text("licence", |card| card.licence.name.clone() + if card.gated { ", gated" } else { "" })
        .text("here", is_here);
    terminal::show(&[table.build()])
}

impl Fetch {
    fn run(self, given: Paths) -> Result<(), Failure> {
        given.fetch()?.enter()?;
        let options = self.execution.hub_options()?;
        let checkpoint = hub::fetch(&self.model, self.to.as_deref(), &options)?;
        let licence = checkpoint.card.map(|card| &card.licence);
        // What has to travel with copies, and what the model may be used for.
        for line in licence.into_iter().flat_map(|licence| [&licence.notice, &licence.policy]) {
            line.iter().for_each(|line| self.execution.progress.note(line));
        }
        Ok(console::say(checkpoint.directory.display().to_string())?)
    }
}

/// Reads what the model's maker wrote, and has its template render a conversation: under the ceilings that hold where it is used.
fn try_out(checkpoint: &Checkpoint) -> Result<(), Failure> {
    let say =
        |file: &str, what: String| console::say(format!("{file:>64}  {}", console::plain(&what)));
    let is_encoder = checkpoint.card.is_some_and(|card| card.kind == Kind::Encoder);
    let Some(path) = checkpoint.files.tokenizer.as_ref().filter(|_| !is_encoder) else {
        return Ok(());
    };
    match Config::read(&checkpoint.files.config) {
        Ok(Config { family, windows, .. }) => {
            say("config.json", format!("{}, {} layers", family.name(), windows.len()))?;
        }
        // An encoder's, for example, may be whole all the same.
        Err(error @ ConfigError::Unsupported { .. }) => say("config.json", error.to_string())?,
        Err(error) => return Err(error.into()),
    }
    let tokenizer = Tokenizer::load(path)?;
    say("tokenizer.json", format!("{} tokens", tokenizer.pieces().len()))?;
    let tried = ChatTemplate::load(&checkpoint.directory).and_then(|chat| {
        let said = [Message::new("user", "What the user says.")];
        Ok(chat.prompt(&tokenizer, &said, false)?.tokens.len())
    });
    match tried {
        Ok(tokens) => say("chat template", format!("a question of one line is {tokens} tokens"))?,
        Err(ChatError::Missing { .. }) => say("chat template", "there is none".to_owned())?,
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Prints the result for every file.
pub fn tell_checks(checks: &[FileCheck], directory: &Path) -> Result<(), Failure> {
    for check in checks {
        let sum = check.sha256.as_deref().unwrap_or("-");
        let name = console::plain(&check.name);
        console::say(format!("{:64} {name}  {}", sum, describe(&check.status)))?;
    }
    let wrong =
        checks.iter().filter(|check| !matches!(check.status, Status::Ok(_) | Status::Unknown));
    match wrong.count() {
        0 => Ok(()),
        wrong => Err(Failure::mismatch(format!(
            "{wrong} of {} in {} not as published",
            count(checks.len(), "file"),
            directory.display()
        ))),
    }
}

fn describe(status: &Status) -> String {
    match status {
        Status::Ok(authority) => format!("ok, by {authority}"),
        Status::Mismatch { authority, expected } => {
            format!("MISMATCH: {authority} says {expected}")
        }
        Status::Unknown => "unknown: it has no recorded checksum".to_owned(),
        Status::Missing => "MISSING".to_owned(),
    }
}

impl Import {
    fn run(self, given: Paths) -> Result<(), Failure> {
        given.write_beside(&self.directory)?.enter()?;
        hub::gguf::import(&self.file, &self.directory)?;
        if let Err(ChatError::Missing { .. }) = ChatTemplate::load(&self.directory) {
            let remedy = "put a chat_template.jinja there";
            self.progress.note(format!(
                "the file has no chat template, and the model is not asked without: {remedy}"
            ));
        }
        Ok(console::say(self.directory.display().to_string())?)
    }
}

impl Synth {
    fn run(self, given: Paths) -> Result<(), Failure> {
        given.write_beside(&self.directory)?.enter()?;
        let recipe = Recipe {
            family: self.family,
            shape: self.shape,
            seed: self.seed,
            tokenizer: self.tokenizer.as_deref(),
        };
        write_checkpoint(&recipe, &self.directory)?;
        Ok(console::say(self.directory.display().to_string())?)
    }
}
