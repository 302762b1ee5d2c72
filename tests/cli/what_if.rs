//! `what-if`: against runs that were asked so from the beginning, and that it leaves the run as it is.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use wardround::experiment::contents::Contents;
use wardround::model::Family;
use wardround::record::{CallKey, CallLine};
use wardround::synth::{Recipe, Shape, write_checkpoint};

use crate::binary::{Outcome, Scratch};

/// Each of these sentences in a question, beside `Which one?`.
const SENTENCES: [&str; 2] = ["He has a fever.", "She is 50 years old."];

/// Questions with some of the sentences.
fn questions(scratch: &Scratch, file: &str, sentences: &[&str]) {
    let row = |id: &str| {
        let question = format!("{} Which one, {id}?", sentences.join(" "));
        format!(
            "{}\n",
            serde_json::json!({"id": id, "question": question, "options": ["one", "two", "three"], "answer": "B"})
        )
    };
    scratch.write(file, ["q1", "q2"].map(row).concat());
}

/// `run` with a debate on these questions, and what is asked of it.
fn ran(scratch: &Scratch, out: &str, more: &str) {
    let flags = "--panel llama --set t_max=1 --set always_debate=on";
    scratch.run(format!("{flags} --out {out} {more}")).succeeded();
}

fn asked(scratch: &Scratch, more: &str) -> (Outcome, Value) {
    let asked = || scratch.wardround(format!("what-if run {more} --out out"));
    if scratch.path("out").exists() {
        asked().refused(2, &["out exists and is not empty"]);
        std::fs::remove_dir_all(scratch.path("out")).unwrap();
    }
    let outcome = asked();
    outcome.succeeded();
    let json = std::fs::read(scratch.path("out/what-if.json")).unwrap();
    (outcome, serde_json::from_slice(&json).unwrap())
}

fn calls(run: &Path) -> BTreeMap<CallKey, CallLine> {
    let calls = Contents::read(run).unwrap().calls.records.into_iter();
    calls.map(|call| (call.key(), call)).collect()
}

/// Whether the calls that are new are those of another run, and every other of that run's is the run's own; the answers too.
#[track_caller]
fn assert_as_if(scratch: &Scratch, found: &Value, other: &str) {
    let (own, other_calls) = (calls(&scratch.path("run")), calls(&scratch.path(other)));
    let items = found["items"].as_array().unwrap();
    let new = items.iter().flat_map(|item| item["calls"].as_array().unwrap());
    let new = new.map(|call| serde_json::from_value::<CallLine>(call.clone()).unwrap());
    let new: BTreeMap<CallKey, CallLine> = new.map(|call| (call.key(), call)).collect();
    assert!(!new.is_empty());
    for (key, call) in &other_calls {
        let made = new.get(key).unwrap_or_else(|| &own[key]);
        assert_eq!(
            (&made.messages, &made.text, &made.tokens),
            (&call.messages, &call.text, &call.tokens),
            "{key}"
        );
        assert_eq!(
            (made.seed, &made.request, &made.record),
            (call.seed, &call.request, &call.record)
        );
    }
    let computed = found["calls"]["computed"].as_u64().unwrap() as usize;
    assert_eq!(
        (new.len(), other_calls.len()),
        (computed, computed + found["calls"]["logged"].as_u64().unwrap() as usize)
    );
    let answers = Contents::read(&scratch.path(other)).unwrap();
    let answers: Vec<String> =
        answers.answers().into_values().map(|line| line.answer.clone()).collect();
    assert_eq!(
        items.iter().map(|item| item["after"].as_str().unwrap()).collect::<Vec<_>>(),
        answers
    );
}

fn bytes(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(run).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
        })
        .collect()
}

#[test]
fn a_changed_panel_answers_as_if_it_had_been_so_from_the_beginning() {
    let scratch = Scratch::new();
    scratch.model(Family::Llama);
    let recipe = Recipe { family: Family::Llama, shape: Shape::Tiny, seed: 2, tokenizer: None };
    write_checkpoint(&recipe, &scratch.path("other")).unwrap();
    questions(&scratch, "questions.jsonl", &SENTENCES);
    std::fs::create_dir(scratch.path("cut")).unwrap();
    questions(&scratch, "cut/questions.jsonl", &SENTENCES[1..]);
    ran(&scratch, "run", "--data questions.jsonl");
    let before = bytes(&scratch.path("run"));

    ran(&scratch, "swapped", "--data questions.jsonl --set slot.ddx=other");
    let (_, found) = asked(&scratch, "--swap ddx=other");
    assert_as_if(&scratch, &found, "swapped");
    assert!(
        found["calls"]["logged"].as_u64() >= Some(4),
        "the others' first answers: {}",
        found["calls"]
    );

    ran(&scratch, "dropped", "--data cut/questions.jsonl");
    let (said, found) = asked(&scratch, "--drop-sentence 1 --calls store");
    assert_as_if(&scratch, &found, "dropped");
    assert!(said.stdout.contains("without: He has a fever."), "{said:#?}");
    assert_eq!(found["calls"]["computed"], 12);
    // None of it is computed twice.
    let (said, found) = asked(&scratch, "--drop-sentence 1 --calls store");
    assert_eq!((&found["calls"]["stored"], &found["calls"]["computed"]), (&12.into(), &0.into()));
    assert!(
        said.stdout.contains("calls: 0 from the run, 12 from the store, 0 computed"),
        "{said:#?}"
    );

    let (said, found) = asked(&scratch, "--items q2 --shapley");
    let values = found["items"][0]["shapley"]["values"].as_array().unwrap();
    let parts: i64 = values.iter().map(|value| value["parts"].as_i64().unwrap()).sum();
    assert_eq!((values.len(), parts), (3, 6));
    assert!(said.stdout.contains("Shapley values: sym "), "{said:#?}");
    let page = std::fs::read_to_string(scratch.path("out/what-if.html")).unwrap();
    assert!(page.contains("Why this answer") && page.contains("Synthetic weights"));

    // The run is as it was.
    assert!(before == bytes(&scratch.path("run")));
    scratch.wardround("verify run").succeeded();
}

#[test]
fn what_cannot_be_asked_says_why() {
    let scratch = Scratch::new();
    questions(&scratch, "questions.jsonl", &SENTENCES);
    scratch.run_one("run", "").succeeded();
    let refused =
        |more: &str, parts: &[&str]| scratch.wardround(format!("what-if {more}")).refused(2, parts);
    refused("run", &["--without", "--shapley"]);
    refused("run --without dx", &["no such agent", "sym, ddx, guide"]);
    refused("run --answer ddx@0", &["AGENT@ROUND=LETTER"]);
    refused("run --answer ddx@4=A", &["answers none of the items in round 4"]);
    refused("run --answer ddx@0=E", &["not an option of q1"]);
    refused("run --drop-sentence 4", &["q1 has 3"]);
    refused("run --items q9 --shapley", &["no item `q9`"]);
    #[cfg(feature = "remote")]
    refused("run --swap ddx=openai:m@http://localhost:9/v1", &["elsewhere"]);
    refused("run --shapley --out run/more", &["in the run"]);
    assert!(!scratch.path("run/more").exists());
    scratch.wardround("what-if nowhere --shapley").refused(3, &["not a run directory"]);
}
