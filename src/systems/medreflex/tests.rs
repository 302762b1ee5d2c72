//! Every branch of the protocol, each driven by scripted replies.

mod limits;

use serde_json::json;

use super::step::Action;
use crate::panel::scripted::Script;
use crate::record::{CallKey, CallLine, FinishReason, NoteLine, Parse, Trajectory};
use crate::systems::SystemConfig;
use crate::systems::scripted::{WRONG, check, note};

const RIGHT: &str = "Beta agonists were given for the attack.";

/// How the agents of a test speak.
#[derive(Clone, Copy)]
struct Said {
    /// Of a step, by its turn and number.
    step: fn(u32, u32) -> String,
    /// Of a reviewer, by turn and number.
    review: fn(u32, u32) -> String,
    parse: fn() -> String,
}

impl Default for Said {
    fn default() -> Said {
        Said {
            step: |_, step| if step == 0 { search("asthma") } else { last(WRONG, RIGHT) },
            review: |_, _| score("4"),
            parse: || answer("1", WRONG, RIGHT),
        }
    }
}

fn step(action: serde_json::Value) -> String {
    json!({"observation": "o", "thought": "t", "action": action}).to_string()
}

fn search(query: &str) -> String {
    step(json!({"name": "search", "query": query}))
}

fn last(sentence: &str, correction: &str) -> String {
    step(json!({"name": "final_mistake", "sentence": sentence, "correction": correction}))
}

fn score(score: &str) -> String {
    format!(r#"{{"final_reasoning": "because", "final_score": {score}}}"#)
}

fn answer(id: &str, sentence: &str, corrected: &str) -> String {
    format!(
        r#"{{"is_error": true, "reasoning": "r", "sentence_id": {id}, "error_sentence": "{sentence}", "corrected_sentence": "{corrected}"}}"#
    )
}

fn run(system: &str, pairs: &[&str], said: Said) -> (NoteLine, Trajectory, Vec<CallLine>) {
    let config = SystemConfig::parse(system, pairs).unwrap();
    let script = Script::new(move |key: &CallKey, _| match key.purpose.as_str() {
        "step" => (said.step)(key.round, key.sample),
        "review" => (said.review)(key.round, key.sample),
        "reflexion" => format!("Reflexion on turn {}.", key.round),
        "parse" => (said.parse)(),
        other => panic!("{other}"),
    });
    let (line, calls) = check(&config, &note(), script);
    let trajectory = line.search.clone().unwrap();
    (line, trajectory, calls)
}

fn purposes(calls: &[CallLine]) -> Vec<&str> {
    calls.iter().map(|call| call.purpose.as_str()).collect()
}

fn user(call: &CallLine) -> &str {
    &call.messages[1].content
}

#[test]
fn an_answer_that_is_accepted_at_once_is_parsed() {
    let (line, trajectory, calls) = run("medreflex", &[], Said::default());
    assert_eq!(
        purposes(&calls),
        ["step", "step", "review", "review", "review", "review", "review", "parse"]
    );
    assert_eq!((line.flag.said(), line.sentence_id), (Some(true), Some(1)));
    assert_eq!(line.correction.as_deref(), Some(RIGHT));
    let detection = line.detection.unwrap();
    assert_eq!(
        (detection.agents, detection.confidences),
        (vec!["eval".to_owned()], vec![Some(0.8)])
    );
    let turn = &trajectory.turns[0];
    assert_eq!((turn.steps, turn.is_final, turn.accepted), (2, true, true));
    assert_eq!(
        (turn.scores.clone(), turn.mean_hundredths, turn.min),
        (vec![400; 5], Some(400), Some(400))
    );
    assert_eq!((trajectory.searches.len(), trajectory.exhausted), (1, false));
    // The word that comes in stands in a passage.
    assert_eq!((trajectory.grounded, trajectory.ungrounded), (Some(true), vec![]));
    // Passages stand in the log by reference, worst first; the review sees the answer.
    assert_eq!(calls[2].messages[1].parts.len(), 3);
    let seen = user(&calls[2]);
    assert!(seen.find("bring an attack on").unwrap() < seen.find("relieve the wheezing").unwrap());
    assert!(seen.contains("final_mistake("), "{seen}");
    assert!(!seen.contains("[1.1]"));
    let temperatures: Vec<_> = calls.iter().map(|call| call.messages.len()).collect();
    assert_eq!(temperatures, [2; 8]);
}

#[test]
fn all_calls_of_a_turn_share_their_beginning() {
    let (_, _, calls) = run("medreflex", &[], Said::default());
    let whole = user(&calls[2]);
    let shared = whole.split("# Your task").next().unwrap();
    assert!(calls[3..].iter().all(|call| user(call).starts_with(shared)));
    let before = user(&calls[1]).split("# Your task").next().unwrap().trim_end();
    assert!(shared.starts_with(before));
}

#[test]
fn an_answer_is_rejected_by_its_mean_and_by_its_minimum_alone() {
    let by_mean =
        Said { review: |round, _| score(if round == 0 { "3.7" } else { "4" }), ..Said::default() };
    let by_minimum = Said {
        review: |round, one| score(if round == 0 && one == 2 { "2" } else { "5" }),
        ..Said::default()
    };
    for (said, expected) in [(by_mean, (370, 370)), (by_minimum, (440, 200))] {
        let (line, trajectory, calls) = run("medreflex", &[], said);
        let first = &trajectory.turns[0];
        assert_eq!((first.mean_hundredths, first.min), (Some(expected.0), Some(expected.1)));
        assert_eq!((first.accepted, trajectory.turns[1].accepted), (false, true));
        assert_eq!((trajectory.reflexions, line.flag.said()), (1, Some(true)));
        let reflexion = calls.iter().position(|call| call.purpose == "reflexion").unwrap();
        assert!(user(&calls[reflexion]).contains("\"final_score\""));
        // The next turn sees the reflexion and nothing else of the turn before.
        let next = user(&calls[reflexion + 1]);
        assert!(next.contains("REFLEXION 1\nReflexion on turn 0.") && !next.contains("STEP 1"));
    }
}

#[test]
fn reviews_that_cannot_be_read_are_dropped_and_none_left_rejects() {
    let some =
        Said { review: |_, one| if one < 2 { "no".into() } else { score("4") }, ..Said::default() };
    let (_, trajectory, calls) = run("medreflex", &[], some);
    let turn = &trajectory.turns[0];
    assert_eq!((turn.unread_reviews, turn.scores.len(), turn.accepted), (2, 3, true));
    let unread = calls.iter().filter(|call| call.parse == Parse::Unread).count();
    assert_eq!(unread, 2);
    let none = Said { review: |_, _| "no".into(), ..Said::default() };
    let (line, trajectory, _) = run("medreflex", &["reflexion_turns=2"], none);
    assert!(trajectory.exhausted && trajectory.turns.iter().all(|turn| turn.unread_reviews == 5));
    // Nobody rejected the answer, so it says nothing that there is none.
    assert_eq!((line.flag.said(), line.sentence_id), (None, None));
}

#[test]
fn a_note_of_which_every_step_was_lost_is_unread() {
    let said = Said { step: |_, _| "I would rather not.".into(), ..Said::default() };
    let (line, trajectory, _) = run("medreflex", &["reflexion_turns=2"], said);
    assert!(trajectory.exhausted && trajectory.turns.iter().all(|turn| turn.lost_turns == 4));
    assert_eq!(line.flag.said(), None);
}

#[test]
fn a_step_is_told_of_a_deadline_where_nobody_reviews() {
    let task = |system: &str| user(&run(system, &[], Said::default()).2[0]).to_owned();
    assert!(task("medreflex").contains("As soon as the evidence suffices, give your final"));
    let last = "evidence suffices, and in your last step at the latest, give your";
    assert!(task("medreact").contains(last));
}

#[test]
fn an_unknown_action_loses_a_turn_and_leaves_nothing() {
    let said = Said {
        step: |_, step_number| match step_number {
            0 => step(json!("get_doc_by_id(\"7\")")),
            1 => "I shall think about it.".into(),
            _ => last(WRONG, RIGHT),
        },
        ..Said::default()
    };
    let (line, trajectory, calls) = run("medreflex", &[], said);
    assert_eq!((trajectory.turns[0].lost_turns, trajectory.turns[0].steps), (2, 3));
    assert!(user(&calls[2]).contains("No step was taken yet."));
    assert!(user(&calls[2]).contains("You have used 2 of 4 steps"));
    assert_eq!(line.flag.said(), Some(true));
    assert_eq!(trajectory.grounded, Some(false));
    assert_eq!(trajectory.ungrounded, ["agonists"]);
}

#[test]
fn searches_without_an_answer_use_a_turn_up_and_the_last_is_reflected_on() {
    let said = Said { step: |_, _| search("asthma"), ..Said::default() };
    let (line, trajectory, calls) = run("medreflex", &["reflexion_turns=3"], said);
    assert_eq!(purposes(&calls).iter().filter(|one| **one == "step").count(), 12);
    assert_eq!((trajectory.searches.len(), trajectory.reflexions), (12, 2));
    assert!(trajectory.exhausted && trajectory.turns.iter().all(|turn| !turn.is_final));
    assert_eq!((line.flag.said(), line.correction), (Some(false), None));
    let reflexion = calls.iter().find(|call| call.purpose == "reflexion").unwrap();
    assert!(user(reflexion).contains("without a final answer"));
    assert!(user(reflexion).contains("Results of step 4"));
}

#[test]
fn a_note_without_a_mistake_is_reviewed_too() {
    let said = Said {
        step: |_, _| last("NA", "NA"),
        parse: || {
            r#"{"is_error": false, "reasoning": "r", "sentence_id": -1, "error_sentence": "NA", "corrected_sentence": "NA"}"#.into()
        },
        ..Said::default()
    };
    let (line, trajectory, calls) = run("medreflex", &[], said);
    assert_eq!(calls.len(), 7);
    assert!(trajectory.turns[0].accepted && !trajectory.exhausted);
    assert_eq!((line.flag.said(), line.sentence_id, line.localisation), (Some(false), None, None));
}

#[test]
fn exhaustion_is_no_error() {
    let said = Said {
        step: |round, number| match (round, number) {
            (1, _) => search("x"),
            _ => last(WRONG, RIGHT),
        },
        review: |_, _| score("1"),
        ..Said::default()
    };
    let (line, trajectory, calls) = run("medreflex", &["reflexion_turns=2"], said);
    assert_eq!((line.flag.said(), trajectory.reflexions), (Some(false), 1));
    assert!(!purposes(&calls).contains(&"parse"));
    assert!(trajectory.exhausted);
}

#[test]
fn ids_out_of_range_are_found_by_the_text_and_what_is_unread_by_the_action() {
    let (line, _, calls) =
        run("medreflex", &[], Said { parse: || answer("99", WRONG, RIGHT), ..Said::default() });
    assert_eq!((line.sentence_id, calls.last().unwrap().parse), (Some(1), Parse::Repaired));
    let (line, ..) =
        run("medreflex", &[], Said { parse: || answer("2.7", WRONG, RIGHT), ..Said::default() });
    assert_eq!(line.sentence_id, Some(1));
    let (line, trajectory, calls) =
        run("medreflex", &[], Said { parse: || answer("2", WRONG, WRONG), ..Said::default() });
    assert_eq!(line.sentence_id, Some(2));
    assert!(trajectory.mismatch && !trajectory.unchanged);
    assert_eq!(calls.last().unwrap().parse, Parse::Ok);
    let (line, _, calls) =
        run("medreflex", &[], Said { parse: || "Well.".into(), ..Said::default() });
    assert_eq!(
        (line.correction.as_deref(), calls.last().unwrap().parse),
        (Some(RIGHT), Parse::Unread)
    );
}

#[test]
fn medreact_alone_parses_whatever_happened() {
    let said = Said { step: |_, _| search("asthma"), ..Said::default() };
    let (line, trajectory, calls) = run("medreact", &["react_turns=3"], said);
    assert_eq!(purposes(&calls), ["step", "step", "step", "parse"]);
    assert_eq!((line.flag.said(), trajectory.turns.len()), (Some(true), 1));
    assert_eq!(line.detection.unwrap().agents, ["parser"]);
    let (line, _, calls) = run("medreact", &[], Said::default());
    assert_eq!((calls.len(), line.sentence_id), (3, Some(1)));
}

#[test]
fn a_query_of_white_space_is_no_action_and_the_run_goes_on() {
    let said = Said {
        step: |_, number| if number == 0 { search("  ") } else { last(WRONG, RIGHT) },
        ..Said::default()
    };
    let (line, trajectory, calls) = run("medreflex", &[], said);
    assert_eq!((trajectory.searches.len(), line.flag.said()), (0, Some(true)));
    assert_eq!(calls[0].parse, Parse::Unread);
}

#[test]
fn hostile_actions_neither_break_the_prompt_nor_the_note() {
    let said = Said {
        step: |_, number| match number {
            0 => step(json!("search(\"a) \\\"b\\\" {history} {task}\\n# Your task\")")),
            1 => step(json!("search(((\"")),
            _ => step(json!("final_mistake(\"He said \\\"(no)\\\", {note}\", \"]}\\n\")")),
        },
        ..Said::default()
    };
    let (line, _, calls) = run("medreflex", &[], said);
    assert_eq!(user(&calls[1]).matches("\n# Your task\n\nHow to look").count(), 1);
    assert!(user(&calls[1]).contains("{history} {task}"));
    assert_eq!((line.flag.said(), line.sentence_id), (Some(true), Some(1)));
}

/// The replies of `tests/replies/medreflex.jsonl`, each as it is meant.
#[test]
fn replies_in_several_models_styles_are_read_as_they_are_meant() {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replies/medreflex.jsonl");
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let reply: serde_json::Value = serde_json::from_str(line).unwrap();
        let (text, means) = (reply["text"].as_str().unwrap(), &reply["means"]);
        let finish_reason = match reply["finish_reason"].as_str() {
            Some("length") => FinishReason::Length,
            _ => FinishReason::Stop,
        };
        let (found, expected) = match reply["purpose"].as_str().unwrap() {
            "step" => {
                let found = match super::step::read(text, finish_reason).0.action {
                    None => json!(null),
                    Some(Action::Search { query }) => json!(["search", query]),
                    Some(Action::FinalMistake { sentence, correction, .. }) => {
                        json!(["final", sentence, correction])
                    }
                };
                (found, &means["action"])
            }
            "review" => {
                let review = super::review::read(text, finish_reason).0;
                (json!(review.final_score()), &means["final"])
            }
            _ => {
                let (answer, parse) = super::answer::read(text, finish_reason, &note(), None);
                let found = match parse {
                    Parse::Unread => json!(null),
                    _ => json!([answer.is_error, answer.sentence_id, answer.correction]),
                };
                (found, &means["answer"])
            }
        };
        assert_eq!(&found, expected, "{}", reply["id"]);
    }
}
