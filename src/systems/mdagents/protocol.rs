//! A question's way by its complexity: one doctor; experts and a decision; or teams, their reports and a decision.

use serde_json::{Value, json};

use super::letter::clean_letter;
use super::messages::Messages;
use super::recruits::{Expert, read_experts};
use super::settings::{AGENTS, EXPERTS, MODERATOR, RECRUITER, Settings, agent_name};
use crate::data::{Item, Question};
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet, fill};
use crate::record::{CallLine, FinishReason, ItemLine, Message, Parse, Stage};
use crate::systems::case::{Case, Verdict, part};
use crate::systems::decoding::Shape;
use crate::systems::form::{answer, array, choice, object};
use crate::systems::reply::{Reply, field};
use crate::systems::step::{Step, Templates};
use crate::systems::text::{option_lines, truncate};
use crate::systems::vote::{round_line, support};
use crate::systems::{Opening, System, Task};

const LEVELS: [&str; 3] = ["basic", "intermediate", "advanced"];

/// Doctors by need.
pub struct MdAgents {
    pub(super) settings: Settings,
    pub(super) messages: Messages,
}

impl MdAgents {
    /// # Errors
    /// When an overridden prompt lost what is filled in.
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<MdAgents, PromptError> {
        Ok(MdAgents { settings: settings.clone(), messages: Messages::new(prompts)? })
    }
}

impl System for MdAgents {
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.question()?;
        let complexity = self.complexity(&case)?;
        let (first, decision) = match complexity.as_str() {
            "basic" => (vec![self.answer_alone(&case)?], None),
            "advanced" => {
                let (reports, decision) = self.ask_teams(&case)?;
                (reports, Some(decision))
            }
            _ => {
                let (opinions, decision) = self.ask_experts(&case)?;
                (opinions, Some(decision))
            }
        };
        let agents = first.iter().map(|call| call.agent.clone()).collect();
        let answers: Vec<String> = first.iter().map(|c| field(&c.record, "answer")).collect();
        let last = decision.as_ref().or(first.first());
        let said = |key| last.map_or(String::new(), |call| field(&call.record, key));
        let answer = said("answer");
        let verdict = Verdict {
            team_confidence: support(&answers, &answer),
            rationale: said("explanation"),
            answer,
            tie: false,
        };
        let round = round_line(0, Stage::Initial, agents, answers, String::new());
        Ok(case.close(vec![round], verdict).into())
    }

    fn opening(&self, _: &str, item: &Item) -> Vec<Opening> {
        let Item::Question(question) = item else {
            return Vec::new();
        };
        let messages = fill_case(&self.messages.complexity, question, &[]);
        vec![Opening::new(MODERATOR, messages)]
    }
}

impl MdAgents {
    /// One of [`LEVELS`].
    fn complexity(&self, case: &Case<'_>) -> Result<String, PanelError> {
        let fields = vec![("complexity", choice(&LEVELS))];
        let step = self.record_step(Stage::Aside, "complexity", fields);
        let messages = fill_case(&self.messages.complexity, case.item, &[]);
        let call = case.ask(step.ask(MODERATOR, "moderator", messages), &read_complexity)?;
        Ok(field(&call.record, "complexity"))
    }

    fn answer_alone(&self, case: &Case<'_>) -> Result<CallLine, PanelError> {
        let step = self.opinion_step(case, Stage::Initial, "answer");
        let messages = fill_case(&self.messages.basic, case.item, &[]);
        case.ask(step.ask(0, agent_name(0), messages), &self.reader())
    }

    /// The experts' opinions and the decision on them.
    fn ask_experts(&self, case: &Case<'_>) -> Result<(Vec<CallLine>, CallLine), PanelError> {
        let expert = object(vec![
            ("role", self.settings.decoding.string()),
            ("expertise", self.settings.decoding.string()),
            ("hierarchy", self.settings.decoding.string()),
        ]);
        let fields = vec![("experts", array(expert, EXPERTS, EXPERTS))];
        let step = self.record_step(Stage::Aside, "recruitment", fields);
        let count = [("count", &*EXPERTS.to_string())];
        let messages = fill_case(&self.messages.experts, case.item, &count);
        let call = case.ask(step.ask(RECRUITER, "recruiter", messages), &read_experts)?;
        let experts: Vec<Expert> = part(&call, "experts")?;

        let step = self.opinion_step(case, Stage::Initial, "opinion");
        let asks = experts.iter().enumerate().map(|(at, expert)| {
            let values = [("role", expert.role.as_str()), ("expertise", &expert.expertise)];
            let messages = fill_case(&self.messages.opinion, case.item, &values);
            step.ask(at % AGENTS, format!("expert-{}", at + 1), messages)
        });
        let opinions = case.ask_all(asks.collect(), &self.reader())?;

        let shown = experts.iter().zip(&opinions).map(|(expert, call)| {
            let explanation = field(&call.record, "explanation");
            let values = [
                ("role", expert.role.as_str()),
                ("answer", &field(&call.record, "answer")),
                ("explanation", &truncate(&explanation, self.settings.truncate_chars)),
            ];
            fill(&self.messages.opinion_block, &values)
        });
        let shown = shown.collect::<Vec<_>>().join("\n\n");
        let templates = &self.messages.decision_on_opinions;
        let decision = self.decide(case, templates, ("opinions", &shown))?;
        Ok((opinions, decision))
    }

    /// The moderator's decision on what was said.
    pub(super) fn decide(
        &self,
        case: &Case<'_>,
        templates: &Templates,
        said: (&str, &str),
    ) -> Result<CallLine, PanelError> {
        let step = self.opinion_step(case, Stage::Final, "decision");
        let messages = fill_case(templates, case.item, &[said]);
        case.ask(step.ask(MODERATOR, "moderator", messages), &self.reader())
    }

    pub(super) fn opinion_step(
        &self,
        case: &Case<'_>,
        stage: Stage,
        purpose: &'static str,
    ) -> Step {
        let fields =
            vec![("explanation", self.settings.decoding.string()), ("answer", answer(case.item))];
        self.record_step(stage, purpose, fields)
    }

    pub(super) fn record_step(
        &self,
        stage: Stage,
        purpose: &'static str,
        fields: Vec<(&str, Value)>,
    ) -> Step {
        self.step(stage, purpose, self.settings.decoding.record(fields))
    }

    /// Everything is round 0: nobody answers twice.
    pub(super) fn step(&self, stage: Stage, purpose: &'static str, shape: Shape) -> Step {
        Step { stage, round: 0, purpose, shape }
    }

    /// Reads a record with an answer.
    pub(super) fn reader(&self) -> impl Fn(&str, FinishReason) -> (Value, Parse) + use<> {
        let mab_compat = self.settings.mab_compat;
        move |text, finish_reason| {
            let reply = Reply::read(text, finish_reason, "answer");
            let answer = match mab_compat {
                true => clean_letter(&reply.given()),
                false => reply.answer(),
            };
            let record = json!({"explanation": reply.prose("explanation"), "answer": answer});
            (record, reply.parse)
        }
    }
}

/// The messages on a question, with what else there is to fill in.
pub(super) fn fill_case(
    templates: &Templates,
    question: &Question,
    more: &[(&str, &str)],
) -> Vec<Message> {
    let options = option_lines(question);
    let case = [("question", question.question.as_str()), ("options", &options)];
    templates.fill(&[&case, more].concat())
}

/// What is no level is intermediate.
fn read_complexity(text: &str, finish_reason: FinishReason) -> (Value, Parse) {
    let reply = Reply::read(text, finish_reason, "complexity");
    let given = match reply.get("complexity") {
        Value::String(level) => level.trim().to_lowercase(),
        _ => String::new(),
    };
    let level = LEVELS.into_iter().find(|level| *level == given);
    let record = json!({"complexity": level.unwrap_or("intermediate")});
    let parse = match level {
        Some(_) => reply.parse,
        None => Parse::Fallback,
    };
    (record, parse)
}

#[cfg(test)]
mod tests;
