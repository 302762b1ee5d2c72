//! A run as analyses read it: verdicts, answers and texts by run and question.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::analysis::metrics::agreement::Trajectories;
use crate::analysis::metrics::calibration::Prediction;
use crate::analysis::metrics::cost::{Call, Cost};
use crate::analysis::metrics::similarity::trajectory_text;
use crate::experiment::contents::Contents;
use crate::record::{AnswerLine, CallLine, ItemLine, RoundLine, Stage};

/// The graded part of a finished run: `[runs][questions]` over the questions, or notes, with gold, in the plan's order.
pub struct Reading<'a> {
    pub contents: &'a Contents,
    /// The questions' ids.
    pub questions: Vec<&'a str>,
    runs: Vec<Vec<&'a ItemLine>>,
    calls: HashMap<(u32, &'a str), Vec<&'a CallLine>>,
}

/// Which of a question's trajectories (App. B.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before any interaction.
    Initial,
    /// The first round of interaction; the initial one where there was none.
    FirstRound,
    /// The last round that ran.
    Last,
}

impl<'a> Reading<'a> {
    /// Questions without gold are left out, and so is what a later line of the same item replaced.
    pub fn of(contents: &'a Contents) -> Reading<'a> {
        let outcomes = contents.outcomes();
        let mut by_run: BTreeMap<u32, HashMap<&str, &ItemLine>> = BTreeMap::new();
        for record in outcomes.into_values() {
            by_run
                .entry(record.run())
                .or_default()
                .insert(record.item(), record);
        }
        let is_graded = |item: &&String| {
            by_run.values().all(|run| {
                run.get(item.as_str())
                    .is_some_and(|record| record.correct().is_some())
            })
        };
        let items = contents.plan.dataset.items.iter();
        let questions: Vec<&str> = items.filter(is_graded).map(String::as_str).collect();
        let runs = by_run.values();
        let runs = runs.map(|run| questions.iter().map(|question| run[question]).collect());
        let mut calls: HashMap<(u32, &str), Vec<&CallLine>> = HashMap::new();
        for call in contents.calls_by_key().into_values() {
            calls.entry((call.run, &call.item)).or_default().push(call);
        }
        Reading {
            contents,
            runs: runs.collect(),
            questions,
            calls,
        }
    }

    /// Of answers; a run on notes has none.
    fn map<T>(&self, value: impl Fn(&'a AnswerLine) -> T) -> Vec<Vec<T>> {
        let runs = self.runs.iter();
        runs.map(|run| {
            let answers = run.iter().filter_map(|record| answer(record));
            answers.map(&value).collect()
        })
        .collect()
    }

    /// Whether the final answers, or the flags, are right; an item that errored is wrong.
    pub fn verdicts(&self) -> Vec<Vec<bool>> {
        let is_right = |record: &&ItemLine| record.correct() == Some(true);
        let runs = self.runs.iter();
        runs.map(|run| run.iter().map(is_right).collect()).collect()
    }

    /// Whether Round 0 alone would have been right.
    pub fn round0(&self) -> Vec<Vec<bool>> {
        self.map(|record| {
            let first = record.rounds.first();
            first.is_some_and(|round| Some(&round.aggregate) == record.gold.as_ref())
        })
    }

    /// The answers of first and last trajectories.
    pub fn trajectories(&self) -> Vec<Vec<Trajectories<'a>>> {
        self.map(|record| Trajectories {
            initial: answers(record, When::Initial),
            last: answers(record, When::Last),
            gold: record.gold.as_deref().unwrap_or_default(),
        })
    }

    /// The texts of every question's trajectories; those that say nothing are left out.
    pub fn texts(&self, when: When) -> Vec<Vec<Vec<String>>> {
        self.map(|record| {
            let Some(round) = round(record, when) else {
                return Vec::new();
            };
            let calls = self.calls.get(&(record.run, record.item.as_str()));
            let of_round =
                |call: &&&CallLine| (call.stage, call.round) == (round.stage, round.round);
            let calls = calls.into_iter().flatten().filter(of_round);
            calls.filter_map(|call| text(&call.record)).collect()
        })
    }

    /// The line of a question in a run, both counted from 0.
    pub fn item(&self, run: usize, question: usize) -> &'a ItemLine {
        self.runs[run][question]
    }

    /// The same of a question; `None` of a note.
    pub fn answer(&self, run: usize, question: usize) -> Option<&'a AnswerLine> {
        answer(self.item(run, question))
    }

    /// Stated confidence of the team, and whether it was right, over all runs; errored items state none.
    pub fn predictions(&self) -> Vec<Prediction> {
        let records = self.runs.iter().flatten();
        let records = records.filter_map(|record| answer(record));
        let answered = records.filter(|record| record.error.is_none());
        answered
            .map(|record| (record.team_confidence, record.correct == Some(true)))
            .collect()
    }

    /// What all answers cost, graded or not; `None` without items.
    pub fn cost(&self) -> Option<Cost> {
        let calls = self.contents.calls.records.iter().map(|call| Call {
            prompt_tokens: call.usage.prompt_tokens,
            cached_tokens: call.usage.cached_tokens,
            completion_tokens: call.usage.completion_tokens,
            elapsed_ms: call.elapsed_ms,
        });
        let plan = &self.contents.plan;
        let items = plan.dataset.items.len() * plan.runs as usize;
        let outcomes = self.contents.outcomes();
        let right = outcomes
            .values()
            .filter(|item| item.correct() == Some(true));
        Cost::of(calls, items, right.count())
    }
}

fn answer(record: &ItemLine) -> Option<&AnswerLine> {
    match record {
        ItemLine::Answer(record) => Some(record),
        ItemLine::Note(_) => None,
    }
}

fn round(record: &AnswerLine, when: When) -> Option<&RoundLine> {
    let rounds = || {
        let is_trajectory =
            |round: &&RoundLine| matches!(round.stage, Stage::Initial | Stage::Round);
        record.rounds.iter().filter(is_trajectory)
    };
    let initial = || rounds().find(|round| round.stage == Stage::Initial);
    match when {
        When::Initial => initial(),
        When::FirstRound => rounds()
            .find(|round| round.stage == Stage::Round)
            .or_else(initial),
        When::Last => rounds().next_back(),
    }
}

fn answers(record: &AnswerLine, when: When) -> Vec<&str> {
    let answers = round(record, when).map(|round| round.answers.iter().map(String::as_str));
    answers.into_iter().flatten().collect()
}

/// What a record says in words: its steps, or else its support (App. B.7), by whatever name its system has for them.
pub fn text(record: &Value) -> Option<String> {
    let strings = |value: &Value| match value {
        Value::Array(steps) => steps
            .iter()
            .filter_map(|step| step.as_str().map(str::to_owned))
            .collect(),
        Value::String(text) => vec![text.clone()],
        _ => Vec::new(),
    };
    let steps: Vec<String> = strings(&record["cot"]);
    let support = ["reasoning", "explanation", "thought"]
        .iter()
        .map(|name| &record[*name])
        .chain([&record["structured_reasoning"]["final_support"]])
        .find_map(Value::as_str)
        .unwrap_or_default();
    trajectory_text(&steps, support)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_are_found_under_every_systems_name() {
        let text = |record| text(&record);
        assert_eq!(
            text(json!({"cot": ["a ", "b"], "structured_reasoning": {"final_support": "c"}})),
            Some("a b".into())
        );
        assert_eq!(
            text(json!({"cot": [], "structured_reasoning": {"final_support": "c"}})),
            Some("c".into())
        );
        for name in ["reasoning", "explanation", "thought"] {
            assert_eq!(
                text(json!({name: "because\n x", "answer": "A"})),
                Some("because x".into())
            );
        }
        assert_eq!(text(json!({"answer": "A"})), None);
        assert_eq!(text(Value::Null), None);
    }
}
