//! Whole cases, with canned replies.

use serde_json::json;

use super::*;
use crate::panel::scripted::Script;
use crate::record::{AnswerLine, CallLine, Parse, Reply};
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
    answer(&SystemConfig::parse::<&str>("healthcareagent", &[]).unwrap(), &question(5), script)
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
        .map(|round| (round.round, round.stage, round.answers.join(","), round.aggregate.as_str()))
        .collect();
    assert_eq!(
        rounds,
        [(0, Stage::Initial, "C".to_owned(), "C"), (1, Stage::Final, "B".to_owned(), "B")]
    );
    assert_eq!((item.answer.as_str(), item.correct, item.rounds_run), ("B", Some(true), 1));
    assert_eq!((item.rationale.as_str(), item.team_confidence), ("see a doctor", Some(1.0)));
    let last = calls.last().unwrap();
    assert_eq!(last.record, Reply::of(json!({"explanation": "see a doctor", "answer": "B"})));
    assert!(
        calls.iter().all(|call| call.agent == "doctor" && call.record.fields().next().is_some())
    );
}

#[test]
fn an_answer_that_is_missing_is_wrong_even_where_the_draft_had_one() {
    let (item, calls) = run("DIAGNOSE", r#"{"explanation": "it is B"}"#);
    assert_eq!((item.answer.as_str(), item.correct), ("", Some(false)));
    assert_eq!(item.team_confidence, None);
    assert_eq!(calls.last().unwrap().parse, Parse::Unread);
}

#[test]
fn no_text_stops_it() {
    let (item, calls) = run("INQUIRY", "I cannot give medical advice.");
    assert_eq!((calls.len(), item.answer.as_str()), (7, ""));
    let everywhere = Script::new(|_, _| String::new());
    let config = SystemConfig::parse::<&str>("healthcareagent", &[]).unwrap();
    let (item, calls) = answer(&config, &question(2), everywhere);
    assert_eq!((calls.len(), item.answer.as_str()), (6, ""));
    let (item, _) = run("DIAGNOSE", r#"{"answer": "J"}"#);
    assert_eq!((item.answer.as_str(), item.correct), ("", Some(false)));
}
