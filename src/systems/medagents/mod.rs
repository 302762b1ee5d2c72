//! MedAgents (Tang et al., Findings of ACL 2024) as MedAgentBoard runs it, with which MED-MAD's Table 1 compares: three doctors of chosen fields
//! analyse, a report is written, they review it; at the end one agent decides.

mod specialties;

use serde::Serialize;
use serde_json::Value;

pub use self::specialties::read_specialties;
use self::specialties::read_specialties_as_harness;
use super::case::{Case, One, Record, Step};
use super::config::{self, Built, Given, Slot};
use super::decoding::Decoding;
use super::form;
use super::messages::prompt_files;
use super::reading::reply::{Explained, Fields};
use super::reading::words::consents;
use super::reading::{harness, text as text_of, without_thinking};
use super::settings::{settings, switch, whole};
use super::vote::{decided, round_line};
use super::{System, Task};
use crate::data::Choice;
use crate::panel::{Asked, PanelError};
use crate::prompts::fill;
use crate::record::{FinishReason, ItemLine, Parse, Stage};

/// The number of doctors.
const DOCTORS: usize = 3;
/// Members of the panel, by index: the doctors come first.
const GATHERER: usize = DOCTORS;
const META: usize = DOCTORS + 1;
const DECISION: usize = DOCTORS + 2;

settings! {
    /// How MedAgents runs.
    pub struct Settings {
        /// Rounds of review at most.
        #[serde(deserialize_with = "whole::<1, 100, _, _>")]
        pub max_rounds: u32 = 3,
        /// Whether replies are parsed as MedAgentBoard does: only valid JSON, and answers compared as written. As there, only reviewers who do
        /// not agree are then asked for a letter.
        #[serde(with = "switch")]
        pub mab_compat: bool = false,
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
        /// As MedAgentBoard has it.
        review_of_dissent: "review-dissent" ["specialty"] ["synthesis"],
        decision: "decision" [] ["question", "options", "synthesis"],
    }
}

impl System for MedAgents {
    /// Rounds of analysis, report and review until all agree; then the decision.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.question()?.as_written(self.settings.mab_compat);
        let specialties = self.gather(&case)?;
        let mut rounds = Vec::new();
        let mut synthesis = String::new();
        for round in 1..=self.settings.max_rounds {
            let opinions = self.analyse(&case, round, &specialties)?;
            if round == 1 {
                let answers = opinions.iter().map(|one| one.value.answer.clone()).collect();
                rounds.push(round_line(0, Stage::Initial, doctors(), answers, String::new()));
            }
            synthesis = self.synthesise(&case, round, &specialties, &opinions)?;
            let reviews = self.review(&case, round, &specialties, &synthesis)?;
            let answers = reviews.iter().map(|one| one.value.answer.clone()).collect();
            let brief = synthesis.clone();
            rounds.push(round_line(round, Stage::Round, doctors(), answers, brief));
            // A review that could not be read objects to nothing, but where MedAgentBoard takes it to.
            let objects = |review: &Asked<Review>| {
                !review.value.agree && (self.settings.mab_compat || review.call.basis().is_some())
            };
            if !reviews.iter().any(objects) {
                break;
            }
        }
        let round = rounds.last().map_or(0, |round| round.round);
        let decision = self.decide(&case, round, &synthesis)?.value;
        let reviewed = rounds.last().map_or(&[][..], |round| &round.answers[..]);
        let verdict = decided(decision, reviewed);
        Ok(case.close(rounds, verdict).into())
    }
}

impl MedAgents {
    /// The doctors' specialties.
    fn gather(&self, case: &Case<'_>) -> Result<Vec<&'static str>, PanelError> {
        let names = form::array(self.settings.decoding.string(), DOCTORS, DOCTORS);
        let grammar = form::record(vec![("fields", names)]);
        let step = Step::new(Stage::Aside, 0, "specialties", grammar);
        let messages = self.texts.gatherer.fill_question(case.item, &[]);
        let call = case.call(&step, GATHERER, "gatherer", messages);
        let read = |text: &str, finish_reason| match self.settings.mab_compat {
            true => read_specialties_as_harness(text),
            false => read_specialties(text, finish_reason),
        };
        let asked = case.ask(call, |text, finish_reason| {
            One::or_assumed("fields", read(text, finish_reason))
        })?;
        Ok(asked.value.said)
    }

    /// Every doctor's own analysis. From the second round on it is another sample of the same prompt, without anything of earlier rounds, so
    /// that only the first round's count as trajectories.
    fn analyse(
        &self,
        case: &Case<'_>,
        round: u32,
        specialties: &[&str],
    ) -> Result<Vec<Asked<Explained>>, PanelError> {
        let (stage, round) = match round {
            1 => (Stage::Initial, 0),
            later => (Stage::Aside, later),
        };
        let step = self.opinion_step(case, stage, round, "analysis");
        let calls = specialties.iter().enumerate().map(|(doctor, specialty)| {
            let messages =
                self.texts.analysis.fill_question(case.item, &[("specialty", specialty)]);
            case.call(&step, doctor, doctor_name(doctor), messages)
        });
        case.ask_all(calls, self.opinion_reader(case))
    }

    /// The report on the opinions, which names no answer.
    fn synthesise(
        &self,
        case: &Case<'_>,
        round: u32,
        specialties: &[&str],
        opinions: &[Asked<Explained>],
    ) -> Result<String, PanelError> {
        let grammar = form::record(vec![("explanation", self.settings.decoding.reasons())]);
        let step = Step::new(Stage::Aside, round, "synthesis", grammar);
        let opinions = specialties.iter().zip(opinions).enumerate();
        let opinions = opinions.map(|(doctor, (specialty, opinion))| {
            let values = [
                ("number", &*(doctor + 1).to_string()),
                ("specialty", specialty),
                ("explanation", &opinion.value.explanation),
                ("answer", opinion.value.shown()),
            ];
            fill(&self.texts.opinion, &values)
        });
        let opinions = opinions.collect::<Vec<_>>().join("\n\n");
        let round = round.to_string();
        let values = [("round", round.as_str()), ("opinions", &opinions)];
        let call = case.call(&step, META, "meta", self.texts.synthesis.fill(&values));
        let read = |text: &str, finish_reason| {
            let reply = Fields::of(self.settings.mab_compat, text, finish_reason, "explanation");
            // Without any answer that it may have.
            let explanation = reply.prose("explanation");
            let parse = reply.parse.if_read(!explanation.is_empty());
            One::of("explanation", (explanation, parse))
        };
        Ok(case.ask(call, read)?.value.said)
    }

    /// Every doctor's review of the report, which is all that their prompts show.
    ///
    /// These are the trajectories of the round (MED-MAD, B.7): the only answers that a doctor gives after reading of the others'.
    /// MedAgentBoard asks only doctors who disagree for a letter, and so does `mab_compat`; else all are asked, for diagnostics only: the
    /// letter decides nothing.
    fn review(
        &self,
        case: &Case<'_>,
        round: u32,
        specialties: &[&str],
        synthesis: &str,
    ) -> Result<Vec<Asked<Review>>, PanelError> {
        let review = |agree: &[&str], answer: Option<Value>| {
            let fields =
                [("reason", self.settings.decoding.reasons()), ("agree", form::choice(agree))]
                    .into_iter();
            fields.chain(answer.map(|answer| ("answer", answer))).collect::<Vec<_>>()
        };
        let answer = || Some(form::answer(case.item));
        let (templates, grammar) = match self.settings.mab_compat {
            true => {
                let either = [review(&["yes"], None), review(&["no"], answer())];
                (&self.texts.review_of_dissent, form::either(either))
            }
            false => (&self.texts.review, form::record(review(&["yes", "no"], answer()))),
        };
        let step = Step::new(Stage::Round, round, "review", grammar);
        let calls = specialties.iter().enumerate().map(|(doctor, specialty)| {
            let values = [("specialty", *specialty), ("synthesis", synthesis)];
            case.call(&step, doctor, doctor_name(doctor), templates.fill(&values))
        });
        case.ask_all(calls, |text, finish_reason| {
            let reply = Fields::of(self.settings.mab_compat, text, finish_reason, "agree");
            let answer = match self.settings.mab_compat {
                true => harness::exact_letter(reply.written(), &case.item.options),
                // One «yes» agrees, and answers nothing.
                false if reply.get("answer").is_null() => String::new(),
                false => reply.answer(&case.item.options).0,
            };
            read_review(&reply, text, answer, self.settings.mab_compat)
        })
    }

    fn decide(
        &self,
        case: &Case<'_>,
        round: u32,
        synthesis: &str,
    ) -> Result<Asked<Explained>, PanelError> {
        let step = self.opinion_step(case, Stage::Final, round, "decision");
        let messages = self.texts.decision.fill_question(case.item, &[("synthesis", synthesis)]);
        case.ask(case.call(&step, DECISION, "decision", messages), self.opinion_reader(case))
    }

    fn opinion_step(&self, case: &Case<'_>, stage: Stage, round: u32, purpose: &str) -> Step {
        Step::new(stage, round, purpose, Explained::grammar(case.item, &self.settings.decoding))
    }

    fn opinion_reader(
        &self,
        case: &Case<'_>,
    ) -> impl Fn(&str, FinishReason) -> (Explained, Parse) + use<> {
        let (mab_compat, options) = (self.settings.mab_compat, case.item.options.clone());
        move |text, finish_reason| {
            if mab_compat {
                return read_opinion_as_harness(text, &options);
            }
            Explained::of(&Fields::read(text, finish_reason, "answer"), &options)
        }
    }
}

fn doctors() -> Vec<String> {
    (0..DOCTORS).map(doctor_name).collect()
}

/// A doctor's review of the report.
#[derive(Serialize)]
struct Review {
    agree: bool,
    explanation: String,
    answer: String,
}

impl Record for Review {
    fn assumed(&self) -> Option<&'static str> {
        Some("agree")
    }

    fn answer(&mut self) -> Option<&mut String> {
        Some(&mut self.answer)
    }
}

/// Parses an opinion as the harness does: the answer is shown to others as written, and is correct only as the letter alone.
fn read_opinion_as_harness(text: &str, options: &[Choice]) -> (Explained, Parse) {
    let reply = Fields::exact(text);
    let or = |key, otherwise: &str| match reply.get(key) {
        Value::Null if reply.parse == Parse::Fallback => otherwise.to_owned(),
        Value::Null => String::new(),
        other => text_of(other),
    };
    let written = or("answer", "No structured answer found in response");
    let answer = harness::exact_letter(&written, options);
    let parse = reply.parse.if_read(!answer.is_empty());
    let explanation = or("explanation", "No structured explanation found in response");
    (Explained { explanation, answer, written: Some(written) }, parse)
}

fn read_review(reply: &Fields, text: &str, answer: String, mab_compat: bool) -> (Review, Parse) {
    let agree = agrees(reply, without_thinking(text), mab_compat);
    // A letter alone does not say whether it agrees.
    let parse = reply.parse.if_read(agree.is_some());
    let agree = agree.unwrap_or(false);
    (Review { agree, explanation: reply.prose("reason"), answer }, parse)
}

/// Whether a review agrees: `true`, "true" or "yes"; without a JSON object the last line that contains "agree", by whether it contains one
/// of these words. `None` where the reply does not say.
pub(crate) fn agrees(reply: &Fields, text: &str, mab_compat: bool) -> Option<bool> {
    if reply.parse != Parse::Fallback {
        return match reply.get("agree") {
            Value::Bool(agree) => Some(*agree),
            Value::String(word) if mab_compat => {
                Some(matches!(word.trim().to_lowercase().as_str(), "true" | "yes"))
            }
            Value::String(word) => consents(word),
            _ => None,
        };
    }
    if !mab_compat {
        let line = reply.get("agree").as_str();
        return line.and_then(consents).or_else(|| consents(text.trim()));
    }
    let mut lines = text.lines().map(str::to_lowercase);
    let line = lines.rfind(|line| line.contains("agree"));
    line.map(|line| line.contains("true") || line.contains("yes"))
}

#[cfg(test)]
mod tests;
