//! `impact`: what a planted change did is listed, that and nothing else, at the right call.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use wardround::experiment::contents::Contents;
use wardround::record::{ItemLine, Reply};

use crate::binary::{Outcome, Scratch};
use crate::tampering::{seal_anew, write_logs};

/// Questions of two options, so that the panel agrees on some at once.
const ITEMS: usize = 6;
const RUN: &str = "--runs 2 --set t_max=1";

/// An old run, `old`, some of whose questions are debated.
fn old() -> Scratch {
    let scratch = Scratch::new();
    let row = |number| serde_json::json!({"id": format!("q{number}"), "question": format!("Is {number} odd?"), "options": ["yes", "no"], "answer": "A"});
    let rows: String = (1..=ITEMS).map(|number| format!("{}\n", row(number))).collect();
    scratch.write("questions.jsonl", rows);
    scratch.run_one("old", RUN).succeeded();
    scratch
}

/// What `impact.json` has of the one run or trail.
fn kept(scratch: &Scratch, out: &str) -> Value {
    let text = std::fs::read_to_string(scratch.path(out).join("impact.json")).unwrap();
    let impact: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&impact["schema"], impact["kept"].as_array().unwrap().len()), (&Value::from(1), 1));
    impact["kept"][0].clone()
}

/// The items and runs of a class.
fn of(kept: &Value, class: &str) -> BTreeSet<(String, u64)> {
    let cases = kept["cases"].as_array().unwrap().iter().filter(|case| case["class"] == class);
    cases
        .map(|case| (case["item"].as_str().unwrap().to_owned(), case["run"].as_u64().unwrap()))
        .collect()
}

/// The same from two whole runs: the cases that have another answer, those of which only calls are others, and the rest.
fn planted(old: &Path, new: &Path) -> [BTreeSet<(String, u64)>; 3] {
    let (old, new) = (Contents::read(old).unwrap(), Contents::read(new).unwrap());
    let calls = |run: &Contents, item: &ItemLine| -> BTreeSet<_> {
        let calls = run.calls.records.iter();
        let own = calls.filter(|call| (call.run, call.item.as_str()) == (item.run(), item.item()));
        own.map(|call| (call.key(), format!("{:?} {}", call.messages, call.text))).collect()
    };
    let mut found = [const { BTreeSet::new() }; 3];
    for (was, now) in old.outcomes().values().zip(new.outcomes().values()) {
        let class = match (was.says() == now.says(), calls(&old, was) == calls(&new, now)) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => 2,
        };
        found[class].insert((was.item().to_owned(), u64::from(was.run())));
    }
    found
}

/// Compares what `impact` says of `old` with a whole run that has the change, and gives what it says.
#[track_caller]
fn finds(scratch: &Scratch, change: &str, of_run: &str) -> Value {
    let panel = if of_run.contains("--panel") { "" } else { "--panel llama" };
    scratch.run(format!("--data questions.jsonl --out new {panel} {RUN} {of_run}")).succeeded();
    let told = scratch.wardround(format!("impact old --out impact {change}"));
    let expected = planted(&scratch.path("old"), &scratch.path("new"));
    assert!(!expected[0].is_empty(), "the change changes nothing");
    told.refused(1, &[&format!("{} case", expected[0].len()), "changed in outcome"]);
    let kept = kept(scratch, "impact");
    for (class, expected) in ["changed", "same_outcome", "equal"].iter().zip(&expected) {
        assert_eq!(of(&kept, class), *expected, "{class}: {told:#?}");
    }
    kept
}

fn first<'a>(case: &'a Value, kind: &str) -> &'a Value {
    let call = &case["calls"][0];
    assert_eq!(call["kind"], kind, "{case:#}");
    call
}

fn names(kept: &Value, field: &str) -> bool {
    kept["changed"].as_array().unwrap().iter().any(|one| one["field"] == field)
}

#[test]
fn without_a_change_nothing_is_listed() {
    let scratch = old();
    let told = scratch.wardround("impact old --out impact");
    let all = 2 * ITEMS;
    let said = format!("0 changed, 0 with the same outcome, {all} equal, 0 not comparable\n");
    assert!(told.succeeded().stdout.ends_with(&said), "{told:#?}");
    let kept = kept(&scratch, "impact");
    assert_eq!((of(&kept, "equal").len(), &kept["changed"]), (all, &Value::Array(Vec::new())));
    let page = std::fs::read_to_string(scratch.path("impact/impact.html")).unwrap();
    assert!(page.contains("No outcome changed") && !page.contains("differs\">"), "{page}");
    scratch.wardround("impact old --out impact").refused(2, &["impact exists and is not empty"]);
    // From a store, and of several runs.
    let twice = scratch.wardround("impact old old --calls calls");
    assert!(twice.succeeded().stdout.contains(&format!("{} equal", 2 * all)), "{twice:#?}");
    assert!(std::fs::read_dir(scratch.path("calls")).unwrap().count() > 0);
}

#[test]
fn a_prompt_changes_the_cases_that_are_asked_by_it() {
    let scratch = old();
    std::fs::create_dir_all(scratch.path("prompts/medmad")).unwrap();
    let prompt = include_str!("../../prompts/medmad/debate-user.txt");
    scratch.write("prompts/medmad/debate-user.txt", format!("Think again. {prompt}"));
    let kept = finds(&scratch, "--prompts prompts", "--prompts prompts");
    assert!(names(&kept, "prompts_sha256"), "{kept:#}");
    assert!(!of(&kept, "equal").is_empty(), "all were debated");
    let cases = kept["cases"].as_array().unwrap();
    for case in cases.iter().filter(|case| case["class"] != "equal") {
        let call = first(case, "prompt");
        let right = call["fields"][0]["right"].as_str().unwrap();
        assert!(call["key"]["round"] == 1 && right.contains("Think again."), "{case:#}");
    }
}

#[test]
fn a_bit_of_a_weight_and_a_number_format_change_what_they_change() {
    let scratch = old();
    let other = scratch.path("other");
    std::fs::create_dir(&other).unwrap();
    for file in std::fs::read_dir(scratch.path("llama")).unwrap() {
        let path = file.unwrap().path();
        std::fs::copy(&path, other.join(path.file_name().unwrap())).unwrap();
    }
    let weights = other.join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    // The sign of one number of the last norm, which every logit reads.
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let tensors: Value = serde_json::from_slice(&bytes[8..header]).unwrap();
    let at = tensors["model.norm.weight"]["data_offsets"][0].as_u64().unwrap() as usize;
    bytes[header + at + 1] ^= 0x80;
    std::fs::write(&weights, bytes).unwrap();
    let kept = finds(&scratch, "--panel other", "--panel other");
    assert!(names(&kept, "panel[0].weights_sha256") && names(&kept, "panel[2].backbone"));
    let case = kept["cases"].as_array().unwrap().iter().find(|case| case["class"] == "changed");
    let call = first(case.unwrap(), "completion");
    let (left, right) = (&call["fields"][0]["left"], &call["fields"][0]["right"]);
    assert!(call["token"].is_u64() && call["fields"][0]["field"] == "text" && left != right);

    std::fs::remove_dir_all(scratch.path("new")).unwrap();
    std::fs::remove_dir_all(scratch.path("impact")).unwrap();
    let kept = finds(&scratch, "--quant q8_0", "--quant q8_0");
    assert!(names(&kept, "panel[0].quantisation"), "{kept:#}");
}

#[test]
fn a_reader_that_reads_otherwise_is_told_from_a_model_that_says_otherwise() {
    let scratch = old();
    let out = scratch.path("old");
    let mut contents = Contents::read(&out).unwrap();
    let read = |contents: &mut Contents, item: &str, answer: &str| {
        let calls = contents.calls.records.iter_mut();
        for call in calls.filter(|call| call.item == item && call.run == 1) {
            let mut record = call.record.as_value().clone();
            record["answer"] = answer.into();
            call.record = Reply::of(record);
        }
    };
    let answer = |contents: &Contents, item: &str| -> String {
        contents.outcomes().values().find(|line| line.item() == item).unwrap().says().to_owned()
    };
    // Of the first both are others, of the second its reading alone, of the third the vote; the fourth errored, the fifth is no more.
    let (now, second) = (answer(&contents, "q1"), answer(&contents, "q2"));
    let then = if now == "A" { "B" } else { "A" };
    read(&mut contents, "q1", then);
    read(&mut contents, "q2", if second == "A" { "B" } else { "A" });
    for line in &mut contents.items.records {
        let ItemLine::Answer(line) = line else { continue };
        match (line.run, line.item.as_str()) {
            (1, "q1") => line.answer = then.to_owned(),
            (1, "q3") => line.team_confidence = 0.125,
            (1, "q4") => line.error = Some("no memory".to_owned()),
            _ => {}
        }
    }
    contents.items.records.retain(|line| (line.run(), line.item()) != (1, "q5"));
    contents.plan.version = "0.0.9".to_owned();
    contents.plan_sha256 = contents.plan.save(&out.join("plan.toml")).unwrap();
    write_logs(&contents, &out);
    let told = scratch.wardround("impact old --out impact");
    told.refused(1, &["1 case changed in outcome"]);
    let changed = format!("  changed: item q1 of questions, run 1, {then} → {now}; ");
    assert!(told.stdout.contains(&changed), "{told:#?}");
    assert!(told.stdout.contains("no text differs, but its reading"), "{told:#?}");
    let kept = kept(&scratch, "impact");
    assert!(names(&kept, "version"), "{kept:#}");
    let case = |item: &str| {
        let mut cases = kept["cases"].as_array().unwrap().iter();
        cases.find(|case| case["item"] == item && case["run"] == 1).unwrap()
    };
    for (item, class) in [("q1", "changed"), ("q2", "same_outcome")] {
        let call = first(case(item), "reading");
        let field = &call["fields"][0]["field"];
        assert!(case(item)["class"] == class && field == "record.answer", "{call:#}");
    }
    let vote = case("q3");
    assert_eq!(
        (&vote["class"], vote["calls"].as_array().unwrap().len()),
        (&"same_outcome".into(), 0)
    );
    assert!(
        vote["why"]
            .as_str()
            .unwrap()
            .starts_with("no call differs, but the outcome: team_confidence is 0.125")
    );
    for (item, why) in
        [("q4", "it errored then: no memory"), ("q5", "the run has no outcome of it")]
    {
        assert_eq!(
            (&case(item)["class"], &case(item)["why"]),
            (&"not_comparable".into(), &why.into())
        );
    }
}

#[test]
fn what_cannot_be_compared_is_said_and_other_questions_are_refused() {
    let scratch = old();
    let questions = std::fs::read_to_string(scratch.path("questions.jsonl")).unwrap();
    scratch.write("others.jsonl", questions.replace("Is 1 odd?", "Is 1 even?"));
    let told: Outcome = scratch.wardround("impact old --data others.jsonl");
    told.refused(2, &["other items, or another system", "dataset.name", "dataset.items_sha256"]);
    if cfg!(feature = "remote") {
        let told = scratch.wardround("impact old --panel openai:m@http://127.0.0.1:1/v1");
        told.refused(2, &["is elsewhere", "name local ones"]);
    }
    scratch.wardround("impact").refused(2, &["<RUN>"]);
    let out = scratch.path("old");
    let mut contents = Contents::read(&out).unwrap();
    contents.plan.panel[1].family = "remote".to_owned();
    contents.plan_sha256 = contents.plan.save(&out.join("plan.toml")).unwrap();
    seal_anew(&contents, &out);
    let told = scratch.wardround("impact old");
    told.refused(1, &["nothing could be compared"]);
    assert!(told.stdout.contains("12 cases; llama is elsewhere"), "{told:#?}");
}
