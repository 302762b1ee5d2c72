//! A line of the samples' file.

use serde::Serialize;

use super::super::facts::{self, Facts};
use super::super::identity::Identity;
use super::super::sample::{Lack, Sample};
use super::{ACCURACY, SCHEMA_VERSION};
use crate::digest::sha256;
use crate::experiment::plan::Plan;
use crate::experiment::results::Tokens;
use crate::record::Parse;

#[derive(Serialize)]
pub struct Instance<'a> {
    schema_version: &'static str,
    evaluation_id: &'a str,
    model_id: &'a str,
    evaluation_name: &'a str,
    evaluation_result_id: &'static str,
    sample_id: &'a str,
    sample_hash: String,
    interaction_type: Interaction,
    input: Input<'a>,
    /// Of a single call.
    output: Option<Output<'a>>,
    /// Of several.
    messages: Option<Vec<Turn<'a>>>,
    answer_attribution: Vec<Attribution<'a>>,
    evaluation: Evaluation,
    token_usage: TokenUsage,
    error: Option<String>,
    metadata: Facts,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Interaction {
    SingleTurn,
    MultiTurn,
    /// With searches of its own.
    Agentic,
}

#[derive(Serialize)]
struct Input<'a> {
    raw: &'a str,
    reference: [&'a str; 1],
    choices: Option<Vec<&'a str>>,
}

#[derive(Serialize)]
struct Output<'a> {
    raw: [&'a str; 1],
}

#[derive(Serialize)]
struct Turn<'a> {
    turn_idx: usize,
    role: &'a str,
    content: &'a str,
}

#[derive(Serialize)]
struct Attribution<'a> {
    turn_idx: usize,
    source: String,
    extracted_value: &'a str,
    extraction_method: &'static str,
    is_terminal: bool,
}

#[derive(Serialize)]
struct Evaluation {
    score: f64,
    is_correct: bool,
    num_turns: Option<usize>,
}

#[derive(Serialize)]
struct TokenUsage {
    input_tokens: usize,
    output_tokens: usize,
    total_tokens: usize,
    input_tokens_cache_read: usize,
}

impl<'a> Instance<'a> {
    /// `None` of an item without gold, which has no score.
    pub fn of(
        sample: &'a Sample<'a>,
        plan: &'a Plan,
        evaluation_id: &'a str,
        identity: &'a Identity,
    ) -> Option<Instance<'a>> {
        let is_correct = sample.line.correct()?;
        let gold = sample.line.gold()?;
        let interaction = match sample.calls.len() {
            _ if plan.corpus.is_some() => Interaction::Agentic,
            1 => Interaction::SingleTurn,
            _ => Interaction::MultiTurn,
        };
        let is_single = interaction == Interaction::SingleTurn;
        let Tokens { prompt, cached, completion, .. } = sample.tokens();
        let conversation = Conversation::of(sample, is_single);
        let mut metadata = facts::of_sample(sample);
        metadata.insert("turns".to_owned(), conversation.speakers.join("; "));
        Some(Instance {
            schema_version: SCHEMA_VERSION,
            evaluation_id,
            model_id: &identity.id,
            evaluation_name: &plan.dataset.name,
            evaluation_result_id: ACCURACY,
            sample_id: sample.line.item(),
            sample_hash: sha256(format!("{}{gold}", sample.input())),
            interaction_type: interaction,
            input: Input { raw: sample.input(), reference: [gold], choices: sample.choices() },
            output: is_single.then(|| Output { raw: [&sample.calls[0].line.text] }),
            answer_attribution: conversation.answers,
            evaluation: Evaluation {
                score: f64::from(u8::from(is_correct)),
                is_correct,
                num_turns: Some(sample.calls.len()).filter(|turns| *turns > 0),
            },
            token_usage: TokenUsage {
                input_tokens: prompt,
                output_tokens: completion,
                total_tokens: prompt + completion,
                input_tokens_cache_read: cached,
            },
            error: sample.lack().map(Lack::in_words),
            metadata,
            messages: (!is_single).then_some(conversation.turns),
        })
    }
}

/// The calls of an item one after the other: what each was asked, then what it said.
struct Conversation<'a> {
    turns: Vec<Turn<'a>>,
    answers: Vec<Attribution<'a>>,
    /// Who speaks in which turn: the schema has no field for it.
    speakers: Vec<String>,
}

impl<'a> Conversation<'a> {
    fn of(sample: &'a Sample<'a>, is_single: bool) -> Conversation<'a> {
        let (mut turns, mut answers, mut speakers) = (Vec::new(), Vec::new(), Vec::new());
        for call in &sample.calls {
            for message in &call.messages {
                let (role, content) = (&message.role, &message.content);
                turns.push(Turn { turn_idx: turns.len(), role, content });
            }
            let turn_idx = if is_single { 0 } else { turns.len() };
            speakers.push(format!("{turn_idx}: {}", call.turn()));
            if let Some(answer) = call.answer() {
                answers.push(Attribution {
                    turn_idx,
                    source: match is_single {
                        true => "output.raw".to_owned(),
                        false => format!("messages[{turn_idx}].content"),
                    },
                    extracted_value: answer,
                    extraction_method: how(call.line.parse),
                    is_terminal: is_single || call.is_final(),
                });
            }
            turns.push(Turn { turn_idx, role: "assistant", content: &call.line.text });
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
