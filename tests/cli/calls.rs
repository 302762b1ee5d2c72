//! `--calls`: what was computed once is not computed again, and no byte says so.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::binary::{Random, Scratch, assert_equal_runs, lines, size};
use crate::determinism::wait_until;

const TAKEN: &str = "calls came from the store of calls";

/// The calls of a store.
fn files(scratch: &Scratch, store: &str) -> Vec<PathBuf> {
    let list = |path: PathBuf| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let files = list(scratch.path(store)).flat_map(list);
    files.filter(|path| path.extension().is_some_and(|kind| kind == "call")).collect()
}

#[test]
fn a_run_from_a_store_is_the_run_without_one() {
    let scratch = Scratch::new();
    scratch.questions(3);
    scratch.run_one("alone", "--runs 2 --set t_max=2").succeeded();
    // Fewer rounds of the same debates: what is missing is computed.
    let first = scratch.run_one("first", "--runs 2 --set t_max=1 --calls calls");
    assert!(!first.succeeded().stderr.contains(TAKEN), "{first:#?}");
    let second = scratch.run_one("second", "--runs 2 --set t_max=2 --calls calls");
    assert!(second.succeeded().stderr.contains(TAKEN), "{second:#?}");
    let third = scratch.run_one("third", "--runs 2 --set t_max=2 --calls calls");
    let calls = std::fs::read_to_string(scratch.path("third/calls.jsonl")).unwrap().lines().count();
    assert!(third.succeeded().stderr.contains(&format!("{calls} {TAKEN}")), "{third:#?}");
    for run in ["second", "third"] {
        assert_equal_runs(&scratch.path("alone"), &scratch.path(run));
        scratch.wardround(format!("verify {run}")).succeeded();
    }
    // A replay computes.
    scratch.wardround("replay third --items q2").succeeded();
    scratch.wardround("replay third --draft 0").succeeded();
    scratch.wardround("replay third --calls calls").refused(2, &["computes every call again"]);
    // Another seed asks for other calls.
    let other = scratch.run_one("other", "--seed 7 --set t_max=0 --calls calls");
    assert!(!other.succeeded().stderr.contains(TAKEN), "{other:#?}");
}

#[test]
fn a_store_is_handed_on_by_cp_and_what_is_damaged_is_not_used() {
    let scratch = Scratch::new();
    scratch.questions(2);
    for (run, settings) in [("one", "--set t_max=0"), ("two", "--set t_max=0 --seed 7")] {
        scratch.run_one(run, &format!("{settings} --calls calls")).succeeded();
    }
    assert_eq!(files(&scratch, "calls").len(), 12);
    let copied = Command::new("cp")
        .args(["-r", "calls/.", "elsewhere"])
        .current_dir(scratch.path(""))
        .status();
    assert!(copied.unwrap().success());
    // A byte of every call.
    for file in files(&scratch, "calls") {
        let mut bytes = std::fs::read(&file).unwrap();
        let place = bytes.iter().position(|byte| *byte == b'{').unwrap() + 12;
        bytes[place] ^= 1;
        std::fs::write(&file, bytes).unwrap();
    }
    // It is not used: the run is what it was, and the call is kept anew.
    let again = scratch.run_one("again", "--set t_max=0 --calls calls");
    assert!(again.succeeded().stderr.contains("a call of the store is not used"), "{again:#?}");
    assert!(!again.stderr.contains(TAKEN), "{again:#?}");
    for store in ["calls", "elsewhere"] {
        let there =
            scratch.run_one(&format!("from-{store}"), &format!("--set t_max=0 --calls {store}"));
        assert!(there.succeeded().stderr.contains(&format!("6 {TAKEN}")), "{there:#?}");
        assert_equal_runs(&scratch.path("one"), &scratch.path(&format!("from-{store}")));
    }
    // Nothing is begun with what is none.
    for (other, why) in [("one", "is no store of calls"), ("questions.jsonl", "")] {
        scratch.run_one("none", &format!("--calls {other}")).refused(2, &[why]);
        assert!(!scratch.path("none").exists());
    }
}

/// One of several tasks that is refused takes nothing from under the others.
#[test]
fn a_refused_run_leaves_the_store_that_it_would_have_used() {
    let scratch = Scratch::new();
    scratch.questions(1);
    let refused = scratch.run_one("none", "--calls calls --set no_such_setting=1");
    assert_ne!(refused.code, Some(0));
    let refused = scratch.run_one("none", "--calls calls --seed 1 --context 1");
    assert_ne!(refused.code, Some(0), "{refused:#?}");
    assert!(scratch.path("calls").is_dir());
}

/// Two processes add to one store and are killed at random moments: whatever call reached a log is in the store, and what is taken from
/// there is right. `CALLS_KILLS=40` kills so many.
#[test]
fn runs_at_once_that_are_killed_leave_a_store_that_is_whole() {
    let kills = std::env::var("CALLS_KILLS").map_or(4, |count| count.parse().unwrap());
    let scratch = Scratch::new();
    scratch.questions(4);
    let mut random = Random(3);
    let mut logged = 0;
    for round in 0..kills / 2 {
        let settings = format!("--set t_max=1 --seed {round}");
        scratch.run_one(&format!("alone-{round}"), &settings).succeeded();
        let children = [1, 2].map(|number| {
            let run = format!(
                "run medmad --panel llama --data questions.jsonl --format mcq --set record_chars=8 {settings} --calls calls --out killed-{round}-{number}"
            );
            scratch.command(&run).spawn().unwrap()
        });
        let mut most = 0;
        for (number, mut child) in (1..).zip(children) {
            let log = scratch.path(&format!("killed-{round}-{number}/calls.jsonl"));
            wait_until(&mut child, || log.exists() && size(&log) > 0);
            std::thread::sleep(Duration::from_millis(random.below(150)));
            child.kill().unwrap();
            child.wait().unwrap();
            most = most.max(lines(&log));
            logged += lines(&log);
        }
        let last = scratch.run_one(&format!("last-{round}"), &format!("{settings} --calls calls"));
        let told = last.succeeded().stderr.lines().find_map(|line| line.strip_suffix(TAKEN));
        let taken: usize = told.unwrap().trim().rsplit(' ').next().unwrap().parse().unwrap();
        assert!(taken >= most, "{most} calls in a log: {last:#?}");
        assert!(!last.stderr.contains("not used"), "{last:#?}");
        let [alone, last] = ["alone", "last"].map(|run| scratch.path(&format!("{run}-{round}")));
        assert_equal_runs(&alone, &last);
    }
    let kept = files(&scratch, "calls").len();
    println!("{kills} processes killed, {logged} calls in their logs, {kept} in the store");
}

/// An endpoint may answer otherwise each time: this one does.
#[cfg(feature = "remote")]
#[test]
fn endpoints_are_asked_again() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    let scratch = Scratch::new();
    scratch.questions(2);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let member = crate::remote::serve(move |_| {
        let number = count.fetch_add(1, Ordering::Relaxed);
        let answer = ["A", "B"][number % 2];
        crate::remote::said(&format!(
            "{{\"answer\": \"{answer}\", \"confidence\": 0.{}}}",
            number % 10
        ))
    });
    let run = |out: &str| {
        let before = asked.load(Ordering::Relaxed);
        let flags = "--set t_max=0 --decoding json --calls calls";
        let run = format!("--panel {member} --data questions.jsonl --out {out} {flags}");
        scratch.run(run).succeeded();
        asked.load(Ordering::Relaxed) - before
    };
    assert_eq!((run("one"), run("two")), (6, 6));
    assert_eq!(files(&scratch, "calls").len(), 0);
}
