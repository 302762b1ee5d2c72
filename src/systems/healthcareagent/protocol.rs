//! One question: plan, perhaps an inquiry, a draft, three critiques of it, and the answer that takes them in.

use serde_json::{Value, json};

use super::messages::{CRITIQUES, Messages};
use super::parse::{self, Conclusion, conclusion, said};
use crate::data::{Item, Question};
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet};
use crate::record::Grammar;
use crate::record::{FinishReason, ItemLine, Message, Parse, RoundLine, Stage};
use crate::systems::case::{Ask, Case, Verdict, part, value};
use crate::systems::decoding::Decoding;
use crate::systems::form::{self, STEPS};
use crate::systems::vote::round_line;
use crate::systems::{Opening, System, Task};

/// The one seat's agent.
pub const AGENT: &str = "doctor";
/// Calls where the planner wants an inquiry: the planner, the inquiry, the draft, three critiques, the final answer.
pub const MAX_CALLS: u32 = 7;
/// Follow-up questions of an inquiry.
const FOLLOW_UPS: usize = 3;

/// A doctor under review.
pub struct HealthcareAgent {
    decoding: Decoding,
    messages: Messages,
}

impl HealthcareAgent {
    /// # Errors
    /// When an overridden prompt lost what is filled in.
    pub fn new(decoding: &Decoding, prompts: &PromptSet) -> Result<HealthcareAgent, PromptError> {
        Ok(HealthcareAgent { decoding: decoding.clone(), messages: Messages::new(prompts)? })
    }
}

impl System for HealthcareAgent {
    /// Six calls, or seven with an inquiry.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.question()?;
        let question = case.item;
        let follow_ups = self.follow_ups(&case)?;
        let concluded = self.concluded(question);

        let messages = self.messages.preliminary(question, &follow_ups);
        let ask =
            self.ask(0, Stage::Initial, "preliminary", messages, form::record(concluded.clone()));
        let call = case.ask(ask, &read_conclusion)?;
        let draft = said(&call.text);
        let first: Conclusion = value(&call)?;

        // None sees another, so all are asked at once.
        let critiques = CRITIQUES.into_iter().enumerate().map(|(which, purpose)| {
            let messages = self.messages.critique(which, draft);
            let passage = form::passage(STEPS * self.decoding.record_chars);
            self.ask(1, Stage::Aside, purpose, messages, passage)
        });
        let critiques = case.ask_all(critiques.collect(), &parse::critique)?;
        let critiques: Vec<String> =
            critiques.iter().map(|call| said(&call.text).to_owned()).collect();
        let feedback = self.messages.feedback(&critiques);

        let messages = self.messages.last(question, draft, &feedback);
        let ask = self.ask(1, Stage::Final, "final", messages, form::record(concluded));
        let call = case.ask(ask, &read_conclusion)?;
        let last: Conclusion = value(&call)?;

        let rounds = vec![
            round(0, Stage::Initial, &first, String::new()),
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

    fn opening(&self, _: &str, item: &Item) -> Vec<Opening> {
        let Item::Question(question) = item else {
            return Vec::new();
        };
        vec![Opening::new(0, self.messages.planner(question))]
    }
}

impl HealthcareAgent {
    /// What should be known before answering, where the planner says so.
    fn follow_ups(&self, case: &Case<'_>) -> Result<Vec<String>, PanelError> {
        let messages = self.messages.planner(case.item);
        let words = form::word(&[parse::DIAGNOSE, parse::INQUIRY]);
        let ask = self.ask(0, Stage::Aside, "planner", messages, words);
        let plan = case.ask(ask, &parse::plan)?;
        if plan.record["action"] != parse::INQUIRY {
            return Ok(Vec::new());
        }
        let question = self.decoding.string();
        let questions = form::array(question, FOLLOW_UPS, FOLLOW_UPS);
        let messages = self.messages.inquiry(case.item);
        let grammar = form::record(vec![("questions", questions)]);
        let ask = self.ask(0, Stage::Aside, "inquiry", messages, grammar);
        let inquiry = case.ask(ask, &|text, finish_reason| {
            let (questions, parse) = parse::follow_ups(text, finish_reason);
            (json!({"questions": questions}), parse)
        })?;
        part(&inquiry, "questions")
    }

    fn ask(
        &self,
        round: u32,
        stage: Stage,
        purpose: &'static str,
        messages: Vec<Message>,
        grammar: Option<Grammar>,
    ) -> Ask {
        Ask {
            member: 0,
            agent: AGENT.to_owned(),
            stage,
            round,
            purpose,
            sample: 0,
            messages,
            grammar,
            max_tokens: self.max_tokens(),
        }
    }

    /// The fields of the draft and of the final answer.
    fn concluded(&self, question: &Question) -> Vec<(&'static str, Value)> {
        let explanation = form::string(STEPS * self.decoding.record_chars);
        vec![("explanation", explanation), ("answer", form::answer(question))]
    }

    /// No tokenizer needs more tokens than bytes, and nothing that is asked for is longer than an explanation with its answer.
    fn max_tokens(&self) -> Option<usize> {
        let explanation = form::string(STEPS * self.decoding.record_chars);
        let record = vec![("explanation", explanation), ("answer", form::choice(&["A"]))];
        self.decoding.bound(form::longest(&form::root(record)))
    }
}

fn read_conclusion(text: &str, finish_reason: FinishReason) -> (Value, Parse) {
    let (conclusion, parse) = conclusion(text, finish_reason);
    (conclusion.record(), parse)
}

fn round(round: u32, stage: Stage, conclusion: &Conclusion, brief: String) -> RoundLine {
    let answers = vec![conclusion.answer.clone()];
    round_line(round, stage, vec![AGENT.to_owned()], answers, brief)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panel::scripted::Script;
    use crate::record::AnswerLine;
    use crate::record::CallLine;
    use crate::systems::SystemConfig;
    use crate::systems::scripted::{answer, question};

    const DRAFT: &str = r#"{"explanation": "rash {feedback}", "answer": "C"}"#;

    /// A doctor who plans so, and revises the draft to `last`.
    fn run(plan: &'static str, last: &'static str) -> (AnswerLine, Vec<CallLine>) {
        let script = Script::new(move |key, _| {
            let text = match key.purpose.as_str() {
                "planner" => plan,
                "inquiry" => r#"{"questions": ["How long?", "How high?", "Since when?"]}"#,
                "preliminary" => DRAFT,
                "final" => last,
                purpose => return format!("On {purpose}: fine."),
            };
            text.to_owned()
        });
        answer(&SystemConfig::named("healthcareagent").unwrap(), &question(5), script)
    }

    fn user<'a>(calls: &'a [CallLine], purpose: &str) -> &'a str {
        let call = calls.iter().find(|call| call.purpose == purpose).unwrap();
        &call.messages[1].content
    }

    const LAST: &str = r#"{"explanation": "see a doctor", "answer": "B"}"#;

    #[test]
    fn a_diagnosis_takes_six_calls_and_an_inquiry_one_more() {
        let purposes = |plan| -> Vec<(String, Stage, u32)> {
            let (item, calls) = run(plan, LAST);
            assert_eq!(item.calls as usize, calls.len());
            let calls = calls.into_iter();
            calls.map(|call| (call.purpose, call.stage, call.round)).collect()
        };
        let (aside, first, last) = (Stage::Aside, Stage::Initial, Stage::Final);
        let expected = |steps: &[(&str, Stage, u32)]| -> Vec<(String, Stage, u32)> {
            let steps = steps.iter();
            steps.map(|(purpose, stage, round)| (purpose.to_string(), *stage, *round)).collect()
        };
        let reviewed = [
            ("preliminary", first, 0),
            ("ethics", aside, 1),
            ("emergency", aside, 1),
            ("error", aside, 1),
            ("final", last, 1),
        ];
        let diagnosed = [&[("planner", aside, 0)], &reviewed[..]].concat();
        assert_eq!(purposes("DIAGNOSE"), expected(&diagnosed));
        assert_eq!(purposes("Who knows?"), expected(&diagnosed));
        let inquired = [&[("planner", aside, 0), ("inquiry", aside, 0)], &reviewed[..]].concat();
        assert_eq!(purposes("INQUIRY"), expected(&inquired));
    }

    #[test]
    fn follow_ups_are_listed_and_not_answered() {
        let (_, calls) = run("INQUIRY", LAST);
        let asked = "no answers. Bear them in mind:\n- How long?\n- How high?\n- Since when?\n\nYou are the doctor";
        assert!(user(&calls, "preliminary").contains(asked), "{calls:#?}");
        let (_, calls) = run("DIAGNOSE", LAST);
        let without = "E: option E\n\nYou are the doctor in this case. Give";
        assert!(user(&calls, "preliminary").contains(without), "{calls:#?}");
    }

    #[test]
    fn critiques_see_the_draft_and_no_question() {
        let (_, calls) = run("DIAGNOSE", LAST);
        for purpose in CRITIQUES {
            let shown = user(&calls, purpose);
            assert!(shown.contains(DRAFT), "{shown}");
            assert!(!shown.contains("Which one") && !shown.contains("option A"), "{shown}");
        }
    }

    #[test]
    fn the_final_answer_sees_question_draft_and_every_critique() {
        let (item, calls) = run("DIAGNOSE", LAST);
        let shown = user(&calls, "final");
        let feedback = "On ethics and disclaimers: On ethics: fine.\n\nOn emergencies: On emergency: fine.\n\n\
                        On errors of fact: On error: fine.";
        for part in ["Which one {examples}?", "A: option A", DRAFT, feedback] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert_eq!(item.rounds[1].brief, feedback);
    }

    #[test]
    fn the_first_round_is_the_draft_and_the_second_the_answer() {
        let (item, calls) = run("DIAGNOSE", LAST);
        let rounds: Vec<_> = item
            .rounds
            .iter()
            .map(|round| {
                (round.round, round.stage, round.answers.join(","), round.aggregate.as_str())
            })
            .collect();
        assert_eq!(
            rounds,
            [(0, Stage::Initial, "C".to_owned(), "C"), (1, Stage::Final, "B".to_owned(), "B")]
        );
        assert_eq!((item.answer.as_str(), item.correct, item.rounds_run), ("B", Some(true), 1));
        assert_eq!((item.rationale.as_str(), item.team_confidence), ("see a doctor", 1.0));
        let last = calls.last().unwrap();
        assert_eq!(last.record, json!({"explanation": "see a doctor", "answer": "B"}));
        assert!(calls.iter().all(|call| call.agent == "doctor" && call.record.is_object()));
    }

    #[test]
    fn an_answer_that_is_missing_is_wrong_even_where_the_draft_had_one() {
        let (item, calls) = run("DIAGNOSE", r#"{"explanation": "it is B"}"#);
        assert_eq!((item.answer.as_str(), item.correct), ("", Some(false)));
        assert_eq!(item.team_confidence, 0.0);
        assert_eq!(calls.last().unwrap().parse, Parse::Fallback);
    }

    #[test]
    fn no_text_stops_it() {
        let (item, calls) = run("INQUIRY", "I cannot give medical advice.");
        assert_eq!((calls.len(), item.answer.as_str()), (7, ""));
        let everywhere = Script::new(|_, _| String::new());
        let protocol = SystemConfig::named("healthcareagent").unwrap();
        let (item, calls) = answer(&protocol, &question(2), everywhere);
        assert_eq!((calls.len(), item.answer.as_str()), (6, ""));
        let (item, _) = run("DIAGNOSE", r#"{"answer": "J"}"#);
        assert_eq!((item.answer.as_str(), item.correct), ("", Some(false)));
    }
}
