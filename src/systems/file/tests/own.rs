//! Files of others: a debate with a judge, and what is said of files that are wrong.

use std::path::PathBuf;

use crate::diagnosis::Failure;
use crate::panel::scripted::Script;
use crate::record::{AnswerLine, CallLine, Stage};
use crate::systems::scripted::{answer, check, note, question};
use crate::systems::{SystemConfig, Which, settings};

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
    let given = settings::pairs(pairs)?.into_iter().map(|(key, value)| (key, value.into()));
    SystemConfig::with(Which::read(path.to_str().unwrap())?.entry()?, &given.collect())
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
    assert_eq!((line.answer.as_str(), calls.len(), line.team_confidence), ("B", 2, Some(1.0)));
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
    let again = Which::File(kept.clone()).entry().unwrap();
    let again = SystemConfig::with(again, &config.table).unwrap();
    assert_eq!(again, config);
    let other = open(&DEBATE.replace("Reply with JSON", "Answer with JSON"), &["max_tokens=50"]);
    assert_ne!(other.unwrap(), config);
    assert_eq!(SystemConfig::parse::<&str>("cot", &[]).unwrap().file(), None);
    assert_eq!((config.slots().len(), config.max_calls()), (3, 2 + 4 + 1));
}

#[test]
fn a_note_is_checked_by_a_file_too() {
    let text = r#"takes = "notes"
[settings]
samples = 3
[texts]
how = "Be stern."
[[stage]]
name = "answer"
system = "{how}"
user = "{note}"
fields = [{ key = "error", is = "flag", words = ["no", "yes"] }, { key = "sentence", is = "sentence-id" }]
"#;
    let config = open(text, &[]).unwrap();
    let script = Script::new(|_, _| r#"{"error": "yes", "sentence": 1}"#.to_owned());
    let (line, calls) = check(&config, &note(), script);
    assert_eq!((line.flag.said(), line.sentence_id, calls.len()), (Some(true), Some(1), 3));
    assert_eq!(calls[0].messages[0].content, "Be stern.");
    let listed = text.replace("samples = 3", "tone = \"stern\"");
    let refused = open(&listed, &[]).err().unwrap();
    assert!(refused.to_string().contains("no setting tone"), "{refused}");
    let refused = open(text, &["shots=2"]).err().unwrap();
    assert!(refused.to_string().contains("no setting shots"), "{refused}");
}

#[test]
fn faults_are_told_with_their_line_or_their_stage_and_key() {
    for (old, new, told) in [
        ("takes", "take", "line 1: unknown field `take`"),
        ("\"opinion\"", "\"opinion\"\nname = 3", "line 6: duplicate key"),
        ("when = \"disagree\"", "when = \"sometimes\"", "line 12: unknown variant `sometimes`"),
        (
            "{question}\\n{options}\\nReply",
            "{qestion}\\n{options}\\nReply",
            "stage opinion: user: nothing is named {qestion}",
        ),
        (
            "{question}\\n{options}\\nReply",
            "{options}\\nReply",
            "stage opinion: user: it shows nothing of the item",
        ),
        (
            "agents = [\"judge\"]",
            "agents = [\"judges\"]",
            "stage judge: agents: there is no such agent",
        ),
        ("rounds = 2", "rounds = 0", "line 13: expected a whole number from 1 to 100"),
        (
            "name = \"judge\"",
            "name = \"debate\"",
            "stage debate: name: prompts quote something else by this name",
        ),
        ("\"second\", \"judge\"]", "\"first\", \"judge\"]", "agents: first is named twice"),
        ("[\"first\", \"second\", \"judge\"]", "[]", "agents: at least one is needed"),
        ("judge.txt", "../judge.txt", "../judge.txt leads out of"),
        ("judge.txt", "/etc/judge.txt", "/etc/judge.txt leads out of"),
        ("judge.txt", "judges.txt", "judges.txt`: "),
        ("rounds = 2", "rounds = 2\nfrom = \"opinion\"", "unknown field `from`"),
        (
            "{ key = \"reason\", is = \"reason\" }",
            "{ key = \"error\", is = \"flag\" }",
            "stage opinion: fields: a flag has two words",
        ),
        ("So far", "{passages}", "stage debate: user: nothing is named {passages} here"),
        ("takes = \"questions\"", "takes = \"questions\"\nsettings = { shots = 99 }", "settings: "),
        ("rounds = 2", "tries = 0", "line 13: expected a whole number from 1 to 100"),
        ("rounds = 2", "temperature = -1.0", "stage debate: temperature: must be from 0 to 2"),
    ] {
        let text = DEBATE.replacen(old, new, 1);
        assert_ne!(text, DEBATE, "{old}");
        let refused = open(&text, &[]).err().unwrap_or_else(|| panic!("{new} is taken"));
        assert!(refused.to_string().contains(told), "{refused}, not {told}");
        assert!(refused.hint().is_some_and(|hint| !hint.is_empty()), "{refused}");
    }
}
