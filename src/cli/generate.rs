//! `generate`, `logprobs`, `tokenize`: one model, one text, to look at what the engine sees and says.

use std::io::{Read, Write};

use clap::Args;

use super::options::{HubFlags, MachineFlags};
use crate::console;
use crate::engine::{Constraint, Grammar, Request, Sampler, Stop};
use crate::exit::Failure;
use crate::hub::resolve;
use crate::model::Scratch;
use crate::ops::{KvPages, PAGE, Rows};
use crate::panel::PanelError;
use crate::panel::backbone::{Backbone, Description};
use crate::panel::memory::plan_memory;
use crate::run::records::Message;

/// The model and the text.
#[derive(Debug, Args)]
struct Input {
    /// A card's name, a hub id or a directory
    #[arg(long, env = "WARDROUND_MODEL", value_name = "MODEL")]
    model: String,
    /// The text; `-` reads stdin
    #[arg(long, env = "WARDROUND_PROMPT", value_name = "TEXT")]
    prompt: String,
    /// Take the text as it is, without the model's chat template
    #[arg(long, env = "WARDROUND_RAW")]
    raw: bool,
    /// What the system message says
    #[arg(
        long,
        env = "WARDROUND_SYSTEM",
        value_name = "TEXT",
        conflicts_with = "raw"
    )]
    system: Option<String>,
    /// Ask for a `<think>` section where the template knows the switch
    #[arg(long, env = "WARDROUND_THINKING", conflicts_with = "raw")]
    thinking: bool,
    #[command(flatten)]
    machine: MachineFlags,
    #[command(flatten)]
    hub: HubFlags,
}

impl Input {
    fn read(&self) -> Result<(Description, Vec<u32>), Failure> {
        let checkpoint = resolve(&self.model, &self.hub.options(false)?)?;
        let description =
            Description::read(checkpoint, self.machine.weights(), self.machine.context())?;
        let mut text = self.prompt.clone();
        if text == "-" {
            text.clear();
            std::io::stdin().read_to_string(&mut text)?;
        }
        let tokens = if self.raw {
            description
                .tokenizer
                .encode(&text)
                .map_err(PanelError::from)?
        } else {
            let message = |role: &str, content| Message {
                role: role.to_owned(),
                content,
            };
            let system = self.system.clone().map(|text| message("system", text));
            let messages: Vec<Message> =
                system.into_iter().chain([message("user", text)]).collect();
            description.tokenise(&messages, self.thinking)?
        };
        Ok((description, tokens))
    }
}

#[derive(Debug, Args)]
pub struct Generate {
    #[command(flatten)]
    input: Input,
    /// Tokens to generate at most
    #[arg(
        long,
        env = "WARDROUND_MAX_TOKENS",
        default_value_t = 512,
        value_name = "N"
    )]
    max_tokens: u32,
    /// What the draws derive from
    #[arg(long, env = "WARDROUND_SEED", default_value_t = 42, value_name = "S")]
    seed: u64,
    /// Overrides the model's own default; 0 is greedy
    #[arg(long, env = "WARDROUND_TEMPERATURE", value_name = "T")]
    temperature: Option<f32>,
    /// A file with a JSON schema that the text must follow
    #[arg(long, env = "WARDROUND_SCHEMA", value_name = "FILE")]
    schema: Option<std::path::PathBuf>,
    /// End before this text
    #[arg(long, env = "WARDROUND_STOP", value_name = "TEXT")]
    stop: Vec<String>,
    /// Print one JSON object with tokens, usage and finish_reason
    #[arg(long, env = "WARDROUND_JSON")]
    json: bool,
}

impl Generate {
    pub fn run(self) -> Result<(), Failure> {
        let (description, tokens) = self.input.read()?;
        let allotment = plan_memory(&[&description], 1, self.input.machine.kv_tokens())?[0];
        let backbone = Backbone::start(description, self.input.machine.ops()?, allotment.options)?;
        let description = &backbone.description;
        let mut sampling = description.generation.sampling;
        sampling.temperature = self.temperature.unwrap_or(sampling.temperature);
        let schema = self.schema.map(fs_err::read_to_string).transpose()?;
        let constraint = schema.map(|text| Constraint {
            grammar: Grammar::JsonSchema(text),
            after: backbone.think_end.filter(|_| self.input.thinking),
        });
        let room = description.context.saturating_sub(tokens.len());
        let request = Request {
            max_tokens: room.min(self.max_tokens as usize),
            tokens,
            sampling,
            seed: self.seed,
            constraint,
            stop: Stop {
                ids: description.generation.eos_ids.clone(),
                strings: self.stop,
            },
            logprobs: None,
            pieces: !self.json,
        };
        let mut broken = Ok(());
        let completion = backbone.engine.submit(request)?.wait_with(|piece| {
            let mut stdout = std::io::stdout().lock();
            let written = stdout
                .write_all(piece.as_bytes())
                .and_then(|()| stdout.flush());
            broken = std::mem::replace(&mut broken, Ok(())).and(written);
        })?;
        broken?;
        if !self.json {
            return Ok(console::say("")?);
        }
        let value = serde_json::json!({
            "text": completion.text,
            "tokens": completion.tokens,
            "finish_reason": completion.finish_reason,
            "usage": completion.usage,
        });
        Ok(console::say(value.to_string())?)
    }
}

#[derive(Debug, Args)]
pub struct Logprobs {
    #[command(flatten)]
    input: Input,
    /// Likeliest tokens to give beside each
    #[arg(long, env = "WARDROUND_TOP", default_value_t = 0, value_name = "N")]
    top: usize,
}

impl Logprobs {
    /// One JSON line a token after the first: its log-probability after those before it.
    pub fn run(self) -> Result<(), Failure> {
        /// Rows of logits at a time.
        const ROWS: usize = 16;
        let (description, tokens) = self.input.read()?;
        let (length, context) = (tokens.len(), description.context);
        if length > context {
            return Err(PanelError::PromptTooLong {
                prompt: length,
                context,
            }
            .into());
        }
        let config = &description.config;
        let mut pages = KvPages::new(
            config.layer_count(),
            length.div_ceil(PAGE),
            config.kv_heads,
            config.head_dim,
        );
        let table: Vec<u32> = (0..pages.pages() as u32).collect();
        let decoder = description.load(length)?;
        let ops = self.input.machine.ops()?;
        let (mut scratch, mut sampler) = (Scratch::default(), Sampler::default());
        for start in (0..length).step_by(ROWS) {
            let chunk = &tokens[start..length.min(start + ROWS)];
            let positions: Vec<u32> = (start..start + chunk.len()).map(|at| at as u32).collect();
            let sequences = vec![0; chunk.len()];
            let rows = Rows {
                tokens: chunk,
                positions: &positions,
                sequences: &sequences,
                tables: &[&table],
            };
            let all: Vec<usize> = (0..chunk.len()).collect();
            ops.run(|| decoder.forward(&ops, rows, &all, &mut pages, &mut scratch));
            for (logits, next) in scratch.logits.rows_mut().zip(start + 1..length) {
                let token = tokens[next];
                let logprobs = sampler.logprobs(&ops, logits, token, self.top);
                let text = String::from_utf8_lossy(description.tokenizer.bytes(token)).into_owned();
                let line = serde_json::json!({
                    "position": next, "token": token, "text": text,
                    "logprob": logprobs.chosen, "top": logprobs.top,
                });
                console::say(line.to_string())?;
            }
        }
        Ok(())
    }
}

#[derive(Debug, Args)]
pub struct Tokenize {
    #[command(flatten)]
    input: Input,
}

impl Tokenize {
    pub fn run(self) -> Result<(), Failure> {
        let (_, tokens) = self.input.read()?;
        Ok(console::say(
            serde_json::to_string(&tokens).map_err(std::io::Error::from)?,
        )?)
    }
}
