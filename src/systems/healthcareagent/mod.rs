//! HealthcareAgent (Ren et al. 2025) as MedAgentBoard adapts it to multiple choice: one doctor plans, drafts, is critiqued, and revises.

pub mod parse;
#[cfg(test)]
mod tests;

use self::parse::{DIAGNOSE, INQUIRY};
use super::case::{Case, One, Step};
use super::config::{self, Built, Given, Slot};
use super::decoding::Decoding;
use super::form;
use super::messages::{fill_question, messages, prompt_files};
use super::reading::reply::Explained;
use super::reading::said;
use super::settings::settings;
use super::vote::{decided, round_of};
use super::{System, Task};
use crate::data::Question;
use crate::panel::{Asked, PanelError};
use crate::prompts::fill;
use crate::record::{Grammar, ItemLine, Message, Stage};

const AGENT: &str = "doctor";
/// The subjects of the critiques, in the order of the feedback; they name the purposes of the calls.
const CRITIQUES: [&str; 3] = ["ethics", "emergency", "error"];
/// Follow-up questions of an inquiry.
const FOLLOW_UPS: usize = 3;

settings! {
    pub struct Settings {} with decoding: Decoding
}

impl config::Settings for Settings {
    fn slots(&self) -> Vec<Slot> {
        vec![Slot::new(AGENT, 0)]
    }

    fn max_calls(&self) -> u32 {
        // The planner, the inquiry that it may ask for, the draft, the critiques, the final answer.
        4 + CRITIQUES.len() as u32
    }

    fn build(&self, given: &Given<'_>) -> Built {
        let (settings, texts) = (self.clone(), Texts::read(given.prompts)?);
        Ok(Box::new(HealthcareAgent { settings, texts }))
    }
}

struct HealthcareAgent {
    settings: Settings,
    texts: Texts,
}

prompt_files! {
    struct Texts in "healthcareagent" {
        system: "system" [],
        planner: "planner" ["question", "options"],
        inquiry: "inquiry" ["question", "options"],
        considerations: "considerations" ["questions"],
        preliminary: "preliminary" ["question", "options", "considerations"],
        ethics: "ethics" ["response"],
        emergency: "emergency" ["response"],
        error: "error" ["response"],
        feedback: "feedback" ["ethics", "emergency", "error"],
        last: "final" ["question", "options", "draft", "feedback"],
    }
}

impl System for HealthcareAgent {
    /// Six calls, or seven with an inquiry.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.question()?;
        let read = Explained::reader(case.item);
        let considerations = self.considerations(&case)?;
        let concluded = Explained::grammar(case.item, &self.settings.decoding);

        let values = [("considerations", considerations.as_str())];
        let prompt = self.about(case.item, &self.texts.preliminary, &values);
        let step = Step::new(Stage::Initial, 0, "preliminary", concluded.clone());
        let first = case.ask(case.call(&step, 0, AGENT, prompt), &read)?;
        let draft = said(&first.call.text);

        // No critique sees another, so all are asked at once.
        let templates = [&self.texts.ethics, &self.texts.emergency, &self.texts.error];
        let critiques = CRITIQUES.into_iter().zip(templates).map(|(purpose, template)| {
            let prompt = messages(&self.texts.system, fill(template, &[("response", draft)]));
            let step = Step::new(Stage::Aside, 1, purpose, self.settings.decoding.passage());
            case.call(&step, 0, AGENT, prompt)
        });
        let review = |text: &str, reason| One::of("feedback", parse::critique(text, reason, draft));
        let critiques = case.ask_all(critiques, review)?;
        let critiques = critiques.iter().map(|one| one.value.said.as_str());
        let critiques: Vec<(&str, &str)> = CRITIQUES.into_iter().zip(critiques).collect();
        let feedback = fill(&self.texts.feedback, &critiques);

        let values = [("draft", draft), ("feedback", &feedback)];
        let prompt = self.about(case.item, &self.texts.last, &values);
        let step = Step::new(Stage::Final, 1, "final", concluded);
        let last = [case.ask(case.call(&step, 0, AGENT, prompt), read)?];

        let rounds = vec![
            round_of(0, Stage::Initial, &[first], String::new()),
            round_of(1, Stage::Final, &last, feedback),
        ];
        let [Asked { value: last, .. }] = last;
        let own = [last.answer.clone()];
        let verdict = decided(last, &own);
        Ok(ItemLine::Answer(case.close(rounds, verdict)))
    }
}

impl HealthcareAgent {
    /// The follow-up questions, which nobody answers, as the draft's prompt shows them; empty where the planner does not ask for any.
    fn considerations(&self, case: &Case<'_>) -> Result<String, PanelError> {
        let prompt = self.about(case.item, &self.texts.planner, &[]);
        let either = Grammar::Regex(format!("{DIAGNOSE}|{INQUIRY}"));
        let step = Step::new(Stage::Aside, 0, "planner", either);
        let read = |text: &str, reason| One::or_assumed("action", parse::plan(text, reason));
        if case.ask(case.call(&step, 0, AGENT, prompt), read)?.value.said != INQUIRY {
            return Ok(String::new());
        }
        let questions = form::array(self.settings.decoding.string(), FOLLOW_UPS, FOLLOW_UPS);
        let prompt = self.about(case.item, &self.texts.inquiry, &[]);
        let record = form::record(vec![("questions", questions)]);
        let step = Step::new(Stage::Aside, 0, "inquiry", record);
        let read = |text: &str, reason| One::of("questions", parse::follow_ups(text, reason));
        let questions = case.ask(case.call(&step, 0, AGENT, prompt), read)?.value.said;
        if questions.is_empty() {
            return Ok(String::new());
        }
        let lines = questions.iter().map(|one| format!("- {one}"));
        let lines = lines.collect::<Vec<_>>().join("\n");
        Ok(fill(&self.texts.considerations, &[("questions", &lines)]) + "\n\n")
    }

    fn about(&self, question: &Question, template: &str, more: &[(&str, &str)]) -> Vec<Message> {
        messages(&self.texts.system, fill_question(template, question, more))
    }
}
