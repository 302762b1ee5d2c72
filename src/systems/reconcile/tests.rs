//! ReConcile with canned replies, its weights and its groups of answers.

use super::config::Settings as _;
use super::*;
use crate::panel::scripted::Script;
use crate::prompts::PromptSet;
use crate::record::{AnswerLine, CallLine};
use crate::systems::SystemConfig;
use crate::systems::scripted::{answer_filled, question};

fn said(answer: &str, confidence: f64) -> String {
    format!(r#"{{"reasoning": "for {answer}", "answer": "{answer}", "confidence": {confidence}}}"#)
}

/// Runs the table on one question; agent `i` says `script(round, i)`.
fn run(
    script: impl Fn(u32, usize) -> String + Send + Sync + 'static,
) -> (AnswerLine, Vec<CallLine>) {
    let script = Script::new(move |key, _| {
        let slots = Settings::default().slots();
        let agent = slots.iter().position(|slot| slot.agent == key.agent);
        script(key.round, agent.unwrap())
    });
    let config = SystemConfig::parse::<&str>("reconcile", &[]).unwrap();
    answer_filled(&config, &question(5), script)
}

#[test]
fn a_table_that_agrees_at_once_discusses_once_all_the_same() {
    let (item, calls) = run(|_, _| said("B", 0.9));
    assert_eq!((item.calls, item.rounds_run, calls.len()), (6, 1, 6));
    assert_eq!((item.answer.as_str(), item.correct), ("B", Some(true)));
    assert_eq!(item.team_confidence, Some(0.8));
    assert_eq!(item.rationale, "for B\nfor B\nfor B");
    let stages: Vec<Stage> = item.rounds.iter().map(|round| round.stage).collect();
    assert_eq!(stages, [Stage::Initial, Stage::Round]);
}

#[test]
fn consensus_ends_the_discussion_and_three_rounds_do() {
    let after = |rounds: u32| {
        run(move |round, agent| match round < rounds {
            true => said(["A", "B", "C"][agent], 0.5),
            false => said("C", 0.5),
        })
        .0
        .calls
    };
    assert_eq!([after(1), after(2), after(3), after(9)], [6, 9, 12, 12]);
}

#[test]
fn the_vote_is_over_the_last_round_and_ties_go_to_the_first_seen() {
    let (item, _) = run(|round, agent| match (round, agent) {
        (0, _) => said("A", 1.0),
        (_, 0) => said("D", 0.85),
        (_, 1) => said("B", 0.82),
        _ => "No answer from me.".into(),
    });
    assert_eq!(item.rounds[1].answers, ["D", "B", ""]);
    assert_eq!(item.rounds[1].weights, [0.5, 0.5, 0.1]);
    assert_eq!(item.rounds[0].aggregate, "A");
    assert_eq!((item.answer.as_str(), item.tie, item.calls), ("D", true, 12));
}

#[test]
fn silence_has_no_vote_and_nobody_speaking_is_wrong() {
    let (item, calls) = run(|_, agent| match agent {
        2 => said("(c) aspirin", 0.1),
        _ => said("", 1.0),
    });
    assert_eq!((item.answer.as_str(), item.calls), ("C", 6));
    assert_eq!(calls[2].record["answer"], "C");
    let (silent, _) = run(|_, _| String::new());
    assert_eq!((silent.answer.as_str(), silent.calls), ("", 12));
    assert_eq!(silent.correct, Some(false));
    let (beyond, _) = run(|_, _| said("J", 0.9));
    assert_eq!((beyond.answer.as_str(), beyond.correct), ("", Some(false)));
}

#[test]
fn everybody_is_shown_everybodys_last_answers_and_no_earlier_turn() {
    let (item, calls) = run(|round, agent| match (round, agent) {
        (0, 1) => said("B", 0.4),
        (0, _) => said("A", 1.0),
        (1, agent) => said(["C", "D", "E"][agent], 0.7),
        _ => said("A", 1.0),
    });
    let prompts = |round: u32| {
        let of_round = calls.iter().filter(move |call| call.round == round);
        of_round.map(|call| &call.messages).collect::<Vec<_>>()
    };
    let (first, second) = (prompts(1), prompts(2));
    assert!(first.iter().all(|messages| *messages == first[0]));
    let user = &first[0][1].content;
    assert!(user.contains("Answer: A\nSupporters: 2\nAverage confidence: 1.00"));
    assert!(user.contains("Answer: B\nSupporters: 1\nAverage confidence: 0.40"));
    assert!(user.contains(&item.rounds[1].brief) && !item.rounds[1].brief.is_empty());
    assert!(user.contains(&question(5).question));
    assert!(!second[0][1].content.contains("Answer: A"));
    assert!(calls.iter().all(|call| call.messages.len() == 2));
}

#[test]
fn text_instead_of_json_is_read_line_by_line() {
    let (item, calls) = run(|_, _| "Reasoning: because\nAnswer: B\nConfidence: 1.0".into());
    assert_eq!((item.answer.as_str(), item.team_confidence), ("B", Some(1.0)));
    assert!(calls.iter().all(|call| call.parse == Parse::Fallback));
    assert_eq!(calls[0].record["reasoning"], "because");
}

fn opinions(given: &[(&str, f64)]) -> Vec<Opinion> {
    let opinion = |&(answer, confidence): &(&str, f64)| Opinion {
        answer: answer.into(),
        confidence,
        reasoning: String::new(),
    };
    given.iter().map(opinion).collect()
}

#[test]
fn recalibration_has_the_papers_steps() {
    let steps = [
        (1.0, 1000),
        (0.999, 800),
        (0.9, 800),
        (0.899, 500),
        (0.8, 500),
        (0.799, 300),
        (0.601, 300),
        (0.6, 100),
        (0.0, 100),
    ];
    for (confidence, expected) in steps {
        assert_eq!(weight(confidence), expected, "{confidence}");
    }
}

#[test]
fn the_heaviest_answer_wins_and_of_equals_the_first_seen() {
    let won = |given: &[(&str, f64)]| {
        let (_, vote) = weighted_vote(&opinions(given));
        (vote.answer, vote.tie)
    };
    assert_eq!(won(&[("A", 1.0), ("B", 0.8), ("B", 0.7)]), ("A".into(), false));
    assert_eq!(won(&[("B", 0.8), ("A", 0.9), ("B", 0.7)]), ("B".into(), true));
    assert_eq!(won(&[("", 1.0), ("C", 0.1), ("", 1.0)]), ("C".into(), false));
    assert_eq!(won(&[("", 1.0), ("", 0.1)]), (String::new(), false));
    assert_eq!(won(&[("J", 0.9), ("A", 0.1), ("A", 0.1)]), ("J".into(), false));
}

#[test]
fn empty_answers_do_not_stand_against_consensus() {
    let agreed = |given: &[&str]| {
        let given: Vec<(&str, f64)> = given.iter().map(|answer| (*answer, 0.5)).collect();
        agree(&opinions(&given))
    };
    assert!(agreed(&["B", "B", "B"]));
    assert!(agreed(&["", "B", ""]));
    assert!(!agreed(&["B", "C", ""]));
    assert!(!agreed(&["", "", ""]));
    assert!(!agreed(&[]));
}

#[test]
fn answers_are_grouped_by_letter_in_the_order_they_came() {
    let texts = Texts::read(&PromptSet::embedded()).unwrap();
    let table = Reconcile { settings: Settings::default(), texts };
    let opinion = |answer: &str, confidence, reasoning: &str| Opinion {
        answer: answer.into(),
        confidence,
        reasoning: reasoning.into(),
    };
    let groups = table.groups(&[
        opinion("C", 0.9, "fever and chills"),
        opinion("", 0.0, "{answer}"),
        opinion("C", 0.65, "rash"),
    ]);
    let expected = "\
Answer: C
Supporters: 2
Average confidence: 0.78
Explanations:
- fever and chills
- rash

Answer: none
Supporters: 1
Average confidence: 0.00
Explanations:
- {answer}";
    assert_eq!(groups, expected);
}
