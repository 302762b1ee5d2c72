//! The messages of each step: one system text, and the step's own words around question, draft and feedback.

use crate::data::Question;
use crate::prompts::{PromptError, PromptSet, fill};
use crate::record::Message;
use crate::systems::case::messages;
use crate::systems::text::option_lines;

/// What a critique looks at, in the order of the feedback.
pub const CRITIQUES: [&str; 3] = ["ethics", "emergency", "error"];

/// The prompts of a run.
#[derive(Clone, Debug)]
pub struct Messages {
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

impl Messages {
    /// # Errors
    /// [`PromptError`] where an overridden prompt lost a placeholder.
    pub fn new(prompts: &PromptSet) -> Result<Messages, PromptError> {
        let text = |name: &str, placeholders: &[&str]| -> Result<String, PromptError> {
            let name = format!("healthcareagent/{name}.txt");
            Ok(prompts.get(&name, placeholders)?.to_owned())
        };
        let asked = ["question", "options"];
        let [ethics, emergency, error] = CRITIQUES;
        Ok(Messages {
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
        })
    }

    /// Whether to ask back before answering.
    pub fn planner(&self, question: &Question) -> Vec<Message> {
        self.about(question, &self.planner, &[])
    }

    /// What to ask back.
    pub fn inquiry(&self, question: &Question) -> Vec<Message> {
        self.about(question, &self.inquiry, &[])
    }

    /// The draft; the follow-up questions, if any, have no answers.
    pub fn preliminary(&self, question: &Question, follow_ups: &[String]) -> Vec<Message> {
        let considerations = match follow_ups {
            [] => String::new(),
            _ => {
                let lines: Vec<String> = follow_ups.iter().map(|one| format!("- {one}")).collect();
                let values = [("questions", lines.join("\n"))];
                let values = values.each_ref().map(|(name, text)| (*name, text.as_str()));
                fill(&self.considerations, &values) + "\n\n"
            }
        };
        self.about(question, &self.preliminary, &[("considerations", &considerations)])
    }

    /// The critique that is this one of [`CRITIQUES`]; it is shown the draft, and neither question nor options.
    pub fn critique(&self, which: usize, draft: &str) -> Vec<Message> {
        let user = fill(&self.critiques[which], &[("response", draft)]);
        messages(&self.system, user)
    }

    /// The critiques as one text, from those in the order of [`CRITIQUES`].
    pub fn feedback(&self, critiques: &[String]) -> String {
        let values: Vec<(&str, &str)> =
            CRITIQUES.into_iter().zip(critiques.iter().map(String::as_str)).collect();
        fill(&self.feedback, &values)
    }

    /// The answer in the light of the feedback.
    pub fn last(&self, question: &Question, draft: &str, feedback: &str) -> Vec<Message> {
        let values = [("draft", draft), ("feedback", feedback)];
        self.about(question, &self.last, &values)
    }

    fn about(&self, question: &Question, template: &str, more: &[(&str, &str)]) -> Vec<Message> {
        let options = option_lines(question);
        let values = [("question", question.question.as_str()), ("options", &options)];
        messages(&self.system, fill(template, &[&values, more].concat()))
    }
}
