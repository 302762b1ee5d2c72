//! Every panel on questions against endpoints that follow a script, an endpoint a seat, so that all branches of its protocol are taken: its agents
//! agree at once, after a round or never, a reply cannot be read, a vote is tied. An independent script makes the same of the calls.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;

use regex::Regex;
use serde_json::{Value, json};
use wardround::experiment::contents::Contents;
use wardround::record::{ItemLine, Reply};

use crate::binary::Scratch;
use crate::remote::{said, serve};
use crate::tampering::seal_anew;

/// A call: to whom, by the place in the panel, on which case, how often it was asked about it before, and what.
#[derive(Clone, Copy)]
struct Asked<'a> {
    seat: usize,
    case: usize,
    before: usize,
    text: &'a str,
}

struct Protocol {
    /// With its settings.
    run: &'static str,
    seats: usize,
    says: fn(Asked<'_>) -> String,
    /// Of case 1, on which all agree at once, 2 after a round, 3 never, 4 with replies that cannot be read, 5 a tie: the answer and the calls.
    outcomes: [(&'static str, u32); 5],
    /// Agents without a place of their own in `--panel`, which have the last seats: one of them decides, and no vote does.
    beside: &'static [&'static str],
}

const PROTOCOLS: [Protocol; 2] = [
    Protocol {
        run: "reconcile --set max_rounds=2",
        seats: 3,
        says: reconcile,
        outcomes: [("B", 6), ("B", 6), ("C", 9), ("B", 6), ("A", 9)],
        beside: &[],
    },
    Protocol {
        run: "mdagents",
        seats: 5,
        says: mdagents,
        outcomes: [("B", 2), ("B", 8), ("C", 8), ("", 8), ("A", 15)],
        beside: &["moderator", "recruiter"],
    },
];

/// What nobody can read.
const MUMBLE: &str = "hm";

/// A record with this answer, under every key that a prompt asks for, of an agent that agrees or does not.
fn record(asked: Asked<'_>, answer: &str, agrees: bool) -> String {
    sure(asked, answer, agrees, 0.85)
}

fn sure(
    Asked { case, before, .. }: Asked<'_>,
    answer: &str,
    agrees: bool,
    confidence: f64,
) -> String {
    let why = format!("Of case {case}, said {before} times.");
    let word = if agrees { "yes" } else { "no" };
    let mut record = json!({"confidence": confidence});
    for key in ["explanation", "summary", "reason", "reasoning", "thought", "feedback"] {
        record[key] = json!(why);
    }
    record["agree"] = json!(word);
    record["answer"] = json!(answer);
    record.to_string()
}

/// The letter of a seat.
fn of(letters: &str, seat: usize) -> &str {
    &letters[seat..=seat]
}

fn reconcile(asked: Asked<'_>) -> String {
    let Asked { seat, case, before, .. } = asked;
    match (case, seat) {
        (2, 0) if before == 0 => sure(asked, "A", false, 0.4),
        (3, _) => sure(asked, of("AAC", seat), false, [0.5, 0.6, 0.95][seat]),
        (4, 1) | (5, 2) => MUMBLE.to_owned(),
        (5, _) => sure(asked, of("AD", seat), false, [0.82, 0.89][seat]),
        _ => record(asked, "B", true),
    }
}

/// Case 1 is basic, and 5 for teams. The moderator sits fourth, the recruiter last.
fn mdagents(asked: Asked<'_>) -> String {
    let Asked { seat, case, text, .. } = asked;
    let asks = |part: &str| text.contains(part);
    match (seat, case) {
        (3 | 4, 4) => MUMBLE.to_owned(),
        (3, _) if asks("How complex") => {
            let level = ["basic", "intermediate", "intermediate", "", "advanced"][case - 1];
            format!(r#"{{"complexity": "{level}"}}"#)
        }
        (3, _) => record(asked, of(".BC.A", case - 1), true),
        (4, 5) => {
            let team =
                |goal: &str| json!({"goal": goal, "members": ["Doctor", "Nurse", "Pharmacist"]});
            json!({"teams": [team("IAT"), team("Surgery"), team("FRDT")]}).to_string()
        }
        (4, _) => r#"{"experts": ["Ea", "Eb", "Ec", "Ed", "Ee"]}"#.to_owned(),
        (_, 4) if asks("You are a Radiologist") => MUMBLE.to_owned(),
        _ => record(asked, "B", true),
    }
}

/// The endpoint of a seat, which counts what it is asked of each case; every prompt names its case.
fn endpoint(says: fn(Asked<'_>) -> String, seat: usize) -> String {
    let counts: Mutex<BTreeMap<usize, usize>> = Mutex::default();
    let named = Regex::new(r"case (\d)").unwrap();
    serve(move |request: &Value| {
        let messages = request["messages"].as_array().unwrap().iter();
        let text: String = messages.map(|one| one["content"].as_str().unwrap()).collect();
        let case: usize = named.captures(&text).unwrap()[1].parse().unwrap();
        let mut counts = counts.lock().unwrap();
        let count = counts.entry(case).or_default();
        *count += 1;
        said(&says(Asked { seat, case, before: *count - 1, text: &text }))
    })
}

/// Runs a protocol on the five cases, as `out`.
fn drive(protocol: &Protocol) -> Scratch {
    let scratch = Scratch::new();
    let row = |case: usize| {
        let options = ["aspirin", "codeine", "heparin", "insulin"];
        let question = format!("Which drug is given in case {case}?");
        let row = json!({"id": format!("q{case}"), "question": question, "options": options, "answer": "B"});
        format!("{row}\n")
    };
    scratch.write("questions.jsonl", (1..=5).map(row).collect::<String>());
    let seats: Vec<String> =
        (0..protocol.seats).map(|seat| endpoint(protocol.says, seat)).collect();
    let (panel, others) = seats.split_at(protocol.seats - protocol.beside.len());
    let others = protocol.beside.iter().zip(others);
    let others: String =
        others.map(|(agent, model)| format!(" --set slot.{agent}={model}")).collect();
    let (run, panel) = (protocol.run, panel.join(","));
    scratch
        .wardround(format!(
            "run {run} --data questions.jsonl --format mcq --panel {panel}{others} --quiet --out out"
        ))
        .succeeded();
    scratch.wardround("verify out").succeeded();
    scratch
}

#[test]
fn every_branch_of_a_protocol_is_taken() {
    for protocol in &PROTOCOLS {
        let scratch = drive(protocol);
        let contents = Contents::read(&scratch.path("out")).unwrap();
        let answers = contents.answers();
        let found = answers.values().map(|one| (one.answer.as_str(), one.calls));
        assert_eq!(found.collect::<Vec<_>>(), protocol.outcomes, "{}", protocol.run);
        let ties: Vec<bool> = answers.values().map(|one| one.tie).collect();
        assert_eq!(
            ties,
            [false, false, false, false, protocol.beside.is_empty()],
            "{}",
            protocol.run
        );
        let unread = |item: &str| {
            let of_item = contents.calls.records.iter().filter(|call| call.item == item);
            of_item.filter(|call| call.text == MUMBLE && call.basis().is_none()).count()
        };
        assert!(unread("q1") == 0 && unread("q4") > 0, "{}", protocol.run);
    }
}

fn recompute(scratch: &Scratch) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recompute.py");
    // Without writing its bytecode into the sources.
    let mut python = Command::new("python3");
    python.arg("-B").arg(script).arg(scratch.path("out")).output().unwrap()
}

#[test]
#[ignore = "needs python3 of 3.11 or later"]
fn with_python_every_protocols_outcomes_are_recomputed_and_a_changed_vote_is_found() {
    for protocol in &PROTOCOLS {
        let scratch = drive(protocol);
        let out = scratch.path("out");
        let output = recompute(&scratch);
        let told = String::from_utf8_lossy(&output.stdout);
        let calls: u32 = protocol.outcomes.iter().map(|(_, calls)| calls).sum();
        let expected = format!("5 items and {calls} calls recomputed, no difference");
        assert_eq!(told.trim(), expected, "{}: {output:?}", protocol.run);

        let sound = Contents::read(&out).unwrap();
        let differs = |contents: &Contents, part: &str| {
            seal_anew(contents, &out);
            let output = recompute(&scratch);
            let told = String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(1), "{}: {output:?}", protocol.run);
            assert!(told.contains(part), "{}: no {part:?} in {told}", protocol.run);
        };
        // An outcome that its votes do not make.
        for place in 0..sound.items.records.len() {
            let mut contents = sound.clone();
            let ItemLine::Answer(item) = &mut contents.items.records[place] else { panic!() };
            item.answer = "D".to_owned();
            item.correct = Some(false);
            let is_changed = sound.items.records[place] != contents.items.records[place];
            if is_changed {
                differs(&contents, "answer and tie: found ('D', ");
            }
        }
        // A vote, and what was read of it, that the outcome is not made of.
        let mut contents = sound.clone();
        let is_vote = |record: &Reply| record.answer() == "B";
        let vote = contents.calls.records.iter_mut().find(|call| is_vote(&call.record)).unwrap();
        vote.text = vote.text.replace(r#"answer":"B""#, r#"answer":"D""#);
        differs(&contents, "record.answer: found 'B', recomputed 'D'");
        let vote = contents.calls.records.iter_mut().find(|call| is_vote(&call.record)).unwrap();
        let mut record = serde_json::to_value(&vote.record).unwrap();
        record["answer"] = json!("D");
        vote.record = Reply::of(record);
        differs(&contents, "item q");
    }
}
