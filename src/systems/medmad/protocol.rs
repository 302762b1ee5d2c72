//! The debate on one question, from the first answers to the team's: Algorithm 1 of the paper (App. B.9).

use serde_json::Value;

use super::brief::BriefTemplate;
use super::messages::Messages;
use super::parse::parse;
use super::record::Record;
use super::schema::{schema, worst_case_bytes};
use super::settings::{Letters, Settings};
use super::vote::{consensus, rationale, weights};
use crate::data::Item;
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet};
use crate::record::Grammar;
use crate::record::{FinishReason, ItemLine, Message, Parse, RoundLine, Stage};
use crate::systems::case::{Ask, Case, Verdict, value};
use crate::systems::permutation::permutation;
use crate::systems::vote::{Vote, round_line, vote};
use crate::systems::{Opening, System, Task};

/// A panel that debates.
pub struct MedMad {
    settings: Settings,
    messages: Messages,
    brief: BriefTemplate,
}

impl MedMad {
    /// # Errors
    /// When an overridden prompt lost what is filled in.
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<MedMad, PromptError> {
        Ok(MedMad {
            settings: settings.clone(),
            messages: Messages::new(prompts, settings)?,
            brief: BriefTemplate::new(prompts, settings)?,
        })
    }
}

impl System for MedMad {
    /// Independent first answers, up to `t_max` rounds of debate while the panel disagrees, a vote.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = match self.settings.letters {
            Letters::Item => task.question()?,
            Letters::AToJ => task.question()?.with_any_letter(),
        };
        let question = case.item;
        let mut records = self
            .ask(&case, 0, |agent| self.messages.initial(self.settings.roles[agent], question))?;
        let mut rounds = vec![self.round_line(&case, 0, &records, &[], String::new())];
        let last = if self.settings.samples > 1 { 0 } else { self.settings.t_max };
        for round in 1..=last {
            if consensus(&answers(&records)) {
                break;
            }
            // A permutation of its own for every round, so that labels say nothing across rounds (§3, App. C.5).
            let order = permutation(case.seed("labels", round), case.panel.members.len());
            let brief = self.brief.write(&records, &order);
            records = self.ask(&case, round, |agent| {
                self.messages.debate(self.settings.roles[agent], question, round, &brief)
            })?;
            rounds.push(self.round_line(&case, round, &records, &order, brief));
        }
        let (_, vote) = self.vote(&records);
        let verdict = Verdict {
            rationale: rationale(&records, &vote.answer, self.settings.truncate_chars),
            answer: vote.answer,
            team_confidence: vote.team_confidence,
            tie: vote.tie,
        };
        Ok(case.close(rounds, verdict).into())
    }

    fn opening(&self, _: &str, item: &Item) -> Vec<Opening> {
        let Item::Question(question) = item else {
            return Vec::new();
        };
        let roles = self.settings.roles.iter().enumerate();
        roles
            .map(|(agent, role)| Opening::new(agent, self.messages.initial(*role, question)))
            .collect()
    }
}

impl MedMad {
    /// Asks every agent at once; in round 0, as often as `samples` says, a whole panel at a time.
    fn ask(
        &self,
        case: &Case<'_>,
        round: u32,
        messages: impl Fn(usize) -> Vec<Message>,
    ) -> Result<Vec<Record>, PanelError> {
        let letters: Vec<char> = case.item.letters().collect();
        let schema = schema(&letters, &self.settings).to_string();
        // No tokenizer needs more tokens than bytes.
        let worst_case = worst_case_bytes(&letters, &self.settings);
        let (stage, purpose, samples) = match round {
            0 => (Stage::Initial, "initial", self.settings.samples),
            _ => (Stage::Round, "debate", 1),
        };
        let members = &case.panel.members;
        let draws = (0..samples)
            .flat_map(|sample| members.iter().enumerate().map(move |one| (sample, one)));
        let asks = draws.map(|(sample, (member, seat))| Ask {
            member,
            agent: seat.agent.clone(),
            stage,
            round,
            purpose,
            sample,
            messages: messages(member),
            grammar: Some(Grammar::JsonSchema(schema.clone())),
            max_tokens: self.settings.decoding.bound(worst_case),
        });
        let calls = case.ask_all(asks.collect(), &read)?;
        calls.iter().map(value).collect()
    }

    fn vote(&self, records: &[Record]) -> (Vec<u32>, Vote) {
        let weights = weights(records, self.settings.confidence);
        let vote = vote(&answers(records), &weights);
        (weights, vote)
    }

    fn round_line(
        &self,
        case: &Case<'_>,
        round: u32,
        records: &[Record],
        order: &[usize],
        brief: String,
    ) -> RoundLine {
        let (weights, vote) = self.vote(records);
        let agents: Vec<&String> = case.panel.members.iter().map(|one| &one.agent).collect();
        let stage = match round {
            0 => Stage::Initial,
            _ => Stage::Round,
        };
        let gave = (0..records.len()).map(|index| agents[index % agents.len()].clone());
        let answers = records.iter().map(|record| record.answer.clone());
        RoundLine {
            labels: order.iter().map(|&agent| agents[agent].clone()).collect(),
            confidences: records.iter().map(|record| record.confidence).collect(),
            weights: weights.into_iter().map(|tenths| f64::from(tenths) / 10.0).collect(),
            aggregate: vote.answer,
            ..round_line(round, stage, gave.collect(), answers.collect(), brief)
        }
    }
}

fn answers(records: &[Record]) -> Vec<&str> {
    records.iter().map(|record| record.answer.as_str()).collect()
}

fn read(text: &str, finish_reason: FinishReason) -> (Value, Parse) {
    let (record, parse) = parse(text, finish_reason);
    // A record that does not serialise is told where it is read back.
    (serde_json::to_value(&record).unwrap_or(Value::Null), parse)
}
