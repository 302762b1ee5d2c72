//! What a line says of a case: which system worked on it, and what came of it without a word of the note's or the agents'.

use serde_json::{Value, json};

use super::Event;
use crate::record::{CallLine, ItemLine, Usage};

/// A case that has ended, however it did.
pub struct CaseLine<'a> {
    pub system: &'a str,
    /// `None` where a model is asked elsewhere.
    pub fingerprint: Option<&'a str>,
    pub seed: u64,
    pub run: u32,
    pub elapsed_ms: u64,
    /// `done`, or the code of what went wrong.
    pub status: &'a str,
    /// The item's id, which is a sum of its text or the name of its file; empty where it is not known.
    pub item: &'a str,
}

impl CaseLine<'_> {
    /// `event` with what is known of the case.
    pub fn on(&self, event: Event) -> Event {
        let CaseLine { system, fingerprint, seed, run, elapsed_ms, status, item } = self;
        let event = event
            .with("system", *system)
            .with("fingerprint", *fingerprint)
            .with("seed", *seed)
            .with("run", *run)
            .with("elapsed_ms", *elapsed_ms)
            .with("status", *status);
        match item.is_empty() {
            true => event,
            false => event.with_sum("item", *item),
        }
    }
}

/// Tokens, as answers give them.
pub fn usage(sum: Usage) -> Value {
    let Usage { prompt_tokens, cached_tokens, completion_tokens, .. } = sum;
    json!({
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": sum.total(),
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": 0},
    })
}

/// The tokens of a case's calls, which are kept with its texts: whoever checks them by prefill has to know what was said.
pub fn tokens(calls: &[CallLine]) -> Value {
    calls.iter().map(|call| json!([call.key(), call.tokens])).collect()
}

/// What an outcome says without a text; the item's id stays out too.
pub fn without_text(line: &ItemLine) -> Value {
    match line {
        ItemLine::Answer(line) => json!({
            "kind": "question", "answer": line.answer, "team_confidence": line.team_confidence,
            "rounds_run": line.rounds_run, "calls": line.calls, "tie": line.tie,
        }),
        ItemLine::Note(line) => json!({
            "kind": "note", "flag": line.flag, "sentence_id": line.sentence_id,
            "confidence": line.confidence, "calls": line.calls,
            "votes": line.detection.as_ref().map(|detection| &detection.flags),
            "located": line.localisation.as_ref().map(|localisation| &localisation.sentence_ids),
        }),
    }
}
