//! The round table on one question: first answers, at least one discussion, a weighted vote.

use serde_json::{Value, json};

use super::messages::Messages;
use super::settings::Settings;
use super::vote::{Opinion, consensus, weighted_vote};
use crate::data::Item;
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet};
use crate::record::{CallLine, FinishReason, ItemLine, Message, Parse, RoundLine, Stage};
use crate::systems::case::{Case, Verdict};
use crate::systems::form;
use crate::systems::reply::{Reply, field};
use crate::systems::step::Step;
use crate::systems::text::truncate;
use crate::systems::vote;
use crate::systems::{Opening, System, Task};

/// Models at a round table.
pub struct Reconcile {
    settings: Settings,
    messages: Messages,
}

impl Reconcile {
    /// # Errors
    /// When an overridden prompt lost what is filled in.
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<Reconcile, PromptError> {
        Ok(Reconcile { settings: settings.clone(), messages: Messages::new(prompts, settings)? })
    }
}

impl System for Reconcile {
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.question()?;
        let first = self.messages.initial(case.item);
        let mut opinions = self.ask(&case, 0, first)?;
        let mut rounds = vec![round_record(&case, 0, &opinions, String::new())];
        for round in 1..=self.settings.max_rounds {
            let groups = self.messages.groups(&opinions);
            let messages = self.messages.discussion(case.item, &groups);
            opinions = self.ask(&case, round, messages)?;
            rounds.push(round_record(&case, round, &opinions, groups));
            // Tested after a discussion, never before: agents that agree at once discuss once all the same.
            if consensus(&opinions) {
                break;
            }
        }
        let (_, vote) = weighted_vote(&opinions);
        let supporting = opinions.iter().filter(|o| o.answer == vote.answer);
        let reasons: Vec<String> = supporting
            .map(|opinion| truncate(&opinion.reasoning, self.settings.truncate_chars))
            .filter(|reason| !reason.is_empty())
            .collect();
        let verdict = Verdict {
            answer: vote.answer,
            team_confidence: vote.team_confidence,
            rationale: reasons.join("\n"),
            tie: vote.tie,
        };
        Ok(case.close(rounds, verdict).into())
    }

    fn opening(&self, _: &str, item: &Item) -> Vec<Opening> {
        let Item::Question(question) = item else {
            return Vec::new();
        };
        let agents = 0..Settings::agents().len();
        agents.map(|agent| Opening::new(agent, self.messages.initial(question))).collect()
    }
}

impl Reconcile {
    fn ask(
        &self,
        case: &Case<'_>,
        round: u32,
        messages: Vec<Message>,
    ) -> Result<Vec<Opinion>, PanelError> {
        let decoding = &self.settings.decoding;
        let (stage, purpose) = match round {
            0 => (Stage::Initial, "initial"),
            _ => (Stage::Round, "discussion"),
        };
        let step = Step {
            stage,
            round,
            purpose,
            shape: decoding.record(vec![
                ("reasoning", decoding.string()),
                ("answer", form::answer(case.item)),
                ("confidence", form::confidence()),
            ]),
        };
        let members = case.panel.members.iter().enumerate();
        let asks = members.map(|(member, seat)| step.ask(member, &seat.agent, messages.clone()));
        let calls = case.ask_all(asks.collect(), &read)?;
        Ok(calls.iter().map(opinion).collect())
    }
}

fn read(text: &str, finish_reason: FinishReason) -> (Value, Parse) {
    let reply = Reply::read(text, finish_reason, "answer");
    let record = json!({
        "reasoning": reply.prose("reasoning"),
        "answer": reply.answer(),
        "confidence": reply.confidence(),
    });
    (record, reply.parse)
}

fn opinion(call: &CallLine) -> Opinion {
    Opinion {
        answer: field(&call.record, "answer"),
        confidence: call.record["confidence"].as_f64().unwrap_or(0.0),
        reasoning: field(&call.record, "reasoning"),
    }
}

fn round_record(case: &Case<'_>, round: u32, opinions: &[Opinion], brief: String) -> RoundLine {
    let (weights, vote) = weighted_vote(opinions);
    let members = case.panel.members.iter();
    let agents = members.map(|member| member.agent.clone()).collect();
    let answers = opinions.iter().map(|o| o.answer.clone()).collect();
    let stage = match round {
        0 => Stage::Initial,
        _ => Stage::Round,
    };
    RoundLine {
        confidences: opinions.iter().map(|o| o.confidence).collect(),
        weights: weights.into_iter().map(|w| f64::from(w) / 10.0).collect(),
        aggregate: vote.answer,
        ..vote::round_line(round, stage, agents, answers, brief)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panel::scripted::Script;
    use crate::record::AnswerLine;
    use crate::systems::SystemConfig;
    use crate::systems::scripted::{answer_filled, question};

    fn said(answer: &str, confidence: f64) -> String {
        format!(
            r#"{{"reasoning": "for {answer}", "answer": "{answer}", "confidence": {confidence}}}"#
        )
    }

    /// Runs the table on one question; agent `i` says `script(round, i)`.
    fn run(
        script: impl Fn(u32, usize) -> String + Send + Sync + 'static,
    ) -> (AnswerLine, Vec<CallLine>) {
        let script = Script::new(move |key, _| {
            let agent = Settings::agents().iter().position(|a| *a == key.agent);
            script(key.round, agent.unwrap())
        });
        let protocol = SystemConfig::named("reconcile").unwrap();
        answer_filled(&protocol, &question(5), script)
    }

    #[test]
    fn a_table_that_agrees_at_once_discusses_once_all_the_same() {
        let (item, calls) = run(|_, _| said("B", 0.9));
        assert_eq!((item.calls, item.rounds_run, calls.len()), (6, 1, 6));
        assert_eq!((item.answer.as_str(), item.correct), ("B", Some(true)));
        assert_eq!(item.team_confidence, 0.8);
        assert_eq!(item.rationale, "for B\nfor B\nfor B");
        let stages: Vec<Stage> = item.rounds.iter().map(|round| round.stage).collect();
        assert_eq!(stages, [Stage::Initial, Stage::Round]);
    }

    #[test]
    fn consensus_ends_the_discussion_and_three_rounds_do() {
        let after = |rounds: u32| {
            run(move |round, agent| match round < rounds {
                true => said(["A", "B", "C"][agent], 0.5),
                false => said("C", 0.5),
            })
            .0
            .calls
        };
        assert_eq!([after(1), after(2), after(3), after(9)], [6, 9, 12, 12]);
    }

    #[test]
    fn the_vote_is_over_the_last_round_and_ties_go_to_the_first_seen() {
        let (item, _) = run(|round, agent| match (round, agent) {
            (0, _) => said("A", 1.0),
            (_, 0) => said("D", 0.85),
            (_, 1) => said("B", 0.82),
            _ => "No answer from me.".into(),
        });
        // The refusal still holds a letter by B.2 rule (ii), with confidence 0.
        assert_eq!(item.rounds[1].answers, ["D", "B", "E"]);
        assert_eq!(item.rounds[1].weights, [0.5, 0.5, 0.1]);
        assert_eq!(item.rounds[0].aggregate, "A");
        assert_eq!((item.answer.as_str(), item.tie, item.calls), ("D", true, 12));
    }

    #[test]
    fn silence_has_no_vote_and_nobody_speaking_is_wrong() {
        let (item, calls) = run(|_, agent| match agent {
            2 => said("(c) aspirin", 0.1),
            _ => said("", 1.0),
        });
        assert_eq!((item.answer.as_str(), item.calls), ("C", 6));
        assert_eq!(calls[2].record["answer"], "C");
        let (silent, _) = run(|_, _| String::new());
        assert_eq!((silent.answer.as_str(), silent.calls), ("", 12));
        assert_eq!(silent.correct, Some(false));
        let (beyond, _) = run(|_, _| said("J", 0.9));
        assert_eq!((beyond.answer.as_str(), beyond.correct), ("", Some(false)));
    }

    #[test]
    fn everybody_is_shown_everybodys_last_answers_and_no_earlier_turn() {
        let (item, calls) = run(|round, agent| match (round, agent) {
            (0, 1) => said("B", 0.4),
            (0, _) => said("A", 1.0),
            (1, agent) => said(["C", "D", "E"][agent], 0.7),
            _ => said("A", 1.0),
        });
        let prompts = |round: u32| {
            let of_round = calls.iter().filter(move |call| call.round == round);
            of_round.map(|call| &call.messages).collect::<Vec<_>>()
        };
        let (first, second) = (prompts(1), prompts(2));
        assert!(first.iter().all(|messages| *messages == first[0]));
        let user = &first[0][1].content;
        assert!(user.contains("Answer: A\nSupporters: 2\nAverage confidence: 1.00"));
        assert!(user.contains("Answer: B\nSupporters: 1\nAverage confidence: 0.40"));
        assert!(user.contains(&item.rounds[1].brief) && !item.rounds[1].brief.is_empty());
        assert!(user.contains(&question(5).question));
        assert!(!second[0][1].content.contains("Answer: A"));
        assert!(calls.iter().all(|call| call.messages.len() == 2));
    }

    #[test]
    fn text_instead_of_json_is_read_line_by_line() {
        let (item, calls) = run(|_, _| "Reasoning: because\nAnswer: B\nConfidence: 1.0".into());
        assert_eq!((item.answer.as_str(), item.team_confidence), ("B", 1.0));
        assert!(calls.iter().all(|call| call.parse == Parse::Fallback));
        assert_eq!(calls[0].record["reasoning"], "because");
    }
}
