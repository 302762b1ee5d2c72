//! HealthcareAgent (Ren et al. 2025) as MedAgentBoard adapts it to multiple choice: one doctor plans, drafts, is critiqued, and revises.

pub mod parse;
#[cfg(test)]
mod tests;

use self::parse::{DIAGNOSE, INQUIRY};
use super::case::{Case, One, Step, Verdict};
use super::config::{self, Built, Given, Slot};
use super::decoding::Decoding;
use super::form;
use super::messages::{fill_question, messages, prompt_files};
use super::reading::reply::{Explained, Fields};
use super::reading::said;
use super::settings::{settings, switch};
use super::vote::{decided, round_line};
use super::{System, Task};
use crate::data::Question;
use crate::panel::PanelError;
use crate::prompts::fill;
use crate::record::{Grammar, ItemLine, Message, Parse, RoundLine, Stage};

/// The one agent.
const AGENT: &str = "doctor";
/// The subjects of the critiques, in the order of the feedback; they name the purposes of the calls.
const CRITIQUES: [&str; 3] = ["ethics", "emergency", "error"];
/// Follow-up questions of an inquiry.
const FOLLOW_UPS: usize = 3;

settings! {
    /// How HealthcareAgent runs.
    pub struct Settings {
        /// Whether replies are parsed as MedAgentBoard does: invalid JSON ends the case without an answer.
        #[serde(with = "switch")]
        pub mab_compat: bool = false,
    } with decoding: Decoding
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
        let case = task.question()?.as_written(self.settings.mab_compat);
        let options = &case.item.options;
        let read = |text: &str, finish_reason| match self.settings.mab_compat {
            true => parse::conclusion_as_harness(text, options),
            false => Explained::of(&Fields::read(text, finish_reason, "answer"), options),
        };
        let Some(considerations) = self.considerations(&case)? else {
            let none = round(0, Stage::Initial, &Explained::default(), String::new());
            return Ok(case.close(vec![none], Verdict::default()).into());
        };
        let concluded = Explained::grammar(case.item, &self.settings.decoding);

        let values = [("considerations", considerations.as_str())];
        let prompt = self.about(case.item, &self.texts.preliminary, &values);
        let step = Step::new(Stage::Initial, 0, "preliminary", concluded.clone());
        let first = case.ask(case.call(&step, 0, AGENT, prompt), read)?;
        let draft = said(&first.call.text);

        // No critique sees another, so all are asked at once.
        let templates = [&self.texts.ethics, &self.texts.emergency, &self.texts.error];
        let critiques = CRITIQUES.into_iter().zip(templates).map(|(purpose, template)| {
            let prompt = messages(&self.texts.system, fill(template, &[("response", draft)]));
            let step = Step::new(Stage::Aside, 1, purpose, self.settings.decoding.passage());
            case.call(&step, 0, AGENT, prompt)
        });
        // The harness passes on whatever there is.
        let reviewed = if self.settings.mab_compat { "" } else { draft };
        let review =
            |text: &str, reason| One::of("feedback", parse::critique(text, reason, reviewed));
        let critiques = case.ask_all(critiques, review)?;
        let critiques = critiques.iter().map(|one| one.value.said.as_str());
        let critiques: Vec<(&str, &str)> = CRITIQUES.into_iter().zip(critiques).collect();
        let feedback = fill(&self.texts.feedback, &critiques);

        let values = [("draft", draft), ("feedback", &feedback)];
        let prompt = self.about(case.item, &self.texts.last, &values);
        let step = Step::new(Stage::Final, 1, "final", concluded);
        let last = case.ask(case.call(&step, 0, AGENT, prompt), read)?.value;

        let rounds = vec![
            round(0, Stage::Initial, &first.value, String::new()),
            round(1, Stage::Final, &last, feedback),
        ];
        let own = [last.answer.clone()];
        let verdict = decided(last, &own);
        Ok(case.close(rounds, verdict).into())
    }
}

impl HealthcareAgent {
    /// The follow-up questions, which nobody answers, as the draft's prompt shows them; empty where the planner does not ask for any. `None`
    /// where the harness fails on them.
    fn considerations(&self, case: &Case<'_>) -> Result<Option<String>, PanelError> {
        let prompt = self.about(case.item, &self.texts.planner, &[]);
        let either = Grammar::Regex(format!("{DIAGNOSE}|{INQUIRY}"));
        let step = Step::new(Stage::Aside, 0, "planner", either);
        let read = |text: &str, finish_reason| {
            One::or_assumed("action", parse::plan(text, finish_reason, self.settings.mab_compat))
        };
        if case.ask(case.call(&step, 0, AGENT, prompt), read)?.value.said != INQUIRY {
            return Ok(Some(String::new()));
        }
        let questions = form::array(self.settings.decoding.string(), FOLLOW_UPS, FOLLOW_UPS);
        let prompt = self.about(case.item, &self.texts.inquiry, &[]);
        let record = form::record(vec![("questions", questions)]);
        let step = Step::new(Stage::Aside, 0, "inquiry", record);
        let call = case.call(&step, 0, AGENT, prompt);
        let read = |text: &str, finish_reason| match self.settings.mab_compat {
            true => parse::follow_ups_as_harness(text),
            false => parse::follow_ups(text, finish_reason),
        };
        let inquiry = case.ask(call, |text, reason| One::of("questions", read(text, reason)))?;
        if self.settings.mab_compat && inquiry.call.parse == Parse::Unread {
            return Ok(None);
        }
        if inquiry.value.said.is_empty() {
            return Ok(Some(String::new()));
        }
        let lines = inquiry.value.said.iter().map(|one| format!("- {one}"));
        let lines = lines.collect::<Vec<_>>().join("\n");
        Ok(Some(fill(&self.texts.considerations, &[("questions", &lines)]) + "\n\n"))
    }

    fn about(&self, question: &Question, template: &str, more: &[(&str, &str)]) -> Vec<Message> {
        messages(&self.texts.system, fill_question(template, question, more))
    }
}

fn round(round: u32, stage: Stage, conclusion: &Explained, brief: String) -> RoundLine {
    let answers = vec![conclusion.answer.clone()];
    round_line(round, stage, vec![AGENT.to_owned()], answers, brief)
}
