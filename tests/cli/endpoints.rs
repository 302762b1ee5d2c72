//! Every system against an endpoint that writes as models write: what goes over the wire, and what is read from what comes back.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;

use serde_json::{Value, json};
use wardround::experiment::contents::Contents;
use wardround::record::Parse;

use crate::binary::Scratch;
use crate::remote::{said, serve};

/// A record that is one of any system on questions; its answer is B.
fn record() -> Value {
    let member = json!({"role": "Cardiologist", "expertise": "hearts", "is_lead": true});
    let other = json!({"role": "Nurse", "expertise": "care"});
    let team = |goal: &str| json!({"group_id": goal, "goal": goal, "members": [member, other]});
    json!({
        "cot": ["one", "two", "three"], "thought": "t", "explanation": "e", "reasoning": "r", "answer": "B", "confidence": 0.9,
        "complexity": "advanced", "teams": [team("IAT"), team("Diagnostics"), team("FRDT")],
        "agree": "yes", "reason": "fits", "fields": ["Cardiology", "Genetics", "Pulmonology"],
        "questions": ["How long?", "How high?", "Since when?"],
    })
}

/// The record as models of several kinds write it.
fn styles() -> Vec<(&'static str, String)> {
    let record = record().to_string();
    let single = record.replace('"', "'").replace("true", "True");
    vec![
        ("as asked for", record.clone()),
        ("fenced", format!("Here is my answer:\n```json\n{record}\n```\nI hope it helps.")),
        ("in single quotes", single),
        ("after thinking", format!("<think>Is it A? No.</think>\n{record}")),
        ("cut off", record[..record.len() - 1].to_owned()),
    ]
}

const TEXT: &str = "The answer is (B), and I would ask for more: INQUIRY.";

/// By the purpose of each call, whether JSON mode was asked for; what the run answered; how calls were read.
type Told = (BTreeMap<String, bool>, String, Vec<Parse>);

fn run(system: &str, style: &str) -> Told {
    let scratch = Scratch::new();
    scratch.questions(1);
    let (tell, asked) = channel();
    let style = style.to_owned();
    let member = serve(move |request| {
        let is_json = request["response_format"] == json!({"type": "json_object"});
        assert!(is_json || request.get("response_format").is_none(), "{request}");
        assert_eq!(request["max_tokens"], 4096);
        assert!(
            request.get("structured_outputs").is_none() && request.get("temperature").is_none()
        );
        let user = request["messages"].as_array().unwrap().last().unwrap();
        tell.send((user["content"].as_str().unwrap().to_owned(), is_json)).unwrap();
        said(if is_json { &style } else { TEXT })
    });
    scratch
        .wardround(format!(
            "run {system} --decoding json --data questions.jsonl --format mcq --panel {member} --out out"
        ))
        .succeeded();
    let contents = Contents::read(&scratch.path("out")).unwrap();
    let asked: Vec<(String, bool)> = asked.try_iter().collect();
    let mut purposes = BTreeMap::new();
    for call in &contents.calls.records {
        let user = &call.messages.last().unwrap().content;
        let is_json = asked.iter().find(|(content, _)| content == user).unwrap().1;
        assert_eq!(*purposes.entry(call.purpose.clone()).or_insert(is_json), is_json);
        assert_eq!((call.sampling.constrained, call.sampling.max_tokens), (is_json, Some(4096)));
    }
    let answer = contents.answers().into_values().next().unwrap().answer.clone();
    let parses = contents.calls.records.iter().map(|call| call.parse);
    (purposes, answer, parses.collect())
}

#[test]
fn json_mode_goes_with_the_calls_that_have_it_in_the_harness() {
    for (system, in_json, in_text) in [
        ("zero-shot", &[][..], &["initial"][..]),
        ("few-shot", &[], &["initial"]),
        ("self-consistency", &[], &["initial"]),
        ("cot", &["initial"], &[]),
        ("cot-sc", &["initial"], &[]),
        (
            "healthcareagent",
            &["inquiry", "preliminary", "final"],
            &["planner", "ethics", "emergency", "error"],
        ),
        ("medagents", &["specialties", "analysis", "synthesis", "review", "decision"], &[]),
        (
            "mdagents",
            &["complexity", "recruitment", "report", "decision"],
            &["request", "investigation"],
        ),
        ("reconcile", &["initial", "discussion"], &[]),
        ("medmad", &["initial"], &[]),
    ] {
        let (purposes, answer, _) = run(system, &record().to_string());
        let expected = in_json.iter().map(|purpose| ((*purpose).to_owned(), true));
        let expected = expected.chain(in_text.iter().map(|purpose| ((*purpose).to_owned(), false)));
        assert_eq!(purposes, expected.collect(), "{system}");
        assert_eq!(answer, "B", "{system}");
    }
}

#[test]
fn every_way_of_writing_a_record_ends_with_its_letter() {
    for (style, text) in styles() {
        for system in ["cot", "healthcareagent", "medagents", "mdagents", "reconcile", "medmad"] {
            let (_, answer, parses) = run(system, &text);
            assert_eq!(answer, "B", "{system}, {style}");
            assert!(!parses.contains(&Parse::Unread), "{system}, {style}: {parses:?}");
        }
    }
}

/// A note whose second sentence is wrong.
const NOTE: &str = r#"{"id": "n", "text": "She has a sore throat. The cause is found to be Escherichia coli.", "gold": {"flag": 1, "sentence_id": 1, "correction": "The cause is found to be Streptococcus pyogenes."}}"#;

#[test]
fn notes_are_read_as_models_write_of_them() {
    const WRONG: &str = "The cause is found to be Escherichia coli.";
    const RIGHT: &str = "The cause is found to be Streptococcus pyogenes.";
    for (detection, flag) in [
        (
            "INCORRECT\n<confidence>95</confidence>\n\nThe correct cause is Streptococcus pyogenes.",
            Some(true),
        ),
        ("**Verdict: INCORRECT**, since no test for it was made.", Some(true)),
        ("The note is not correct.", Some(true)),
        ("<think>INCORRECT?</think>CORRECT <confidence>80</confidence>", Some(false)),
        ("No error was found in the note.", Some(false)),
        ("I cannot help with that.", None),
    ] {
        let scratch = Scratch::new();
        scratch.write("notes.jsonl", NOTE);
        let member = serve(move |request| {
            assert!(request.get("response_format").is_none(), "{request}");
            let user = request["messages"][0]["content"].as_str().unwrap();
            said(&match user {
                user if user.contains("Corrected Sentence:") => {
                    format!("**Corrected Sentence:** {RIGHT}")
                }
                user if user.contains("quality assurance") => {
                    format!("The sentence that is wrong is:\n<result>{WRONG}</result>")
                }
                _ => detection.to_owned(),
            })
        });
        let run = format!(
            "run medguards --decoding json --data notes.jsonl --format notes --panel {member} --out out"
        );
        scratch.wardround(run).finished();
        let contents = Contents::read(&scratch.path("out")).unwrap();
        let note = contents.notes().into_values().next().unwrap();
        assert_eq!(note.flag.said(), flag, "{detection}");
        let is_flagged = flag == Some(true);
        assert_eq!(note.sentence_id, is_flagged.then_some(1), "{detection}");
        assert_eq!(note.correction.as_deref(), is_flagged.then_some(RIGHT), "{detection}");
    }
    for (said_of_it, flag) in [
        (format!("**1** {RIGHT}"), Some(true)),
        (format!("Sentence 1: {RIGHT}"), Some(true)),
        (format!("INCORRECT\n1 {RIGHT}"), Some(true)),
        ("The text is correct.".to_owned(), Some(false)),
        ("It depends on the test.".to_owned(), None),
    ] {
        let scratch = Scratch::new();
        scratch.write("notes.jsonl", NOTE);
        let reply = said_of_it.clone();
        let member = serve(move |_| said(&reply));
        scratch
            .wardround(format!("run base-llm --decoding text --data notes.jsonl --format notes --panel {member} --out out"))
            .finished();
        let contents = Contents::read(&scratch.path("out")).unwrap();
        let note = contents.notes().into_values().next().unwrap();
        assert_eq!(note.flag.said(), flag, "{said_of_it}");
        let correction = (flag == Some(true)).then_some(RIGHT);
        assert_eq!(note.correction.as_deref(), correction, "{said_of_it}");
    }
}
