//! What is changed, and whether the run can have it changed.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::Asked;
use crate::data::Item;
use crate::diagnosis::Failure;
use crate::experiment::contents::Contents;
use crate::panel::stand_in::Forced;
use crate::record::{ItemLine, Stage};

/// Players of an exact Shapley value at most: 63 panels.
const MOST_PLAYERS: usize = 6;

/// One thing that is changed.
#[derive(Clone, Debug)]
pub enum Change {
    /// The panel has all but this agent.
    Without(String),
    /// Another model answers this agent's calls, sampled as the agent's.
    Swap(Swap),
    /// An agent's reply has another answer, and is else as it was.
    Answer(Forced),
    /// The question or the note lacks its sentence of this number, which counts from 1.
    DropSentence(usize),
}

#[derive(Clone, Debug)]
pub struct Swap {
    pub agent: String,
    pub model: String,
}

impl FromStr for Swap {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Swap, &'static str> {
        let pair =
            text.split_once('=').filter(|(agent, model)| !agent.is_empty() && !model.is_empty());
        let (agent, model) = pair.ok_or("expected AGENT=MODEL, such as ddx=qwen3-4b")?;
        Ok(Swap { agent: agent.to_owned(), model: model.to_owned() })
    }
}

impl Change {
    pub fn swap(&self) -> Option<&Swap> {
        if let Change::Swap(swap) = self { Some(swap) } else { None }
    }

    pub fn forced(&self) -> Option<&Forced> {
        if let Change::Answer(forced) = self { Some(forced) } else { None }
    }

    /// The one thing that it changes.
    fn subject(&self) -> String {
        match self {
            Change::Without(agent) => format!("whether {agent} is there"),
            Change::Swap(swap) => format!("the model of {}", swap.agent),
            Change::Answer(forced) => {
                format!("{}'s answer in round {}", forced.agent, forced.round)
            }
            Change::DropSentence(number) => format!("sentence {number}"),
        }
    }

    /// The agent that is changed.
    pub fn agent(&self) -> Option<&str> {
        match self {
            Change::Without(agent) => Some(agent),
            Change::Swap(swap) => Some(&swap.agent),
            Change::Answer(forced) => Some(&forced.agent),
            Change::DropSentence(_) => None,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Without(agent) => write!(f, "without {agent}"),
            Change::Swap(Swap { agent, model }) => write!(f, "{agent} on {model}"),
            Change::Answer(Forced { agent, round, answer }) => {
                write!(f, "{agent} made to answer {answer} in round {round}")
            }
            Change::DropSentence(number) => write!(f, "without sentence {number}"),
        }
    }
}

/// An item as the run put it and as it is put now, and the sentences that it lost.
pub struct Put {
    pub own: Item,
    pub item: Item,
    pub dropped: Vec<String>,
}

/// Each outcome's item with what is changed of it.
///
/// # Errors
/// One thing that is changed twice; an agent that the run does not have, or that is changed though it is left out; nobody left; an answer that an item does not have; a sentence
/// that it does not have; too many players.
pub fn check(
    asked: &Asked<'_>,
    contents: &Contents,
    items: &[Item],
    wanted: &[&ItemLine],
) -> Result<Vec<Put>, Failure> {
    let mut subjects = BTreeSet::new();
    if let Some(twice) = asked.changes.iter().find(|change| !subjects.insert(change.subject())) {
        let message = format!("{twice}: {} is changed twice", twice.subject());
        return Err(Failure::usage(message, "change each thing once"));
    }
    let panel: Vec<&str> = contents.plan.panel.iter().map(|member| member.agent.as_str()).collect();
    let absent: BTreeSet<&str> = absent(asked.changes).collect();
    let calls = contents.calls.records.iter().filter(|call| call.stage != Stage::Aside);
    let answering: BTreeSet<&str> = calls.map(|call| call.agent.as_str()).collect();
    for change in asked.changes {
        let Some(agent) = change.agent() else { continue };
        let known: Vec<&str> = match change {
            Change::Answer(_) => answering.iter().copied().collect(),
            _ => panel.clone(),
        };
        if !known.contains(&agent) {
            let hint = format!("it has {}", known.join(", "));
            return Err(Failure::usage(format!("{change}: the run has no such agent"), &hint));
        }
        let places = asked.changes.iter().filter(|other| other.agent() == Some(agent));
        if absent.contains(agent) && places.count() > 1 {
            let hint = "an agent that is left out has no model and no answers";
            return Err(Failure::usage(format!("{change}: {agent} is left out"), hint));
        }
    }
    let players = panel.len() - absent.len();
    if players == 0 {
        return Err(Failure::usage("nobody is left on the panel", "leave somebody in"));
    }
    if asked.shapley && players > MOST_PLAYERS {
        let message = format!("--shapley: {players} agents, and {MOST_PLAYERS} at most are taken");
        return Err(Failure::usage(message, "--without leaves some out"));
    }
    wanted.iter().map(|line| put(asked.changes, items, line)).collect()
}

/// The agents that are left out.
pub fn absent(changes: &[Change]) -> impl Iterator<Item = &str> {
    changes.iter().filter_map(|change| match change {
        Change::Without(agent) => Some(agent.as_str()),
        _ => None,
    })
}

fn put(changes: &[Change], items: &[Item], line: &ItemLine) -> Result<Put, Failure> {
    let id = line.item();
    let found = items.iter().find(|item| item.id() == id).cloned();
    let own = found.ok_or_else(|| Failure::mismatch(format!("item {id} is not there")))?;
    let mut item = own.clone();
    for forced in changes.iter().filter_map(Change::forced) {
        let Item::Question(question) = &item else {
            let hint = "what is said of a note is no letter";
            return Err(Failure::usage(format!("--answer {forced}: {id} is a note"), hint));
        };
        if question.option(forced.answer).is_none() {
            let letters: Vec<String> = question.letters().map(String::from).collect();
            let hint = format!("its options are {}", letters.join(", "));
            return Err(Failure::usage(format!("--answer {forced}: not an option of {id}"), &hint));
        }
    }
    let numbers = changes.iter().filter_map(|change| match change {
        Change::DropSentence(number) => Some(*number),
        _ => None,
    });
    // From behind, so that each number is that of the whole item.
    let numbers: BTreeSet<usize> = numbers.collect();
    let mut dropped = Vec::new();
    for number in numbers.into_iter().rev() {
        let (rest, sentence) = item.without_sentence(number).map_err(|count| {
            let message = format!("--drop-sentence {number}: {id} has {count}");
            Failure::usage(message, "they count from 1, and one must be left")
        })?;
        item = rest;
        dropped.insert(0, sentence);
    }
    Ok(Put { own, item, dropped })
}
