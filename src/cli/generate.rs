//! `generate`: prints one completion of one model, or under it log-probabilities.

use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

use super::inspect::{ModelFlags, read_messages, read_text};
use super::logprobs::Logprobs;
use crate::chat::{ChatTemplate, Message};
use crate::cli::exit::Failure;
use crate::cli::sandboxed::Paths;
use crate::console;
use crate::engine::{Constraint, EngineOptions, Grammar, Request, Stop};
use crate::experiment::hardware::{Compute, DEFAULT_CONTEXT, MOST_DRAFT};
use crate::generation::Generation;
use crate::hub::Checkpoint;
use crate::local_model::Start;
use crate::model::{Config, Footprint, precision_of};
use crate::ops::PAGE;
use crate::outside;
use crate::panel::memory::expect_room_for;
use crate::panel::{PanelError, SamplingChoice};
use crate::tokenizer::Tokenizer;

// A completion, unless the verb below it is asked for.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Generate {
    #[command(subcommand)]
    verb: Option<Other>,
    #[command(flatten)]
    one: Box<OneCompletion>,
}

#[derive(Debug, Subcommand)]
enum Other {
    /// Print next-token log-probabilities for a token sequence
    Logprobs(Logprobs),
}

impl Generate {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        match self.verb {
            Some(Other::Logprobs(verb)) => verb.run(given),
            None => self.one.run(given),
        }
    }
}

#[derive(Debug, Args)]
pub struct OneCompletion {
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    input: Input,
    /// Maximum number of tokens to generate
    #[arg(long, help_heading = "Decoding", default_value_t = 512, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: u32,
    #[command(flatten)]
    sampling: SamplingChoice,
    /// Random seed
    #[arg(long, help_heading = "Decoding", default_value_t = 42, value_name = "S")]
    seed: u64,
    #[command(flatten)]
    form: Form,
    /// Stop sequence: end before this text; may be repeated
    #[arg(long, help_heading = "Decoding", value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    stop: Vec<String>,
    /// Print a JSON object with text, tokens, usage and finish_reason
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    compute: Compute,
    /// Speculative decoding: tokens to draft per step by prompt lookup
    #[arg(long, help_heading = "Device", default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u16).range(..=MOST_DRAFT))]
    draft: u16,
    /// Context length in tokens: prompt and completion together
    #[arg(long, help_heading = "Device", default_value_t = DEFAULT_CONTEXT, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    context: u32,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Input {
    /// User message; `-` reads stdin
    #[arg(long, help_heading = "Input", value_name = "TEXT")]
    prompt: Option<String>,
    /// File with a JSON list of messages, each with role and content
    #[arg(long, help_heading = "Input", value_name = "FILE")]
    messages: Option<PathBuf>,
    /// Token ids of the prompt; no chat template is applied
    #[arg(long, help_heading = "Input", value_delimiter = ',', value_name = "ID,ID")]
    tokens: Option<Vec<u32>>,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct Form {
    /// Constrained decoding: file with a JSON schema that the text must follow
    #[arg(long, help_heading = "Decoding", value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Constrained decoding: regular expression that the whole text must match
    #[arg(long, help_heading = "Decoding", value_name = "REGEX")]
    regex: Option<String>,
}

impl OneCompletion {
    fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        let checkpoint = self.model.find()?;
        let files = &checkpoint.files;
        let tokenizer = Arc::new(Tokenizer::load(checkpoint.tokenizer()?)?);
        let tokens = self.input.tokens(&checkpoint, &tokenizer)?;
        let config = Config::read(&files.config)?;
        let directory = &checkpoint.directory;
        // Token ids may be of a model without a template.
        let chat = ChatTemplate::load(directory).ok();
        let generation =
            Generation::of_checkpoint(directory, files, &config, &tokenizer, chat.as_ref())?;
        let context = (self.context as usize).min(config.max_position_embeddings);
        let room = context.saturating_sub(tokens.len());
        if room == 0 {
            return Err(PanelError::PromptTooLong { prompt: tokens.len(), context }.into());
        }
        let request = Request {
            max_tokens: room.min(self.max_tokens as usize),
            sampling: self.sampling.over(generation.sampling),
            seed: self.seed,
            constraint: self.form.constraint()?,
            stop: Stop { ids: generation.eos_ids.clone(), strings: self.stop, ..Stop::default() },
            pieces: !self.json,
            tokens,
            ..Request::default()
        };
        let device = self.compute.one_device()?;
        let options = EngineOptions {
            pages: (request.tokens.len() + request.max_tokens).div_ceil(PAGE),
            max_batch: 1,
            prefill_rows: device.machine().prefill_rows(),
            context,
            draft: usize::from(self.draft),
            known_logit_rows: 0,
            pages_at_start: false,
        };
        let weights = self.compute.precision();
        let precision = precision_of(&config, &files.weights, weights, device.machine())?;
        let (name, machine) = (&checkpoint.name, device.machine());
        let footprint =
            Footprint::of(&config, precision, machine, options.pages, options.step_limits());
        expect_room_for(name, footprint, &device)?;
        let start = Start {
            name,
            config: &config,
            weights: &files.weights,
            precision,
            tokenizer: &tokenizer,
            generation: &generation,
            options,
        };
        let (engine, warnings) = start.on(&device)?;
        for warning in warnings {
            console::note(format!("warning: {name}: {warning}"));
        }
        let mut written = Ok(());
        let completion = engine.submit(request)?.wait_with(|piece| {
            if written.is_ok() {
                written = console::write(piece);
            }
        })?;
        written?;
        let shown = match self.json {
            false => String::new(),
            true => serde_json::json!({
                "text": completion.text,
                "tokens": completion.tokens,
                "finish_reason": completion.finish_reason,
                "usage": completion.usage,
            })
            .to_string(),
        };
        console::say(shown)?;
        completion.problem.map_or(Ok(()), |problem| Err(too_complex(&problem)))
    }
}

/// The failure of a completion that ended before its grammar was matched.
fn too_complex(problem: &str) -> Failure {
    let message =
        format!("the text ends before the schema or the regular expression is matched: {problem}");
    Failure::usage(message, "simplify it: fewer optional properties, fewer and smaller repetitions")
}

impl Input {
    fn tokens(&self, checkpoint: &Checkpoint, tokenizer: &Tokenizer) -> Result<Vec<u32>, Failure> {
        let messages = match (&self.tokens, &self.messages, &self.prompt) {
            (Some(tokens), _, _) => return Ok(tokens.clone()),
            (None, Some(path), _) => read_messages(path)?,
            (None, None, prompt) => {
                vec![Message::new("user", read_text(prompt.as_deref().unwrap_or_default())?)]
            }
        };
        let chat = ChatTemplate::load(&checkpoint.directory)?;
        Ok(chat.prompt(tokenizer, &messages, false)?.tokens)
    }
}

impl Form {
    fn constraint(self) -> Result<Option<Constraint>, Failure> {
        let grammar = match (self.schema, self.regex) {
            (Some(path), _) => Grammar::JsonSchema(outside::given_text(&path)?),
            (None, Some(regex)) => Grammar::Regex(regex),
            (None, None) => return Ok(None),
        };
        Ok(Some(Constraint { grammar, after: None }))
    }
}
