//! ReConcile (Chen et al., ACL 2024): three models answer, discuss grouped answers, and vote by recalibrated confidence.
//!
//! As MedAgentBoard has it: one discussion round always runs, even after unanimous initial answers, and there are no convincing samples, for the
//! authors' are people's explanations of training questions, of which there are none for medical ones. An unread answer has no vote.

use itertools::Itertools;
use serde::Serialize;

use super::case::{Case, Parsed, Step, Verdict};
use super::config::{self, Built, Given, Slot};
use super::decoding::Decoding;
use super::form;
use super::messages::{prompt_files, truncate};
use super::reading::number;
use super::reading::reply::Fields;
use super::settings::{settings, whole};
use super::vote::{consensus, of_whole, round_line, vote};
use super::{System, Task};
use crate::data::Choice;
use crate::panel::PanelError;
use crate::prompts::fill;
use crate::record::{ItemLine, Message, Parse, RoundLine, Stage};

#[cfg(test)]
mod tests;

const AGENTS: usize = 3;
/// Characters of an explanation that the other agents' prompts show.
const EXPLANATION_CHARS: usize = 500;

settings! {
    pub struct Settings {
        /// Discussion rounds at most; one always runs.
        #[serde(deserialize_with = "whole::<1, 100, _, _>")]
        pub max_rounds: u32 = 3,
    } with decoding: Decoding
}

impl config::Settings for Settings {
    fn slots(&self) -> Vec<Slot> {
        Slot::in_order((1..=AGENTS).map(|number| format!("agent-{number}")), &[])
    }

    fn max_calls(&self) -> u32 {
        AGENTS as u32 * (1 + self.max_rounds)
    }

    fn build(&self, given: &Given<'_>) -> Built {
        Ok(Box::new(Reconcile { settings: self.clone(), texts: Texts::read(given.prompts)? }))
    }
}

struct Reconcile {
    settings: Settings,
    texts: Texts,
}

prompt_files! {
    struct Texts in "reconcile" {
        initial: "initial" [] ["question", "options"],
        discussion: "discussion" [] ["question", "options", "groups"],
        /// The agents with one answer, as prompts show them.
        group: "group" ["answer", "supporters", "confidence", "explanations"],
    }
}

/// An agent's parsed reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Opinion {
    reasoning: String,
    /// One letter, or empty.
    answer: String,
    confidence: f64,
}

impl Parsed for Opinion {
    fn answer(&mut self) -> Option<&mut String> {
        Some(&mut self.answer)
    }
}

impl System for Reconcile {
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.question()?;
        let first = self.texts.initial.fill_question(case.item, &[]);
        let mut opinions = self.ask(&case, 0, first)?;
        let mut rounds = vec![round_of(&case, 0, &opinions, String::new())];
        for round in 1..=self.settings.max_rounds {
            let groups = self.groups(&opinions);
            let messages = self.texts.discussion.fill_question(case.item, &[("groups", &groups)]);
            opinions = self.ask(&case, round, messages)?;
            rounds.push(round_of(&case, round, &opinions, groups));
            if agree(&opinions) {
                break;
            }
        }
        let (_, vote) = weighted_vote(&opinions);
        let supporting = opinions.iter().filter(|opinion| opinion.answer == vote.answer);
        let reasons = supporting.map(|one| truncate(&one.reasoning, EXPLANATION_CHARS));
        let rationale = reasons.filter(|reason| !reason.is_empty()).join("\n");
        let verdict = Verdict { rationale, ..vote };
        Ok(ItemLine::Answer(case.close(rounds, verdict)))
    }
}

impl Reconcile {
    fn ask(
        &self,
        case: &Case<'_>,
        round: u32,
        messages: Vec<Message>,
    ) -> Result<Vec<Opinion>, PanelError> {
        let (stage, purpose) = match round {
            0 => (Stage::Initial, "initial"),
            _ => (Stage::Round, "discussion"),
        };
        let grammar = form::record(vec![
            ("reasoning", self.settings.decoding.reasons()),
            ("answer", form::answer(case.item)),
            ("confidence", form::confidence()),
        ]);
        let step = Step::new(stage, round, purpose, grammar);
        let calls =
            case.agents().map(|(member, agent)| case.call(&step, member, agent, messages.clone()));
        let asked = case.ask_all(calls, |text, finish_reason| {
            read(&Fields::read(text, finish_reason, "answer"), &case.item.options)
        })?;
        Ok(asked.into_iter().map(|asked| asked.value).collect())
    }

    /// The opinions of a round grouped by answer, in the order in which answers were first given, without names.
    fn groups(&self, opinions: &[Opinion]) -> String {
        letters(opinions).unique().map(|letter| self.group(letter, opinions)).join("\n\n")
    }

    fn group(&self, letter: &str, opinions: &[Opinion]) -> String {
        let supporters: Vec<&Opinion> =
            opinions.iter().filter(|opinion| opinion.answer == letter).collect();
        let sum: f64 = supporters.iter().map(|opinion| opinion.confidence).sum();
        let answer = if letter.is_empty() { "none" } else { letter };
        let explanation =
            |one: &&Opinion| format!("- {}", truncate(&one.reasoning, EXPLANATION_CHARS));
        let values = [
            ("answer", answer),
            ("supporters", &supporters.len().to_string()),
            ("confidence", &format!("{:.2}", sum / supporters.len() as f64)),
            ("explanations", &supporters.iter().map(explanation).join("\n")),
        ];
        fill(&self.texts.group, &values)
    }
}

fn read(reply: &Fields, options: &[Choice]) -> (Opinion, Parse) {
    let stated = reply.get("confidence");
    let (answer, parse) = reply.answer(options);
    let confidence = reply.confidence();
    let parse = match parse {
        // What is stated does not count as it is written.
        Parse::Ok if !stated.is_null() && number(stated) != Some(confidence) => Parse::Repaired,
        parse => parse,
    };
    (Opinion { reasoning: reply.prose("reasoning"), answer, confidence }, parse)
}

/// The weight of a confidence in thousandths, f(p) of Chen et al. (ACL 2024), §4.
fn weight(confidence: f64) -> u32 {
    match confidence {
        p if p >= 1.0 => 1000,
        p if p >= 0.9 => 800,
        p if p >= 0.8 => 500,
        p if p > 0.6 => 300,
        _ => 100,
    }
}

/// The agents' weights, and the result of the weighted vote.
fn weighted_vote(opinions: &[Opinion]) -> (Vec<u32>, Verdict) {
    let weights: Vec<u32> = opinions.iter().map(|one| weight(one.confidence)).collect();
    let vote = vote(&letters(opinions).collect::<Vec<_>>(), &weights);
    (weights, vote)
}

/// Whether all agents that gave an answer gave the same one, and at least one did.
fn agree(opinions: &[Opinion]) -> bool {
    consensus(&letters(opinions).filter(|letter| !letter.is_empty()).collect::<Vec<_>>())
}

fn letters(opinions: &[Opinion]) -> impl Iterator<Item = &str> {
    opinions.iter().map(|opinion| opinion.answer.as_str())
}

fn round_of(case: &Case<'_>, round: u32, opinions: &[Opinion], brief: String) -> RoundLine {
    let (weights, vote) = weighted_vote(opinions);
    let agents = case.agents().map(|(_, agent)| agent.to_owned()).collect();
    let answers = letters(opinions).map(str::to_owned).collect();
    let stage = if round == 0 { Stage::Initial } else { Stage::Round };
    RoundLine {
        confidences: opinions.iter().map(|one| one.confidence).collect(),
        weights: weights.into_iter().map(of_whole).collect(),
        aggregate: vote.answer,
        ..round_line(round, stage, agents, answers, brief)
    }
}
