//! The authors' protocol, with canned replies.

use super::*;
use crate::panel::scripted::Script;
use crate::panel::scripted::panel;
use crate::record::{AnswerLine, CallKey, CallLine, Parse};
use crate::systems::SystemConfig;
use crate::systems::scripted::{answer_filled, question};

/// A protocol without surprises, in which `against` says who votes no.
fn usual(key: &CallKey, against: impl Fn(&str, u32) -> bool) -> String {
    match key.purpose.as_str() {
        "question-domains" => "Medical Field: F1 | F2 | F3 | F4 | F5 | F6".into(),
        "option-domains" => "Medical Field: G1 | G2".into(),
        "analysis" => format!("Analysis of {}.", key.agent),
        "report" => "Key Knowledge: secret\nTotal Analysis: first report".into(),
        "vote" if against(&key.agent, key.round) => "NO".into(),
        "vote" => "Yes.".into(),
        "advice" => format!("Revisions: {} asks for more", key.agent),
        "revision" => format!("Total Analysis: revision {}", key.round),
        _ => "Option: [B]".into(),
    }
}

fn run(script: impl Fn(&CallKey) -> String + Send + Sync + 'static) -> (AnswerLine, Vec<CallLine>) {
    let config = SystemConfig::parse("medagents", &["form=original"]).unwrap();
    assert_eq!(config.max_calls(), 56);
    let script = Script::new(move |key, _| script(key));
    answer_filled(&config, &question(5), script)
}

fn user<'a>(calls: &'a [CallLine], purpose: &str, round: u32) -> &'a str {
    let call = calls.iter().find(|c| c.purpose == purpose && c.round == round);
    &call.unwrap().messages.last().unwrap().content
}

#[test]
fn agreement_at_once_takes_18_calls_and_lasting_dissent_56() {
    let calls = |against: fn(&str, u32) -> bool| run(move |key| usual(key, against)).0.calls;
    assert_eq!(calls(|_, _| false), 18);
    assert_eq!(calls(|_, _| true), 56);
    // Two against it in the first vote: their advice, a revision, and the second vote.
    assert_eq!(calls(|agent, round| round == 1 && agent.starts_with("option")), 28);
}

#[test]
fn the_decision_is_the_only_answer_of_a_case() {
    let (item, calls) = run(|key| usual(key, |_, _| false));
    assert_eq!((item.answer.as_str(), item.correct), ("B", Some(true)));
    assert_eq!(item.rounds.len(), 1);
    assert_eq!((item.rounds[0].stage, item.rounds_run), (Stage::Final, 1));
    assert_eq!(item.rounds[0].agents, ["decision"]);
    let stages = calls.iter().filter(|call| call.stage != Stage::Aside);
    assert_eq!(stages.count(), 1);
}

#[test]
fn experts_take_turns_on_the_doctors_models() {
    let slots = SystemConfig::named("medagents").unwrap().slots();
    let agents: Vec<String> = slots.into_iter().map(|slot| slot.agent).collect();
    let system = Original::new(&Settings::default(), &PromptSet::embedded()).unwrap();
    let script = Script::new(|key, _| usual(key, |_, _| false));
    let (panel, _calls) = panel(&agents, script);
    let item = question(5).into();
    let task = Task { panel: &panel, dataset: "demo", item: &item, run: 1 };
    let case = task.question().unwrap();
    let (on_question, on_options) = system.recruit(&case).unwrap();
    let members = |experts: &[Expert]| -> Vec<usize> { experts.iter().map(|e| e.member).collect() };
    assert_eq!(members(&on_question), [0, 1, 2, 0, 1]);
    assert_eq!(members(&on_options), [2, 0]);
    assert_eq!(on_question[4].name, "question-expert-5");
    assert_eq!(
        (on_options[1].name.as_str(), on_options[1].domain.as_str()),
        ("option-expert-2", "G2")
    );
}

#[test]
fn the_report_goes_round_without_its_key_knowledge_and_is_revised_by_advice() {
    let (item, calls) =
        run(|key| usual(key, |agent, round| round == 1 && agent == "option-expert-2"));
    assert!(user(&calls, "vote", 1).contains("Total Analysis: first report"));
    assert!(calls.iter().all(|call| !call.messages.last().unwrap().content.contains("secret")));
    let revision = user(&calls, "revision", 1);
    assert!(revision.contains("Advice of an expert in G2: option-expert-2 asks for more"));
    assert!(user(&calls, "vote", 2).contains("Total Analysis: revision 1"));
    assert!(user(&calls, "decision", 2).contains("Total Analysis: revision 1"));
    assert!(user(&calls, "decision", 2).contains("B: option B"));
    assert_eq!(item.rounds_run, 2);
    let report = user(&calls, "report", 0);
    assert!(report.contains("Field: F5\nAnalysis: Analysis of question-expert-5."));
    assert!(report.contains("Field: G1\nAnalysis: Analysis of option-expert-1."));
}

#[test]
fn option_experts_read_the_analyses_of_the_question() {
    let (_, calls) = run(|key| usual(key, |_, _| false));
    let expert = calls.iter().find(|call| call.agent == "option-expert-1").unwrap();
    let user = &expert.messages[1].content;
    assert!(user.contains("Analysis of question-expert-1.") && user.contains("E: option E"));
}

#[test]
fn texts_without_their_marks_stop_nothing() {
    let (item, calls) = run(|_| "Sorry.".into());
    assert_eq!((item.answer.as_str(), item.correct), ("", Some(false)));
    // One expert a list without marks, no vote against it: 2 lists, 2 analyses, a report, 2 votes, a decision.
    assert_eq!(item.calls, 8);
    assert!(calls.iter().any(|call| call.parse == Parse::Fallback));
    let (silent, _) = run(|_| String::new());
    assert_eq!((silent.answer.as_str(), silent.calls), ("", 18));
    assert_eq!(silent.team_confidence, 0.0);
    let (beyond, _) = run(|key| match key.purpose.as_str() {
        "decision" => "Option: [J]".into(),
        _ => usual(key, |_, _| false),
    });
    assert_eq!((beyond.answer.as_str(), beyond.correct), ("", Some(false)));
}
