//! MDAgents (Kim et al., NeurIPS 2024): depending on a question's complexity one doctor answers, or several experts or teams do and a
//! moderator decides.
//!
//! As MedAgentBoard has it, without a discussion: experts are asked once and teams do not read each other's reports, so the only trajectories
//! are initial answers (MED-MAD, B.7).

pub mod recruits;
mod teams;
#[cfg(test)]
mod tests;

use itertools::Itertools;
use serde::Serialize;
use serde_json::Value;

use self::recruits::read_experts;
use super::case::{Case, One, Step};
use super::config::{self, Built, Given, Slot};
use super::decoding::Decoding;
use super::form::{array, choice, object, record};
use super::messages::{Templates, prompt_files, truncate};
use super::reading::reply::{Explained, Fields};
use super::reading::words::one_of;
use super::settings::settings;
use super::vote::{decided, round_of};
use super::{System, Task};
use crate::panel::{Asked, PanelError};
use crate::prompts::fill;
use crate::record::{ItemLine, Message, Parse, RoundLine, Stage};

const LEVELS: [&str; 3] = ["basic", "intermediate", "advanced"];

/// Members of the panel that experts and team members use in turn.
const AGENTS: usize = 3;
/// Members of the panel, by index: the agents come first.
const MODERATOR: usize = AGENTS;
const RECRUITER: usize = AGENTS + 1;

/// Experts on an intermediate question.
const EXPERTS: usize = 5;
/// Characters of an expert's explanation that the decision's prompt shows.
const EXPLANATION_CHARS: usize = 200;
/// Teams on an advanced question, and members of each at most: MedAgentBoard asks for about three.
const TEAMS: usize = 3;
const MEMBERS: usize = 3;

settings! {
    pub struct Settings {} with decoding: Decoding
}

fn agent_name(agent: usize) -> String {
    format!("agent-{}", agent + 1)
}

impl config::Settings for Settings {
    fn slots(&self) -> Vec<Slot> {
        // The agents have one of the panel's models each; the moderator, who also decides, and the recruiter have the first.
        Slot::in_order((0..AGENTS).map(agent_name), &["moderator", "recruiter"])
    }

    fn max_calls(&self) -> u32 {
        // Of an advanced question: complexity, recruitment, decision, and each team's calls, of which its lead makes two.
        3 + (TEAMS * (MEMBERS + 1)) as u32
    }

    fn build(&self, given: &Given<'_>) -> Built {
        Ok(Box::new(MdAgents { settings: self.clone(), messages: Messages::read(given.prompts)? }))
    }
}

struct MdAgents {
    settings: Settings,
    messages: Messages,
}

/// The round of answers, and the decision on them.
type Answered = (RoundLine, Asked<Explained>);

impl System for MdAgents {
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.question()?;
        let (round, decision) = match self.complexity(&case)? {
            "basic" => self.answer_alone(&case)?,
            "advanced" => self.ask_teams(&case)?,
            _ => self.ask_experts(&case)?,
        };
        let verdict = decided(decision.value, &round.answers);
        Ok(ItemLine::Answer(case.close(vec![round], verdict)))
    }
}

impl MdAgents {
    /// One of [`LEVELS`].
    fn complexity(&self, case: &Case<'_>) -> Result<&'static str, PanelError> {
        let fields = vec![("complexity", choice(&LEVELS))];
        let step = Step::new(Stage::Aside, 0, "complexity", record(fields));
        let messages = self.messages.complexity.fill_question(case.item, &[]);
        let call = case.call(&step, MODERATOR, "moderator", messages);
        let asked = case.ask(call, |text, finish_reason| {
            let reply = Fields::read(text, finish_reason, "complexity");
            One::or_assumed("complexity", read_complexity(&reply))
        })?;
        Ok(asked.value.said)
    }

    fn answer_alone(&self, case: &Case<'_>) -> Result<Answered, PanelError> {
        let step = self.opinion_step(case, Stage::Initial, "answer");
        let messages = self.messages.basic.fill_question(case.item, &[]);
        let call = case.call(&step, 0, agent_name(0), messages);
        let answer = case.ask(call, Explained::reader(case.item))?;
        let said = std::slice::from_ref(&answer);
        Ok((round_of(0, Stage::Initial, said, String::new()), answer))
    }

    /// The experts' opinions and the decision on them.
    fn ask_experts(&self, case: &Case<'_>) -> Result<Answered, PanelError> {
        let expert = object(vec![
            ("role", self.settings.decoding.string()),
            ("expertise", self.settings.decoding.string()),
            ("hierarchy", self.settings.decoding.string()),
        ]);
        let asked = ("experts", array(expert, EXPERTS, EXPERTS));
        let count = [("count", &*EXPERTS.to_string())];
        let messages = self.messages.experts.fill_question(case.item, &count);
        let experts = self.recruit(case, asked, messages, read_experts)?;
        let step = self.opinion_step(case, Stage::Initial, "opinion");
        let calls = experts.iter().enumerate().map(|(at, expert)| {
            let values = [("role", expert.role.as_str()), ("expertise", &expert.expertise)];
            let messages = self.messages.opinion.fill_question(case.item, &values);
            case.call(&step, at % AGENTS, format!("expert-{}", at + 1), messages)
        });
        let opinions = case.ask_all(calls, Explained::reader(case.item))?;
        let mut shown = experts.iter().zip(&opinions).map(|(expert, opinion)| {
            let Explained { explanation, answer, .. } = &opinion.value;
            let explanation = truncate(explanation, EXPLANATION_CHARS);
            let values =
                [("role", expert.role.as_str()), ("answer", answer), ("explanation", &explanation)];
            fill(&self.messages.opinion_block, &values)
        });
        let templates = &self.messages.decision_on_opinions;
        let decision = self.decide(case, templates, ("opinions", &shown.join("\n\n")))?;
        Ok((round_of(0, Stage::Initial, &opinions, String::new()), decision))
    }

    /// What the recruiter says of a field with this schema.
    fn recruit<T: Serialize>(
        &self,
        case: &Case<'_>,
        (key, schema): (&'static str, Value),
        messages: Vec<Message>,
        read: fn(&Fields) -> (Vec<T>, Parse),
    ) -> Result<Vec<T>, PanelError> {
        let step = Step::new(Stage::Aside, 0, "recruitment", record(vec![(key, schema)]));
        let call = case.call(&step, RECRUITER, "recruiter", messages);
        let asked = case.ask(call, |text, finish_reason| {
            One::or_assumed(key, read(&Fields::read(text, finish_reason, key)))
        })?;
        Ok(asked.value.said)
    }

    /// The moderator's decision on opinions or reports.
    fn decide(
        &self,
        case: &Case<'_>,
        templates: &Templates,
        said: (&str, &str),
    ) -> Result<Asked<Explained>, PanelError> {
        let step = self.opinion_step(case, Stage::Final, "decision");
        let messages = templates.fill_question(case.item, &[said]);
        let call = case.call(&step, MODERATOR, "moderator", messages);
        case.ask(call, Explained::reader(case.item))
    }

    fn opinion_step(&self, case: &Case<'_>, stage: Stage, purpose: &'static str) -> Step {
        Step::new(stage, 0, purpose, Explained::grammar(case.item, &self.settings.decoding))
    }
}

/// Parses the complexity: basic, intermediate or advanced; a reply without a level is intermediate.
pub fn read_complexity(reply: &Fields) -> (&'static str, Parse) {
    let given = reply.get("complexity").as_str().unwrap_or_default().trim().to_lowercase();
    let exact = LEVELS.into_iter().find(|level| *level == given);
    // «"basic", "intermediate" or "advanced"» names no level.
    let level = exact.filter(|_| reply.parse == Parse::Ok).or_else(|| one_of(&reply.text, &LEVELS));
    let parse = match (reply.parse, exact) {
        (Parse::Ok, None) => Parse::Repaired,
        (parse, _) => parse,
    };
    let parse = parse.if_read(level.is_some());
    (level.unwrap_or("intermediate"), parse)
}

prompt_files! {
    /// The templates of a run. Every user prompt has the question and its options.
    struct Messages in "mdagents" {
        complexity: "complexity" [] ["question", "options"],
        basic: "basic" [] ["question", "options"],
        experts: "experts" [] ["question", "options", "count"],
        opinion: "opinion" ["role", "expertise"] ["question", "options"],
        /// One expert's opinion in the decision's prompt.
        opinion_block: "opinion" ["role", "answer", "explanation"],
        decision_on_opinions: "decision-opinions" [] ["question", "options", "opinions"],
        teams: "teams" [] ["question", "options", "count", "members"],
        request: "request" ["role", "expertise", "goal"] ["question", "options", "assistants"],
        investigation: "investigation" ["role", "expertise", "goal"] ["question", "options", "lead", "request"],
        /// One assistant's report in the lead's prompt.
        investigation_block: "investigation" ["role", "report"],
        report: "report" ["role", "expertise", "goal"] ["question", "options", "request", "investigations"],
        /// One team's report in the decision's prompt.
        report_block: "report" ["group", "goal", "answer", "explanation"],
        decision_on_reports: "decision-reports" [] ["question", "options", "reports"],
    }
}
