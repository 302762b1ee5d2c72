//! HealthcareAgent (Ren et al. 2025) as MedAgentBoard adapts it to multiple choice: one doctor plans, drafts, is reviewed, and revises.

pub mod parse;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use self::parse::{DIAGNOSE, INQUIRY};
use super::case::{Case, Step, Verdict};
use super::config::{self, Slot};
use super::decoding::Decoding;
use super::form::{self, STEPS};
use super::messages::{fill_question, messages};
use super::reading::reply::Explained;
use super::reading::said;
use super::vote::round_line;
use super::{Opening, System, Task};
use crate::data::{Item, Question};
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet, fill};
use crate::record::{Grammar, ItemLine, Message, RoundLine, Stage};

/// The one agent.
const AGENT: &str = "doctor";
/// What a critique looks at, in the order of the feedback; the purposes of the calls.
const CRITIQUES: [&str; 3] = ["ethics", "emergency", "error"];
/// Follow-up questions of an inquiry.
const FOLLOW_UPS: usize = 3;

/// How HealthcareAgent runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    #[serde(flatten)]
    pub decoding: Decoding,
}

impl config::Settings for Settings {
    fn slots(&self) -> Vec<Slot> {
        vec![Slot::new(AGENT, 0)]
    }

    fn max_calls(&self) -> u32 {
        // The planner, the inquiry that it may want, the draft, the critiques, the final answer.
        4 + CRITIQUES.len() as u32
    }

    fn build(&self, prompts: &PromptSet) -> Result<Box<dyn System>, PromptError> {
        let text = |name: &str, placeholders: &[&str]| {
            prompts.get(&format!("healthcareagent/{name}"), placeholders)
        };
        let asked = ["question", "options"];
        let [ethics, emergency, error] = CRITIQUES;
        Ok(Box::new(HealthcareAgent {
            decoding: self.decoding.clone(),
            system: text("system", &[])?,
            planner: text("planner", &asked)?,
            inquiry: text("inquiry", &asked)?,
            considerations: text("considerations", &["questions"])?,
            preliminary: text("preliminary", &["question", "options", "considerations"])?,
            critiques: [
                text(ethics, &["response"])?,
                text(emergency, &["response"])?,
                text(error, &["response"])?,
            ],
            feedback: text("feedback", &CRITIQUES)?,
            last: text("final", &["question", "options", "draft", "feedback"])?,
        }))
    }
}

/// A doctor under review, by the prompts of a run.
struct HealthcareAgent {
    decoding: Decoding,
    system: String,
    planner: String,
    inquiry: String,
    considerations: String,
    preliminary: String,
    /// In the order of [`CRITIQUES`].
    critiques: [String; 3],
    feedback: String,
    last: String,
}

impl System for HealthcareAgent {
    /// Six calls, or seven with an inquiry.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.question()?;
        let read =
            |text: &str, finish_reason| parse::conclusion(text, finish_reason, &case.item.options);
        let considerations = self.considerations(&case)?;
        let explanation = form::string(STEPS * self.decoding.record_chars);
        let concluded = vec![("explanation", explanation), ("answer", form::answer(case.item))];
        let concluded = form::record(concluded);

        let values = [("considerations", considerations.as_str())];
        let prompt = self.about(case.item, &self.preliminary, &values);
        let step = self.step(0, Stage::Initial, "preliminary", concluded.clone());
        let first = case.ask(case.call(&step, 0, AGENT, prompt), read)?;
        let draft = said(&first.call.text);

        // None sees another, nor question and options, so all are asked at once.
        let critiques = CRITIQUES.into_iter().zip(&self.critiques).map(|(purpose, template)| {
            let prompt = messages(&self.system, fill(template, &[("response", draft)]));
            let passage = form::passage(STEPS * self.decoding.record_chars);
            case.call(&self.step(1, Stage::Aside, purpose, passage), 0, AGENT, prompt)
        });
        let critiques = case.ask_all(critiques, parse::critique)?;
        let critiques = critiques.iter().map(|one| one.value.feedback.as_str());
        let critiques: Vec<(&str, &str)> = CRITIQUES.into_iter().zip(critiques).collect();
        let feedback = fill(&self.feedback, &critiques);

        let values = [("draft", draft), ("feedback", &feedback)];
        let prompt = self.about(case.item, &self.last, &values);
        let step = self.step(1, Stage::Final, "final", concluded);
        let last = case.ask(case.call(&step, 0, AGENT, prompt), read)?.value;

        let rounds = vec![
            round(0, Stage::Initial, &first.value, String::new()),
            round(1, Stage::Final, &last, feedback),
        ];
        let verdict = Verdict {
            team_confidence: if last.answer.is_empty() { 0.0 } else { 1.0 },
            answer: last.answer,
            rationale: last.explanation,
            tie: false,
        };
        Ok(case.close(rounds, verdict).into())
    }

    fn opening(&self, _: &str, item: &Item) -> Option<Vec<Opening>> {
        let messages = self.about(item.question()?, &self.planner, &[]);
        Some(vec![Opening { member: 0, messages }])
    }
}

impl HealthcareAgent {
    /// What should be known before answering, where the planner says so, as the draft's prompt has it; the follow-up questions have no
    /// answers.
    fn considerations(&self, case: &Case<'_>) -> Result<String, PanelError> {
        let prompt = self.about(case.item, &self.planner, &[]);
        let step = self.step(0, Stage::Aside, "planner", form::word(&[DIAGNOSE, INQUIRY]));
        if case.ask(case.call(&step, 0, AGENT, prompt), parse::plan)?.value.action != INQUIRY {
            return Ok(String::new());
        }
        let questions = form::array(self.decoding.string(), FOLLOW_UPS, FOLLOW_UPS);
        let prompt = self.about(case.item, &self.inquiry, &[]);
        let grammar = form::record(vec![("questions", questions)]);
        let step = self.step(0, Stage::Aside, "inquiry", grammar);
        let inquiry = case.ask(case.call(&step, 0, AGENT, prompt), parse::follow_ups)?.value;
        let lines = inquiry.questions.iter().map(|one| format!("- {one}"));
        let lines = lines.collect::<Vec<_>>().join("\n");
        Ok(match lines.is_empty() {
            true => String::new(),
            false => fill(&self.considerations, &[("questions", &lines)]) + "\n\n",
        })
    }

    fn about(&self, question: &Question, template: &str, more: &[(&str, &str)]) -> Vec<Message> {
        messages(&self.system, fill_question(template, question, more))
    }

    /// No tokenizer needs more tokens than bytes, and nothing that is asked for is longer than an explanation with its answer.
    fn step(
        &self,
        round: u32,
        stage: Stage,
        purpose: &'static str,
        grammar: Option<Grammar>,
    ) -> Step {
        let explanation = form::string(STEPS * self.decoding.record_chars);
        let longest = vec![("explanation", explanation), ("answer", form::choice(&["A"]))];
        let tokens = form::longest(&form::root(longest));
        Step { stage, round, purpose, shape: self.decoding.within(grammar, tokens) }
    }
}

fn round(round: u32, stage: Stage, conclusion: &Explained, brief: String) -> RoundLine {
    let answers = vec![conclusion.answer.clone()];
    round_line(round, stage, vec![AGENT.to_owned()], answers, brief)
}
