//! The authors' protocol: experts on the question and on its options analyse, a report is written, voted on and revised, and the answer is
//! decided by it.
//!
//! Experts give no letters, so there are no trajectories to compare: the decision is the only answer of a case.

use super::texts::{read_advice, read_analysis, read_answer, read_domains, read_report, read_vote};
use super::{DECISION, DOCTORS, GATHERER, META, OPTION_EXPERTS, QUESTION_EXPERTS, Settings};
use crate::data::{Item, Question};
use crate::panel::{Asked, PanelError};
use crate::prompts::{PromptError, PromptSet, fill};
use crate::record::{FinishReason, ItemLine, Message, Parse, Stage};
use crate::systems::case::{Case, Record, Step, Verdict};
use crate::systems::decoding::{Decoding, Shape};
use crate::systems::form;
use crate::systems::messages::{Templates, fill_question, messages, prompt_files};
use crate::systems::reading::reply::Explained;
use crate::systems::vote::round_line;
use crate::systems::{Opening, System, Task};

/// Characters of a medical field's name under the grammar.
const DOMAIN_CHARS: usize = 24;

/// The authors' MedAgents.
pub struct Original {
    max_rounds: u32,
    decoding: Decoding,
    texts: Texts,
}

prompt_files! {
    struct Texts in "medagents" {
        question_domains: "original-question-domains" [] ["question"],
        option_domains: "original-option-domains" [] ["question", "options"],
        question_analysis: "original-question-analysis" ["domain"] ["question"],
        option_analysis: "original-option-analysis" ["domain"] ["question", "options", "analyses"],
        analysed: "original-analysed" ["domain", "analysis"],
        report: "original-report" [] ["question_analyses", "option_analyses"],
        report_body: "original-report" ["question", "options", "analysis"],
        vote: "original-vote" ["domain"] ["report"],
        advice: "original-advice" ["domain"] ["report"],
        advised: "original-advised" ["domain", "advice"],
        revision: "original-revision-user" ["report", "advice"],
        answer: "original-answer-user" ["report"],
    }
}

/// An expert on a medical field.
struct Expert {
    name: String,
    /// Index into the panel's members.
    member: usize,
    domain: String,
}

impl Original {
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<Original, PromptError> {
        let (max_rounds, decoding) = (settings.max_rounds, settings.decoding.clone());
        Ok(Original { max_rounds, decoding, texts: Texts::read(prompts)? })
    }
}

impl System for Original {
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.question()?;
        let (on_question, on_options) = self.recruit(&case)?;
        let first = self.analyse(&case, &on_question, &self.texts.question_analysis, &[])?;
        let more = [("analyses", first.as_str())];
        let second = self.analyse(&case, &on_options, &self.texts.option_analysis, &more)?;
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
        let Asked { call, value: Explained { explanation, answer, .. } } = decision;
        let answers = vec![answer.clone()];
        let last = round_line(voted, Stage::Final, vec![call.agent], answers, report);
        let verdict = Verdict {
            team_confidence: f64::from(u8::from(!answer.is_empty())),
            rationale: explanation,
            answer,
            tie: false,
        };
        Ok(case.close(vec![last], verdict).into())
    }

    fn opening(&self, _: &str, item: &Item) -> Option<Vec<Opening>> {
        let prompts = self.domain_prompts(item.question()?).into_iter();
        Some(prompts.map(|messages| Opening { member: GATHERER, messages }).collect())
    }
}

impl Original {
    /// The gatherer's prompts: for the fields of the question, and for those of its options.
    fn domain_prompts(&self, question: &Question) -> [Vec<Message>; 2] {
        [&self.texts.question_domains, &self.texts.option_domains]
            .map(|templates| templates.fill_question(question, &[]))
    }

    /// The experts on the question and those on its options.
    fn recruit(&self, case: &Case<'_>) -> Result<(Vec<Expert>, Vec<Expert>), PanelError> {
        let domains = |purpose, experts: usize| {
            let name = format!("[^|:\n]{{1,{DOMAIN_CHARS}}}");
            let others = experts - 1;
            let regex = format!("Medical Field: {name}( \\| {name}){{{others}}}");
            Step::new(Stage::Aside, 0, purpose, Shape::regex(regex))
        };
        let steps = [
            domains("question-domains", QUESTION_EXPERTS),
            domains("option-domains", OPTION_EXPERTS),
        ];
        let calls = self.domain_prompts(case.item).into_iter().zip(&steps);
        let calls = calls.map(|(messages, step)| case.call(step, GATHERER, "gatherer", messages));
        let domains = case.ask_all(calls, read_domains)?;
        let experts = |call: usize, kind: &str, count: usize, taken: usize| {
            let domains = domains[call].value.first(count).into_iter().enumerate();
            let expert = |(at, domain): (usize, String)| Expert {
                name: format!("{kind}-expert-{}", at + 1),
                member: (taken + at) % DOCTORS,
                domain,
            };
            domains.map(expert).collect::<Vec<_>>()
        };
        let on_question = experts(0, "question", QUESTION_EXPERTS, 0);
        let on_options = experts(1, "option", OPTION_EXPERTS, on_question.len());
        Ok((on_question, on_options))
    }

    /// The experts' analyses, as later prompts show them.
    fn analyse(
        &self,
        case: &Case<'_>,
        experts: &[Expert],
        templates: &Templates,
        more: &[(&str, &str)],
    ) -> Result<String, PanelError> {
        let step = Step::new(Stage::Aside, 0, "analysis", self.decoding.passage());
        let calls = experts.iter().map(|expert| {
            let values = [&[("domain", expert.domain.as_str())], more].concat();
            let messages = templates.fill_question(case.item, &values);
            case.call(&step, expert.member, &expert.name, messages)
        });
        let analyses = case.ask_all(calls, read_analysis)?;
        let analysed = experts.iter().zip(&analyses).map(|(expert, analysis)| {
            let values = [("domain", expert.domain.as_str()), ("analysis", &analysis.value.text)];
            fill(&self.texts.analysed, &values)
        });
        Ok(analysed.collect::<Vec<_>>().join("\n\n"))
    }

    fn write_report(
        &self,
        case: &Case<'_>,
        on_question: &str,
        on_options: &str,
    ) -> Result<String, PanelError> {
        let passage = form::passage(self.decoding.reason_chars());
        let regex = format!("Key Knowledge: {passage}\nTotal Analysis: {passage}");
        let step = Step::new(Stage::Aside, 0, "report", Shape::regex(regex));
        let values = [("question_analyses", on_question), ("option_analyses", on_options)];
        let report =
            case.ask(case.call(&step, META, "meta", self.texts.report.fill(&values)), read_report)?;
        Ok(self.report_of(case.item, &report.value.text))
    }

    /// Has all experts vote on the report; returns the advice of those that vote against it, empty where none does.
    fn vote(
        &self,
        case: &Case<'_>,
        round: u32,
        experts: &[Expert],
        report: &str,
    ) -> Result<String, PanelError> {
        let step = Step::new(Stage::Aside, round, "vote", Shape::regex("YES|NO".to_owned()));
        let all: Vec<&Expert> = experts.iter().collect();
        let votes = self.ask_experts(case, &all, &step, &self.texts.vote, report, read_vote)?;
        let votes = all.into_iter().zip(&votes);
        let against = votes.filter(|(_, vote)| !vote.value.agree).map(|(expert, _)| expert);
        let against: Vec<&Expert> = against.collect();
        let regex = format!("Revisions: {}", form::passage(self.decoding.reason_chars()));
        let step = Step::new(Stage::Aside, round, "advice", Shape::regex(regex));
        let advice =
            self.ask_experts(case, &against, &step, &self.texts.advice, report, read_advice)?;
        let advised = against.iter().zip(&advice).map(|(expert, advice)| {
            let values = [("domain", expert.domain.as_str()), ("advice", &advice.value.text)];
            fill(&self.texts.advised, &values)
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
        let regex = format!("Total Analysis: {}", form::passage(self.decoding.reason_chars()));
        let step = Step::new(Stage::Aside, round, "revision", Shape::regex(regex));
        let values = [("report", report), ("advice", advice)];
        let call =
            case.call(&step, META, "meta", messages("", fill(&self.texts.revision, &values)));
        let report = case.ask(call, read_report)?;
        Ok(self.report_of(case.item, &report.value.text))
    }

    fn decide(
        &self,
        case: &Case<'_>,
        round: u32,
        report: &str,
    ) -> Result<Asked<Explained>, PanelError> {
        let regex = format!("Option: \\[{}\\]", form::letter(case.item));
        let step = Step::new(Stage::Final, round, "decision", Shape::regex(regex));
        let messages = messages("", fill(&self.texts.answer, &[("report", report)]));
        case.ask(case.call(&step, DECISION, "decision", messages), |text, finish_reason| {
            read_answer(text, finish_reason, &case.item.options)
        })
    }

    /// The report as prompts show it.
    fn report_of(&self, question: &Question, analysis: &str) -> String {
        fill_question(&self.texts.report_body, question, &[("analysis", analysis)])
    }

    /// Asks experts the same question about a report, each for its field.
    fn ask_experts<R: Record>(
        &self,
        case: &Case<'_>,
        experts: &[&Expert],
        step: &Step,
        templates: &Templates,
        report: &str,
        read: fn(&str, FinishReason) -> (R, Parse),
    ) -> Result<Vec<Asked<R>>, PanelError> {
        let calls = experts.iter().map(|expert| {
            let values = [("domain", expert.domain.as_str()), ("report", report)];
            case.call(step, expert.member, &expert.name, templates.fill(&values))
        });
        case.ask_all(calls, read)
    }
}

#[cfg(test)]
mod tests;
