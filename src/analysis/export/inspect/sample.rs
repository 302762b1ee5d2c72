//! A sample of the log.

use serde_json::{Value, json};

use super::super::facts::{self, without_nulls};
use super::super::identity::Identity;
use super::super::sample::{Call, Lack, Sample};
use super::{SCORER, usage};
use crate::record::{FinishReason, ItemLine};

pub fn of(sample: &Sample<'_>, identity: &Identity) -> Value {
    let line = sample.line;
    // Of a single call, or an open question's answer, which graders read. What several say is in the messages, and what they come to in
    // the score.
    let in_words = sample.text.open().and_then(|_| sample.answer());
    let output = match (in_words, sample.calls.as_slice()) {
        (Some(answer), _) => vec![json!({
            "message": {"role": "assistant", "content": answer},
            "stop_reason": "stop",
        })],
        (None, [only]) if sample.text.open().is_none() => vec![json!({
            "message": reply(only),
            "stop_reason": stop_reason(only.line.finish_reason),
        })],
        _ => Vec::new(),
    };
    without_nulls(json!({
        "id": line.item(),
        "epoch": sample.epoch,
        "input": sample.input(),
        "choices": sample.choices(),
        // Empty where there is no gold; then there is no score either.
        "target": sample.target(),
        "messages": sample.calls.iter().flat_map(messages).collect::<Vec<_>>(),
        "output": {"model": identity.id, "choices": output},
        "scores": line.correct().map(|is_right| json!({SCORER: score(sample, is_right)})),
        "metadata": facts::of_sample(sample),
        "model_usage": usage(sample.calls.iter().map(|call| call.line)),
        // There is no traceback.
        "error": line.error().map(|message| json!({"message": message, "traceback": "", "traceback_ansi": ""})),
    }))
}

fn score(sample: &Sample<'_>, is_right: bool) -> Value {
    let lack = sample.lack();
    let rationale = match sample.line {
        ItemLine::Answer(answer) => Some(&answer.rationale).filter(|text| !text.is_empty()),
        ItemLine::Note(_) => None,
    };
    json!({
        // No answer counts as wrong.
        "value": match (is_right, lack) {
            (_, Some(_)) => "N",
            (true, None) => "C",
            (false, None) => "I",
        },
        "answer": sample.answer(),
        "explanation": lack.map(Lack::in_words).or_else(|| rationale.cloned()),
        "reason": lack.map(|lack| match lack {
            Lack::Failed(_) => "failed",
            Lack::Unread => "unread",
        }),
    })
}

/// What a call was asked, and what it said.
fn messages(call: &Call<'_>) -> Vec<Value> {
    let asked = call.messages.iter();
    let asked = asked.map(|message| json!({"role": message.role, "content": message.content}));
    asked.chain([reply(call)]).collect()
}

/// With the model that wrote it, and what the call was to its item.
fn reply(call: &Call<'_>) -> Value {
    let line = call.line;
    json!({
        "role": "assistant",
        "content": line.text,
        "model": line.backbone,
        "metadata": {
            "agent": line.agent,
            "round": line.round,
            "purpose": line.purpose,
            "sample": line.sample,
            "stage": line.stage,
            "parse": line.parse,
            "seed": line.seed,
        },
    })
}

fn stop_reason(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "max_tokens",
        FinishReason::Refusal => "content_filter",
        FinishReason::Constraint | FinishReason::Cancelled => "unknown",
    }
}
