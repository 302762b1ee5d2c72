//! `run --shard` and `merge`: parts of a run that become the run that was made in one go, and what makes none.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use wardround::experiment::plan::Plan;

use crate::binary::{Scratch, assert_equal_runs, outcome, size};
use crate::determinism::wait_until;

const QUESTIONS: usize = 7;

fn plan(scratch: &Scratch, run: &str) -> Plan {
    Plan::load(&scratch.path(run).join("plan.toml")).unwrap()
}

fn results(directory: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(directory.join("results.json")).unwrap()).unwrap()
}

#[test]
fn merged_shards_equal_the_run_in_one_go() {
    let scratch = Scratch::new();
    scratch.questions(QUESTIONS);
    scratch.run_one("whole", "--runs 2").succeeded();
    for number in 1..=3 {
        let out = format!("shard-{number}");
        let run = scratch.run_one(&out, &format!("--runs 2 --shard {number}/3"));
        let told = format!("(shard {number}/3 of 7), 2 runs");
        assert!(run.succeeded().stdout.contains(&told), "{run:#?}");
    }
    assert_eq!(plan(&scratch, "shard-2").dataset.items, ["q2", "q5"]);
    let merged = scratch.wardround("merge out shard-3 shard-1 shard-2");
    assert!(
        merged.succeeded().stdout.contains("medmad on questions: 7 items, 2 runs"),
        "{merged:#?}"
    );
    let (whole, out) = (scratch.path("whole"), scratch.path("out"));
    assert_equal_runs(&whole, &out);
    let (expected, found) = (results(&whole), results(&out));
    for figure in ["n_items", "n_runs", "accuracy", "calls", "parse", "ties", "mean_rounds_run"] {
        assert_eq!(found[figure], expected[figure], "{figure}");
    }
    let differences = plan(&scratch, "whole").differences(&plan(&scratch, "out"));
    assert_eq!(differences.unwrap(), []);
    scratch.wardround("verify out").succeeded();
    scratch.wardround("replay out --items q4").succeeded();
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("q7"));
    // What is merged is a run as any other: it has nothing left to do.
    scratch.wardround("resume out").succeeded();
    assert_equal_runs(&whole, &out);
}

#[test]
fn a_shard_goes_on_and_runs_again_as_the_part_that_it_is() {
    let scratch = Scratch::new();
    scratch.questions(QUESTIONS);
    scratch.run_one("half", "--shard 2/2").succeeded();
    let before = plan(&scratch, "half");
    // As a kill leaves it.
    let half = scratch.path("half");
    std::fs::remove_file(half.join("results.json")).unwrap();
    let items = std::fs::read_to_string(half.join("items.jsonl")).unwrap();
    let first = items.split_inclusive('\n').next().unwrap();
    std::fs::write(half.join("items.jsonl"), first).unwrap();
    scratch.run_one("other", "--shard 1/2").succeeded();
    scratch
        .wardround("merge out other half")
        .refused(3, &["half: 2 of the planned items have no line", "wardround resume"]);
    scratch.wardround("resume half --shard 1/2").refused(2, &["unexpected argument '--shard'"]);
    scratch
        .wardround("run --plan half/plan.toml --shard 1/2 --out again")
        .refused(2, &["--shard 1/2 was given", "hint: "]);
    scratch.wardround("resume half").succeeded();
    assert_eq!(plan(&scratch, "half"), before);
    scratch.wardround("run --plan half/plan.toml --out again").succeeded();
    assert_equal_runs(&half, &scratch.path("again"));
    scratch.wardround("replay half --items q6").succeeded();
    scratch.wardround("merge out other half").succeeded();

    // A whole plan runs in parts, too.
    scratch.wardround("run --plan out/plan.toml --shard 2/2 --out from-plan").succeeded();
    assert_equal_runs(&half, &scratch.path("from-plan"));
    scratch.wardround("merge again-out other from-plan").succeeded();
}

#[test]
fn what_is_no_whole_is_refused() {
    let scratch = Scratch::new();
    scratch.questions(4);
    scratch.run_one("one", "--shard 1/2").succeeded();
    scratch.run_one("two", "--shard 2/2").succeeded();
    let merge = |shards: &str| scratch.wardround(format!("merge {shards}"));
    merge("out one").refused(2, &["shard 2/2 is missing", "hint: name every shard"]);
    merge("out one two one").refused(2, &["one and one are both shard 1/2"]);
    merge("one two").refused(2, &["shard 1/2 is missing"]);
    merge("one one two").refused(
        2,
        &["one exists and is not empty", "hint: the first name is that of the new directory"],
    );
    merge("out one nowhere").refused(3, &["nowhere is not a run directory"]);
    merge("out").refused(2, &["required", "<SHARD>..."]);
    scratch.run_one("whole", "").succeeded();
    merge("out one whole")
        .refused(2, &["whole is no shard", "hint: name what `run --shard` wrote"]);
    for (flags, difference) in [
        ("--seed 7", "seed is 42 against 7"),
        ("--set t_max=1", "settings.t_max is 0 against 1"),
        ("--limit 3", "dataset.shard.whole_items is 4 against 3"),
        ("--runs 2", "runs is 1 against 2"),
    ] {
        let out = flags.replace(['-', ' ', '='], "");
        scratch.run_one(&out, &format!("--shard 2/2 {flags}")).succeeded();
        let expected = format!("one and {out} are not shards of one plan: {difference}");
        merge(&format!("out one {out}")).refused(2, &[&expected, "hint: run every shard"]);
    }
    assert!(!scratch.path("out").exists());

    scratch
        .run_one("five", "--shard 5/5")
        .refused(2, &["shard 5/5 of 4 items has none", "hint: cut a run into at most"]);
    for wrong in ["0/2", "3/2", "2", "x"] {
        scratch
            .run_one("wrong", &format!("--shard {wrong}"))
            .refused(2, &["invalid value", "such as 2/4"]);
    }
    assert!(!scratch.path("five").exists() && !scratch.path("wrong").exists());
}

/// The script of docs/machines.md, as Slurm runs it: killed, queued again, its directory lost with its node.
#[test]
fn the_array_job_of_the_documents_goes_on_where_it_was_killed() {
    let scratch = Scratch::new();
    scratch.panel();
    scratch.questions(5);
    let page = include_str!("../../docs/machines.md");
    let script = page.split("```sh\n").find(|block| block.starts_with("#!/bin/bash")).unwrap();
    scratch.write("shard.sh", script.split("```").next().unwrap());
    let binary = Path::new(env!("CARGO_BIN_EXE_wardround")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let flags = "medmad --panel gemma3,llama,qwen3 --data questions.jsonl --format mcq --set record_chars=8 --set t_max=1 --max-batch 3";
    let task = |number: usize| {
        let mut command = Command::new("bash");
        command.args(["shard.sh", "run"]).args(flags.split(' ')).current_dir(scratch.path(""));
        command.env_clear().env("PATH", &path).env("SLURM_JOB_NAME", "job");
        command.env("SLURM_CPUS_ON_NODE", "1").env("SLURM_ARRAY_TASK_COUNT", "2");
        command.env("SLURM_ARRAY_TASK_ID", number.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    for number in [1, 2] {
        let mut child = task(number).spawn().unwrap();
        let log = scratch.path(&format!("job-{number}/calls.jsonl"));
        wait_until(&mut child, || size(&log) > 0);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    std::fs::remove_dir_all(scratch.path("job-2")).unwrap();
    outcome(&mut task(1)).succeeded();
    let again = outcome(&mut task(2));
    assert!(again.succeeded().stderr.contains("from the store of calls"), "{again:#?}");
    // Queued once more, it has nothing to do.
    outcome(&mut task(1)).succeeded();
    scratch.wardround("merge job job-1 job-2").succeeded();
    scratch.wardround(format!("run {flags} --out whole")).succeeded();
    assert_equal_runs(&scratch.path("whole"), &scratch.path("job"));
}

#[test]
fn recipes_run_in_shards_and_merge_cell_by_cell() {
    let scratch = Scratch::new();
    scratch.panel();
    scratch.questions(5);
    let recipe = r#"
title = "Mine"
text = "Two settings of one system."
runs = 2
decoding = "grammar"
panel = ["gemma3", "llama", "qwen3"]
analyses = ["netgain", "paired-first"]
[[dataset]]
name = "mine"
label = "Mine"
file = "questions.jsonl"
format = "mcq"
[[method]]
name = "without"
label = "No debate"
group = "MED-MAD"
system = "medmad"
settings = { t_max = 0, record_chars = 8 }
[[method]]
name = "with"
label = "One round"
group = "MED-MAD"
system = "medmad"
settings = { t_max = 1, record_chars = 8 }
"#;
    scratch.write("mine.toml", recipe);
    let run = |out: &str, more: &str| {
        let run = format!("recipe mine.toml --constrained --data-dir . --out {out} {more}");
        scratch.wardround(run)
    };
    run("whole", "").succeeded();
    run("one", "--shard 1/2").succeeded();
    run("one", "")
        .refused(2, &["one holds another run of recipes: shard is \"1/2\" against absent"]);
    run("two", "--shard 2/2").succeeded();
    scratch.wardround("resume two").succeeded();
    let merged = scratch.wardround("merge out two one");
    for cell in ["cells/without-mine", "cells/with-mine"] {
        assert_equal_runs(&scratch.path("whole").join(cell), &scratch.path("out").join(cell));
        scratch.wardround(format!("verify out/{cell}")).succeeded();
        assert!(scratch.path("out").join(cell).join("report.html").exists());
    }
    let (expected, found) = (results(&scratch.path("whole")), results(&scratch.path("out")));
    assert_eq!(found["netgain"], expected["netgain"]);
    assert_eq!(found["paired"], expected["paired"]);
    assert_eq!(found["cells"][0]["accuracy"], expected["cells"][0]["accuracy"]);
    assert!(merged.succeeded().stdout.contains("| One round |"), "{merged:#?}");
    run("out", "").succeeded();

    let merge = |shards: &str| scratch.wardround(format!("merge {shards}"));
    merge("new one").refused(2, &["shard 2/2 is missing"]);
    merge("new one whole").refused(2, &["whole is no shard"]);
    merge("new one two/cells/with-mine")
        .refused(2, &["two/cells/with-mine is no folder of a recipe"]);
    run("other", "--shard 2/2 --seed 7").succeeded();
    merge("new one other").refused(2, &["one and other are not shards of one plan", "seed"]);
    std::fs::remove_file(scratch.path("two/cells/with-mine/results.json")).unwrap();
    merge("new one two").refused(3, &["two has not finished", "wardround resume"]);
    assert!(!scratch.path("new").exists());
    run("two", "--shard 2/2").succeeded();
    merge("one one two").refused(2, &["one holds another run of recipes"]);
    merge("new one two").succeeded();
}
