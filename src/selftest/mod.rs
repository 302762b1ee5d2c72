//! The selftest: whether each model's files are what they should be, and its answers the same in every way that they may be computed.
//!
//! The engine gives equal bytes whatever the batch and the state of the prefix cache, so tokens are compared one by one; and on machines of
//! one kind, so the sum of the answers can be compared with that of the machine where a model was released.

pub mod against;
mod calls;

use self::calls::{BATCH, Call, MAX_TOKENS};
use crate::diagnosis::{Blame, Failure};
use crate::digest::sha256;
use crate::engine::{Completion, Constraint, Request, Stop};
use crate::experiment::hardware::{Compute, Hardware};
use crate::experiment::models::Models;
use crate::hub::{Checkpoint, HubOptions, Kind, Status, resolve, verify};
use crate::ops::Precision;
use crate::panel::backbone::Backbone;
use crate::record::Message;

/// Tokens of the longest prompt and its completion, by any tokenizer.
const CONTEXT: usize = 4096;
/// Tokens of keys and values: all calls, so that what was computed before is still there.
const KV_TOKENS: usize = 2 * CONTEXT;
/// How many calls run at once, and whether each was asked before.
const WAYS: [(usize, bool); 4] = [(1, false), (1, true), (BATCH, false), (BATCH, true)];
/// What the columns are called.
pub const HEAD: [&str; 8] =
    ["model", "files", "computed", "batch 1", "1, cached", "batch 8", "8, cached", "answers"];

/// What came of a model: a line of the table.
pub struct Row {
    pub cells: [String; HEAD.len()],
    /// What is wrong, in words.
    pub problems: Vec<String>,
    /// Whether its files are missing, corrupt, or no model.
    pub is_broken: bool,
}

/// Tests one model. What is wrong with it is in the row.
///
/// # Errors
/// A model that is not there; a machine that fails or has too little memory.
pub fn test(member: &str, compute: &Compute, hub: &HubOptions) -> Result<Row, Failure> {
    let checkpoint = resolve(member, hub)?;
    let mut row =
        Row { cells: HEAD.map(|_| "-".to_owned()), problems: Vec::new(), is_broken: false };
    row.cells[0].clone_from(&checkpoint.name);
    row.check_files(&checkpoint)?;
    let is_encoder = checkpoint.card.is_some_and(|card| card.kind == Kind::Encoder);
    // Weights that are not what they should be are not asked: what they say means nothing.
    if row.is_broken || is_encoder {
        return Ok(row);
    }
    match row.ask(member, compute, hub) {
        Err(failure) if failure.blame() == Blame::Artefact => {
            row.break_by(failure.to_string());
            Ok(row)
        }
        asked => asked.map(|()| row),
    }
}

impl Row {
    fn break_by(&mut self, problem: String) {
        self.problems.push(problem);
        self.is_broken = true;
    }

    fn check_files(&mut self, checkpoint: &Checkpoint) -> Result<(), Failure> {
        let mut counts = [(0, "ok"), (0, "of no known sum"), (0, "WRONG")];
        for file in verify(checkpoint)? {
            let (kind, problem) = match file.status {
                Status::Ok(_) => (0, None),
                Status::Unknown => (1, None),
                Status::Missing => (2, Some("missing".to_owned())),
                Status::Mismatch { authority, .. } => (2, Some(format!("not as {authority} says"))),
            };
            counts[kind].0 += 1;
            if let Some(problem) = problem {
                self.break_by(format!("{} is {problem}", file.name));
            }
        }
        let told = counts.iter().filter(|(count, _)| *count > 0);
        let told: Vec<String> = told.map(|(count, what)| format!("{count} {what}")).collect();
        self.cells[1] = told.join(", ");
        Ok(())
    }

    fn ask(&mut self, member: &str, compute: &Compute, hub: &HubOptions) -> Result<(), Failure> {
        let hardware = Hardware {
            compute: compute.clone(),
            max_batch: Some(BATCH),
            context: Some(CONTEXT),
            kv_tokens: Some(KV_TOKENS),
            ..Hardware::default()
        };
        let device = compute.on.one_device()?;
        let none = |_: &[_]| Ok(Vec::new());
        let models = Models::describe([&member.to_owned()], &hardware, hub, none)?;
        for backbone in models.start()?.backbones {
            let Precision { stored, quantisation, kv, .. } = backbone.description.precision;
            let kind = device.kind([backbone.description.precision]);
            self.cells[2] = format!("{stored}, {quantisation}, kv {kv}, {kind}");
            let calls = calls::all();
            let mut first: Vec<Completion> = Vec::new();
            for (cell, (batch, is_cached)) in (3..).zip(WAYS) {
                let way = HEAD[cell];
                let answers = answer(&backbone, &calls, batch)?;
                let found = answers.iter().filter(|answer| answer.usage.cached_tokens > 0).count();
                if (found > 0) != is_cached {
                    self.problems.push(format!("{way}: {found} calls found a prefix in the cache"));
                }
                if first.is_empty() {
                    first.clone_from(&answers);
                }
                let pairs = calls.iter().zip(first.iter().zip(&answers));
                let differ = pairs
                    .filter_map(|(call, (one, other))| Some((call.name, difference(one, other)?)));
                let differ: Vec<String> =
                    differ.map(|(name, what)| format!("{way}: {name}: {what}")).collect();
                self.cells[cell] = match differ.len() {
                    0 => format!("{} equal", answers.len()),
                    count => format!("{count} DIFFER"),
                };
                self.problems.extend(differ);
            }
            let told = first
                .iter()
                .map(|answer| format!("{:?} {:?}\n", answer.tokens, answer.finish_reason));
            self.cells[7] = sha256(told.collect::<String>())[..16].to_owned();
        }
        Ok(())
    }
}

/// How an answer differs from the one that was computed alone, if it does.
fn difference(alone: &Completion, other: &Completion) -> Option<String> {
    let pairs = alone.tokens.iter().zip(&other.tokens);
    let same = pairs.take_while(|(one, other)| one == other).count();
    if same < alone.tokens.len().max(other.tokens.len()) {
        return Some(format!("other than alone from token {} on", same + 1));
    }
    let (alone, other) = (alone.finish_reason, other.finish_reason);
    (alone != other).then(|| format!("it ended by {other:?}, alone by {alone:?}"))
}

/// Asks the calls, so many at once, and gives the answers in their order. Only the same call of as large a batch finds what one computed.
fn answer(backbone: &Backbone, calls: &[Call], batch: usize) -> Result<Vec<Completion>, Failure> {
    let mut answers = Vec::with_capacity(calls.len());
    for (number, asked) in calls.chunks(batch).enumerate() {
        let tickets = (0_u8..).zip(asked).map(|(place, call)| {
            let messages = [Message::new("user", call.prompt.as_str())];
            let mut salt = [place; 16];
            salt[..2].copy_from_slice(&[batch as u8, number as u8]);
            let request = Request {
                tokens: backbone.description.tokenise(&messages, false)?,
                sampling: call.sampling,
                seed: call.seed,
                constraint: call.grammar.clone().map(|grammar| Constraint { grammar, after: None }),
                stop: Stop {
                    ids: backbone.description.generation.eos_ids.clone(),
                    ..Stop::default()
                },
                max_tokens: MAX_TOKENS,
                salt: Some(salt),
                ..Request::default()
            };
            Ok(backbone.engine.submit(request)?)
        });
        for ticket in tickets.collect::<Result<Vec<_>, Failure>>()? {
            answers.push(ticket.wait()?);
        }
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_told() {
        use crate::engine::{FinishReason, Usage};
        let answer = |tokens: &[u32], finish_reason| Completion {
            tokens: tokens.to_vec(),
            text: String::new(),
            finish_reason,
            usage: Usage::default(),
            problem: None,
            logprobs: Vec::new(),
            prompt_logprobs: Vec::new(),
            preemptions: 0,
        };
        let long = |tokens: &[u32]| answer(tokens, FinishReason::Length);
        let one = long(&[5, 6, 7]);
        assert_eq!(difference(&one, &one), None);
        let told = |other| difference(&one, &other).unwrap();
        assert_eq!(told(long(&[5, 9, 7])), "other than alone from token 2 on");
        assert_eq!(told(long(&[5, 6])), "other than alone from token 3 on");
        assert_eq!(told(long(&[5, 6, 7, 8])), "other than alone from token 4 on");
        let stopped = answer(&[5, 6, 7], FinishReason::Stop);
        assert_eq!(told(stopped), "it ended by Stop, alone by Length");
    }
}
