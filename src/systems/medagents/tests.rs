//! Whole consultations, with canned replies.

use super::specialties::UNREAD;
use super::*;
use crate::panel::scripted::Script;
use crate::record::{AnswerLine, CallKey, CallLine, FinishReason};
use crate::systems::SystemConfig;
use crate::systems::scripted::{answer_filled, question, said};

fn review(agree: &str, answer: &str) -> String {
    format!(r#"{{"agree": "{agree}", "reason": "since {answer}", "answer": "{answer}"}}"#)
}

/// What a consultation without surprises says: everybody for B, and agreement in round `agreed`.
fn usual(key: &CallKey, agreed: u32) -> String {
    match key.purpose.as_str() {
        "specialties" => r#"{"fields": ["Genetics", "Neurology"]}"#.into(),
        "synthesis" => format!(r#"{{"explanation": "report {}", "answer": "E"}}"#, key.round),
        "review" if key.round >= agreed => review("yes", "B"),
        "review" => review("no", "C"),
        _ => said("B"),
    }
}

fn run(script: impl Fn(&CallKey) -> String + Send + Sync + 'static) -> (AnswerLine, Vec<CallLine>) {
    let config = SystemConfig::parse::<&str>("medagents", &[]).unwrap();
    let script = Script::new(move |key, _| script(key));
    answer_filled(&config, &question(5), script)
}

fn of<'a>(calls: &'a [CallLine], purpose: &str, round: u32) -> Vec<&'a CallLine> {
    let of = |call: &&CallLine| call.purpose == purpose && call.round == round;
    calls.iter().filter(of).collect()
}

#[test]
fn a_consultation_takes_9_16_or_23_calls() {
    let counts = |agreed| {
        let (item, _) = run(move |key| usual(key, agreed));
        (item.calls, item.rounds_run)
    };
    assert_eq!([counts(1), counts(2), counts(3)], [(9, 1), (16, 2), (23, 3)]);
    // Nobody has to agree in the last round.
    assert_eq!(counts(4), (23, 3));
    assert_eq!(SystemConfig::parse::<&str>("medagents", &[]).unwrap().max_calls(), 23);
}

#[test]
fn one_who_does_not_agree_keeps_the_consultation_going() {
    let (item, _) = run(|key| match (key.purpose.as_str(), key.agent.as_str(), key.round) {
        ("review", "doctor-3", 1) => review("no", "B"),
        _ => usual(key, 1),
    });
    assert_eq!(item.calls, 16);
}

#[test]
fn stages_are_initial_then_reviews_then_the_decision() {
    let (item, calls) = run(|key| usual(key, 2));
    let stages: Vec<(u32, Stage)> = item.rounds.iter().map(|r| (r.round, r.stage)).collect();
    assert_eq!(stages, [(0, Stage::Initial), (1, Stage::Round), (2, Stage::Round)]);
    let count = |stage| calls.iter().filter(|call| call.stage == stage).count();
    assert_eq!(count(Stage::Initial), 3);
    assert_eq!(count(Stage::Round), 6);
    assert_eq!(count(Stage::Final), 1);
    // The gatherer, two reports, and the analyses that were drawn again.
    assert_eq!(count(Stage::Aside), 6);
    assert!(of(&calls, "analysis", 2).iter().all(|call| call.stage == Stage::Aside));
    assert_eq!(item.rounds[1].answers, ["C", "C", "C"]);
    assert_eq!(item.rounds[2].brief, "report 2");
}

#[test]
fn nobody_is_shown_more_than_their_part() {
    let (_, calls) = run(|key| usual(key, 2));
    let text = |call: &CallLine| call.messages[1].content.clone();
    let question = question(5).question;
    for call in of(&calls, "review", 1) {
        assert!(text(call).contains("report 1") && !text(call).contains(&question));
    }
    // An answer in the report goes no further.
    assert!(calls.iter().all(|call| !text(call).contains("\"E\"")));
    let first: Vec<_> = of(&calls, "analysis", 0).iter().map(|c| c.messages.clone()).collect();
    let again: Vec<_> = of(&calls, "analysis", 2).iter().map(|c| c.messages.clone()).collect();
    assert_eq!(first, again);
    let decision = &of(&calls, "decision", 2)[0];
    assert!(text(decision).contains("report 2") && text(decision).contains(&question));
    let synthesis = text(of(&calls, "synthesis", 1)[0]);
    assert!(synthesis.contains("Doctor 1 (Genetics)\nExplanation: for B\nAnswer: B"));
    assert!(synthesis.contains("Doctor 2 (Cardiology)"));
}

#[test]
fn the_decision_is_the_answer_whatever_the_doctors_say() {
    let (item, _) = run(|key| match key.purpose.as_str() {
        "decision" => said("D"),
        _ => usual(key, 1),
    });
    assert_eq!((item.answer.as_str(), item.correct), ("D", Some(false)));
    assert_eq!((item.rounds[0].aggregate.as_str(), item.team_confidence), ("B", Some(0.0)));
    assert_eq!(item.rationale, "for D");
    let (split, _) = run(|key| match (key.purpose.as_str(), key.agent.as_str()) {
        ("analysis", "doctor-1") => said("E"),
        ("analysis", "doctor-2") => said("(a)"),
        ("review", "doctor-2") => review("Yes", "A"),
        _ => usual(key, 1),
    });
    assert_eq!(split.rounds[0].answers, ["E", "A", "B"]);
    // Of three letters the first stands.
    assert_eq!((split.rounds[0].aggregate.as_str(), split.calls), ("E", 9));
    assert_eq!(split.team_confidence, Some(2.0 / 3.0));
}

#[test]
fn agreement_is_read_or_it_is_not() {
    let parse = |text: &str| {
        let reply = Fields::read(text, FinishReason::Stop, "agree");
        read_review(&reply, text, reply.answer(&question(5).options).0).1
    };
    assert_eq!(parse("Agree: no"), Parse::Fallback);
    assert_eq!(parse(r#"{"agree": "no"}"#), Parse::Ok);
    assert_eq!(parse(r#"{"agree": null}"#), Parse::Unread);
    assert_eq!(parse("Well, well."), Parse::Unread);
}

#[test]
fn texts_that_are_no_records_are_read_line_by_line_and_stop_nothing() {
    let (item, calls) = run(|key| match key.purpose.as_str() {
        "synthesis" => "They think it is\nscurvy.".into(),
        "review" => "agree: true\nreason: r".into(),
        "specialties" => "none".into(),
        _ => "Explanation: gums\nAnswer: B".into(),
    });
    assert_eq!((item.answer.as_str(), item.calls), ("B", 9));
    assert_eq!(item.rationale, "gums");
    for call in &calls {
        let expected = match call.purpose.as_str() {
            "specialties" => Parse::Unread,
            _ => Parse::Fallback,
        };
        assert_eq!(call.parse, expected, "{}", call.purpose);
    }
    assert!(calls[1].messages[0].content.contains("Cardiology"));
    assert_eq!(item.rounds[1].brief, "They think it is\nscurvy.");
    let (silent, _) = run(|_| String::new());
    // Nobody objects.
    assert_eq!((silent.answer.as_str(), silent.calls), ("", 9));
    assert_eq!(silent.correct, Some(false));
}

fn specialties(text: &str) -> (Vec<&'static str>, Parse) {
    read_specialties(text, FinishReason::Stop)
}

fn names(text: &str) -> Vec<&'static str> {
    specialties(text).0
}

#[test]
fn names_are_known_by_a_part_of_them() {
    assert_eq!(
        names(
            r#"{"fields": ["Medical Genetics", "pediatric cardiology", "Cardiothoracic surgery", "Neonatology"]}"#
        ),
        ["Genetics", "Pediatrics", "Cardiology"]
    );
}

#[test]
fn unknown_names_are_dropped_and_the_defaults_after_as_many_as_remain_fill_up() {
    assert_eq!(
        names(r#"{"fields": ["Neurology", "Genetics", "Surgery"]}"#),
        ["Genetics", "Cardiology", "Pulmonology"]
    );
    // A specialty can so come twice.
    assert_eq!(
        names(r#"{"fields": ["Cardiology", "Neurology"]}"#),
        ["Cardiology", "Cardiology", "Pulmonology"]
    );
    let defaults = ["Pediatrics", "Cardiology", "Pulmonology"];
    assert_eq!(names(r#"{"fields": ["Neurology"]}"#), defaults);
    assert_eq!(names(r#"{"fields": "Genetics"}"#), ["Genetics", "Cardiology", "Pulmonology"]);
    assert_eq!(names(r#"{"fields": [1, null]}"#), defaults);
    assert_eq!(names("{}"), defaults);
}

#[test]
fn thinking_before_the_specialties_is_no_part_of_the_reply() {
    let thought = r#"<think>Genes?</think>{"fields": ["Genetics", "Pulmonology", "Cardiology"]}"#;
    assert_eq!(specialties(thought), (vec!["Genetics", "Pulmonology", "Cardiology"], Parse::Ok));
}

#[test]
fn a_reply_that_is_no_object_brings_other_defaults() {
    let unread = (UNREAD.to_vec(), Parse::Unread);
    assert_eq!(specialties("Pediatrics, Genetics"), unread);
}

#[test]
fn doctors_sit_on_the_panels_models_and_the_others_on_the_first() {
    let slots = config::Settings::slots(&Settings::default());
    let names: Vec<&str> = slots.iter().map(|slot| slot.agent.as_str()).collect();
    assert_eq!(names, ["doctor-1", "doctor-2", "doctor-3", "gatherer", "meta", "decision"]);
    let models: Vec<usize> = slots.iter().map(|slot| slot.model).collect();
    assert_eq!(models, [0, 1, 2, 0, 0, 0]);
    assert_eq!(names[GATHERER], "gatherer");
    assert_eq!((names[META], names[DECISION]), ("meta", "decision"));
}

#[test]
fn a_review_that_says_yes_agrees_and_answers_nothing() {
    let mut asked = question(3);
    for (option, text) in asked.options.iter_mut().zip(["Yes", "No", "Maybe"]) {
        text.clone_into(&mut option.text);
    }
    let config = SystemConfig::parse::<&str>("medagents", &[]).unwrap();
    for (words, answer) in [("Yes", ""), ("Yes, I agree.", ""), ("Agree: yes\nAnswer: B", "B")] {
        let script = Script::new(move |key, _| match key.purpose.as_str() {
            "review" => words.to_owned(),
            _ => usual(key, 1),
        });
        let (line, _) = answer_filled(&config, &asked, script);
        assert_eq!((line.rounds_run, line.rounds[1].answers[0].as_str()), (1, answer), "{words}");
    }
}
