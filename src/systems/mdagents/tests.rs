//! Questions of every complexity, with canned replies.

use super::teams::member_of;
use super::*;
use crate::panel::scripted::Script;
use crate::record::{AnswerLine, CallKey, CallLine, FinishReason};
use crate::systems::SystemConfig;
use crate::systems::scripted::{answer_filled, question, said};

const TEAMS_SAID: &str = r#"{"teams": [
    {"group_id": "Last", "goal": "Final Review and Decision Team (FRDT)", "members": [{"role": "R1"}, {"role": "R2", "is_lead": true}, {"role": "R3"}]},
    {"group_id": "Middle", "goal": "Psychiatry", "members": [{"role": "P1"}, {"role": "P2"}, {"role": "P3"}]},
    {"group_id": "First", "goal": "Initial Assessment Team (IAT)", "members": [{"role": "A1"}, {"role": "A2"}, {"role": "A3"}]}]}"#;

/// A question of this complexity that goes its way without surprises.
fn usual(key: &CallKey, complexity: &str) -> String {
    match (key.purpose.as_str(), complexity) {
        ("complexity", _) => format!(r#"{{"complexity": "{complexity}"}}"#),
        ("recruitment", "advanced") => TEAMS_SAID.into(),
        ("recruitment", _) => r#"{"experts": ["Ea", "Eb", "Ec", "Ed", "Ee"]}"#.into(),
        ("request", _) => format!("{} asks", key.agent),
        ("investigation", _) => format!("{} found it", key.agent),
        _ => said("B"),
    }
}

fn run(script: impl Fn(&CallKey) -> String + Send + Sync + 'static) -> (AnswerLine, Vec<CallLine>) {
    let config = SystemConfig::parse::<&str>("mdagents", &[]).unwrap();
    let script = Script::new(move |key, _| script(key));
    answer_filled(&config, &question(5), script)
}

fn user<'a>(calls: &'a [CallLine], agent: &str, purpose: &str) -> &'a str {
    let call = calls.iter().find(|c| c.agent == agent && c.purpose == purpose);
    &call.unwrap().messages[1].content
}

#[test]
fn a_question_takes_2_8_or_15_calls_by_its_complexity() {
    let calls = |complexity: &'static str| run(move |key| usual(key, complexity)).0.calls;
    assert_eq!(calls("basic"), 2);
    assert_eq!(calls("intermediate"), 8);
    assert_eq!(calls("advanced"), 15);
    assert_eq!(calls("hard"), 8);
    // The usual teams have two members each.
    let (usual_teams, _) = run(|key| match key.purpose.as_str() {
        "recruitment" => "no teams".into(),
        _ => usual(key, "advanced"),
    });
    assert_eq!(usual_teams.calls, 12);
}

#[test]
fn what_is_no_complexity_is_intermediate() {
    let level = |text: &str| read_complexity(&Fields::read(text, FinishReason::Stop, "complexity"));
    assert_eq!(level(r#"{"complexity": " Basic"}"#), ("basic", Parse::Ok));
    assert_eq!(level("Complexity: advanced"), ("advanced", Parse::Fallback));
    assert_eq!(level("basic"), ("basic", Parse::Fallback));
    for text in [r#"{"complexity": 3}"#, r#"{"complexity": "basic, or advanced"}"#, ""] {
        assert_eq!(level(text), ("intermediate", Parse::Unread), "{text}");
    }
}

#[test]
fn a_basic_question_has_one_answer_and_no_decision() {
    let (item, calls) = run(|key| usual(key, "basic"));
    assert_eq!((calls[1].agent.as_str(), calls[1].stage), ("agent-1", Stage::Initial));
    assert_eq!((item.answer.as_str(), item.team_confidence), ("B", Some(1.0)));
    assert_eq!(item.rounds[0].answers, ["B"]);
    assert_eq!(item.rationale, "for B");
}

#[test]
fn experts_speak_for_themselves_and_the_moderator_decides() {
    let (item, calls) = run(|key| match key.agent.as_str() {
        "moderator" if key.purpose == "decision" => said("D"),
        "expert-1" | "expert-4" => said("A"),
        "expert-2" | "expert-5" => said("E"),
        _ => usual(key, "intermediate"),
    });
    let round = &item.rounds[0];
    assert_eq!(round.agents, ["expert-1", "expert-2", "expert-3", "expert-4", "expert-5"]);
    assert_eq!(round.answers, ["A", "E", "B", "A", "E"]);
    // Two of each: the first stands for round 0, and the decision for the case.
    assert_eq!((round.aggregate.as_str(), item.answer.as_str()), ("A", "D"));
    assert_eq!((item.team_confidence, item.rounds.len()), (Some(0.0), 1));
    let decision = user(&calls, "moderator", "decision");
    assert!(decision.contains("Ea\nAnswer: A\nExplanation: for A\n\nEb\nAnswer: E"));
    assert_eq!(calls.last().unwrap().stage, Stage::Final);
}

#[test]
fn long_explanations_are_cut_for_the_decision() {
    let (_, calls) = run(|key| match key.purpose.as_str() {
        "opinion" => format!(r#"{{"explanation": "{}", "answer": "B"}}"#, "x".repeat(201)),
        _ => usual(key, "intermediate"),
    });
    let cut = format!("Explanation: {}…\n", "x".repeat(200));
    assert!(user(&calls, "moderator", "decision").contains(&cut));
}

#[test]
fn teams_work_apart_and_report_in_order() {
    let (item, calls) = run(|key| match (key.purpose.as_str(), key.agent.as_str()) {
        ("report", "team-2-lead") => said("C"),
        _ => usual(key, "advanced"),
    });
    assert_eq!(item.rounds[0].agents, ["team-1-lead", "team-2-lead", "team-3-lead"]);
    assert_eq!(item.rounds[0].answers, ["B", "C", "B"]);
    assert_eq!(item.team_confidence, Some(2.0 / 3.0));
    let decision = user(&calls, "moderator", "decision");
    let at = |text: &str| decision.find(text).unwrap();
    assert!(at("First: Initial") < at("Middle: Psych") && at("Middle: Psych") < at("Last: Final"));
    let request = user(&calls, "team-3-lead", "request");
    assert!(request.contains("Your team: R1, R3"));
    let asked = user(&calls, "team-3-assistant-2", "investigation");
    assert!(asked.contains("The lead of your team, a R2, asks:\nteam-3-lead asks"));
    let report = user(&calls, "team-2-lead", "report");
    assert!(report.contains("P2: team-2-assistant-1 found it\nP3: team-2-assistant-2 found it"));
    assert!(!report.contains("team-1"));
    let count = |stage| calls.iter().filter(|call| call.stage == stage).count();
    assert_eq!((count(Stage::Initial), count(Stage::Final), count(Stage::Aside)), (3, 1, 11));
}

#[test]
fn every_team_and_every_place_in_it_has_all_models() {
    for at in 0..AGENTS {
        let mut team: Vec<usize> = (0..AGENTS).map(|member| member_of(at, member)).collect();
        let mut place: Vec<usize> = (0..AGENTS).map(|team| member_of(team, at)).collect();
        team.sort();
        place.sort();
        assert_eq!((team, place), (vec![0, 1, 2], vec![0, 1, 2]));
    }
}

#[test]
fn a_lead_without_a_team_reports_alone() {
    let (item, calls) = run(|key| match key.purpose.as_str() {
        "recruitment" => r#"{"teams": [{"goal": "IAT", "members": ["Surgeon"]}]}"#.into(),
        _ => usual(key, "advanced"),
    });
    assert_eq!((item.calls, item.answer.as_str()), (5, "B"));
    assert!(user(&calls, "team-1-lead", "request").contains("no assistants"));
}

#[test]
fn silence_stops_nothing_and_is_wrong() {
    let (item, calls) = run(|_| String::new());
    assert_eq!((item.answer.as_str(), item.correct, item.calls), ("", Some(false), 8));
    assert!(calls.iter().all(|call| call.parse == Parse::Unread));
    assert!(user(&calls, "moderator", "decision").contains("Pathologist\nAnswer: \n"));
}

#[test]
fn agents_have_the_panels_models_and_the_others_its_first() {
    let slots = config::Settings::slots(&Settings::default());
    let slot = |at: usize| (slots[at].agent.as_str(), slots[at].model);
    assert_eq!([slot(0), slot(1), slot(2)], [("agent-1", 0), ("agent-2", 1), ("agent-3", 2)]);
    assert_eq!(slot(MODERATOR), ("moderator", 0));
    assert_eq!(slot(RECRUITER), ("recruiter", 0));
    assert_eq!(slots.len(), 5);
}
