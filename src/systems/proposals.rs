//! Open questions, which have no options: the agents answer in their own words, as often as the system draws samples, and what they say
//! becomes the options of a question that the system then answers as any other. With one answer, or one that all give, there is nothing left to ask.
//!
//! Ours, for every system of questions. Of MED-MAD it makes the debate on open questions that its paper names as future work; of one model
//! and several answers, a choice of the most consistent of them (universal self-consistency).

use serde::Serialize;

use super::case::{Case, Record, Step, Verdict};
use super::config::SystemConfig;
use super::decoding::Shape;
use super::messages::Templates;
use super::permutation::permutation;
use super::reading::{record, said, text};
use super::vote::{round_line, support};
use super::{Opening, System, Task};
use crate::data::{Choice, Item, Question};
use crate::diagnosis::Failure;
use crate::panel::{Asked, Call, PanelError};
use crate::prompts::{PromptError, PromptSet};
use crate::record::{AnswerLine, FinishReason, ItemLine, Message, Parse, Stage};

/// The folder of the prompt.
pub const FOLDER: &str = "open";
/// The purpose of its calls.
pub const PURPOSE: &str = "proposal";
/// Options are lettered from A to J.
const MOST: u32 = 10;

/// A system of questions that takes open ones, too.
pub struct WithProposals {
    system: Box<dyn System>,
    templates: Templates,
    shape: Shape,
    /// Answers of each agent.
    proposals: u32,
    agents: usize,
}

/// An answer in words.
#[derive(Debug, Serialize)]
struct Proposal {
    /// Empty where none was read.
    text: String,
}

impl Record for Proposal {
    fn answer(&mut self) -> Option<&mut String> {
        Some(&mut self.text)
    }
}

impl WithProposals {
    /// # Errors
    /// An overridden prompt that lacks a placeholder.
    pub fn new(
        system: Box<dyn System>,
        config: &SystemConfig,
        prompts: &PromptSet,
    ) -> Result<WithProposals, PromptError> {
        Ok(WithProposals {
            system,
            templates: Templates::new(prompts, "open/answer", &[], &["question"])?,
            shape: config.decoding.passage(),
            proposals: config.samples(),
            agents: config.slots().len(),
        })
    }

    fn messages(&self, question: &Question) -> Vec<Message> {
        self.templates.fill_question(question, &[])
    }

    fn propose(&self, case: &Case<'_>) -> Result<Vec<Asked<Proposal>>, PanelError> {
        let step = Step::new(Stage::Aside, 0, PURPOSE, self.shape.clone());
        let messages = self.messages(case.item);
        let calls = case.agents().flat_map(|(member, agent)| {
            let call = case.call(&step, member, agent, messages.clone());
            (0..self.proposals).map(move |sample| {
                let mut call: Call = call.clone();
                call.key.sample = sample;
                call
            })
        });
        case.ask_all(calls.collect::<Vec<_>>(), read)
    }

    fn answer_open(&self, task: &Task<'_>) -> Result<AnswerLine, PanelError> {
        let case = task.question()?;
        let asked = self.propose(&case)?;
        let mut said: Vec<&str> = Vec::new();
        for one in asked.iter().map(|one| one.value.text.trim()) {
            if !one.is_empty() && !said.iter().any(|other| folded(other) == folded(one)) {
                said.push(one);
            }
        }
        // In an order of the item's own, so that no letter is an agent's.
        let order = permutation(case.seed(PURPOSE, 0), said.len());
        let lettered = ('A'..).zip(order.into_iter().map(|at| said[at].to_owned()));
        let options: Vec<Choice> = lettered.map(|(letter, text)| Choice { letter, text }).collect();
        let calls = case.calls();
        let line = match options.len() {
            0 | 1 => self.close(case, &asked),
            _ => {
                let closed =
                    Question { options: options.clone(), reference: None, ..case.item.clone() }
                        .into();
                let task = Task { item: &closed, ..*task };
                let ItemLine::Answer(line) = self.system.answer(&task)? else {
                    return Err(PanelError::OtherItem { item: task.item.id().to_owned() });
                };
                AnswerLine { calls: calls + line.calls, ..line }
            }
        };
        let mut chosen = options.iter().filter(|option| line.answer == option.letter.to_string());
        Ok(AnswerLine {
            answer: chosen.next().map(|option| option.text.clone()).unwrap_or_default(),
            reference: task.item.question().and_then(|question| question.reference.clone()),
            options: options.into_iter().map(|option| option.text).collect(),
            ..line
        })
    }

    /// The line where all who said anything said the same.
    fn close(&self, case: Case<'_>, asked: &[Asked<Proposal>]) -> AnswerLine {
        asked.iter().for_each(|one| case.rest_on(one));
        let letter = |one: &Asked<Proposal>| match one.value.text.trim() {
            "" => String::new(),
            _ => "A".to_owned(),
        };
        let agents = asked.iter().map(|one| one.call.agent.clone()).collect();
        let answers: Vec<String> = asked.iter().map(letter).collect();
        let team_confidence = support(&answers, "A");
        let round = round_line(0, Stage::Initial, agents, answers, String::new());
        let verdict =
            Verdict { answer: round.aggregate.clone(), team_confidence, ..Verdict::default() };
        case.close(vec![round], verdict)
    }
}

impl System for WithProposals {
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        match task.item {
            Item::Question(question) if question.is_open() => Ok(self.answer_open(task)?.into()),
            _ => self.system.answer(task),
        }
    }

    fn longest_prompt(&self, item: &Item, passage_chars: usize) -> Option<usize> {
        self.system.longest_prompt(item, passage_chars)
    }

    fn opening(&self, dataset: &str, item: &Item) -> Option<Vec<Opening>> {
        match item {
            Item::Question(question) if question.is_open() => {
                let messages = self.messages(question);
                let of = |member| Opening { member, messages: messages.clone() };
                Some((0..self.agents).map(of).collect())
            }
            _ => self.system.opening(dataset, item),
        }
    }
}

/// An answer without what makes no other of it: case, white space, a full stop at its end. `<` and `>` do.
fn folded(answer: &str) -> String {
    let words: Vec<&str> = answer.split_whitespace().collect();
    words.join(" ").to_lowercase().trim_end_matches('.').to_owned()
}

/// A record's answer, or else all that was said.
fn read(reply: &str, finish_reason: FinishReason) -> (Proposal, Parse) {
    let of_record = |value: &serde_json::Value| value.get("answer").map(text);
    let (answer, parse) = match record::read(reply, finish_reason, of_record) {
        Some((answer, parse)) => (answer, parse),
        None if finish_reason == FinishReason::Length => (said(reply).to_owned(), Parse::Fallback),
        None => (said(reply).to_owned(), Parse::Ok),
    };
    match answer.chars().any(char::is_alphanumeric) {
        true => (Proposal { text: answer }, parse),
        false => (Proposal { text: String::new() }, Parse::Unread),
    }
}

impl SystemConfig {
    /// How often each agent answers an open question.
    fn samples(&self) -> u32 {
        let samples = self.table.get("samples").and_then(toml::Value::as_integer);
        samples.and_then(|samples| samples.try_into().ok()).unwrap_or(1)
    }

    /// The agents' own answers to an open question.
    pub fn proposals(&self) -> u32 {
        self.samples().saturating_mul(self.slots().len() as u32)
    }

    /// # Errors
    /// More answers than options can have letters.
    pub fn check_proposals(&self) -> Result<(), Failure> {
        if self.proposals() <= MOST {
            return Ok(());
        }
        let (agents, each) = (self.slots().len(), self.samples());
        Err(Failure::usage(
            format!(
                "{}: {agents} agents with {each} answers each to an open question, and options have the letters A to J",
                self.plan_name()
            ),
            "take fewer with --set samples=N, or a system of at most ten agents",
        ))
    }
}

#[cfg(test)]
mod tests;
