//! Agents: roles on backbones. Renders their prompts, asks the engines, reads and records what comes back.

pub mod backbone;
pub mod generation;
pub mod memory;
pub mod recorder;
pub mod remote;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::Value;
use thiserror::Error;

use self::backbone::Backbone;
use self::generation::GenerationError;
use self::recorder::Recorder;
use crate::chat::ChatError;
use crate::engine::{Completion, Constraint, EngineError, Grammar, Request, Stop, Ticket};
use crate::hub::HubError;
use crate::model::ModelError;
use crate::run::error::RunError;
use crate::run::records::{CallKey, CallRecord, FinishReason, Message, Parse, SamplingRecord};
use crate::run::seed::call_seed;
use crate::tokenizer::TokenizerError;

#[derive(Debug, Error)]
pub enum PanelError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    #[error(transparent)]
    Chat(#[from] ChatError),
    #[error(transparent)]
    Generation(#[from] GenerationError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("neither config.json nor generation_config.json in {path} names an end-of-turn id")]
    NoEndOfTurn { path: PathBuf },
    #[error("the panel needs {needed} of memory, and {available} is free ({models})")]
    Memory {
        needed: String,
        available: String,
        models: String,
    },
    #[error("item {item} has an image, which a local model cannot be shown")]
    Image { item: String },
    #[error("a prompt of {prompt} tokens leaves no room in the context of {context}")]
    PromptTooLong { prompt: usize, context: usize },
    #[error("interrupted")]
    Interrupted,
}

impl PanelError {
    pub fn hint(&self) -> Option<String> {
        match self {
            PanelError::Hub(error) => error.hint(),
            PanelError::Model(ModelError::Checkpoint(error)) => error.hint(),
            PanelError::Engine(error) => error.hint(),
            PanelError::Run(error) => error.hint(),
            PanelError::Memory { .. } => Some(
                "lower --max-batch, --context, --kv-tokens or --kv-fraction, or keep weights smaller: --dtype bf16, --quant q8_0 or q4_k"
                    .to_owned(),
            ),
            PanelError::PromptTooLong { .. } => {
                Some("raise --context, or leave the item out".to_owned())
            }
            PanelError::Model(ModelError::Ops(error)) => error.hint(),
            _ => None,
        }
    }

    /// Whether the item at hand alone is lost: the run goes on without it.
    pub fn concerns_item(&self) -> bool {
        matches!(
            self,
            PanelError::Image { .. }
                | PanelError::PromptTooLong { .. }
                | PanelError::Chat(ChatError::Render { .. })
                | PanelError::Tokenizer(TokenizerError::Encode { .. })
                | PanelError::Engine(
                    EngineError::TooLong { .. } | EngineError::PoolTooSmall { .. }
                )
        )
    }
}

/// The agents of a run and where their calls are recorded.
pub struct Panel {
    /// In panel order.
    pub members: Vec<Member>,
    pub recorder: Recorder,
    pub run_seed: u64,
    /// Whether completions are free text; else a grammar holds.
    pub free: bool,
    pub thinking: bool,
    /// Whether free completions run on to their `max_tokens`, as a measurement of equal work wants.
    pub ignore_eos: bool,
    /// Set from outside to stop: calls in flight are dropped.
    pub stop: Arc<AtomicBool>,
    /// Told of every call that was made.
    pub on_call: Box<dyn Fn(&CallRecord) + Send + Sync>,
}

/// A role on a backbone.
pub struct Member {
    pub agent: String,
    pub backbone: Arc<Backbone>,
}

/// One question to one agent.
pub struct Call {
    /// Index into the panel's members.
    pub member: usize,
    pub key: CallKey,
    pub messages: Vec<Message>,
    /// What the record looks like; it holds unless the panel is free.
    pub schema: String,
    /// `None`: as many as the context leaves.
    pub max_tokens: usize,
}

/// What a system makes of a completion's text: the record, and how it was read.
pub type Reader = fn(&str, FinishReason) -> (Value, Parse);

enum Pending {
    Known(Box<CallRecord>),
    Asked(Box<Asked>),
}

/// A call that an engine works on.
struct Asked {
    call: Call,
    request: Request,
    ticket: Ticket,
    asked_at: Instant,
}

impl Panel {
    /// Each backbone once, but for those that somebody else still holds.
    pub fn into_backbones(self) -> Vec<Backbone> {
        let members = self.members.into_iter();
        members
            .filter_map(|member| Arc::into_inner(member.backbone))
            .collect()
    }

    /// Asks all of `calls` at once and waits for every answer; each is durable when this returns. Calls of an
    /// earlier attempt at the run are answered from its log.
    ///
    /// # Errors
    /// The first that failed; the others of the round are dropped.
    pub fn ask_all(&self, calls: Vec<Call>, read: Reader) -> Result<Vec<CallRecord>, PanelError> {
        let pending = calls
            .into_iter()
            .map(|call| self.ask(call))
            .collect::<Result<Vec<_>, _>>()?;
        pending
            .into_iter()
            .map(|pending| self.wait(pending, read))
            .collect()
    }

    fn ask(&self, call: Call) -> Result<Pending, PanelError> {
        if let Some(known) = self.recorder.find(&call.key) {
            return Ok(Pending::Known(Box::new(known.clone())));
        }
        let backbone = &self.members[call.member].backbone;
        let description = &backbone.description;
        let tokens = description.tokenise(&call.messages, self.thinking)?;
        let context = description.context;
        let room = context.saturating_sub(tokens.len());
        if room == 0 {
            return Err(PanelError::PromptTooLong {
                prompt: tokens.len(),
                context,
            });
        }
        let constraint = (!self.free).then(|| Constraint {
            grammar: Grammar::JsonSchema(call.schema.clone()),
            after: backbone.think_end.filter(|_| self.thinking),
        });
        let request = Request {
            tokens,
            sampling: description.generation.sampling,
            seed: call_seed(self.run_seed, &call.key),
            constraint,
            stop: Stop {
                ids: match self.ignore_eos {
                    true => Vec::new(),
                    false => description.generation.eos_ids.clone(),
                },
                strings: Vec::new(),
            },
            max_tokens: call.max_tokens.min(room),
            ..Request::default()
        };
        let asked_at = Instant::now();
        let ticket = backbone.engine.submit(request.clone())?;
        Ok(Pending::Asked(Box::new(Asked {
            call,
            request,
            ticket,
            asked_at,
        })))
    }

    fn wait(&self, pending: Pending, read: Reader) -> Result<CallRecord, PanelError> {
        let asked = match pending {
            Pending::Known(record) => return Ok(*record),
            Pending::Asked(asked) => *asked,
        };
        let Asked {
            call,
            request,
            ticket,
            asked_at,
        } = asked;
        let wanted = || !self.stop.load(Ordering::Relaxed);
        let completion = ticket.wait_while(wanted).ok_or(PanelError::Interrupted)??;
        let elapsed_ms = asked_at.elapsed().as_millis() as u64;
        let record = CallRecord {
            elapsed_ms,
            ..self.record_of(call, request, completion, read)
        };
        self.recorder.record(&record)?;
        (self.on_call)(&record);
        Ok(record)
    }

    fn record_of(
        &self,
        call: Call,
        request: Request,
        completion: Completion,
        read: Reader,
    ) -> CallRecord {
        let (record, parse) = read(&completion.text, completion.finish_reason);
        let sampling = request.sampling;
        let CallKey {
            dataset,
            run,
            item,
            agent,
            round,
            purpose,
            sample,
        } = call.key;
        CallRecord {
            seq: 0,
            dataset,
            run,
            item,
            agent,
            round,
            purpose,
            sample,
            backbone: self.members[call.member]
                .backbone
                .description
                .checkpoint
                .name
                .clone(),
            messages: call.messages,
            sampling: SamplingRecord {
                temperature: sampling.temperature,
                top_k: sampling.top_k,
                top_p: sampling.top_p,
                min_p: sampling.min_p,
                repetition_penalty: sampling.repetition_penalty,
                max_tokens: request.max_tokens,
                constrained: request.constraint.is_some(),
            },
            seed: request.seed,
            text: completion.text,
            tokens: completion.tokens,
            record,
            parse,
            usage: completion.usage,
            finish_reason: completion.finish_reason,
            elapsed_ms: 0,
            prev: String::new(),
            hash: String::new(),
        }
    }
}
