//! What a model alone is asked, and the vote over what it says.

use crate::data::Question;
use crate::panel::scripted::Script;
use crate::record::{AnswerLine, CallLine, Parse, Stage};
use crate::systems::SystemConfig;
use crate::systems::scripted::{answer, question};

/// What a system makes of samples that say these texts, in order.
fn run(name: &str, said: &[&str]) -> (AnswerLine, Vec<CallLine>) {
    let config = SystemConfig::parse(name, &[format!("samples={}", said.len())]).unwrap();
    let said: Vec<String> = said.iter().map(|text| text.to_string()).collect();
    let script = Script::new(move |key, _| said[key.sample as usize].clone());
    answer(&config, &question(5), script)
}

fn vote(said: &[&str]) -> (String, bool) {
    let (item, _) = run("self-consistency", said);
    (item.answer, item.tie)
}

#[test]
fn every_method_makes_as_many_calls_as_it_has_samples() {
    for (name, calls) in
        [("zero-shot", 1), ("few-shot", 1), ("cot", 1), ("self-consistency", 5), ("cot-sc", 3)]
    {
        let config = SystemConfig::parse::<&str>(name, &[]).unwrap();
        let (item, made) = answer(&config, &question(5), Script::new(|_, _| "B".into()));
        assert_eq!((item.calls, made.len()), (calls, calls as usize), "{name}");
        let samples: Vec<u32> = made.iter().map(|call| call.sample).collect();
        assert_eq!(samples, (0..calls).collect::<Vec<_>>());
        assert_eq!((item.answer.as_str(), item.correct), ("B", Some(true)));
        assert_eq!((item.rounds.len(), item.rounds_run), (1, 0));
        assert_eq!(item.rounds[0].answers, vec!["B"; calls as usize]);
        assert_eq!(item.rounds[0].agents, vec!["solo"; calls as usize]);
    }
}

#[test]
fn samples_are_draws_of_one_prompt() {
    let (_, calls) = run("cot-sc", &["B", "B", "B"]);
    for call in &calls {
        assert_eq!((call.stage, call.purpose.as_str()), (Stage::Initial, "initial"));
        assert_eq!(call.messages, calls[0].messages);
    }
}

#[test]
fn the_most_common_letter_wins_and_of_equals_the_first_seen() {
    assert_eq!(vote(&["C", "B", "B"]), ("B".into(), false));
    assert_eq!(vote(&["C", "B", "B", "C", "D"]), ("C".into(), true));
    assert_eq!(vote(&["D", "B", "C"]), ("D".into(), true));
    // However it is written.
    assert_eq!(vote(&["C", "C", "B", "b", "(B)"]), ("B".into(), false));
}

#[test]
fn empty_answers_have_no_vote() {
    assert_eq!(vote(&["", "?", "D"]), ("D".into(), false));
    assert_eq!(vote(&["", "", ""]), ("".into(), false));
    let (item, _) = run("self-consistency", &["", "", ""]);
    assert_eq!((item.correct, item.team_confidence), (Some(false), None));
}

#[test]
fn a_letter_beyond_the_options_is_no_answer_and_its_letter_is_kept() {
    let (item, calls) = run("zero-shot", &["J"]);
    assert_eq!((item.answer.as_str(), item.correct), ("", Some(false)));
    assert_eq!(calls[0].record["not_an_option"], "J");
}

#[test]
fn the_team_is_as_sure_as_its_share_of_votes_and_says_why() {
    let said = [
        r#"{"Thought": "rash", "Answer": "B"}"#,
        r#"{"Thought": "fever", "Answer": "C"}"#,
        r#"{"Thought": "cough", "Answer": "B"}"#,
        "I refuse.",
    ];
    let (item, calls) = run("cot-sc", &said);
    assert_eq!(item.rounds[0].answers, ["B", "C", "B", ""]);
    assert_eq!((item.answer.as_str(), item.team_confidence), ("B", Some(0.5)));
    assert_eq!(item.rationale, "rash\ncough");
    assert_eq!(calls[1].record["thought"], "fever");
    assert_eq!(calls[3].parse, Parse::Unread);
}

fn user(name: &str) -> String {
    user_of(name, &question(3))
}

fn user_of(name: &str, question: &Question) -> String {
    let config = SystemConfig::parse::<&str>(name, &[]).unwrap();
    let (_, calls) = answer(&config, question, Script::new(|_, _| "B".into()));
    let sent = &calls[0].messages;
    let roles: Vec<&str> = sent.iter().map(|message| message.role.as_str()).collect();
    assert_eq!(roles, ["system", "user"]);
    sent[1].content.clone()
}

#[test]
fn options_stand_a_line_each_after_the_question() {
    let asked = "Which one {examples}?\n\nOptions:\nA: option A\nB: option B\nC: option C\n\n";
    for name in ["zero-shot", "few-shot", "cot"] {
        assert!(user(name).starts_with(asked), "{name}");
    }
}

#[test]
fn few_shot_is_zero_shot_and_two_examples_after_it() {
    let zero_shot = user("zero-shot");
    let few_shot = user("few-shot");
    let after = few_shot.strip_prefix(&zero_shot).unwrap();
    assert_eq!(after.matches("\nAnswer: ").count(), 2);
    assert!(zero_shot.ends_with("nothing else."), "{zero_shot}");
}

#[test]
fn examples_are_chosen_by_the_options() {
    let mut of_pubmedqa = question(3);
    for (option, text) in of_pubmedqa.options.iter_mut().zip(["Yes", "No", "Maybe"]) {
        option.text = text.to_owned();
    }
    let answers = |question: &Question| -> Vec<String> {
        let user = user_of("few-shot", question);
        let lines = user.lines();
        lines.filter_map(|line| line.strip_prefix("Answer: ")).map(str::to_owned).collect()
    };
    assert_eq!(answers(&question(5)), ["E", "A"]);
    assert_eq!(answers(&of_pubmedqa), ["B", "A"]);
}

#[test]
fn self_consistency_asks_as_zero_shot_and_cot_sc_as_cot() {
    let asked = |name| user(name);
    assert_eq!(asked("self-consistency"), asked("zero-shot"));
    assert_eq!(asked("cot-sc"), asked("cot"));
    assert!(asked("cot").contains("- \"Thought\": your reasoning"));
    assert_ne!(asked("cot"), asked("zero-shot"));
}
