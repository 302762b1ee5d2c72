//! How commands end when something around them does: the reader of their output, the process itself, the disk under their last file.

use std::time::Duration;

use serde_json::Value;

use crate::binary::{Outcome, Scratch, assert_equal_runs, outcome};
use crate::determinism::wait_until;
use crate::remote::{said, serve};

const RUN: &str = "run zero-shot --decoding text --data questions.jsonl --format mcq";

/// With an output that nobody reads.
fn unread(scratch: &Scratch, arguments: &str) -> Outcome {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    outcome(scratch.command(arguments).stdout(writer))
}

/// Those lines of the trail `audit` that are of such an event.
fn of_trail(scratch: &Scratch, event: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(scratch.path("audit/trail.jsonl")).unwrap_or_default();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["event"] == event).collect()
}

#[test]
fn nobody_who_reads_the_output_changes_what_a_command_comes_to() {
    let scratch = Scratch::new();
    scratch.questions(2);
    scratch.write("bed.txt", "A man came with malaria. Aspirin was given.");
    let silent = serve(|_| said("..."));
    let run = format!("{RUN} --panel {silent} --audit audit --out out");
    unread(&scratch, &run).refused(1, &["none of 2 items has a result"]);
    assert!(scratch.path("out/report.html").exists());
    for format in ["", "--json"] {
        let check = format!(
            "check bed.txt --system base-llm --decoding text --panel {silent} --gate {format}"
        );
        unread(&scratch, &check).refused(1, &["could not be told"]);
    }
    assert_eq!(unread(&scratch, "verify out").code, Some(0));
    assert_eq!(unread(&scratch, "audit verify audit").code, Some(0));
    let trail = std::fs::read_to_string(scratch.path("audit/trail.jsonl")).unwrap();
    scratch.write("audit/trail.jsonl", trail.replace("begun", "began"));
    unread(&scratch, "audit verify audit").refused(3, &["the audit trail audit is not as it was"]);
    assert_eq!(unread(&scratch, "systems ls").code, Some(0));
}

#[test]
fn a_run_that_lost_its_page_gets_it_when_it_is_resumed_and_the_verdict_of_the_run() {
    let scratch = Scratch::new();
    scratch.questions(2);
    for (answer, code) in [("B", 0), ("...", 1)] {
        let member = serve(move |_| said(answer));
        let out = format!("out-{code}");
        let page = scratch.path(&format!("{out}/report.html"));
        let ran = scratch.wardround(format!("{RUN} --panel {member} --out {out}"));
        assert_eq!(ran.code, Some(code), "{ran:#?}");
        let whole = std::fs::read(&page).unwrap();
        std::fs::remove_file(&page).unwrap();
        let resumed = scratch.wardround(format!("resume {out}"));
        assert_eq!(resumed.code, Some(code), "{resumed:#?}");
        assert!(resumed.stderr.contains("is finished"), "{resumed:#?}");
        assert_eq!(std::fs::read(&page).unwrap(), whole);
    }
}

#[test]
fn a_recipe_goes_on_with_its_flags_and_writes_the_pages_that_its_cells_lack() {
    let scratch = Scratch::new();
    scratch.questions(2);
    scratch.panel();
    let cell = |name: &str| {
        format!(
            "[[method]]\nname = \"{name}\"\nlabel = \"{name}\"\ngroup = \"\"\nsystem = \"zero-shot\"\nsettings = {{ record_chars = 8 }}\n"
        )
    };
    let recipe = format!(
        "title = \"Own\"\ntext = \"Own.\"\nruns = 1\ndecoding = \"grammar\"\npanel = [\"llama\"]\nanalyses = []\n\
         [[dataset]]\nname = \"own\"\nlabel = \"Own\"\nfile = \"questions.jsonl\"\nformat = \"mcq\"\n{}{}",
        cell("one"),
        cell("two")
    );
    scratch.write("own.toml", recipe);
    let flags = "recipe own.toml --data-dir . --quant q8_0 --context 2048 --dtype bf16";
    scratch.wardround(format!("{flags} --out whole")).succeeded();
    scratch.wardround(format!("{flags} --out out")).succeeded();
    // As a kill leaves it: a cell without its page, another without its end.
    let page = scratch.path("out/cells/one-own/report.html");
    std::fs::remove_file(&page).unwrap();
    for name in ["results.json", "report.html"] {
        std::fs::remove_file(scratch.path("out/cells/two-own").join(name)).unwrap();
    }
    scratch.write("out/cells/two-own/items.jsonl", "");
    scratch.wardround("resume out").succeeded();
    assert!(page.exists());
    for cell in ["cells/one-own", "cells/two-own"] {
        assert_equal_runs(&scratch.path("whole").join(cell), &scratch.path("out").join(cell));
    }
    scratch
        .wardround("recipe own.toml --data-dir . --out out")
        .refused(2, &["out holds another run of recipes", "machine"]);
    let other = std::fs::File::open(scratch.path("out")).unwrap();
    other.lock().unwrap();
    scratch.wardround("resume out").refused(2, &["out is being written by another process"]);
}

#[test]
fn what_was_sent_is_in_the_trail_whatever_kills_the_process() {
    let scratch = Scratch::new();
    scratch.questions(2);
    scratch.write("bed.txt", "A man came with malaria. Aspirin was given.");
    let mute = serve(|_| {
        std::thread::sleep(Duration::from_secs(600));
        said("B")
    });
    let audit = "--audit audit";
    let mut begun = 0;
    let mut killed = |arguments: &str| {
        let mut child = scratch.command(&format!("{arguments} {audit}")).spawn().unwrap();
        begun += 1;
        wait_until(&mut child, || of_trail(&scratch, "begun").len() == begun);
        child.kill().unwrap();
        child.wait().unwrap();
        of_trail(&scratch, "begun").pop().unwrap()
    };
    let check = killed(&format!("check bed.txt --system base-llm --decoding text --panel {mute}"));
    assert_eq!(check["input"].as_str().unwrap().len(), 64);
    let run = killed(&format!("{RUN} --panel {mute} --out out"));
    let resumed = killed("resume out");
    for field in ["directory", "system", "plan", "data_sha256"] {
        assert!(run[field].is_string(), "{run}");
        assert_eq!(run[field], resumed[field]);
    }
    let verified = scratch.wardround("audit verify audit");
    let told = "3 calls were begun and have no end: they run, or their process was killed";
    assert!(verified.succeeded().stdout.contains(told), "{verified:#?}");

    let member = serve(|_| said("B"));
    let run = format!("{RUN} --panel {member} --out other {audit}");
    scratch.wardround(run).succeeded();
    let (begun, run) = (of_trail(&scratch, "begun").pop().unwrap(), of_trail(&scratch, "run"));
    assert_eq!((begun["call"].clone(), run.len()), (run[0]["call"].clone(), 1));
    assert_eq!((&run[0]["items"], &run[0]["status"]), (&2.into(), &"done".into()));
    let verbs: Vec<Value> =
        of_trail(&scratch, "start").into_iter().map(|line| line["verb"].clone()).collect();
    assert_eq!(verbs, ["check", "run", "resume", "run"]);
}
