//! How an item's answer came about, and how it would have: every vote before and after.

use std::collections::BTreeMap;

use serde::Serialize;

use super::change::Change;
use super::diagnosis::Diagnoses;
use super::shapley::Shapley;
use super::ward::Outcome;
use crate::record::{CallLine, ItemLine, Reply, Says};

/// An item of a run.
#[derive(Debug, Serialize)]
pub struct Course {
    pub item: String,
    pub run: u32,
    /// `null` where there is none; of the item as it was.
    pub gold: Option<String>,
    /// What the run answered, and what the changed panel does; empty where nothing could be read.
    pub before: String,
    pub after: String,
    /// Why the changed panel has no answer.
    pub error: Option<String>,
    /// Sentences that the item lost.
    pub dropped: Vec<String>,
    /// In the order of rounds and panel.
    pub votes: Vec<Vote>,
    /// Calls of the changed panel that were taken from the log, and the others.
    pub logged: usize,
    pub new: usize,
    pub diagnoses: Diagnoses,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shapley: Option<Shapley>,
    /// The calls that are not the run's.
    pub calls: Vec<CallLine>,
}

/// What an agent says at one place.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Vote {
    pub round: u32,
    pub agent: String,
    pub purpose: String,
    pub sample: u32,
    /// `null` where it is not asked; empty where its reply could not be read.
    pub before: Option<String>,
    pub after: Option<String>,
}

impl Course {
    pub fn new(
        (before, after): (&Outcome, &Outcome),
        dropped: Vec<String>,
        (changes, shapley): (&[Change], Option<Shapley>),
        panel: &[String],
    ) -> Course {
        let is_new = |call: &&CallLine| !before.calls.iter().any(|own| own == *call);
        let (was, is) = (finding(&before.line), finding(&after.line));
        Course {
            item: before.line.item().to_owned(),
            run: before.line.run(),
            gold: before.line.gold().map(str::to_owned),
            error: after.line.error().map(str::to_owned),
            dropped,
            votes: votes(before, after, panel),
            logged: after.calls.len() - after.new,
            new: after.new,
            diagnoses: Diagnoses::new(before, (changes, was != is), shapley.as_ref()),
            shapley,
            calls: after.calls.iter().filter(is_new).cloned().collect(),
            before: was,
            after: is,
        }
    }

    pub fn is_changed(&self) -> bool {
        self.before != self.after
    }
}

impl Vote {
    pub fn is_changed(&self) -> bool {
        self.before != self.after
    }
}

/// A letter; of a note, whether it has an error, and in which sentence, by its number in the note.
fn finding(line: &ItemLine) -> String {
    let id = line.note().and_then(|note| note.sentence_id);
    let said = line.says();
    id.map_or_else(|| said.to_owned(), |id| format!("{said}, sentence {}", id + 1))
}

fn votes(before: &Outcome, after: &Outcome, panel: &[String]) -> Vec<Vote> {
    let mut votes = BTreeMap::new();
    for (is_after, outcome) in [(false, before), (true, after)] {
        for call in &outcome.calls {
            let Some(said) = said(&call.record, &outcome.line) else { continue };
            let place = panel.iter().position(|agent| *agent == call.agent);
            let place = place.unwrap_or(panel.len());
            let key = (call.round, place, call.agent.clone(), call.purpose.clone(), call.sample);
            let both: &mut (Option<String>, Option<String>) = votes.entry(key).or_default();
            *(if is_after { &mut both.1 } else { &mut both.0 }) = Some(said);
        }
    }
    let vote = |((round, _, agent, purpose, sample), (before, after))| Vote {
        round,
        agent,
        purpose,
        sample,
        before,
        after,
    };
    votes.into_iter().map(vote).collect()
}

/// What a reply says of the item; `None` of one that says nothing of it. An open question's letters stand for other texts where other agents
/// answered: their texts are compared.
fn said(reply: &Reply, line: &ItemLine) -> Option<String> {
    let options = line.answer().map_or(&[][..], |line| &line.options);
    Some(match reply.says() {
        Says::Answer(letter) => {
            let mut named = ('A'..).zip(options).filter(|(own, _)| *letter == own.to_string());
            named.next().map_or(letter, |(_, text)| text).to_owned()
        }
        Says::Flag(flag, id) => {
            let flag = flag.map_or("", |flag| if flag { "error" } else { "no error" });
            id.map_or_else(|| flag.to_owned(), |id| format!("{flag}, sentence {}", id + 1))
        }
        Says::Sentence(text) | Says::Correction(text) => text.unwrap_or_default().to_owned(),
        Says::Action(_) | Says::Score(_) | Says::Other => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::AnswerLine;

    #[test]
    fn a_letter_of_an_open_question_is_the_text_that_it_stands_for() {
        let reply = Reply::of(serde_json::json!({"answer": "B"}));
        let said = |options: &[&str]| {
            let options = options.iter().map(|text| (*text).to_owned()).collect();
            said(&reply, &AnswerLine { options, ..AnswerLine::default() }.into())
        };
        assert_eq!(said(&["Vitamin K.", "Protamine."]).unwrap(), "Protamine.");
        assert_eq!(said(&["Protamine."]).unwrap(), "B");
        assert_eq!(said(&[]).unwrap(), "B");
    }
}
