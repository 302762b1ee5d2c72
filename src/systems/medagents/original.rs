//! The authors' protocol: experts on the question and on its options analyse, a report is written, voted on and revised, and one
//! letter drawn from it.
//!
//! Experts give no letters, so that there are no trajectories to compare: the decision is the one answer of a case, and its first.

use super::settings::{
    DECISION, DOCTORS, GATHERER, META, OPTION_EXPERTS, QUESTION_EXPERTS, Settings,
};
use super::texts::{
    domains, read_advice, read_analysis, read_answer, read_domains, read_report, read_vote,
};
use crate::data::{Item, Question};
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet, fill};
use crate::record::Grammar;
use crate::record::{CallLine, ItemLine, Message, Stage};
use crate::systems::case::{Case, Verdict};
use crate::systems::decoding::{Decoding, Shape};
use crate::systems::form;
use crate::systems::reply::field;
use crate::systems::step::{Step, Templates};
use crate::systems::text::option_lines;
use crate::systems::vote::round_line;
use crate::systems::{Opening, System, Task};

/// Tokens that the authors allow the calls of each kind.
const DOMAINS_TOKENS: usize = 50;
const ANALYSIS_TOKENS: usize = 300;
const REPORT_TOKENS: usize = 2500;
const VOTE_TOKENS: usize = 30;
const ADVICE_TOKENS: usize = 500;

/// Characters of a field's name under the grammar.
const DOMAIN_CHARS: usize = 24;

/// The authors' MedAgents.
pub struct Original {
    max_rounds: u32,
    decoding: Decoding,
    question_domains: Templates,
    option_domains: Templates,
    question_analysis: Templates,
    option_analysis: Templates,
    analysed: String,
    report: Templates,
    report_body: String,
    vote: Templates,
    advice: Templates,
    advised: String,
    revision: Templates,
    answer: Templates,
}

/// Who speaks for a field, and where.
struct Expert {
    name: String,
    member: usize,
    domain: String,
}

impl Original {
    /// # Errors
    /// When an overridden prompt lost what is filled in.
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<Original, PromptError> {
        let pair = |name: &str, system: &[&str], user: &[&str]| {
            Templates::new(prompts, &format!("medagents/original-{name}"), system, user)
        };
        let user = |name: &str, placeholders: &[&str]| {
            Templates::user(prompts, &format!("medagents/original-{name}"), placeholders)
        };
        let block = |name: &str, placeholders: &[&str]| -> Result<String, PromptError> {
            let name = format!("medagents/original-{name}.txt");
            Ok(prompts.get(&name, placeholders)?.to_owned())
        };
        let optional = ["question", "options", "analyses"];
        let both = ["question_analyses", "option_analyses"];
        Ok(Original {
            max_rounds: settings.max_rounds,
            decoding: settings.decoding.clone(),
            question_domains: pair("question-domains", &[], &["question"])?,
            option_domains: pair("option-domains", &[], &["question", "options"])?,
            question_analysis: pair("question-analysis", &["domain"], &["question"])?,
            option_analysis: pair("option-analysis", &["domain"], &optional)?,
            analysed: block("analysed", &["domain", "analysis"])?,
            report: pair("report", &[], &both)?,
            report_body: block("report", &["question", "options", "analysis"])?,
            vote: pair("vote", &["domain"], &["report"])?,
            advice: pair("advice", &["domain"], &["report"])?,
            advised: block("advised", &["domain", "advice"])?,
            revision: user("revision", &["report", "advice"])?,
            answer: user("answer", &["report"])?,
        })
    }
}

impl System for Original {
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.question()?;
        let (on_question, on_options) = self.recruit(&case)?;
        let first = self.analyse_question(&case, &on_question)?;
        let second = self.analyse_options(&case, &on_options, &first)?;
        let mut report = self.write_report(&case, &first, &second)?;
        let experts: Vec<Expert> = on_question.into_iter().chain(on_options).collect();
        let mut voted = 0;
        for round in 1..=self.max_rounds {
            voted = round;
            let advice = self.vote(&case, round, &experts, &report)?;
            if advice.is_empty() {
                break;
            }
            report = self.revise(&case, round, &report, &advice)?;
        }
        let decision = self.decide(&case, voted, &report)?;
        let answer = field(&decision.record, "answer");
        let agents = vec![decision.agent.clone()];
        let last = round_line(voted, Stage::Final, agents, vec![answer.clone()], report);
        let verdict = Verdict {
            team_confidence: f64::from(u8::from(!answer.is_empty())),
            rationale: field(&decision.record, "explanation"),
            answer,
            tie: false,
        };
        Ok(case.close(vec![last], verdict).into())
    }

    fn opening(&self, _: &str, item: &Item) -> Vec<Opening> {
        let Item::Question(question) = item else {
            return Vec::new();
        };
        let prompts = self.domain_prompts(question).into_iter();
        prompts.map(|messages| Opening::new(GATHERER, messages)).collect()
    }
}

impl Original {
    /// What the gatherer is asked: the fields for the question, and those for its options.
    fn domain_prompts(&self, question: &Question) -> [Vec<Message>; 2] {
        let options = option_lines(question);
        let values = [("question", question.question.as_str()), ("options", &options)];
        [self.question_domains.fill(&values), self.option_domains.fill(&values)]
    }

    /// The experts on the question and those on its options.
    fn recruit(&self, case: &Case<'_>) -> Result<(Vec<Expert>, Vec<Expert>), PanelError> {
        let step = |purpose, experts: usize| {
            let name = format!("[^|:\n]{{1,{DOMAIN_CHARS}}}");
            let others = experts - 1;
            let regex = format!("Medical Field: {name}( \\| {name}){{{others}}}");
            self.step(Stage::Aside, 0, purpose, regex, DOMAINS_TOKENS)
        };
        let steps =
            [step("question-domains", QUESTION_EXPERTS), step("option-domains", OPTION_EXPERTS)];
        let asks = self.domain_prompts(case.item).into_iter().zip(&steps);
        let asks = asks.map(|(messages, step)| step.ask(GATHERER, "gatherer", messages));
        let calls = case.ask_all(asks.collect(), &read_domains)?;
        let experts = |call: usize, kind: &str, count: usize, seats_taken: usize| {
            let domains = domains(&calls[call].record, count).into_iter().enumerate();
            let expert = |(at, domain): (usize, String)| Expert {
                name: format!("{kind}-expert-{}", at + 1),
                member: (seats_taken + at) % DOCTORS,
                domain,
            };
            domains.map(expert).collect::<Vec<_>>()
        };
        let on_question = experts(0, "question", QUESTION_EXPERTS, 0);
        let on_options = experts(1, "option", OPTION_EXPERTS, on_question.len());
        Ok((on_question, on_options))
    }

    /// The analyses of the question, as the others are shown them.
    fn analyse_question(&self, case: &Case<'_>, experts: &[Expert]) -> Result<String, PanelError> {
        let values = [("question", case.item.question.as_str())];
        self.analyse(case, experts, &self.question_analysis, &values)
    }

    /// The analyses of the options in the light of the others.
    fn analyse_options(
        &self,
        case: &Case<'_>,
        experts: &[Expert],
        analyses: &str,
    ) -> Result<String, PanelError> {
        let options = option_lines(case.item);
        let values = [
            ("question", case.item.question.as_str()),
            ("options", &options),
            ("analyses", analyses),
        ];
        self.analyse(case, experts, &self.option_analysis, &values)
    }

    fn analyse(
        &self,
        case: &Case<'_>,
        experts: &[Expert],
        templates: &Templates,
        values: &[(&str, &str)],
    ) -> Result<String, PanelError> {
        let step = Step {
            stage: Stage::Aside,
            round: 0,
            purpose: "analysis",
            shape: self.prose(ANALYSIS_TOKENS),
        };
        let calls =
            self.ask_experts(case, experts.iter(), &step, templates, values, &read_analysis)?;
        let analysed = experts.iter().zip(&calls).map(|(expert, call)| {
            let analysis = field(&call.record, "text");
            fill(&self.analysed, &[("domain", &expert.domain), ("analysis", &analysis)])
        });
        Ok(analysed.collect::<Vec<_>>().join("\n\n"))
    }

    fn write_report(
        &self,
        case: &Case<'_>,
        on_question: &str,
        on_options: &str,
    ) -> Result<String, PanelError> {
        let chars = self.decoding.record_chars;
        let regex =
            format!("Key Knowledge: (?s:.{{1,{chars}}})\nTotal Analysis: (?s:.{{1,{chars}}})");
        let step = self.step(Stage::Aside, 0, "report", regex, REPORT_TOKENS);
        let values = [("question_analyses", on_question), ("option_analyses", on_options)];
        let call = case.ask(step.ask(META, "meta", self.report.fill(&values)), &read_report)?;
        Ok(self.report_of(case.item, &call))
    }

    /// A vote of all experts, and the advice of those that are against the report.
    fn vote(
        &self,
        case: &Case<'_>,
        round: u32,
        experts: &[Expert],
        report: &str,
    ) -> Result<String, PanelError> {
        let values = [("report", report)];
        let step = Step {
            stage: Stage::Aside,
            round,
            purpose: "vote",
            shape: self.decoding.within(form::word(&["YES", "NO"]), VOTE_TOKENS),
        };
        let votes =
            self.ask_experts(case, experts.iter(), &step, &self.vote, &values, &read_vote)?;
        let votes = experts.iter().zip(&votes);
        let against = votes.filter(|(_, call)| call.record["agree"] == false);
        let against: Vec<&Expert> = against.map(|(expert, _)| expert).collect();
        let regex = format!("Revisions: (?s:.{{1,{}}})", self.decoding.record_chars);
        let step = self.step(Stage::Aside, round, "advice", regex, ADVICE_TOKENS);
        let speakers = against.iter().copied();
        let calls = self.ask_experts(case, speakers, &step, &self.advice, &values, &read_advice)?;
        let advised = against.iter().zip(&calls).map(|(expert, call)| {
            let advice = field(&call.record, "text");
            fill(&self.advised, &[("domain", &expert.domain), ("advice", &advice)])
        });
        Ok(advised.collect::<Vec<_>>().join("\n\n"))
    }

    fn revise(
        &self,
        case: &Case<'_>,
        round: u32,
        report: &str,
        advice: &str,
    ) -> Result<String, PanelError> {
        let regex = format!("Total Analysis: (?s:.{{1,{}}})", self.decoding.record_chars);
        let step = self.step(Stage::Aside, round, "revision", regex, REPORT_TOKENS);
        let values = [("report", report), ("advice", advice)];
        let call = case.ask(step.ask(META, "meta", self.revision.fill(&values)), &read_report)?;
        Ok(self.report_of(case.item, &call))
    }

    fn decide(&self, case: &Case<'_>, round: u32, report: &str) -> Result<CallLine, PanelError> {
        let letters: String = case.item.letters().collect();
        let regex = format!("Option: \\[[{letters}]\\]");
        let step = self.step(Stage::Final, round, "decision", regex, REPORT_TOKENS);
        let messages = self.answer.fill(&[("report", report)]);
        case.ask(step.ask(DECISION, "decision", messages), &read_answer)
    }

    /// The report as everybody is shown it.
    fn report_of(&self, question: &Question, call: &CallLine) -> String {
        let values = [
            ("question", question.question.as_str()),
            ("options", &option_lines(question)),
            ("analysis", &field(&call.record, "text")),
        ];
        fill(&self.report_body, &values)
    }

    /// Asks experts the same, each for its own field.
    fn ask_experts<'e>(
        &self,
        case: &Case<'_>,
        experts: impl Iterator<Item = &'e Expert>,
        step: &Step,
        templates: &Templates,
        values: &[(&str, &str)],
        read: crate::panel::Reader<'_>,
    ) -> Result<Vec<CallLine>, PanelError> {
        let asks = experts.map(|expert| {
            let domain = [("domain", expert.domain.as_str())];
            let values = [&domain, values].concat();
            step.ask(expert.member, &expert.name, templates.fill(&values))
        });
        case.ask_all(asks.collect(), read)
    }

    fn prose(&self, tokens: usize) -> Shape {
        let chars = self.decoding.record_chars;
        self.decoding.within(form::passage(chars), tokens)
    }

    fn step(
        &self,
        stage: Stage,
        round: u32,
        purpose: &'static str,
        regex: String,
        tokens: usize,
    ) -> Step {
        Step {
            stage,
            round,
            purpose,
            shape: self.decoding.within(Some(Grammar::Regex(regex)), tokens),
        }
    }
}

#[cfg(test)]
mod tests;
