//! `wardround bench`, as a user or a script runs it, on tiny synthetic models.

use std::path::Path;
use std::process::{Command, Output};

use clap::CommandFactory;
use serde_json::Value;
use wardround::cli::Arguments;
use wardround::model::Family;

use crate::common;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wardround"))
        .arg("bench")
        .args(arguments)
        .args(["--offline", "--threads", "2"])
        .output()
        .unwrap()
}

/// What a bench that ends well prints.
fn stdout(arguments: &[&str]) -> String {
    let output = bench(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn of_model<'a>(model: &'a Path, arguments: &[&'a str]) -> Vec<&'a str> {
    [&["--model", model.to_str().unwrap()], arguments].concat()
}

fn number(value: &Value) -> f64 {
    let number = value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    assert!(number.is_finite() && number >= 0.0, "{number}");
    number
}

#[test]
fn json_names_each_test_and_sums_tokens_over_the_batch() {
    let model = common::synthetic(Family::Qwen3);
    let sizes = ["-p", "70", "-n", "3", "-d", "0,40", "--batch", "1,3"];
    let others = ["--repetitions", "2", "--mixed", "--seed", "7", "--format", "json"];
    let text = stdout(&of_model(&model, &[&sizes[..], &others].concat()));
    let report: Value = serde_json::from_str(&text).unwrap();
    let mut expected = Vec::new();
    for depth in [0, 40] {
        for (test, tokens) in [("pp70", [70, 210]), ("tg3", [3, 9]), ("mixed70", [71, 73])] {
            for (batch, tokens) in [1, 3].into_iter().zip(tokens) {
                expected.push((test.to_owned(), batch, depth, tokens));
            }
        }
    }
    let results = report["results"].as_array().unwrap();
    let found: Vec<(String, u64, u64, u64)> = results
        .iter()
        .map(|result| {
            let whole = |field: &str| result[field].as_u64().unwrap();
            let test = result["test"].as_str().unwrap().to_owned();
            (test, whole("batch"), whole("depth"), whole("tokens"))
        })
        .collect();
    assert_eq!(found, expected);
    for result in results {
        let seconds: Vec<f64> = result["seconds"].as_array().unwrap().iter().map(number).collect();
        assert_eq!(seconds.len(), 2);
        let tokens = number(&result["tokens"]);
        let mean = (tokens / seconds[0] + tokens / seconds[1]) / 2.0;
        let told = number(&result["tokens_per_second"]);
        assert!((told / mean - 1.0).abs() < 1e-9, "{told}, not {mean}");
        assert!(number(&result["tokens_per_second_min"]) <= told);
        number(&result["tokens_per_second_std"]);
        assert!(number(&result["share_of_bandwidth"]) > 0.0);
    }
    assert_eq!(report["model"]["family"], "qwen3");
    assert_eq!(report["model"]["synthetic"], true);
    assert_eq!((&report["seed"], &report["repetitions"]), (&7.into(), &2.into()));
    let environment = &report["environment"];
    assert_eq!(environment["threads"], 2);
    assert_eq!(environment["build"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(number(&environment["bytes_per_second"]) > 1e8);
    assert!(environment["hardware"]["cores"].as_u64().unwrap() > 0);
}

#[test]
fn the_table_has_a_row_a_test() {
    let model = common::synthetic(Family::Gemma3);
    let table =
        stdout(&of_model(&model, &["-p", "8", "-n", "2", "--repetitions", "1", "--format", "md"]));
    let cells: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| "))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    assert!(cells.iter().all(|row| row.len() == cells[0].len()), "{table}");
    let names: Vec<&str> = cells.iter().map(|row| row[1]).collect();
    assert_eq!(names, ["test", "---", "pp8", "tg2"], "{table}");
    assert!(table.contains("GB/s read"), "{table}");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let model = common::synthetic(Family::Qwen3);
    let cases: [(&[&str], &str); 8] = [
        (&["--batch", "0"], "--batch"),
        (&["--batch", ""], "--batch"),
        (&["--batch", "1,,3"], "--batch"),
        (&["-p", "many"], "--prompt-tokens"),
        (&["--repetitions", "0"], "--repetitions"),
        (&["--format", "yaml"], "--format"),
        (&["-p", "0", "-n", "0"], "nothing to measure"),
        (&["-d", "16000", "-p", "500"], "the model was made for 16384"),
    ];
    for (flags, named) in cases {
        let output = bench(&of_model(&model, flags));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {stderr}");
        assert!(stderr.contains(named), "{flags:?}: {stderr}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(bench(&[]).status.code(), Some(2));
}

/// The script of a GPU's fifteen minutes, with a program in place of ours that keeps what it is asked: ours takes all of it.
#[test]
#[ignore = "needs Python, bash and xz"]
fn with_python_the_gpu_script_asks_what_the_program_takes() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    std::fs::create_dir_all(at("bin")).unwrap();
    let fake =
        "#!/bin/sh\necho \"wardround $*\" >>\"$ASKED\"\n[ \"$1\" != models ] || mkdir -p \"$4\"\n";
    std::fs::write(at("bin/wardround"), fake).unwrap();
    std::fs::write(at("bin/questions.jsonl"), "").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(at("bin/wardround"), mode).unwrap();
    let shell = |command: &str| {
        let mut shell = Command::new("bash");
        shell.args(["-c", command]).env("ASKED", at("asked")).env("WORK", at("work"));
        shell.env("DEVICE", "cpu").env("SHAPE", "tiny").env("T", scratch.path());
        let ended = shell.output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        ended
    };
    shell("tar -C $T/bin -cJf $T/bin.tar.xz . && benches/gpu.sh $T/bin.tar.xz $T/out");
    let asked = std::fs::read_to_string(at("asked")).unwrap();
    for verb in ["run medmad", "bench", "generate", "models synth"] {
        assert!(asked.contains(&format!("wardround {verb} ")), "{asked}");
    }
    for line in asked.lines() {
        let parsed = Arguments::command().try_get_matches_from(line.split(' '));
        assert!(parsed.is_ok(), "{line}\n{}", parsed.unwrap_err());
    }
}
