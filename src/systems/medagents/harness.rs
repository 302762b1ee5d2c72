//! The consultation as MedAgentBoard runs it: three doctors analyse, a report is made, they review it; at last one decides.

use serde_json::{Value, json};

use super::settings::{DECISION, DOCTORS, GATHERER, META, Settings, doctor_name};
use super::specialties;
use crate::data::{Item, Question};
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet, fill};
use crate::record::{CallLine, FinishReason, ItemLine, Parse, Stage};
use crate::systems::case::{Case, Verdict};
use crate::systems::decoding::{Decoding, Shape};
use crate::systems::form;
use crate::systems::json_object::without_thinking;
use crate::systems::reply::{Reply, field};
use crate::systems::step::{Step, Templates};
use crate::systems::text::option_lines;
use crate::systems::vote::{round_line, support};
use crate::systems::{Opening, System, Task};

/// MedAgentBoard's MedAgents.
pub struct Harness {
    max_rounds: u32,
    decoding: Decoding,
    gatherer: Templates,
    analysis: Templates,
    opinion: String,
    synthesis: Templates,
    review: Templates,
    decision: Templates,
}

impl Harness {
    /// # Errors
    /// When an overridden prompt lost what is filled in.
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<Harness, PromptError> {
        let pair = |name: &str, system: &[&str], user: &[&str]| {
            Templates::new(prompts, &format!("medagents/{name}"), system, user)
        };
        let opinion = ["number", "specialty", "explanation", "answer"];
        Ok(Harness {
            max_rounds: settings.max_rounds,
            decoding: settings.decoding.clone(),
            gatherer: pair("gatherer", &[], &["question"])?,
            analysis: pair("analysis", &["specialty"], &["question", "options"])?,
            opinion: prompts.get("medagents/opinion.txt", &opinion)?.to_owned(),
            synthesis: pair("synthesis", &[], &["opinions"])?,
            review: pair("review", &["specialty"], &["synthesis"])?,
            decision: pair("decision", &[], &["question", "options", "synthesis"])?,
        })
    }
}

impl System for Harness {
    /// Rounds of analysis, report and review until all agree; then the decision.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.question()?;
        let specialties = self.gather(&case)?;
        let mut rounds = Vec::new();
        let mut synthesis = String::new();
        for round in 1..=self.max_rounds {
            let opinions = self.analyse(&case, round, &specialties)?;
            if round == 1 {
                let answers = letters(&opinions);
                rounds.push(round_line(0, Stage::Initial, doctors(), answers, String::new()));
            }
            synthesis = self.synthesise(&case, round, &specialties, &opinions)?;
            let reviews = self.review(&case, round, &specialties, &synthesis)?;
            let answers = letters(&reviews);
            let brief = synthesis.clone();
            rounds.push(round_line(round, Stage::Round, doctors(), answers, brief));
            if reviews.iter().all(|review| review.record["agree"] == true) {
                break;
            }
        }
        let round = rounds.last().map_or(0, |round| round.round);
        let decision = self.decide(&case, round, &synthesis)?;
        let answer = field(&decision.record, "answer");
        let verdict = Verdict {
            team_confidence: rounds.last().map_or(0.0, |r| support(&r.answers, &answer)),
            rationale: field(&decision.record, "explanation"),
            answer,
            tie: false,
        };
        Ok(case.close(rounds, verdict).into())
    }

    fn opening(&self, _: &str, item: &Item) -> Vec<Opening> {
        let Item::Question(question) = item else {
            return Vec::new();
        };
        let values = [("question", question.question.as_str())];
        vec![Opening::new(GATHERER, self.gatherer.fill(&values))]
    }
}

impl Harness {
    /// The doctors' specialties.
    fn gather(&self, case: &Case<'_>) -> Result<Vec<String>, PanelError> {
        let names = form::array(self.decoding.string(), DOCTORS, DOCTORS);
        let step = Step {
            stage: Stage::Aside,
            round: 0,
            purpose: "specialties",
            shape: self.decoding.record(vec![("fields", names)]),
        };
        let values = [("question", case.item.question.as_str())];
        let ask = step.ask(GATHERER, "gatherer", self.gatherer.fill(&values));
        let call = case.ask(ask, &specialties::read)?;
        let names = call.record["fields"].as_array().into_iter().flatten();
        let names = names.filter_map(Value::as_str).map(str::to_owned);
        Ok(names.collect())
    }

    /// Every doctor's own analysis. From the second round on it is another draw of the same prompt: nothing of the rounds before is
    /// in it, which is why only the first round's are trajectories.
    fn analyse(
        &self,
        case: &Case<'_>,
        round: u32,
        specialties: &[String],
    ) -> Result<Vec<CallLine>, PanelError> {
        let (stage, round) = match round {
            1 => (Stage::Initial, 0),
            later => (Stage::Aside, later),
        };
        let step = Step { stage, round, purpose: "analysis", shape: self.opinion_shape(case.item) };
        let options = option_lines(case.item);
        let asks = specialties.iter().enumerate().map(|(doctor, specialty)| {
            let values = [
                ("specialty", specialty.as_str()),
                ("question", &case.item.question),
                ("options", &options),
            ];
            step.ask(doctor, doctor_name(doctor), self.analysis.fill(&values))
        });
        case.ask_all(asks.collect(), &read_opinion)
    }

    /// The report on the opinions, which names no answer.
    fn synthesise(
        &self,
        case: &Case<'_>,
        round: u32,
        specialties: &[String],
        opinions: &[CallLine],
    ) -> Result<String, PanelError> {
        let step = Step {
            stage: Stage::Aside,
            round,
            purpose: "synthesis",
            shape: self.decoding.record(vec![("explanation", self.decoding.string())]),
        };
        let opinion = |(doctor, (specialty, call)): (usize, (&String, &CallLine))| {
            let values = [
                ("number", &*(doctor + 1).to_string()),
                ("specialty", specialty),
                ("explanation", &field(&call.record, "explanation")),
                ("answer", &field(&call.record, "answer")),
            ];
            fill(&self.opinion, &values)
        };
        let opinions = specialties.iter().zip(opinions).enumerate().map(opinion);
        let opinions = opinions.collect::<Vec<_>>().join("\n\n");
        let round = round.to_string();
        let values = [("round", round.as_str()), ("opinions", &opinions)];
        let ask = step.ask(META, "meta", self.synthesis.fill(&values));
        let call = case.ask(ask, &read_synthesis)?;
        Ok(field(&call.record, "explanation"))
    }

    /// Every doctor's verdict on the report, which is all that they are shown.
    ///
    /// These are the trajectories of the round (MED-MAD, B.7): the only answers that a doctor gives after hearing of the others'.
    /// MedAgentBoard asks only those who do not agree for a letter; here all are, for the diagnostics alone, since the letter decides
    /// nothing.
    fn review(
        &self,
        case: &Case<'_>,
        round: u32,
        specialties: &[String],
        synthesis: &str,
    ) -> Result<Vec<CallLine>, PanelError> {
        let step = Step {
            stage: Stage::Round,
            round,
            purpose: "review",
            shape: self.decoding.record(vec![
                ("agree", form::choice(&["yes", "no"])),
                ("reason", self.decoding.string()),
                ("answer", form::answer(case.item)),
            ]),
        };
        let asks = specialties.iter().enumerate().map(|(doctor, specialty)| {
            let values = [("specialty", specialty.as_str()), ("synthesis", synthesis)];
            step.ask(doctor, doctor_name(doctor), self.review.fill(&values))
        });
        case.ask_all(asks.collect(), &read_review)
    }

    fn decide(&self, case: &Case<'_>, round: u32, synthesis: &str) -> Result<CallLine, PanelError> {
        let step = Step {
            stage: Stage::Final,
            round,
            purpose: "decision",
            shape: self.opinion_shape(case.item),
        };
        let options = option_lines(case.item);
        let values = [
            ("question", case.item.question.as_str()),
            ("options", &options),
            ("synthesis", synthesis),
        ];
        let ask = step.ask(DECISION, "decision", self.decision.fill(&values));
        case.ask(ask, &read_opinion)
    }

    fn opinion_shape(&self, question: &Question) -> Shape {
        self.decoding.record(vec![
            ("explanation", self.decoding.string()),
            ("answer", form::answer(question)),
        ])
    }
}

fn doctors() -> Vec<String> {
    (0..DOCTORS).map(doctor_name).collect()
}

fn letters(calls: &[CallLine]) -> Vec<String> {
    let answer = |call: &CallLine| field(&call.record, "answer");
    calls.iter().map(answer).collect()
}

fn read_opinion(text: &str, finish_reason: FinishReason) -> (Value, Parse) {
    let reply = Reply::read(text, finish_reason, "answer");
    let record = json!({"explanation": reply.prose("explanation"), "answer": reply.answer()});
    (record, reply.parse)
}

/// An answer in it is left out.
fn read_synthesis(text: &str, finish_reason: FinishReason) -> (Value, Parse) {
    let reply = Reply::read(text, finish_reason, "explanation");
    (json!({"explanation": reply.prose("explanation")}), reply.parse)
}

fn read_review(text: &str, finish_reason: FinishReason) -> (Value, Parse) {
    let reply = Reply::read(text, finish_reason, "agree");
    let record = json!({
        "agree": agrees(&reply, without_thinking(text)),
        "explanation": reply.prose("reason"),
        "answer": reply.answer(),
    });
    (record, reply.parse)
}

/// `true`, "true" or "yes"; where there is no object, the last line with "agree" in it that has one of these words or none. Who says
/// neither does not agree.
fn agrees(reply: &Reply, text: &str) -> bool {
    if reply.parse != Parse::Fallback {
        return match reply.get("agree") {
            Value::Bool(agree) => *agree,
            Value::String(word) => is_yes(&word.trim().to_lowercase()),
            _ => false,
        };
    }
    let mut lines = text.lines().map(str::to_lowercase);
    let line = lines.rfind(|line| line.contains("agree"));
    line.is_some_and(|line| line.contains("true") || line.contains("yes"))
}

fn is_yes(word: &str) -> bool {
    matches!(word, "true" | "yes")
}

#[cfg(test)]
mod tests;
