//! Equal runs: whatever the batch, the threads, the items in flight, and the kills in between.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::binary::{Random, Scratch, assert_equal_runs, lines, signal, size, wait};

const ITEMS: usize = 8;

/// A run of MedQA where it is at hand, else of questions of our own.
fn arguments(scratch: &Scratch, out: &str, more: &str) -> String {
    let (data, format) = match scratch.links_data() {
        true => ("data/medqa/us_5opt_test.jsonl", "medqa"),
        false => ("questions.jsonl", "mcq"),
    };
    format!(
        "run medmad --data {data} --format {format} --limit {ITEMS} --panel gemma3,llama,qwen3 \
         --set record_chars=32 --set t_max=1 --out {out} {more}"
    )
}

#[test]
fn runs_are_equal_whatever_the_schedule_and_the_kills() {
    let scratch = Scratch::new();
    scratch.panel();
    scratch.questions(ITEMS);
    let run = |out, schedule| scratch.wardround(arguments(&scratch, out, schedule));
    let wide = run("wide", "--max-batch 16 --threads 2");
    let narrow = run("narrow", "--max-batch 1 --threads 1");
    let digest = digest(&wide.succeeded().stdout);
    assert_eq!(self::digest(&narrow.succeeded().stdout), digest);
    assert_equal_runs(&scratch.path("wide"), &scratch.path("narrow"));

    assert_eq!(self::digest(&kill_and_resume(&scratch)), digest);
    assert_equal_runs(&scratch.path("wide"), &scratch.path("killed"));
    let verified = scratch.wardround("verify killed");
    assert_eq!(self::digest(&verified.succeeded().stdout), digest);
    let other = run("other", "--seed 7");
    assert_ne!(self::digest(&other.succeeded().stdout), digest);

    let items = lines(&scratch.path("wide/items.jsonl"));
    assert_eq!(items, ITEMS);
    let ids = first_ids(&scratch.path("wide/items.jsonl"), 2);
    let replay = scratch.wardround(format!("replay wide --items {ids} --max-batch 3"));
    assert!(replay.succeeded().stdout.starts_with("2 items, "), "{replay:#?}");
    assert!(replay.stdout.ends_with(", 0 differences\n"), "{replay:#?}");
}

/// The plan says whose bits they are, and nothing promises them again.
#[test]
fn a_run_on_candle_is_whole_and_is_not_replayed() {
    let scratch = Scratch::new();
    scratch.panel();
    scratch.questions(2);
    let run = "run medmad --data questions.jsonl --format mcq --panel gemma3,llama,qwen3 \
               --set record_chars=32 --set t_max=1 --device candle";
    let why = "candle cpu: its bits depend on the batch";
    let told = scratch.wardround(format!("{run} --out by-candle"));
    assert!(told.succeeded().stderr.contains(why), "{told:#?}");
    let plan = std::fs::read_to_string(scratch.path("by-candle/plan.toml")).unwrap();
    assert!(plan.contains("device_kind = \"candle cpu\""), "{plan}");
    scratch.wardround("verify by-candle").succeeded();
    scratch.wardround("replay by-candle").refused(2, &[why, "hint: "]);
    let stored = scratch.wardround(format!("{run} --out other --calls store"));
    stored.refused(2, &["--calls: what candle computes depends on the batch"]);
}

/// What a run, or `verify`, says of it at its end.
fn digest(told: &str) -> &str {
    let line = told.lines().find_map(|line| line.strip_prefix("digest "));
    line.unwrap_or_else(|| panic!("no digest in {told}")).trim()
}

/// Kills a run while lines are being written, three times, and lets it end the fourth time, with what it says then. It is resumed under
/// other schedules.
fn kill_and_resume(scratch: &Scratch) -> String {
    let calls = scratch.path("killed/calls.jsonl");
    let whole = size(&scratch.path("wide/calls.jsonl"));
    let mut random = Random(20);
    for way in [
        &arguments(scratch, "killed", "--max-batch 2"),
        "resume killed --max-batch 3",
        "resume killed",
    ] {
        let end = size(&calls) + 1 + random.below(whole / 4);
        let mut child = scratch.command(way).spawn().unwrap();
        wait_until(&mut child, || size(&calls) >= end);
        signal(&child, "KILL");
        assert_eq!(wait(child).code, None, "it ended before it was killed");
    }
    // A line that was being written when the power went.
    let mut torn = std::fs::read(&calls).unwrap();
    torn.extend_from_slice(br#"{"seq":9,"dataset":"me"#);
    std::fs::write(&calls, torn).unwrap();

    let ended = scratch.wardround("resume killed --threads 1");
    let before = lines(&scratch.path("wide/calls.jsonl"));
    assert_eq!(lines(&calls), before);
    assert!(ended.succeeded().stdout.contains("report     killed/report.html"));
    ended.stdout.clone()
}

/// Waits for `condition`; the child must not end before.
pub fn wait_until(child: &mut Child, condition: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        assert!(Instant::now() < patience, "nothing happened");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn first_ids(items: &Path, count: usize) -> String {
    let text = std::fs::read_to_string(items).unwrap();
    let ids = text.lines().take(count).map(|line| {
        let item: serde_json::Value = serde_json::from_str(line).unwrap();
        item["item"].as_str().unwrap().to_owned()
    });
    ids.collect::<Vec<_>>().join(",")
}
