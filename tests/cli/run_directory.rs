//! `--out`, `resume` and `--plan`: places that cannot be written to, full disks, and runs that are not the same any more.

use std::process::{Command, Stdio};

use crate::binary::{Scratch, assert_equal_runs, lines, outcome};

#[test]
fn a_place_that_cannot_be_written_to_is_named() {
    let scratch = Scratch::new();
    scratch.questions(1);
    scratch.write("file", "");
    for out in ["file/out", "file"] {
        scratch.run_one(out, "").refused(2, &[out, "Not a directory"]);
    }
    scratch.run_one("/proc/wardround", "").refused(2, &["/proc/wardround"]);
    let resumed = scratch.wardround("resume questions.jsonl");
    resumed.refused(3, &["questions.jsonl is not a run directory"]);
}

#[test]
fn a_directory_that_holds_something_is_left_alone() {
    let scratch = Scratch::new();
    scratch.questions(1);
    scratch.run_one("out", "").succeeded();
    let before = std::fs::read(scratch.path("out/calls.jsonl")).unwrap();
    for (flags, difference) in
        [("--seed 7", "seed is 42 against 7"), ("--set t_max=1", "settings.t_max is 0 against 1")]
    {
        let expected =
            format!("out/plan.toml: inputs changed since the plan was written: {difference}");
        scratch.run_one("out", flags).refused(3, &[&expected, "or choose another `--out`"]);
    }
    assert_eq!(std::fs::read(scratch.path("out/calls.jsonl")).unwrap(), before);

    std::fs::create_dir(scratch.path("mine")).unwrap();
    scratch.write("mine/thesis.tex", "");
    scratch.run_one("mine", "").refused(2, &["mine exists and is not empty"]);
    for (directory, problem) in
        [("mine", "it holds no plan.toml"), ("nowhere", "it does not exist")]
    {
        scratch
            .wardround(format!("resume {directory}"))
            .refused(3, &["is not a run directory", problem, "hint: name a directory"]);
    }
}

/// As `recipe` does: so a task of an array that is queued again needs no other command.
#[test]
fn the_same_command_goes_on_where_it_stopped() {
    let scratch = Scratch::new();
    scratch.questions(2);
    scratch.run_one("whole", "").succeeded();
    scratch.run_one("out", "").succeeded();
    let again = scratch.run_one("out", "");
    assert!(
        again.succeeded().stderr.contains("out is finished: there is nothing left to do"),
        "{again:#?}"
    );
    // As a kill leaves it.
    std::fs::remove_file(scratch.path("out/results.json")).unwrap();
    let items = std::fs::read_to_string(scratch.path("out/items.jsonl")).unwrap();
    let first = items.split_inclusive('\n').next().unwrap();
    scratch.write("out/items.jsonl", first);
    let plan = std::fs::read(scratch.path("out/plan.toml")).unwrap();
    scratch.run_one("out", "").succeeded();
    assert_equal_runs(&scratch.path("whole"), &scratch.path("out"));
    assert_eq!(std::fs::read(scratch.path("out/plan.toml")).unwrap(), plan);
}

#[test]
fn a_full_disk_keeps_every_finished_call_and_the_run_goes_on_later() {
    let scratch = Scratch::new();
    scratch.questions(4);
    scratch.run_one("whole", "").succeeded();

    let limited = |kibibytes: u32, out: &str| {
        let run = scratch.command(&format!(
            "run medmad --data questions.jsonl --format mcq --panel llama --out {out} \
             --set record_chars=8 --set t_max=0"
        ));
        // Without its signal, the limit on a file's size is an error of the write, as a full disk is.
        let script = format!("trap '' XFSZ; ulimit -f {kibibytes}; exec \"$@\"");
        let mut bash = Command::new("bash");
        bash.args(["-c", &script, "bash"]).arg(run.get_program()).args(run.get_args());
        bash.current_dir(scratch.path(".")).stdout(Stdio::piped()).stderr(Stdio::piped());
        outcome(&mut bash)
    };
    limited(40, "full").refused(
        70,
        &[
            "full/calls.jsonl",
            "File too large",
            "hint: every finished call is kept: free some space, then go on with `wardround resume DIR`",
        ],
    );
    let kept = lines(&scratch.path("full/calls.jsonl"));
    assert!((1..12).contains(&kept), "{kept}");
    scratch.wardround("verify full").succeeded();
    scratch.wardround("resume full").succeeded();
    assert_equal_runs(&scratch.path("whole"), &scratch.path("full"));

    limited(1, "tiny").refused(70, &["plan.toml"]);
    scratch.run_one("tiny", "").succeeded();
    assert_equal_runs(&scratch.path("whole"), &scratch.path("tiny"));
}

#[test]
fn a_finished_run_resumes_to_the_same_and_other_settings_are_refused() {
    let scratch = Scratch::new();
    scratch.questions(2);
    scratch.run_one("out", "").succeeded();
    let calls = std::fs::read(scratch.path("out/calls.jsonl")).unwrap();
    scratch.wardround("resume out").succeeded();
    assert_eq!(std::fs::read(scratch.path("out/calls.jsonl")).unwrap(), calls);

    for flags in ["--set t_max=2", "--seed 7", "--limit 1"] {
        let flag = flags.split(' ').next().unwrap();
        let unexpected = format!("unexpected argument '{flag}'");
        let resumed = scratch.wardround(format!("resume out {flags}"));
        resumed.refused(2, &[&unexpected]);
        let again = scratch.wardround(format!("run --plan out/plan.toml --out again {flags}"));
        again.refused(2, &["cannot be used with", flag]);
    }
    scratch
        .wardround("resume out --context 9000")
        .refused(3, &["panel[0].context is 16384 against 9000"]);
    scratch.wardround("verify out").succeeded();
}

#[test]
fn a_plan_that_no_longer_matches_its_files_is_refused() {
    let scratch = Scratch::new();
    let data = scratch.questions(2);
    scratch.run_one("out", "").succeeded();
    let refused_everywhere = |field: &str| {
        for again in ["resume out", "run --plan out/plan.toml --out again", "replay out"] {
            let message = "out/plan.toml: inputs changed since the plan was written: ";
            scratch.wardround(again).refused(3, &[message, field]);
        }
        assert!(!scratch.path("again").exists());
    };

    let sound = std::fs::read_to_string(&data).unwrap();
    std::fs::write(&data, sound.replace("Seven times 2", "Eight times 2")).unwrap();
    refused_everywhere("dataset.sha256 is ");
    std::fs::write(&data, &sound).unwrap();

    let weights = scratch.path("llama/model.safetensors");
    let sound = std::fs::read(&weights).unwrap();
    let mut changed = sound.clone();
    let last = changed.len() - 1;
    changed[last] ^= 1;
    std::fs::write(&weights, changed).unwrap();
    refused_everywhere("panel[0].weights_sha256 is ");
    std::fs::write(&weights, sound).unwrap();

    std::fs::rename(&data, scratch.path("elsewhere.jsonl")).unwrap();
    scratch.wardround("resume out").refused(2, &["questions.jsonl", "No such file"]);
}

#[test]
fn a_plan_runs_again_from_another_directory() {
    let scratch = Scratch::new();
    scratch.questions(2);
    // All of it named as it is typed, relative to here.
    scratch.run_one("out", "").succeeded();
    std::fs::create_dir(scratch.path("elsewhere")).unwrap();
    let mut again = scratch.command("run --plan ../out/plan.toml --out again");
    outcome(again.current_dir(scratch.path("elsewhere"))).succeeded();
    assert_equal_runs(&scratch.path("out"), &scratch.path("elsewhere/again"));

    let plan = std::fs::read_to_string(scratch.path("out/plan.toml")).unwrap();
    scratch.write("broken.toml", plan.replace("runs = 1", "runs = one"));
    scratch
        .wardround("run --plan broken.toml")
        .refused(3, &["broken.toml: it is no plan: line 6: "]);
    scratch.wardround("run --plan nowhere.toml").refused(2, &["nowhere.toml", "No such file"]);
}

#[test]
fn a_run_that_is_being_written_is_not_taken_up() {
    let scratch = Scratch::new();
    scratch.questions(1);
    scratch.run_one("out", "").succeeded();
    let calls = std::fs::OpenOptions::new().append(true).open(scratch.path("out/calls.jsonl"));
    let calls = calls.unwrap();
    calls.lock().unwrap();
    scratch
        .wardround("resume out")
        .refused(2, &["out is being written by another process", "hint: wait for it to end"]);
}

#[test]
fn a_run_of_another_version_is_repeated_and_does_not_go_on() {
    let scratch = Scratch::new();
    scratch.questions(1);
    scratch.run_one("out", "").succeeded();
    crate::tampering::age(&scratch.path("out"));
    for verb in ["replay out", "run --plan out/plan.toml --out again"] {
        let repeated = scratch.wardround(verb);
        assert!(repeated.succeeded().stderr.contains("version is \"0.0.9\" against"), "{verb}");
    }
    assert_equal_runs(&scratch.path("out"), &scratch.path("again"));
    // No run has two writers.
    scratch.wardround("resume out").refused(2, &["version is \"0.0.9\" against"]);
    scratch.wardround("verify out").succeeded();
}
