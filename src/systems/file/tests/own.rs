//! Files of others: a debate with a judge, and what is said of files that are wrong.

use std::path::PathBuf;

use crate::diagnosis::Failure;
use crate::panel::scripted::Script;
use crate::record::{AnswerLine, CallLine, Stage};
use crate::systems::SystemConfig;
use crate::systems::scripted::{answer, check, note, question};

const DEBATE: &str = r#"takes = "questions"
agents = ["first", "second", "judge"]

[[stage]]
name = "opinion"
agents = ["first", "second"]
user = "{question}\n{options}\nReply with JSON: reason, answer."
fields = [{ key = "reason", is = "reason" }, { key = "answer", is = "answer" }]

[[stage]]
name = "debate"
when = "disagree"
rounds = 2
agents = ["first", "second"]
user = "You are the {agent}.\n{question}\n{options}\nSo far:\n{said}\nReply with JSON: reason, answer."
fields = [{ key = "reason", is = "reason" }, { key = "answer", is = "answer" }]

[[stage]]
name = "judge"
when = "disagree"
agents = ["judge"]
user = "judge.txt"
reply = "letter"
"#;
const JUDGE: &str = "{question}\n{options}\nTwo doctors say:\n{debate}\nReply with a letter.\n";

/// The system of a file of this text, with the judge's prompt beside it.
fn open(text: &str, pairs: &[&str]) -> Result<SystemConfig, Failure> {
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("debate.toml");
    fs_err::write(&path, text).unwrap();
    fs_err::write(directory.path().join("judge.txt"), JUDGE).unwrap();
    SystemConfig::open(&path, pairs)
}

/// A debate whose doctors say these letters in turn, the first first; and its calls.
fn debate(letters: &'static [&str]) -> (AnswerLine, Vec<CallLine>) {
    let config = open(DEBATE, &[]).unwrap();
    let script = Script::new(move |key, _| match key.agent.as_str() {
        "judge" => "E".to_owned(),
        agent => {
            let place = 2 * key.round as usize + usize::from(agent == "second");
            format!(r#"{{"reason": "because {place}", "answer": "{}"}}"#, letters[place])
        }
    });
    answer(&config, &question(5), script)
}

#[test]
fn who_agrees_is_done_and_who_debates_sees_what_was_said() {
    let (line, calls) = debate(&["B", "B"]);
    assert_eq!((line.answer.as_str(), calls.len(), line.team_confidence), ("B", 2, 1.0));
    let (line, calls) = debate(&["B", "C", "C", "C"]);
    assert_eq!((line.answer.as_str(), calls.len(), line.rounds.len()), ("C", 4, 2));
    let prompt = &calls.last().unwrap().messages[0].content;
    for part in ["first: because 0 Answer: B\n\nsecond: because 1 Answer: C", "You are the second."]
    {
        assert!(prompt.contains(part), "{prompt}");
    }
}

#[test]
fn a_judge_decides_for_two_who_never_agree() {
    let (line, calls) = debate(&["B", "C", "B", "C", "D", "C"]);
    assert_eq!((line.answer.as_str(), calls.len(), line.calls), ("E", 7, 7));
    let stages: Vec<Stage> = line.rounds.iter().map(|round| round.stage).collect();
    assert_eq!(stages, [Stage::Initial, Stage::Round, Stage::Round, Stage::Final]);
    assert_eq!(calls[6].purpose, "judge");
    // The last round alone, and without the earlier ones.
    let prompt = &calls[6].messages[0].content;
    assert!(
        prompt.contains("first: because 4 Answer: D") && !prompt.contains("because 2"),
        "{prompt}"
    );
    assert!(prompt.ends_with("Reply with a letter."), "{prompt}");
}

#[test]
fn a_plan_keeps_the_file_and_what_stood_beside_it() {
    let config = open(DEBATE, &["max_tokens=50"]).unwrap();
    let kept = config.file().unwrap();
    assert_eq!((kept.name.as_str(), kept.beside.len()), ("debate", 1));
    let again = SystemConfig::from_file(kept, &config.table).unwrap();
    assert_eq!(again, config);
    let other = open(&DEBATE.replace("Reply with JSON", "Answer with JSON"), &["max_tokens=50"]);
    assert_ne!(other.unwrap(), config);
    assert_eq!(SystemConfig::named("cot").unwrap().file(), None);
    assert_eq!((config.slots().len(), config.max_calls()), (3, 2 + 4 + 1));
}

#[test]
fn confidences_weigh_where_a_file_says_so() {
    let text = r#"takes = "questions"
agents = ["a", "b", "c"]
[[stage]]
name = "answer"
vote = "confidence"
user = "{question} {options}"
fields = [{ key = "answer", is = "answer" }, { key = "sure", is = "confidence" }]
"#;
    let script = Script::new(|key, _| match key.agent.as_str() {
        "a" => r#"{"answer": "B", "sure": 0.9}"#.to_owned(),
        _ => r#"{"answer": "C", "sure": "30 %"}"#.to_owned(),
    });
    let (line, _) = answer(&open(text, &[]).unwrap(), &question(5), script);
    assert_eq!((line.answer.as_str(), line.team_confidence), ("B", 0.9));
    assert_eq!(line.rounds[0].confidences, [0.9, 0.3, 0.3]);
}

#[test]
fn a_note_is_checked_by_a_file_too() {
    let text = r#"takes = "notes"
[settings]
samples = 3
tone = ["plain", "stern"]
[texts.how]
by = "tone"
plain = "Be plain."
stern = "Be stern."
[[stage]]
name = "answer"
system = "{how}"
user = "{note}"
fields = [{ key = "error", is = "flag", words = ["no", "yes"] }, { key = "sentence", is = "sentence-id" }]
"#;
    let config = open(text, &["tone=stern"]).unwrap();
    let script = Script::new(|_, _| r#"{"error": "yes", "sentence": 1}"#.to_owned());
    let (line, calls) = check(&config, &note(), script);
    assert_eq!((line.flag.said(), line.sentence_id, calls.len()), (Some(true), Some(1), 3));
    assert_eq!(calls[0].messages[0].content, "Be stern.");
    let refused = open(text, &["tone=loud"]).err().unwrap();
    assert!(refused.to_string().contains("plain or stern"), "{refused}");
    let refused = open(text, &["shots=2"]).err().unwrap();
    assert!(refused.to_string().contains("no setting shots"), "{refused}");
}

#[test]
fn faults_are_told_with_their_line_and_key() {
    for (old, new, told) in [
        ("takes", "take", "line 1: unknown field `take`"),
        ("\"opinion\"", "\"opinion\"\nname = 3", "line 6: duplicate key"),
        ("when = \"disagree\"", "when = \"sometimes\"", "line 12: unknown variant `sometimes`"),
        (
            "{question}\\n{options}\\nReply",
            "{qestion}\\n{options}\\nReply",
            "line 7: stage opinion, user: nothing is named {qestion}",
        ),
        (
            "{question}\\n{options}\\nReply",
            "{question}\\nReply",
            "line 7: stage opinion, user: the prompt does not contain {options}",
        ),
        (
            "agents = [\"judge\"]",
            "agents = [\"judges\"]",
            "line 21: stage judge, agents: there is no such agent",
        ),
        ("rounds = 2", "rounds = 0", "line 13: stage debate, rounds: a number is out of range"),
        (
            "name = \"judge\"",
            "name = \"debate\"",
            "line 11: stage debate, name: another stage or text has this name",
        ),
        ("\"second\", \"judge\"]", "\"first\", \"judge\"]", "line 2: agents: first is named twice"),
        ("\"second\", \"judge\"]", "\"a b\", \"judge\"]", "line 2: agents: no agent can be named"),
        ("[\"first\", \"second\", \"judge\"]", "[]", "line 2: agents: there must be 1 to 100"),
        ("judge.txt", "../judge.txt", "the prompt ../judge.txt is not beside it"),
        ("judge.txt", "/etc/judge.txt", "the prompt /etc/judge.txt is not beside it"),
        ("reply = \"letter\"", "reply = \"medec\"", "line 23: stage judge, reply: its fields"),
        (
            "is = \"answer\" }]\n\n[[stage]]\nname = \"debate\"",
            "is = \"flag\" }]\n\n[[stage]]\nname = \"debate\"",
            "line 5: stage opinion, reply: its fields",
        ),
        ("judge.txt", "judges.txt", "judges.txt`: "),
        ("takes = \"questions\"", "takes = \"questions\"\nsettings = { shots = 99 }", "settings: "),
    ] {
        let text = DEBATE.replacen(old, new, 1);
        assert_ne!(text, DEBATE, "{old}");
        let refused = open(&text, &[]).err().unwrap_or_else(|| panic!("{new} is taken"));
        assert!(refused.to_string().contains(told), "{refused}, not {told}");
        assert!(refused.hint().is_some_and(|hint| !hint.is_empty()), "{refused}");
    }
}
