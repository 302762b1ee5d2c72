//! MedAgents (Tang et al., Findings of ACL 2024) as MedAgentBoard runs it, with which MED-MAD's Table 1 compares: three doctors of chosen fields
//! analyse, a report is written, they review it; at the end one agent decides.

mod specialties;

use itertools::Itertools;
use serde::Serialize;
use serde_json::Value;

pub use self::specialties::read_specialties;
use super::case::{Case, One, Parsed, Step};
use super::config::{self, Built, Given, Slot};
use super::decoding::Decoding;
use super::form;
use super::messages::prompt_files;
use super::reading::reply::{Explained, Fields};
use super::reading::without_thinking;
use super::reading::words::consents;
use super::settings::{settings, whole};
use super::vote::{decided, round_line, round_of};
use super::{System, Task};
use crate::panel::{Asked, PanelError};
use crate::prompts::fill;
use crate::record::{ItemLine, Parse, Stage};

const DOCTORS: usize = 3;
/// Members of the panel, by index: the doctors come first.
const GATHERER: usize = DOCTORS;
const META: usize = DOCTORS + 1;
const DECISION: usize = DOCTORS + 2;

settings! {
    pub struct Settings {
        /// Rounds of review at most.
        #[serde(deserialize_with = "whole::<1, 100, _, _>")]
        pub max_rounds: u32 = 3,
    } with decoding: Decoding
}

fn doctor_name(doctor: usize) -> String {
    format!("doctor-{}", doctor + 1)
}

impl config::Settings for Settings {
    fn slots(&self) -> Vec<Slot> {
        // The doctors have one of the panel's models each; all other agents have the first.
        let doctors = (0..DOCTORS).map(doctor_name);
        Slot::in_order(doctors, &["gatherer", "meta", "decision"])
    }

    fn max_calls(&self) -> u32 {
        2 + self.max_rounds * (2 * DOCTORS as u32 + 1)
    }

    fn build(&self, given: &Given<'_>) -> Built {
        Ok(Box::new(MedAgents { settings: self.clone(), texts: Texts::read(given.prompts)? }))
    }
}

struct MedAgents {
    settings: Settings,
    texts: Texts,
}

prompt_files! {
    struct Texts in "medagents" {
        gatherer: "gatherer" [] ["question"],
        analysis: "analysis" ["specialty"] ["question", "options"],
        opinion: "opinion" ["number", "specialty", "explanation", "answer"],
        synthesis: "synthesis" [] ["opinions"],
        review: "review" ["specialty"] ["synthesis"],
        decision: "decision" [] ["question", "options", "synthesis"],
    }
}

impl System for MedAgents {
    /// Rounds of analysis, report and review until all agree; then the decision.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.question()?;
        let (texts, decoding) = (&self.texts, &self.settings.decoding);
        let work = Work { texts, decoding, specialties: self.gather(&case)?, case };
        let mut rounds = Vec::new();
        let mut synthesis = String::new();
        for round in 1..=self.settings.max_rounds {
            let opinions = work.analyse(round)?;
            if round == 1 {
                rounds.push(round_of(0, Stage::Initial, &opinions, String::new()));
            }
            synthesis = work.synthesise(round, &opinions)?;
            let reviews = work.review(round, &synthesis)?;
            let answers = reviews.iter().map(|one| one.value.answer.clone()).collect();
            let brief = synthesis.clone();
            let doctors = (0..DOCTORS).map(doctor_name).collect();
            rounds.push(round_line(round, Stage::Round, doctors, answers, brief));
            // A review that could not be read objects to nothing.
            let objects =
                |review: &Asked<Review>| !review.value.agree && review.call.basis().is_some();
            if !reviews.iter().any(objects) {
                break;
            }
        }
        let round = rounds.last().map_or(0, |round| round.round);
        let decision = work.decide(round, &synthesis)?.value;
        let reviewed = rounds.last().map_or(&[][..], |round| &round.answers[..]);
        let verdict = decided(decision, reviewed);
        Ok(ItemLine::Answer(work.case.close(rounds, verdict)))
    }
}

impl MedAgents {
    fn gather(&self, case: &Case<'_>) -> Result<Vec<&'static str>, PanelError> {
        let names = form::array(self.settings.decoding.string(), DOCTORS, DOCTORS);
        let grammar = form::record(vec![("fields", names)]);
        let step = Step::new(Stage::Aside, 0, "specialties", grammar);
        let messages = self.texts.gatherer.fill_question(case.item, &[]);
        let call = case.call(&step, GATHERER, "gatherer", messages);
        let asked = case.ask(call, |text, finish_reason| {
            One::or_assumed("fields", read_specialties(text, finish_reason))
        })?;
        Ok(asked.value.said)
    }
}

/// A question on which the doctors of these fields work.
struct Work<'a> {
    texts: &'a Texts,
    decoding: &'a Decoding,
    specialties: Vec<&'static str>,
    case: Case<'a>,
}

impl Work<'_> {
    /// Every doctor's own analysis. From the second round on it is another sample of the same prompt, without anything of earlier rounds, so
    /// that only the first round's count as trajectories.
    fn analyse(&self, round: u32) -> Result<Vec<Asked<Explained>>, PanelError> {
        let (stage, round) = match round {
            1 => (Stage::Initial, 0),
            later => (Stage::Aside, later),
        };
        let step = self.opinion_step(stage, round, "analysis");
        let calls = self.specialties.iter().enumerate().map(|(doctor, specialty)| {
            let messages =
                self.texts.analysis.fill_question(self.case.item, &[("specialty", specialty)]);
            self.case.call(&step, doctor, doctor_name(doctor), messages)
        });
        self.case.ask_all(calls, Explained::reader(self.case.item))
    }

    /// The report on the opinions, which names no answer.
    fn synthesise(&self, round: u32, opinions: &[Asked<Explained>]) -> Result<String, PanelError> {
        let grammar = form::record(vec![("explanation", self.decoding.reasons())]);
        let step = Step::new(Stage::Aside, round, "synthesis", grammar);
        let opinions = self.specialties.iter().zip(opinions).enumerate();
        let mut opinions = opinions.map(|(doctor, (specialty, opinion))| {
            let values = [
                ("number", &*(doctor + 1).to_string()),
                ("specialty", specialty),
                ("explanation", &opinion.value.explanation),
                ("answer", &opinion.value.answer),
            ];
            fill(&self.texts.opinion, &values)
        });
        let round = round.to_string();
        let values = [("round", round.as_str()), ("opinions", &opinions.join("\n\n"))];
        let call = self.case.call(&step, META, "meta", self.texts.synthesis.fill(&values));
        let read = |text: &str, finish_reason| {
            let reply = Fields::read(text, finish_reason, "explanation");
            // Without any answer that it may have.
            let explanation = reply.prose("explanation");
            let parse = reply.parse.if_read(!explanation.is_empty());
            One::of("explanation", (explanation, parse))
        };
        Ok(self.case.ask(call, read)?.value.said)
    }

    /// Every doctor's review of the report, which is all that their prompts show.
    ///
    /// These are the trajectories of the round (MED-MAD, B.7): the only answers that a doctor gives after reading of the others'.
    /// MedAgentBoard asks only doctors who disagree for a letter; here all are asked, for diagnostics only: the letter decides nothing.
    fn review(&self, round: u32, synthesis: &str) -> Result<Vec<Asked<Review>>, PanelError> {
        let grammar = form::record(vec![
            ("reason", self.decoding.reasons()),
            ("agree", form::choice(&["yes", "no"])),
            ("answer", form::answer(self.case.item)),
        ]);
        let step = Step::new(Stage::Round, round, "review", grammar);
        let calls = self.specialties.iter().enumerate().map(|(doctor, specialty)| {
            let values = [("specialty", *specialty), ("synthesis", synthesis)];
            self.case.call(&step, doctor, doctor_name(doctor), self.texts.review.fill(&values))
        });
        self.case.ask_all(calls, |text, finish_reason| {
            let reply = Fields::read(text, finish_reason, "agree");
            // One «yes» agrees, and answers nothing.
            let answer = match reply.get("answer").is_null() {
                true => String::new(),
                false => reply.answer(&self.case.item.options).0,
            };
            read_review(&reply, text, answer)
        })
    }

    fn decide(&self, round: u32, synthesis: &str) -> Result<Asked<Explained>, PanelError> {
        let step = self.opinion_step(Stage::Final, round, "decision");
        let messages =
            self.texts.decision.fill_question(self.case.item, &[("synthesis", synthesis)]);
        let call = self.case.call(&step, DECISION, "decision", messages);
        self.case.ask(call, Explained::reader(self.case.item))
    }

    fn opinion_step(&self, stage: Stage, round: u32, purpose: &str) -> Step {
        Step::new(stage, round, purpose, Explained::grammar(self.case.item, self.decoding))
    }
}

/// A doctor's review of the report.
#[derive(Serialize)]
struct Review {
    agree: bool,
    explanation: String,
    answer: String,
}

impl Parsed for Review {
    fn assumed(&self) -> Option<&'static str> {
        Some("agree")
    }

    fn answer(&mut self) -> Option<&mut String> {
        Some(&mut self.answer)
    }
}

fn read_review(reply: &Fields, text: &str, answer: String) -> (Review, Parse) {
    let agree = agrees(reply, without_thinking(text));
    // A letter alone does not say whether it agrees.
    let parse = reply.parse.if_read(agree.is_some());
    let agree = agree.unwrap_or(false);
    (Review { agree, explanation: reply.prose("reason"), answer }, parse)
}

/// Whether a review agrees, by its field, or of a text without one by all of it. `None` where the reply does not say.
pub(crate) fn agrees(reply: &Fields, text: &str) -> Option<bool> {
    match (reply.get("agree"), reply.parse) {
        (field, Parse::Fallback) => {
            field.as_str().and_then(consents).or_else(|| consents(text.trim()))
        }
        (Value::Bool(agree), _) => Some(*agree),
        (Value::String(word), _) => consents(word),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
