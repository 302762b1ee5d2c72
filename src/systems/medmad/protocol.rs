//! The debate on one question, from the first answers to the team's: Algorithm 1 of the paper (App. B.9).

use serde_json::Value;

use super::brief::BriefTemplate;
use super::messages::Messages;
use super::parse::parse;
use super::permutation::permutation;
use super::record::Record;
use super::schema::{schema, worst_case_bytes};
use super::settings::Settings;
use super::vote::{Vote, consensus, rationale, vote, weights};
use crate::data::Question;
use crate::panel::{Call, Panel, PanelError};
use crate::prompts::{PromptError, PromptSet};
use crate::run::records::{CallKey, FinishReason, ItemRecord, Message, Parse, RoundRecord};
use crate::run::seed::call_seed;

/// A panel that debates.
pub struct MedMad<'a> {
    panel: &'a Panel,
    settings: &'a Settings,
    dataset: &'a str,
    messages: Messages,
    brief: BriefTemplate,
}

impl<'a> MedMad<'a> {
    /// # Errors
    /// When an overridden prompt lost what is filled in.
    pub fn new(
        panel: &'a Panel,
        settings: &'a Settings,
        prompts: &PromptSet,
        dataset: &'a str,
    ) -> Result<MedMad<'a>, PromptError> {
        let messages = Messages::new(prompts, settings)?;
        let brief = BriefTemplate::new(prompts, settings)?;
        Ok(MedMad {
            panel,
            settings,
            dataset,
            messages,
            brief,
        })
    }

    /// Answers `question`: independent first answers, up to `t_max` rounds of debate while the panel disagrees,
    /// a vote.
    ///
    /// # Errors
    /// When a call could not be made or recorded.
    pub fn answer(&self, question: &Question, run: u32) -> Result<ItemRecord, PanelError> {
        if question.image.is_some() {
            return Err(PanelError::Image {
                item: question.id.clone(),
            });
        }
        let mut records = self.ask(question, run, 0, |agent| {
            self.messages.initial(self.settings.roles[agent], question)
        })?;
        let mut rounds = vec![self.round_record(0, &records, Vec::new(), String::new())];
        for round in 1..=self.settings.t_max {
            if consensus(&answers(&records)) {
                break;
            }
            let order = self.order(question, run, round);
            let brief = self.brief.write(&records, &order);
            records = self.ask(question, run, round, |agent| {
                self.messages
                    .debate(self.settings.roles[agent], question, round, &brief)
            })?;
            let labels = order
                .iter()
                .map(|&agent| self.panel.members[agent].agent.clone())
                .collect();
            rounds.push(self.round_record(round, &records, labels, brief));
        }
        Ok(self.item_record(question, run, rounds, &records))
    }

    /// Asks every agent at once.
    fn ask(
        &self,
        question: &Question,
        run: u32,
        round: u32,
        messages: impl Fn(usize) -> Vec<Message>,
    ) -> Result<Vec<Record>, PanelError> {
        let letters: Vec<char> = question.letters().collect();
        let worst_case = worst_case_bytes(&letters, self.settings);
        let calls = self
            .panel
            .members
            .iter()
            .enumerate()
            .map(|(index, member)| Call {
                member: index,
                key: CallKey {
                    dataset: self.dataset.to_owned(),
                    run,
                    item: question.id.clone(),
                    agent: member.agent.clone(),
                    round,
                    purpose: if round == 0 { "initial" } else { "debate" }.to_owned(),
                    sample: 0,
                },
                messages: messages(index),
                schema: schema(&letters, self.settings).to_string(),
                // No tokenizer needs more tokens than bytes.
                max_tokens: self.settings.max_tokens.unwrap_or(worst_case),
            });
        let calls = self.panel.ask_all(calls.collect(), read)?;
        Ok(calls
            .iter()
            .map(|call| parse(&call.text, call.finish_reason).0)
            .collect())
    }

    /// Which agent is Doctor A, B, C in this round's brief.
    fn order(&self, question: &Question, run: u32, round: u32) -> Vec<usize> {
        let key = CallKey {
            dataset: self.dataset.to_owned(),
            run,
            item: question.id.clone(),
            agent: String::new(),
            round,
            purpose: "labels".to_owned(),
            sample: 0,
        };
        permutation(
            call_seed(self.panel.run_seed, &key),
            self.panel.members.len(),
        )
    }

    fn vote(&self, records: &[Record]) -> (Vec<u32>, Vote) {
        let weights = weights(records, self.settings.confidence);
        let vote = vote(&answers(records), &weights);
        (weights, vote)
    }

    fn round_record(
        &self,
        round: u32,
        records: &[Record],
        labels: Vec<String>,
        brief: String,
    ) -> RoundRecord {
        let (weights, vote) = self.vote(records);
        RoundRecord {
            round,
            labels,
            answers: records.iter().map(|record| record.answer.clone()).collect(),
            confidences: records.iter().map(|record| record.confidence).collect(),
            weights: weights
                .into_iter()
                .map(|tenths| f64::from(tenths) / 10.0)
                .collect(),
            aggregate: vote.answer,
            brief,
        }
    }

    fn item_record(
        &self,
        question: &Question,
        run: u32,
        rounds: Vec<RoundRecord>,
        records: &[Record],
    ) -> ItemRecord {
        let (_, vote) = self.vote(records);
        let gold = question.gold.map(String::from);
        ItemRecord {
            dataset: self.dataset.to_owned(),
            run,
            item: question.id.clone(),
            correct: gold.as_ref().map(|gold| *gold == vote.answer),
            gold,
            rationale: rationale(records, &vote.answer, self.settings.truncate_chars),
            rounds_run: rounds.len() as u32 - 1,
            calls: (rounds.len() * self.panel.members.len()) as u32,
            rounds,
            team_confidence: vote.team_confidence,
            tie: vote.tie,
            answer: vote.answer,
            error: None,
            prev: String::new(),
            hash: String::new(),
        }
    }

    /// The record of an item that could not be answered.
    pub fn error_record(&self, question: &Question, run: u32, error: &PanelError) -> ItemRecord {
        let gold = question.gold.map(String::from);
        ItemRecord {
            dataset: self.dataset.to_owned(),
            run,
            item: question.id.clone(),
            correct: gold.as_ref().map(|_| false),
            gold,
            rounds: Vec::new(),
            answer: String::new(),
            team_confidence: 0.0,
            rationale: String::new(),
            rounds_run: 0,
            calls: 0,
            tie: false,
            error: Some(error.to_string()),
            prev: String::new(),
            hash: String::new(),
        }
    }
}

fn answers(records: &[Record]) -> Vec<&str> {
    records
        .iter()
        .map(|record| record.answer.as_str())
        .collect()
}

fn read(text: &str, finish_reason: FinishReason) -> (Value, Parse) {
    let (record, parse) = parse(text, finish_reason);
    // A record is plain strings and numbers, which always serialise.
    (serde_json::to_value(&record).unwrap_or(Value::Null), parse)
}
