//! The systems that search, whole: a corpus is built, notes run against tiny models and an endpoint, and logs, pages and refusals hold.

use serde_json::{Value, json};
use wardround::experiment::contents::Contents;
use wardround::model::Family;

use crate::binary::{Scratch, assert_equal_runs};
use crate::common::retrieval::write_brief_prompts;
use crate::corpus::write_corpus;
use crate::remote::{said, serve};

pub const NOTES: &str = r#"{"id": "a", "text": "0 A woman with asthma came with wheezing.\n1 Propranolol was given for the attack.", "gold": {"flag": 1, "sentence_id": 1, "correction": "Salbutamol was given for the attack."}}
{"id": "b", "text": "0 Seen on the ward.\n1 Pulse < 80, all's well.", "gold": {"flag": 0}}
"#;
const WRONG: &str = "Propranolol was given for the attack.";
const RIGHT: &str = "Salbutamol was given for the attack.";

/// Notes, and a corpus to check them with.
fn corpus() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("notes.jsonl", NOTES);
    write_corpus(&scratch);
    scratch
}

/// Says what each agent says of a note that asks for a search first; of note b that it is right.
fn agents(request: &Value) -> (u16, Value) {
    let messages = request["messages"].as_array().unwrap();
    let user = messages.last().unwrap()["content"].as_str().unwrap();
    let is_wrong = user.contains(WRONG);
    let step =
        |action: Value| json!({"observation": "o", "thought": "t", "action": action}).to_string();
    let text = if user.contains("Write the next step") {
        match (user.contains("STEP 1"), is_wrong) {
            (false, _) => step(json!("search(\"drug for an attack of asthma\")")),
            (true, true) => {
                step(json!(format!("final_mistake(\"{WRONG}\", \"{RIGHT}\", \"1.1\")")))
            }
            (true, false) => step(json!("final_mistake(\"NA\", \"NA\")")),
        }
    } else if user.contains("Assess the final answer") {
        // The first turn is rejected.
        let score = if user.contains("REFLEXION 1") { 4 } else { 2 };
        assert_eq!(request["temperature"], 1.0);
        json!({"final_reasoning": "so", "final_score": score}).to_string()
    } else if user.contains("Reassess it") {
        "Look at the drug again.".to_owned()
    } else {
        let (id, sentence, corrected) = if is_wrong { (1, WRONG, RIGHT) } else { (-1, "NA", "NA") };
        json!({"is_error": is_wrong, "reasoning": "r", "sentence_id": id, "error_sentence": sentence, "corrected_sentence": corrected}).to_string()
    };
    said(&text)
}

#[test]
fn against_an_endpoint_notes_are_searched_for_and_reviewed() {
    let scratch = corpus();
    let member = serve(agents);
    let run = format!(
        "run medreflex --decoding text --data notes.jsonl --format notes --panel {member} --corpus corpus --set rerank=off --set rerank_top_k=3"
    );
    scratch.wardround(format!("{run} --out out")).succeeded();
    scratch.wardround("verify out").succeeded();
    let contents = Contents::read(&scratch.path("out")).unwrap();
    let notes = contents.notes();
    let notes: Vec<_> = notes.values().collect();
    let found = notes[0].search.as_ref().unwrap();
    assert_eq!((notes[0].flag.said(), notes[0].sentence_id), (Some(true), Some(1)));
    assert_eq!((found.turns.len(), found.reflexions), (2, 1));
    assert_eq!(notes[1].flag.said(), Some(false));
    assert_eq!(contents.searches.records.len(), 4);
    // Equal queries are answered once.
    assert!(contents.searches.records.iter().filter(|search| search.cached).count() >= 1);
    let page = std::fs::read_to_string(scratch.path("out/report.html")).unwrap();
    assert!(page.contains("Turn 2: 2 steps, accepted"));
    let results: Value =
        serde_json::from_str(&std::fs::read_to_string(scratch.path("out/results.json")).unwrap())
            .unwrap();
    assert_eq!(results["notes"]["search"]["shown"]["ward"], 12);
    assert_eq!(results["heads"]["search_lines"], 4);
}

#[test]
fn tiny_models_are_taken_up_and_replayed_search_by_search() {
    let scratch = corpus();
    scratch.model(Family::Qwen3);
    write_brief_prompts(&scratch.path("prompts/medreflex"));
    let run = "run medreflex --data notes.jsonl --format notes --panel qwen3 --corpus corpus --prompts prompts --set rerank=off --set rerank_top_k=1 --set record_chars=4 --set react_turns=2 --set reflexion_turns=2 --set reviewers=2 --quiet";
    scratch.wardround(format!("{run} --out out")).succeeded();
    scratch.wardround("verify out").succeeded();
    let whole = Contents::read(&scratch.path("out")).unwrap();
    assert!(whole.items.records.iter().all(|item| item.error().is_none()));

    // As a kill leaves it: of every log the beginning.
    scratch.wardround(format!("{run} --out cut")).succeeded();
    for (log, keep) in [("searches.jsonl", 1), ("calls.jsonl", 2), ("items.jsonl", 0)] {
        let path = scratch.path("cut").join(log);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: String = text.split_inclusive('\n').take(keep).collect();
        std::fs::write(&path, lines).unwrap();
    }
    std::fs::remove_file(scratch.path("cut/results.json")).unwrap();
    scratch.wardround("resume cut --quiet").succeeded();
    assert_equal_runs(&scratch.path("out"), &scratch.path("cut"));
    // Finished, it stays as it is.
    let results = std::fs::read(scratch.path("cut/results.json")).unwrap();
    let resumed = scratch.wardround("resume cut");
    assert!(resumed.succeeded().stderr.contains("nothing left to do"), "{resumed:?}");
    assert_eq!(std::fs::read(scratch.path("cut/results.json")).unwrap(), results);
    let replayed = scratch.wardround("replay cut --quiet");
    assert!(replayed.succeeded().stdout.contains("0 differences"), "{replayed:?}");
}

#[test]
fn a_checked_note_has_what_stands_behind_its_correction_in_json() {
    let scratch = corpus();
    let member = serve(agents);
    scratch.write("bed.txt", format!("A woman with asthma came with wheezing. {WRONG}"));
    let check = format!(
        "check bed.txt --system medreflex --decoding text --panel {member} --corpus corpus --set rerank=off"
    );
    let outcome = scratch.wardround(format!("{check} --json"));
    let found: Value = serde_json::from_str(&outcome.succeeded().stdout).unwrap();
    assert_eq!((&found["has_error"], &found["sentence_id"]), (&json!(true), &json!(1)));
    assert!(found["sources"]["ungrounded"].is_array(), "{found}");
    let outcome = scratch.wardround(check);
    let text = &outcome.succeeded().stdout;
    assert!(text.contains("rejected by 5 reviews, mean 2.0 of 5, least 2.0"), "{text}");
}

#[test]
fn what_cannot_be_searched_is_refused_before_anything_is_loaded() {
    let scratch = corpus();
    scratch.model(Family::Qwen3);
    let run = "run medreflex --data notes.jsonl --format notes --panel qwen3 --out out";
    let refused = |more: &str, code: i32, parts: &[&str]| {
        scratch.wardround(format!("{run} {more}")).refused(code, parts);
        assert!(!scratch.path("out").exists(), "{more}");
    };
    refused("", 2, &["searches a corpus, and none was given", "--corpus DIR"]);
    refused("--corpus nowhere", 2, &["is no directory", "corpus build"]);
    refused("--corpus corpus", 2, &["rerank"]);
    refused("--corpus corpus --set rerank=off --sources books", 2, &["books", "ward"]);
    refused(
        "--corpus corpus --set rerank=off --context 2048",
        2,
        &["can come to", "has a context of 2048", "rerank_top_k=5"],
    );
    scratch
        .wardround("run medguards --data notes.jsonl --format notes --panel qwen3 --corpus corpus --out out")
        .refused(2, &["searches no corpus"]);
}

#[test]
#[ignore = "needs python3 of 3.11 or later"]
fn with_python_the_logs_of_a_run_against_an_endpoint_give_its_outcomes() {
    let scratch = corpus();
    let member = serve(agents);
    scratch
        .wardround(format!(
            "run medreflex --decoding text --data notes.jsonl --format notes --panel {member} --corpus corpus --set rerank=off --out out"
        ))
        .succeeded();
    crate::recompute_notes::agrees(&scratch.path("out"), "1 runs, 2 notes, ");
}
