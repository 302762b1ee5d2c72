//! What a run logs, against what an independent script makes of its calls.

use std::path::Path;
use std::process::{Command, Output};
use wardround::record::ItemLine;

use crate::binary::Scratch;

/// Runs the script.
fn recompute(out: &Path) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recompute.py");
    Command::new("python3").arg(script).arg(out).output().unwrap()
}

#[track_caller]
fn agrees(out: &Path, told: &str) {
    let output = recompute(out);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.starts_with(told), "{output:?}");
}

#[test]
#[ignore = "needs WARDROUND_DATA, and python3 of 3.11 or later"]
fn with_data_the_votes_of_real_questions_are_recomputed() {
    let scratch = Scratch::new();
    scratch.link_data();
    let panel = scratch.panel();
    for (format, file) in [
        ("medqa", "medqa/us_5opt_test.jsonl"),
        ("pubmedqa", "pubmedqa/ori_pqal.json"),
        ("mmlu-pro", "mmlu_pro/professional_medicine.jsonl"),
    ] {
        let run = format!(
            "run medmad --data data/{file} --format {format} --limit 2 --sample-seed 42 --runs 2 \
             --panel {panel} --set record_chars=8 --set t_max=1 --out {format}"
        );
        scratch.wardround(run).succeeded();
        scratch.wardround(format!("verify {format}")).succeeded();
        agrees(&scratch.path(format), "4 items and ");
    }
}

#[test]
#[ignore = "needs python3 of 3.11 or later"]
fn with_python_every_switch_of_the_vote_is_recomputed() {
    let scratch = Scratch::new();
    let panel = scratch.panel();
    scratch.questions(3);
    for (out, flags, items) in [
        ("weighted", "--set t_max=1", 3),
        ("unweighted", "--set t_max=1 --set confidence=off", 3),
        ("one-role", "--set roles=ddx --runs 2", 6),
        ("cut-short", "--set t_max=1 --set max_tokens=200", 3),
        ("free", "--set t_max=1 --set max_tokens=40 --decoding text --runs 3", 9),
    ] {
        let run = format!("--data questions.jsonl --panel {panel} --out {out} {flags}");
        scratch.run(run).finished();
        agrees(&scratch.path(out), &format!("{items} items and "));
    }
    let run = scratch.run("--data questions.jsonl --panel llama --context 16 --out errors");
    assert_eq!(run.code, Some(1));
    agrees(&scratch.path("errors"), "3 items and 0 calls");
}

#[test]
#[ignore = "needs python3 of 3.11 or later"]
fn with_python_the_script_finds_a_wrong_vote() {
    let scratch = Scratch::new();
    scratch.questions(1);
    scratch.run_one("out", "").succeeded();
    let mut contents =
        wardround::experiment::contents::Contents::read(&scratch.path("out")).unwrap();
    let ItemLine::Answer(item) = &mut contents.items.records[0] else {
        panic!("{:?}", contents.items.records[0]);
    };
    item.rounds[0].weights[2] += 0.2;
    crate::tampering::seal_anew(&contents, &scratch.path("out"));
    scratch.wardround("verify out").succeeded();
    let output = recompute(&scratch.path("out"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.starts_with("item q1, run 1, round 0: weight of guide: found "), "{said}");
}
