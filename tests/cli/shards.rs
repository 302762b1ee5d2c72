//! `--shard` and `--calls`: parts of a run on many machines, and the run in one go that is made of what they computed.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use wardround::experiment::plan::Plan;

use crate::binary::{Scratch, assert_equal_runs, lines, outcome, size};
use crate::determinism::wait_until;

fn plan(scratch: &Scratch, run: &str) -> Plan {
    Plan::load(&scratch.path(run).join("plan.toml")).unwrap()
}

fn results(directory: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(directory.join("results.json")).unwrap()).unwrap()
}

#[test]
fn the_run_after_its_shards_is_the_run_in_one_go_and_computes_nothing() {
    let scratch = Scratch::new();
    scratch.questions(4);
    scratch.run_one("alone", "--runs 2").succeeded();
    for number in 1..=5 {
        let out = format!("shard-{number}");
        let run = scratch.run_one(&out, &format!("--runs 2 --shard {number}/5 --calls calls"));
        assert_eq!(
            run.succeeded().stderr.contains("has none of the items"),
            number == 5,
            "{run:#?}"
        );
    }
    assert_eq!(plan(&scratch, "shard-2").dataset.items, ["q2"]);
    assert!(!scratch.path("shard-5").exists());
    // What the shards' folders hold is not needed.
    std::fs::remove_dir_all(scratch.path("shard-1")).unwrap();
    let whole = scratch.run_one("whole", "--runs 2 --calls calls");
    let calls = lines(&scratch.path("whole/calls.jsonl"));
    let told = format!("{calls} calls came from the store of calls");
    assert!(whole.succeeded().stderr.contains(&told), "{whole:#?}");
    assert_equal_runs(&scratch.path("alone"), &scratch.path("whole"));
    let differences = plan(&scratch, "alone").differences(&plan(&scratch, "whole"));
    assert_eq!(differences.unwrap(), []);
    scratch.wardround("verify whole").succeeded();
    // A shard is a run as any other.
    scratch.wardround("verify shard-2").succeeded();
    scratch.wardround("replay shard-3 --items q3").succeeded();
    scratch.wardround("run --plan shard-2/plan.toml --out again").succeeded();
    assert_equal_runs(&scratch.path("shard-2"), &scratch.path("again"));
}

#[test]
fn a_shard_goes_on_and_another_is_refused_in_its_place() {
    let scratch = Scratch::new();
    scratch.questions(3);
    scratch.run_one("half", "--shard 2/2").succeeded();
    let half = scratch.path("half");
    std::fs::remove_file(half.join("results.json")).unwrap();
    std::fs::write(half.join("items.jsonl"), "").unwrap();
    scratch.run_one("half", "--shard 2/2").succeeded();
    scratch.run_one("half", "--shard 1/2").refused(3, &["half/plan.toml", "dataset.items"]);
    scratch.wardround("resume half").succeeded();
    scratch
        .wardround("run --plan half/plan.toml --shard 1/2 --out again")
        .refused(2, &["cannot be used with", "--shard"]);
    for wrong in ["0/2", "3/2", "2", "x"] {
        scratch
            .run_one("wrong", &format!("--shard {wrong}"))
            .refused(2, &["invalid value", "such as 2/4"]);
    }
    assert!(!scratch.path("wrong").exists());
}

/// The script of docs/machines.md, as Slurm runs it: at its time limit, queued again, its directory lost with its node.
#[test]
fn the_array_job_of_the_documents_goes_on_where_its_time_ended() {
    let scratch = Scratch::new();
    scratch.panel();
    scratch.questions(5);
    let page = include_str!("../../docs/machines.md");
    let script = page.split("```sh\n").find(|block| block.starts_with("#!/bin/bash")).unwrap();
    scratch.write("shard.sh", script.split("```").next().unwrap());
    std::fs::create_dir(scratch.path("bin")).unwrap();
    let queue = "#!/bin/sh\necho \"$@\" >>requeued\n";
    let scontrol = scratch.write("bin/scontrol", queue);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(scontrol, mode).unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_wardround")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{path}", scratch.path("bin").display(), binary.display());
    let flags = "medmad --panel gemma3,llama,qwen3 --data questions.jsonl --format mcq --set record_chars=8 --set t_max=1 --max-batch 3";
    let task = |number: usize| {
        let mut command = Command::new("bash");
        command.args(["shard.sh", "run"]).args(flags.split(' ')).current_dir(scratch.path(""));
        command.env_clear().env("PATH", &path).env("SLURM_JOB_NAME", "job");
        command.env("SLURM_CPUS_ON_NODE", "1").env("SLURM_ARRAY_TASK_COUNT", "2");
        command.env("SLURM_ARRAY_TASK_ID", number.to_string());
        command.env("SLURM_JOB_ID", (70 + number).to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    for number in [1, 2] {
        let mut child = task(number).spawn().unwrap();
        let log = scratch.path(&format!("job-{number}/calls.jsonl"));
        wait_until(&mut child, || size(&log) > 0);
        let told = Command::new("kill").args(["-USR1", &child.id().to_string()]).status();
        assert!(told.unwrap().success());
        child.wait_with_output().unwrap();
    }
    let requeued = std::fs::read_to_string(scratch.path("requeued")).unwrap();
    assert_eq!(requeued, "requeue 71\nrequeue 72\n");
    std::fs::remove_dir_all(scratch.path("job-2")).unwrap();
    outcome(&mut task(1)).succeeded();
    let again = outcome(&mut task(2));
    assert!(again.succeeded().stderr.contains("from the store of calls"), "{again:#?}");
    // Queued once more, it has nothing to do.
    outcome(&mut task(1)).succeeded();
    scratch.wardround(format!("run {flags} --calls calls --out job")).succeeded();
    scratch.wardround(format!("run {flags} --out whole")).succeeded();
    assert_equal_runs(&scratch.path("whole"), &scratch.path("job"));
}

#[test]
fn a_recipe_after_its_shards_is_the_recipe_in_one_go() {
    let scratch = Scratch::new();
    scratch.panel();
    scratch.questions(2);
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
        let run = format!("recipe mine.toml --decoding grammar --data-dir . --out {out} {more}");
        scratch.wardround(run)
    };
    run("alone", "").succeeded();
    let one = run("one", "--shard 1/3 --calls calls");
    assert!(one.succeeded().stderr.contains("shard 1/3: 2 cells run"), "{one:#?}");
    assert!(!one.stdout.contains("One round"), "no table of a part: {one:#?}");
    run("one", "--calls calls")
        .refused(2, &["one holds another run of recipes: shard is \"1/3\" against null"]);
    run("one", "--shard 1/3 --calls calls").succeeded();
    scratch.wardround("resume one").succeeded();
    scratch.wardround("report one").refused(2, &["one is shard 1/3 of a recipe"]);
    run("two", "--shard 2/3 --calls calls").succeeded();
    let none = run("three", "--shard 3/3 --calls calls");
    assert!(none.succeeded().stderr.contains("shard 3/3: 0 cells run"), "{none:#?}");
    let whole = run("whole", "--calls calls");
    for cell in ["cells/without-mine", "cells/with-mine"] {
        assert_equal_runs(&scratch.path("alone").join(cell), &scratch.path("whole").join(cell));
        scratch.wardround(format!("verify whole/{cell}")).succeeded();
    }
    let (expected, found) = (results(&scratch.path("alone")), results(&scratch.path("whole")));
    assert_eq!(found["netgain"], expected["netgain"]);
    assert_eq!(found["paired"], expected["paired"]);
    assert_eq!(found["cells"][0]["accuracy"], expected["cells"][0]["accuracy"]);
    assert!(whole.succeeded().stdout.contains("One round"), "{whole:#?}");
}
