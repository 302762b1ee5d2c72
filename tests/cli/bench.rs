//! `wardround bench`, as a user or a script runs it, on tiny synthetic models.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
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
