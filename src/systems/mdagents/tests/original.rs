//! The authors' form: who talks to whom and until when, what each is shown, the second sitting of the final review, and temperatures.

use super::super::debate::{Wish, read_wish};
use super::*;

/// What an expert says who wants to talk to these.
fn to(experts: &[usize]) -> String {
    match experts {
        [] => r#"{"talk": "no"}"#.to_owned(),
        experts => format!(r#"{{"talk": "yes", "experts": {experts:?}}}"#),
    }
}

/// An intermediate question, and what is said of it but for wishes: comments name who makes them and when, answers when they are given.
fn discussed(key: &CallKey) -> String {
    match (key.purpose.as_str(), key.agent.as_str()) {
        ("comment", agent) => format!("{agent} at {}", key.round),
        ("summary", _) => format!("the summary at {}", key.round),
        ("opinion", _) => said(if key.round == 0 { "B" } else { "C" }),
        ("decision", _) => said("D"),
        ("wish", _) => to(&[]),
        _ => usual(key, "intermediate"),
    }
}

fn run(
    pairs: &[&str],
    script: impl Fn(&CallKey) -> String + Send + Sync + 'static,
) -> (AnswerLine, Vec<CallLine>) {
    let pairs = [&["form=original"], pairs].concat();
    let config = SystemConfig::parse("mdagents", &pairs).unwrap();
    let (line, calls) = run_with(&pairs, script);
    assert!(calls.len() <= config.max_calls() as usize);
    (line, calls)
}

/// The steps of a debate and how many calls each has, recruitment apart.
fn course(calls: &[CallLine]) -> String {
    let of_step =
        calls.chunk_by(|one, next| (one.round, &one.purpose) == (next.round, &next.purpose));
    let told = of_step.map(|calls| format!("{} {}", calls[0].purpose, calls.len()));
    told.skip(2).collect::<Vec<_>>().join(", ")
}

/// What an expert was asked for at a step.
fn asked<'a>(calls: &'a [CallLine], agent: &str, purpose: &str, round: u32) -> &'a str {
    let is_it =
        |call: &&CallLine| (&*call.agent, &*call.purpose, call.round) == (agent, purpose, round);
    &calls.iter().find(is_it).unwrap().messages[1].content
}

#[test]
fn where_nobody_wants_to_talk_the_first_opinions_are_decided_on() {
    let (line, calls) = run(&[], discussed);
    assert_eq!(course(&calls), "opinion 5, summary 1, wish 5, decision 1");
    assert_eq!((line.answer.as_str(), line.rounds.len(), line.team_confidence), ("D", 1, 0.0));
    let decision = user(&calls, "moderator", "decision");
    assert!(decision.contains("the summary at 0") && decision.contains("Ee\nAnswer: B\n"));
    let wish = asked(&calls, "expert-2", "wish", 1);
    assert!(wish.contains("Ea\nAnswer: B\nExplanation: for B"), "{wish}");
    assert!(wish.contains("1: Ea\n3: Ec\n4: Ed\n5: Ee\n") && wish.contains("since:\n\nnothing\n"));
    assert!(calls.last().unwrap().messages[0].content.contains("experts have discussed"));
}

#[test]
fn a_comment_reaches_whom_it_is_meant_for_and_a_silent_turn_ends_the_debate() {
    let (line, calls) = run(&[], |key| match (key.purpose.as_str(), key.round) {
        ("wish", 1) if key.agent == "expert-1" => to(&[2, 3]),
        ("wish", 2) if key.agent == "expert-3" => to(&[1]),
        _ => discussed(key),
    });
    let turns = "wish 5, comment 1, wish 5, comment 1, wish 5";
    assert_eq!(course(&calls), format!("opinion 5, summary 1, {turns}, opinion 5, decision 1"));
    assert!(asked(&calls, "expert-1", "comment", 1).contains("talk to:\n2: Eb\n3: Ec\n"));
    let heard = |agent: &str, purpose: &str, round: u32| {
        let text = asked(&calls, agent, purpose, round);
        (text.contains("Ea: expert-1 at 1"), text.contains("Ec: expert-3 at 2"))
    };
    assert_eq!(heard("expert-2", "wish", 2), (true, false));
    assert_eq!(heard("expert-1", "wish", 3), (false, true));
    assert_eq!(heard("expert-3", "opinion", 4), (true, false));
    assert_eq!(heard("expert-4", "opinion", 4), (false, false));
    let rounds = line.rounds.iter().map(|round| (round.round, round.stage, &*round.aggregate));
    let expected = [(0, Stage::Initial, "B"), (4, Stage::Round, "C")];
    assert_eq!(rounds.collect::<Vec<_>>(), expected);
    assert_eq!(line.rounds[1].brief, "the summary at 0");
    assert!(user(&calls, "moderator", "decision").contains("Ea\nAnswer: C\n"));
}

#[test]
fn a_debate_that_never_falls_silent_has_all_its_calls() {
    let pairs = ["max_rounds=2", "max_turns=2"];
    let (line, calls) = run(&pairs, |key| match key.purpose.as_str() {
        "wish" => to(&[1, 2, 3, 4, 5]),
        _ => discussed(key),
    });
    let round = "summary 1, wish 5, comment 5, wish 5, comment 5, opinion 5";
    assert_eq!(course(&calls), format!("opinion 5, {round}, {round}, decision 1"));
    let mut all = vec!["form=original"];
    all.extend(pairs);
    let most = SystemConfig::parse("mdagents", &all).unwrap().max_calls();
    assert_eq!((calls.len() as u32, line.rounds.len()), (most, 3));
    // What was said before an answer is not said again after it.
    let wish = asked(&calls, "expert-1", "wish", 4);
    assert!(wish.contains("nothing") && wish.contains("Answer: C") && !wish.contains("at 1"));
    assert!(!asked(&calls, "expert-1", "wish", 2).contains("expert-1 at 1"));
    assert!(asked(&calls, "expert-1", "wish", 2).contains("expert-2 at 1"));
    assert!(user(&calls, "moderator", "decision").contains("the summary at 3"));
}

#[test]
fn what_cannot_be_read_talks_to_nobody_and_casts_no_vote() {
    let (line, calls) = run(&[], |key| match (key.purpose.as_str(), key.agent.as_str()) {
        ("wish", "expert-2") => to(&[2]),
        ("wish", _) => "Perhaps.".to_owned(),
        ("opinion", "expert-1") => "hm".to_owned(),
        ("decision", _) => "hm".to_owned(),
        _ => discussed(key),
    });
    assert_eq!(course(&calls), "opinion 5, summary 1, wish 5, decision 1");
    assert_eq!(line.rounds[0].answers, ["", "B", "B", "B", "B"]);
    assert_eq!((line.answer.as_str(), line.correct), ("", Some(false)));
    let wish = |agent: &str| {
        let call = calls.iter().find(|call| call.purpose == "wish" && call.agent == agent);
        call.map(|call| (call.parse, call.record.as_value().clone())).unwrap()
    };
    let assumed = serde_json::json!({"assumed": {"talk": false, "experts": []}});
    assert_eq!(wish("expert-1"), (Parse::Unread, assumed));
    assert_eq!(wish("expert-2").0, Parse::Ok);
    // A comment without words is no news.
    let (_, calls) = run(&["max_rounds=1", "max_turns=1"], |key| match key.purpose.as_str() {
        "wish" => to(&[1, 2]),
        "comment" => String::new(),
        _ => discussed(key),
    });
    assert!(asked(&calls, "expert-1", "opinion", 2).contains("said to you:\n\nnothing\n"));
}

#[test]
fn an_expert_alone_has_nobody_to_talk_to() {
    let (line, calls) = run(&[], |key| match key.purpose.as_str() {
        "recruitment" => r#"{"experts": ["Surgeon"]}"#.to_owned(),
        _ => discussed(key),
    });
    assert_eq!(course(&calls), "opinion 1, summary 1, decision 1");
    assert_eq!(line.answer, "D");
}

#[test]
fn the_final_review_sits_twice_and_sees_all_reports() {
    let script = |key: &CallKey| match (key.purpose.as_str(), key.agent.as_str(), key.round) {
        ("report", "team-3-lead", 1) => said("E"),
        ("report", "team-1-lead", _) => said("C"),
        ("decision", ..) => said("E"),
        _ => usual(key, "advanced"),
    };
    let (line, calls) = run(&[], script);
    assert_eq!(calls.len(), 19);
    assert_eq!((line.answer.as_str(), line.rounds.len()), ("E", 1));
    assert_eq!(line.rounds[0].answers, ["C", "B", "B"]);
    for (agent, purpose) in [
        ("team-3-lead", "request"),
        ("team-3-assistant-2", "investigation"),
        ("team-3-lead", "report"),
    ] {
        let text = asked(&calls, agent, purpose, 1);
        assert!(text.starts_with("Yours is the final review."), "{text}");
        assert!(text.contains("Initial Assessment Team (IAT)\nAnswer: C\n"), "{text}");
        assert!(!asked(&calls, agent, purpose, 0).contains("Yours is the final review."));
    }
    let last = calls.iter().find(|call| call.purpose == "report" && call.round == 1);
    assert_eq!(last.unwrap().stage, Stage::Aside);
    let decision = user(&calls, "moderator", "decision");
    assert_eq!(decision.matches("Last: Final Review and Decision Team (FRDT)").count(), 2);
    assert!(decision.contains("Answer: E\nReport: for E"));

    let (_, calls) = run(&[], |key| match key.purpose.as_str() {
        "recruitment" => TEAMS_SAID.replace("Final Review and Decision Team (FRDT)", "Surgery"),
        _ => usual(key, "advanced"),
    });
    assert_eq!(calls.len(), 15);
}

#[test]
fn answers_that_decide_have_temperature_0() {
    let warm = |pairs: &[&str], complexity: &'static str| {
        let (_, calls) = run(pairs, move |key| match key.purpose.as_str() {
            "wish" => to(&[]),
            _ => usual(key, complexity),
        });
        let cold = calls.iter().filter(|call| call.sampling.temperature == Some(0.0));
        cold.map(|call| call.purpose.clone()).collect::<Vec<_>>()
    };
    assert_eq!(warm(&[], "basic"), ["answer"]);
    assert_eq!(warm(&[], "intermediate"), ["decision"]);
    assert_eq!(warm(&[], "advanced"), ["decision"]);
    assert_eq!(warm(&["temperatures=model"], "advanced"), [""; 0]);
    let (_, calls) = run_with(&[], |key| usual(key, "basic"));
    assert!(calls.iter().all(|call| call.sampling.temperature != Some(0.0)));
}

#[test]
fn a_wish_names_experts_by_their_numbers() {
    let wish = |text: &str| {
        let (Wish { talk, experts }, parse) = read_wish(text, FinishReason::Stop, 5);
        assert_eq!(talk, !experts.is_empty());
        (experts, parse)
    };
    assert_eq!(wish(r#"{"talk": "no", "experts": [2]}"#), (vec![], Parse::Ok));
    assert_eq!(wish(r#"{"talk": "yes", "experts": [2, 5]}"#), (vec![2, 5], Parse::Ok));
    assert_eq!(
        wish(r#"{"talk": true, "experts": "Expert 3 (Surgeon), 4"}"#),
        (vec![3, 4], Parse::Ok)
    );
    assert_eq!(wish("talk: yes\nexperts: 2 and 4"), (vec![2, 4], Parse::Fallback));
    assert_eq!(wish("No."), (vec![], Parse::Fallback));
    for text in [
        r#"{"talk": "yes"}"#,
        r#"{"talk": "yes", "experts": [0, 6]}"#,
        r#"{"talk": "maybe", "experts": [2]}"#,
        r#"{"experts": [2]}"#,
        "Expert 2",
        "",
    ] {
        assert_eq!(wish(text), (vec![], Parse::Unread), "{text}");
    }
}
