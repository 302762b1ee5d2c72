//! Ctrl-C, and readers of stdout that go away.

use crate::binary::{Scratch, assert_equal_runs, lines, signal, size, wait};
use crate::determinism::wait_until;

#[test]
fn an_interrupted_run_exits_130_and_goes_on_to_the_same_end() {
    let scratch = Scratch::new();
    scratch.panel();
    scratch.questions(6);
    let run = "run medmad --panel gemma3,llama,qwen3 --data questions.jsonl --format mcq \
               --max-batch 1 --set record_chars=8 --set t_max=1 --out";
    scratch.wardround(format!("{run} whole")).succeeded();
    for (name, out) in [("INT", "interrupted"), ("TERM", "terminated")] {
        let mut child = scratch.command(&format!("{run} {out}")).spawn().unwrap();
        let items = scratch.path(out).join("items.jsonl");
        wait_until(&mut child, || size(&items) > 0);
        signal(&child, name);
        let ended = wait(child);
        ended.refused(
            130,
            &[
                "interrupted: dropping the calls in flight",
                "of 6 items\n",
                &format!("hint: `wardround resume {out}` goes on"),
            ],
        );
        assert!(lines(&items) < 6, "it ended first");
        let verified = scratch.wardround(format!("verify {out}"));
        assert!(verified.succeeded().stdout.contains("the run has not finished"));
        scratch.wardround(format!("report {out}")).succeeded();
        scratch.wardround(format!("resume {out}")).succeeded();
        assert_equal_runs(&scratch.path("whole"), &scratch.path(out));
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let scratch = Scratch::new();
    scratch.questions(1);
    scratch.run_one("out", "").succeeded();
    scratch.write("texts", "\"some text\"\n".repeat(20_000));
    for arguments in [
        "run medmad --data questions.jsonl --format mcq --panel llama --out again --set t_max=0 --quiet",
        "verify out",
        "doctor",
        "generate --model llama --prompt hello --max-tokens 9",
    ] {
        let texts = std::fs::File::open(scratch.path("texts")).unwrap();
        let mut child = scratch.command(arguments).stdin(texts).spawn().unwrap();
        drop(child.stdout.take());
        let ended = wait(child);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
    assert!(scratch.path("again/report.html").is_file());
}

#[test]
fn stdout_that_takes_no_more_is_a_failure() {
    let scratch = Scratch::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = scratch.command("doctor").stdout(full).spawn().unwrap();
    wait(child).refused(70, &["cannot write to stdout: ", "No space left on device"]);
}
