//! How commands end when something around them does: the reader of their output, the process itself, the disk under their last file.

use crate::binary::{Outcome, Scratch, assert_equal_runs, outcome};
use crate::remote::{said, serve};

const RUN: &str = "run zero-shot --decoding text --data questions.jsonl --format mcq";

/// With an output that nobody reads.
fn unread(scratch: &Scratch, arguments: &str) -> Outcome {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    outcome(scratch.command(arguments).stdout(writer))
}

#[test]
fn nobody_who_reads_the_output_changes_what_a_command_comes_to() {
    let scratch = Scratch::new();
    scratch.questions(2);
    scratch.write("bed.txt", "A man came with malaria. Aspirin was given.");
    let silent = serve(|_| said("..."));
    let run = format!("{RUN} --panel {silent} --out out");
    unread(&scratch, &run).refused(1, &["none of 2 items has a result"]);
    assert!(scratch.path("out/report.html").exists());
    for format in ["", "--json"] {
        let check = format!(
            "check bed.txt --system base-llm --decoding text --panel {silent} --gate {format}"
        );
        unread(&scratch, &check).refused(1, &["could not be told"]);
    }
    assert_eq!(unread(&scratch, "verify out").code, Some(0));
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
