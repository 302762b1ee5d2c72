//! A line of the samples' file.

use serde_json::{Value, json};

use super::super::facts;
use super::super::identity::Identity;
use super::super::sample::{Lack, Sample};
use super::{ACCURACY, SCHEMA_VERSION};
use crate::digest::sha256;
use crate::experiment::plan::Plan;
use crate::experiment::results::Tokens;
use crate::record::Parse;

/// `None` of an item without gold, which has no score.
pub fn of(
    sample: &Sample<'_>,
    plan: &Plan,
    evaluation_id: &str,
    identity: &Identity,
) -> Option<Value> {
    let is_correct = sample.line.correct()?;
    let gold = sample.line.gold()?;
    let interaction = match sample.calls.len() {
        // With searches of its own.
        _ if plan.corpus.is_some() => "agentic",
        1 => "single_turn",
        _ => "multi_turn",
    };
    let is_single = interaction == "single_turn";
    let Tokens { prompt, cached, completion, .. } = sample.tokens();
    let Conversation { turns, answers, speakers } = Conversation::of(sample, is_single);
    let mut metadata = facts::of_sample(sample);
    metadata.insert("turns".to_owned(), speakers.join("; "));
    Some(json!({
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id,
        "model_id": identity.id,
        "evaluation_name": plan.dataset.name,
        "evaluation_result_id": ACCURACY,
        "sample_id": sample.line.item(),
        "sample_hash": sha256(format!("{}{gold}", sample.input())),
        "interaction_type": interaction,
        "input": {"raw": sample.input(), "reference": [gold], "choices": sample.choices()},
        // Of a single call; of several there are messages.
        "output": is_single.then(|| json!({"raw": [sample.calls[0].line.text]})),
        "messages": (!is_single).then_some(turns),
        "answer_attribution": answers,
        "evaluation": {
            "score": f64::from(u8::from(is_correct)),
            "is_correct": is_correct,
            "num_turns": Some(sample.calls.len()).filter(|turns| *turns > 0),
        },
        "token_usage": {
            "input_tokens": prompt,
            "output_tokens": completion,
            "total_tokens": prompt + completion,
            "input_tokens_cache_read": cached,
        },
        "error": sample.lack().map(Lack::in_words),
        "metadata": metadata,
    }))
}

/// The calls of an item one after the other: what each was asked, then what it said.
struct Conversation {
    turns: Vec<Value>,
    answers: Vec<Value>,
    /// Who speaks in which turn: the schema has no field for it.
    speakers: Vec<String>,
}

impl Conversation {
    fn of(sample: &Sample<'_>, is_single: bool) -> Conversation {
        let (mut turns, mut answers, mut speakers) = (Vec::new(), Vec::new(), Vec::new());
        let turn = |index: usize, role: &str, content: &str| json!({"turn_idx": index, "role": role, "content": content});
        for call in &sample.calls {
            for message in &call.messages {
                turns.push(turn(turns.len(), &message.role, &message.content));
            }
            let turn_idx = if is_single { 0 } else { turns.len() };
            speakers.push(format!("{turn_idx}: {}", call.turn()));
            if let Some(answer) = call.answer() {
                answers.push(json!({
                    "turn_idx": turn_idx,
                    "source": match is_single {
                        true => "output.raw".to_owned(),
                        false => format!("messages[{turn_idx}].content"),
                    },
                    "extracted_value": answer,
                    "extraction_method": how(call.line.parse),
                    "is_terminal": is_single || call.is_final(),
                }));
            }
            turns.push(turn(turns.len(), "assistant", &call.line.text));
        }
        Conversation { turns, answers, speakers }
    }
}

/// How a reply was read.
fn how(parse: Parse) -> &'static str {
    match parse {
        Parse::Ok => "record as it was asked for",
        Parse::Repaired => "record after repair",
        Parse::Fallback => "from the words of the reply",
        Parse::Refused | Parse::Unread => "none",
    }
}
