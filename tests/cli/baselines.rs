//! The systems beside MED-MAD, each whole: on a tiny model, through plan, logs, verification and replay.

use std::fs;

use serde_json::Value;

use crate::binary::{Outcome, Scratch, assert_equal_runs, lines};
use wardround::model::Family;

/// Each system with its calls on a question, at least and at most.
const SYSTEMS: [(&str, usize, usize); 6] = [
    ("zero-shot", 1, 1),
    ("few-shot", 1, 1),
    ("cot", 1, 1),
    ("self-consistency", 5, 5),
    ("cot-sc", 3, 3),
    ("healthcareagent", 6, 7),
];

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.model(Family::Qwen3);
    scratch.questions(3);
    scratch
}

fn run(scratch: &Scratch, system: &str, more: &str) -> Outcome {
    scratch.wardround(format!(
        "run {system} --format mcq --data questions.jsonl --panel qwen3 --set record_chars=4 {more}"
    ))
}

#[test]
fn every_baseline_runs_verifies_and_replays() {
    let scratch = scratch();
    for (system, least, most) in SYSTEMS {
        let told = run(&scratch, system, &format!("--out {system}"));
        let told = &told.succeeded().stdout;
        assert!(told.starts_with(&format!("{system} on questions: ")), "{told}");
        assert!(told.contains(" ok)\n"), "{told}");
        let calls = lines(&scratch.path(system).join("calls.jsonl"));
        assert!((3 * least..=3 * most).contains(&calls), "{system}: {calls}");
        assert_eq!(lines(&scratch.path(system).join("items.jsonl")), 3);
        scratch.wardround(format!("verify {system}")).succeeded();
        let replay = scratch.wardround(format!("replay {system} --max-batch 2"));
        let replay = &replay.succeeded().stdout;
        assert!(replay.ends_with(", 0 differences\n"), "{replay}");
        let again =
            scratch.wardround(format!("run --plan {system}/plan.toml --out {system}-again"));
        again.succeeded();
    }
}

#[test]
fn free_text_never_stops_a_baseline() {
    let scratch = scratch();
    for (system, least, most) in SYSTEMS {
        let more = format!("--decoding text --set max_tokens=24 --out {system}");
        run(&scratch, system, &more).finished();
        let calls = lines(&scratch.path(system).join("calls.jsonl"));
        assert!((3 * least..=3 * most).contains(&calls), "{system}: {calls}");
        scratch.wardround(format!("verify {system}")).succeeded();
    }
}

#[test]
fn self_consistency_begins_with_zero_shots_own_call() {
    let scratch = scratch();
    run(&scratch, "zero-shot", "--out zero-shot").succeeded();
    run(&scratch, "SingleLLM_self_consistency", "--out votes").succeeded();
    let requests = |out: &str| -> Vec<String> {
        let text = std::fs::read_to_string(scratch.path(out).join("calls.jsonl")).unwrap();
        let calls = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let first = calls.filter(|call: &serde_json::Value| call["sample"] == 0);
        let mut requests: Vec<String> =
            first.map(|call| call["request"].as_str().unwrap().to_owned()).collect();
        requests.sort();
        requests
    };
    assert_eq!(requests("zero-shot").len(), 3);
    assert_eq!(requests("votes"), requests("zero-shot"));
}

#[test]
fn a_baseline_takes_one_model_and_the_systems_are_named() {
    let scratch = scratch();
    let told = scratch.wardround(
        "run cot --format mcq --data questions.jsonl --panel qwen3,qwen3,qwen3 --dry-run",
    );
    told.refused(2, &["cot takes 1", "give it one model"]);
    let told = run(&scratch, "cot-sc", "--set samples=2 --runs 2 --dry-run");
    let told = &told.succeeded().stdout;
    assert!(told.contains("cot-sc, constrained text"), "{told}");
    assert!(told.contains("at most 12"), "{told}");
    let told = run(&scratch, "chain-of-thought", "");
    told.refused(2, &["zero-shot", "cot-sc", "healthcareagent"]);
    let told = run(&scratch, "healthcareagent", "--set samples=2");
    told.refused(2, &["there is no setting samples"]);
}

#[test]
fn another_order_of_options_is_a_setting_that_a_plan_repeats() {
    let scratch = scratch();
    let told = run(
        &scratch,
        "zero-shot",
        "--decoding text --set max_tokens=24 --set option_order=permuted --seed 3 --out permuted",
    );
    told.finished();
    let read = |file: &str| -> Vec<Value> {
        let text = fs::read_to_string(scratch.path(file)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let options = |out: &str| -> Vec<String> {
        let texts = read(&format!("{out}/dataset.jsonl"));
        texts.iter().map(|text| text["options"].to_string()).collect()
    };
    run(&scratch, "zero-shot", "--out written").succeeded();
    assert_ne!(options("permuted"), options("written"));
    scratch.wardround("verify permuted").succeeded();
    scratch.wardround("run --plan permuted/plan.toml --out again").finished();
    assert_eq!(options("permuted"), options("again"));
    assert_equal_runs(&scratch.path("permuted"), &scratch.path("again"));
}
