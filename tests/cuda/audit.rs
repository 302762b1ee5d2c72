//! A CPU in a GPU's place: runs that it makes, and makes again as a GPU of compute capability 9.0 would.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::{Family, common, places};

const QUESTION: &str =
    r#"{"id": "q1", "question": "Seven times one?", "options": ["7", "8", "9"], "answer": "A"}"#;

fn wardround(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(places::program(env!("CARGO_BIN_EXE_wardround")));
    command.current_dir(folder).args(arguments.split(' ')).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

/// What a GPU logged is what its kernels have to give, or it is not: any CPU can tell.
#[test]
fn a_run_is_made_again_by_the_emulator_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("questions.jsonl"), format!("{QUESTION}\n")).unwrap();
    let model = common::synthetic(Family::Qwen3);
    let run = |device: &str| {
        let arguments = format!(
            "run zero-shot --format mcq --data questions.jsonl --panel {} --set record_chars=4 --quiet --out {device} --device {device}",
            model.display()
        );
        let output = wardround(folder.path(), &arguments);
        assert!(output.status.success(), "{}", said(&output));
        fs::read_to_string(folder.path().join(device).join("plan.toml")).unwrap()
    };
    let plan = run("cpu-emulating-cuda");
    assert!(plan.contains("device_kind = \"cuda sm_90 emulated\""), "{plan}");
    let again = wardround(folder.path(), "replay cpu-emulating-cuda --device cpu-emulating-cuda");
    assert!(again.status.success(), "{}", said(&again));
    assert!(said(&again).contains("1 call replayed, 0 differences"), "{}", said(&again));
    // The emulator as tests use it sums otherwise, and may not be held against it.
    let other = wardround(folder.path(), "replay cpu-emulating-cuda --device cuda");
    assert!(!other.status.success() && said(&other).contains("device_kind"), "{}", said(&other));
}
