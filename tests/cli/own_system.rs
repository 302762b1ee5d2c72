//! A system that is a user's own file, whole: the examples of docs/your-own-system.md on tiny models, through plan, logs, verification and replay.

use std::fs;

use regex::Regex;
use wardround::model::Family;

use crate::binary::{Scratch, assert_equal_runs, lines};

/// The TOML blocks of the page, in order.
fn examples() -> Vec<String> {
    let page = include_str!("../../docs/your-own-system.md");
    let block = Regex::new(r"(?s)```toml\n(.*?)```").unwrap();
    block.captures_iter(page).map(|found| found[1].to_owned()).collect()
}

#[test]
fn the_pages_examples_run_verify_and_replay() {
    let scratch = Scratch::new();
    scratch.model(Family::Qwen3);
    scratch.questions(3);
    let [first, debate, _] = &examples()[..] else { panic!("three examples") };
    for (name, text, longest, least, most) in
        [("first", first, 16, 3, 3), ("debate", debate, 25, 6, 21)]
    {
        assert!(text.lines().count() <= longest, "{name} has {} lines", text.lines().count());
        scratch.write(&format!("{name}.toml"), text);
        let run = format!(
            "run {name}.toml --data questions.jsonl --format mcq --panel qwen3 --set record_chars=4"
        );
        let told = scratch.wardround(format!("{run} --dry-run"));
        assert!(told.succeeded().stdout.contains(name), "{}", told.stdout);
        let told = scratch.wardround(format!("{run} --out {name}"));
        assert!(told.succeeded().stdout.starts_with(&format!("{name} on questions: ")));
        let calls = lines(&scratch.path(name).join("calls.jsonl"));
        assert!((least..=most).contains(&calls), "{name}: {calls}");
        // The run needs the file no more.
        fs::remove_file(scratch.path(&format!("{name}.toml"))).unwrap();
        scratch.wardround(format!("verify {name}")).succeeded();
        let replay = scratch.wardround(format!("replay {name}"));
        assert!(replay.succeeded().stdout.ends_with(", 0 differences\n"), "{}", replay.stdout);
        scratch.wardround(format!("run --plan {name}/plan.toml --out {name}-again")).succeeded();
        assert_equal_runs(&scratch.path(name), &scratch.path(&format!("{name}-again")));
        scratch.wardround(format!("report {name}")).succeeded();
    }
}

const NOTES: &str = r#"takes = "notes"
[[stage]]
name = "read"
user = "{note}\n\nReply with CORRECT, or with the number of the wrong sentence and the sentence as it should be."
reply = "medec"
"#;

#[test]
fn a_file_stands_wherever_a_name_does() {
    let scratch = Scratch::new();
    scratch.model(Family::Qwen3);
    scratch.questions(3);
    let [first, _, compare] = &examples()[..] else { panic!("three examples") };
    let file = scratch.write("first.toml", first);
    scratch.write("compare.toml", compare);
    let run = "recipe compare.toml --data-dir . --panel qwen3 --runs 2 --set record_chars=4 --quiet --out compare";
    scratch.wardround(run).finished();
    // The recipe needs the file no more, not even for a cell that is still to run.
    fs::remove_file(&file).unwrap();
    fs::remove_dir_all(scratch.path("compare/cells/first-own")).unwrap();
    let told = scratch.wardround("resume compare --quiet");
    assert!(told.finished().stdout.contains("First "), "{told:#?}");
    let plan = fs::read_to_string(scratch.path("compare/cells/first-own/plan.toml")).unwrap();
    assert!(plan.contains("You are a careful clinician."), "{plan}");
    let replay = scratch.wardround("replay compare/cells/first-own");
    assert!(replay.succeeded().stdout.ends_with(", 0 differences\n"), "{}", replay.stdout);
    scratch.wardround("verify compare").succeeded();
    scratch.wardround("report compare").succeeded();
    scratch.wardround(run).refused(2, &["first", "first.toml", "hint: "]);
    let elsewhere = compare.replace("first.toml", "../first.toml");
    scratch.write("compare.toml", elsewhere);
    scratch.wardround(run).refused(2, &["first: ../first.toml leads out of", "beside"]);

    scratch.write("first.toml", first);
    scratch.write("read.toml", NOTES);
    scratch.write("note.txt", "Fever for two days.\nMalaria is treated with aspirin.\n");
    let check = "check note.txt --panel qwen3 --set record_chars=8 --system";
    scratch.wardround(format!("{check} read.toml")).finished();
    scratch.wardround(format!("{check} first.toml")).refused(2, &["first takes questions"]);
}

#[test]
fn what_is_shown_of_a_built_in_system_runs_under_another_name() {
    let scratch = Scratch::new();
    scratch.model(Family::Qwen3);
    scratch.questions(2);
    let listed = scratch.wardround("systems ls").succeeded().stdout.clone();
    let words = |line: &str| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    let listed: Vec<String> = listed.lines().map(words).collect();
    for line in ["medmad questions program", "medprompt notes file"] {
        assert!(listed.iter().any(|listed| listed == line), "{listed:?}");
    }
    let shown = scratch.wardround("systems show cot-sc").succeeded().stdout.clone();
    scratch.write("mine.toml", shown);
    let more = "--data questions.jsonl --format mcq --panel qwen3 --set record_chars=4 --out";
    scratch.wardround(format!("run mine.toml {more} mine")).succeeded();
    scratch.wardround(format!("run cot-sc {more} theirs")).succeeded();
    let seen = |run: &str| -> Vec<serde_json::Value> {
        let calls = fs::read_to_string(scratch.path(run).join("calls.jsonl")).unwrap();
        let calls = calls.lines().map(|line| serde_json::from_str(line).unwrap());
        let mut calls: Vec<serde_json::Value> = calls.collect();
        calls.sort_by_key(|call| format!("{} {}", call["item"], call["sample"]));
        calls
            .iter()
            .map(|call| serde_json::json!([call["messages"], call["seed"], call["text"]]))
            .collect()
    };
    assert_eq!(seen("mine"), seen("theirs"));
    let program = scratch.wardround("systems show medmad").succeeded().stdout.clone();
    assert!(program.contains("t_max = "), "{program}");
}

#[test]
fn a_file_that_is_wrong_is_refused_with_its_stage_and_key() {
    let scratch = Scratch::new();
    scratch.questions(1);
    let text = "takes = \"questions\"\n[[stage]]\nname = \"answer\"\nuser = \"{question} {option}\"\nreply = \"letter\"\n";
    let run = |name: &str| {
        let more = "--data questions.jsonl --format mcq --panel qwen3 --out none";
        scratch.wardround(format!("run {name} {more}"))
    };
    scratch.write("wrong.toml", text);
    run("wrong.toml").refused(2, &["wrong.toml: stage answer: user: ", "{option}", "hint: "]);
    run("medmud").refused(2, &["medmud", "or give a TOML file of your own"]);
    run("missing.toml").refused(2, &["missing.toml", "hint: "]);
    scratch.write("cot.toml", text.replace("{option}", "{options}"));
    run("cot.toml").refused(2, &["a built-in system is named cot", "another name"]);
}
