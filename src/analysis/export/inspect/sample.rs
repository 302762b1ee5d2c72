//! A sample of the log.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::facts::{self, Facts};
use super::super::identity::Identity;
use super::super::sample::{Call, Lack, Sample};
use super::{ModelUsage, SCORER, usage};
use crate::record::{FinishReason, ItemLine, Parse, Stage};

#[derive(Serialize)]
pub struct EvalSample<'a> {
    id: &'a str,
    epoch: usize,
    input: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    choices: Option<Vec<&'a str>>,
    /// Empty where there is no gold; then there is no score either.
    target: &'a str,
    messages: Vec<ChatMessage<'a>>,
    output: ModelOutput<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scores: Option<BTreeMap<&'static str, Score<'a>>>,
    metadata: Facts,
    model_usage: BTreeMap<&'a str, ModelUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<EvalError<'a>>,
}

#[derive(Serialize)]
struct ChatMessage<'a> {
    role: &'a str,
    content: &'a str,
    /// The model that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Turn<'a>>,
}

/// What a call was to its item.
#[derive(Serialize)]
struct Turn<'a> {
    agent: &'a str,
    round: u32,
    purpose: &'a str,
    sample: u32,
    stage: Stage,
    parse: Parse,
    seed: u64,
}

/// Of a single call. What several say is in the messages, and what they come to in the score.
#[derive(Serialize)]
struct ModelOutput<'a> {
    model: &'a str,
    choices: Vec<ChatCompletionChoice<'a>>,
}

#[derive(Serialize)]
struct ChatCompletionChoice<'a> {
    message: ChatMessage<'a>,
    stop_reason: &'static str,
}

#[derive(Serialize)]
struct Score<'a> {
    /// `C`, `I`, or `N` where there is no answer, which counts as wrong.
    value: &'static str,
    answer: Option<&'a str>,
    explanation: Option<String>,
    /// Why there is no answer.
    reason: Option<&'static str>,
}

#[derive(Serialize)]
struct EvalError<'a> {
    message: &'a str,
    /// There is none.
    traceback: &'static str,
    traceback_ansi: &'static str,
}

impl<'a> EvalSample<'a> {
    pub fn of(sample: &'a Sample<'a>, identity: &'a Identity) -> EvalSample<'a> {
        let line = sample.line;
        let scores =
            line.correct().map(|is_right| BTreeMap::from([(SCORER, score(sample, is_right))]));
        EvalSample {
            id: line.item(),
            epoch: sample.epoch,
            input: sample.input(),
            choices: sample.choices(),
            target: line.gold().unwrap_or_default(),
            messages: sample.calls.iter().flat_map(messages).collect(),
            output: ModelOutput {
                model: &identity.id,
                choices: match sample.calls.as_slice() {
                    [only] => vec![ChatCompletionChoice {
                        message: reply(only),
                        stop_reason: stop_reason(only.line.finish_reason),
                    }],
                    _ => Vec::new(),
                },
            },
            scores,
            metadata: facts::of_sample(sample),
            model_usage: usage(sample.calls.iter().map(|call| call.line)),
            error: line.error().map(|message| EvalError {
                message,
                traceback: "",
                traceback_ansi: "",
            }),
        }
    }
}

fn score<'a>(sample: &Sample<'a>, is_right: bool) -> Score<'a> {
    let lack = sample.lack();
    let rationale = match sample.line {
        ItemLine::Answer(answer) => Some(&answer.rationale).filter(|text| !text.is_empty()),
        ItemLine::Note(_) => None,
    };
    Score {
        value: match (is_right, lack) {
            (_, Some(_)) => "N",
            (true, None) => "C",
            (false, None) => "I",
        },
        answer: sample.answer(),
        explanation: lack.map(Lack::in_words).or_else(|| rationale.cloned()),
        reason: lack.map(|lack| match lack {
            Lack::Failed(_) => "failed",
            Lack::Unread => "unread",
        }),
    }
}

/// What a call was asked, and what it said.
fn messages<'a>(call: &'a Call<'a>) -> impl Iterator<Item = ChatMessage<'a>> {
    let asked = call.messages.iter().map(|message| ChatMessage {
        role: &message.role,
        content: &message.content,
        model: None,
        metadata: None,
    });
    asked.chain([reply(call)])
}

fn reply<'a>(call: &Call<'a>) -> ChatMessage<'a> {
    let line = call.line;
    ChatMessage {
        role: "assistant",
        content: &line.text,
        model: Some(&line.backbone),
        metadata: Some(Turn {
            agent: &line.agent,
            round: line.round,
            purpose: &line.purpose,
            sample: line.sample,
            stage: line.stage,
            parse: line.parse,
            seed: line.seed,
        }),
    }
}

fn stop_reason(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "max_tokens",
        FinishReason::Refusal => "content_filter",
        FinishReason::Constraint | FinishReason::Cancelled => "unknown",
    }
}
