//! The prompts of MDAgents.

use crate::prompts::{PromptError, PromptSet};
use crate::systems::step::Templates;

/// Every template of a run.
pub struct Messages {
    pub complexity: Templates,
    pub basic: Templates,
    pub experts: Templates,
    pub opinion: Templates,
    /// One expert's opinion, as the decision is shown it.
    pub opinion_block: String,
    pub decision_on_opinions: Templates,
    pub teams: Templates,
    pub request: Templates,
    pub investigation: Templates,
    /// What one assistant reported, as the lead is shown it.
    pub investigation_block: String,
    pub report: Templates,
    /// One team's report, as the decision is shown it.
    pub report_block: String,
    pub decision_on_reports: Templates,
}

impl Messages {
    /// # Errors
    /// An overridden prompt that lost a placeholder.
    pub fn new(prompts: &PromptSet) -> Result<Messages, PromptError> {
        // Every user prompt holds the question and its options, and more.
        let pair = |name: &str, system: &[&str], more: &[&str]| {
            let user = [&["question", "options"], more].concat();
            Templates::new(prompts, &format!("mdagents/{name}"), system, &user)
        };
        let block = |name: &str, placeholders: &[&str]| -> Result<String, PromptError> {
            let name = format!("mdagents/{name}.txt");
            Ok(prompts.get(&name, placeholders)?.to_owned())
        };
        let expert = ["role", "expertise"];
        let member = ["role", "expertise", "goal"];
        Ok(Messages {
            complexity: pair("complexity", &[], &[])?,
            basic: pair("basic", &[], &[])?,
            experts: pair("experts", &[], &["count"])?,
            opinion: pair("opinion", &expert, &[])?,
            opinion_block: block("opinion", &["role", "answer", "explanation"])?,
            decision_on_opinions: pair("decision-opinions", &[], &["opinions"])?,
            teams: pair("teams", &[], &["count", "members"])?,
            request: pair("request", &member, &["assistants"])?,
            investigation: pair("investigation", &member, &["lead", "request"])?,
            investigation_block: block("investigation", &["role", "report"])?,
            report: pair("report", &member, &["request", "investigations"])?,
            report_block: block("report", &["group", "goal", "answer", "explanation"])?,
            decision_on_reports: pair("decision-reports", &[], &["reports"])?,
        })
    }
}
