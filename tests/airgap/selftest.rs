//! `wardround selftest` on tiny synthetic models: what is whole passes, and what was changed is found and named.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use wardround::digest::sha256;
use wardround::model::Family;
use wardround::synth::{Recipe, Shape, write_checkpoint};

use crate::common;

/// What a command said and how it ended.
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs `wardround selftest` in a folder, without the user's environment, under a mask that takes everything from others.
fn selftest(folder: &Path, arguments: &str) -> Ended {
    let mut command = Command::new("sh");
    command.args(["-c", "umask 077; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_wardround")]);
    command.current_dir(folder).arg("selftest").args(arguments.split_whitespace());
    for (name, _) in std::env::vars() {
        if name.starts_with("WARDROUND_") || name.starts_with("HF_") {
            command.env_remove(name);
        }
    }
    let output = command.args(["--threads", "2"]).output().unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ended {
    /// Expects this exit code, and every part in what was said.
    fn expect(&self, code: i32, parts: &[&str]) {
        let said = format!("{}{}", self.stdout, self.stderr);
        assert_eq!(self.code, Some(code), "{said}");
        for part in parts {
            assert!(said.contains(part), "no `{part}` in\n{said}");
        }
    }
}

/// A folder with a root that has these models.
fn root_with(families: &[Family]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for family in families {
        let to = folder.path().join("root/models").join(family.name());
        copy(&common::synthetic(*family), &to);
    }
    folder
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// Every file below, sorted.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(files_below(&path)),
            false => files.push(path),
        }
    }
    files.sort();
    files
}

/// Writes the manifest of what lies in a root, this test's binary among it, and takes others' rights away.
fn seal(root: &Path) {
    let _ = std::fs::remove_file(root.join("MANIFEST.json"));
    let entry = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        let name = path.strip_prefix(root).unwrap().to_str().unwrap();
        json!({
            "path": name, "size_bytes": bytes.len(), "sha256": sha256(&bytes), "mode": "0644",
            "role": name.split('/').next().unwrap().trim_end_matches('s'), "component": "tiny",
        })
    };
    let mut files: Vec<Value> = files_below(root).iter().map(entry).collect();
    let binary = std::fs::read(env!("CARGO_BIN_EXE_wardround")).unwrap();
    // As an installation has it, without another copy of it here.
    std::fs::create_dir_all(root.join("bin")).unwrap();
    let copied = root.join("bin/wardround");
    if !copied.exists() {
        std::fs::hard_link(env!("CARGO_BIN_EXE_wardround"), &copied)
            .or_else(|_| std::fs::copy(env!("CARGO_BIN_EXE_wardround"), &copied).map(|_| ()))
            .unwrap();
        files.push(json!({
            "path": "bin/wardround", "size_bytes": binary.len(), "sha256": sha256(&binary), "mode": "0755",
            "role": "binary", "component": "wardround",
        }));
    }
    let manifest = json!({
        "format": 1, "name": "tiny", "version": "1", "created_at": "2026-01-01T00:00:00Z", "files": files,
    });
    std::fs::write(root.join("MANIFEST.json"), manifest.to_string()).unwrap();
    close(root);
}

fn close(root: &Path) {
    for folder in ["", "models", "golden", "bin"] {
        let path = root.join(folder);
        if path.is_dir() {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    for entry in std::fs::read_dir(root.join("models")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    for file in files_below(root) {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o755;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// The one golden file of a model.
fn golden(folder: &Path, model: &str) -> PathBuf {
    let all = files_below(folder);
    let mut own = all.into_iter().filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with(&format!("{model}.cpu-"))
    });
    let found = own.next().unwrap();
    assert!(own.next().is_none());
    found
}

fn report(folder: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join("selftest.json")).unwrap()).unwrap()
}

/// Edits a golden file's line by a function on its JSON.
fn edit(path: &Path, line: usize, change: impl Fn(&mut Value)) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut value: Value = serde_json::from_str(&lines[line]).unwrap();
    change(&mut value);
    lines[line] = value.to_string();
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
}

#[test]
fn what_is_whole_passes_and_every_change_of_it_is_found() {
    let families = [Family::Gemma3, Family::Llama, Family::Qwen3];
    let folder = root_with(&families);
    let (here, root) = (folder.path(), folder.path().join("root"));

    // Golden files come before there is a manifest, and are the same bytes each time.
    selftest(here, "--root root --write-golden")
        .expect(0, &["q4_k", "written to root/golden/gemma3.cpu-"]);
    let paths: Vec<PathBuf> =
        families.iter().map(|family| golden(&root.join("golden"), family.name())).collect();
    let read =
        || -> Vec<Vec<u8>> { paths.iter().map(|path| std::fs::read(path).unwrap()).collect() };
    let first = read();
    selftest(here, "--root root --model qwen3 --write-golden --quiet").expect(0, &[]);
    assert_eq!(read(), first);
    assert!(first.iter().all(|bytes| bytes.len() < 16 << 10), "golden files are small");
    assert!(!here.join("selftest.json").exists());

    seal(&root);
    // As an installation has them: the sums, and the signatures of two persons.
    for name in ["SHA256SUMS", "SHA256SUMS.minisig", "SHA256SUMS.ward.minisig"] {
        std::fs::write(root.join(name), "x\n").unwrap();
    }
    close(&root);
    let has_sandbox = cfg!(all(target_os = "linux", feature = "airgap"));
    let sandbox = if has_sandbox { "require" } else { "off" };
    let passed = selftest(here, &format!("--root root --out out --sandbox {sandbox}"));
    passed.expect(0, &["files as listed", ", as bin/wardround", "device ", "clock "]);
    if has_sandbox {
        passed.expect(0, &["files by Landlock", "seccomp"]);
    }
    for family in families {
        let line = format!(": as root/golden/{}.cpu-", family.name());
        passed.expect(0, &[&line]);
    }
    let told = report(&here.join("out"));
    assert_eq!((&told["outcome"], &told["models"].as_array().unwrap().len()), (&json!("ok"), &3));
    assert_eq!(told["models"][0]["trials"][0]["calls"], 16);
    assert_eq!(told["models"][0]["trials"][0]["compared"]["with"], "golden");
    for file in files_below(&here.join("out")) {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        // A sandbox changes no modes: there the umask holds.
        let expected = if has_sandbox { 0o600 } else { 0o644 };
        assert_eq!(mode, expected, "{}", file.display());
    }
    let page = std::fs::read_to_string(here.join("out/selftest.html")).unwrap();
    assert!(page.contains("Synthetic weights") && page.contains("All is as it should be"));

    // A token of a golden file, with the manifest made anew so that only the answer differs.
    edit(&paths[1], 9, |answer| {
        answer["tokens"][2] = json!(answer["tokens"][2].as_u64().unwrap() ^ 1)
    });
    std::fs::remove_file(root.join("bin/wardround")).unwrap();
    seal(&root);
    let call = "batch 1: token 3 is ";
    let differs = selftest(here, "--root root --model llama");
    differs.expect(1, &["DIFFERS  llama", call, "; the golden file has "]);
    let told = report(here);
    let difference = &told["models"][0]["trials"][0]["differences"][0];
    assert_eq!((&told["outcome"], &difference["position"]), (&json!("differs"), &json!(2)));

    // A file that nobody listed, and one that others may write.
    std::fs::write(root.join("models/qwen3/notes.txt"), "x").unwrap();
    let config = root.join("models/qwen3/config.json");
    std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o666)).unwrap();
    selftest(here, "--root root --model qwen3").expect(
        1,
        &["not listed in it: models/qwen3/notes.txt", "others may write to", "config.json (0666)"],
    );

    // A byte of a file, and a file that is gone.
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replacen('{', "{ ", 1)).unwrap();
    std::fs::remove_file(root.join("bin/wardround")).unwrap();
    selftest(here, "--root root --model qwen3").expect(
        3,
        &[
            "BROKEN",
            "changed: models/qwen3/config.json",
            "missing: bin/wardround",
            "was made for a config.json with the sha256",
        ],
    );
}

#[test]
fn without_a_golden_file_answers_are_compared_with_themselves() {
    let folder = root_with(&[Family::Gemma3]);
    let here = folder.path();
    std::fs::create_dir(here.join("audit")).unwrap();
    std::fs::set_permissions(here.join("audit"), std::fs::Permissions::from_mode(0o750)).unwrap();
    let open = selftest(here, "--model root/models/gemma3 --audit audit --out out --golden root");
    open.expect(
        1,
        &["alone as in batches of 8", "root has no golden file of it", "others may read or write"],
    );
    let trial = &report(&here.join("out"))["models"][0]["trials"][0];
    let compared = (&trial["compared"]["with"], &trial["differences"]);
    assert_eq!(compared, (&json!("themselves"), &json!([])));

    // A golden file says how numbers are kept.
    let model = "--model root/models/gemma3 --golden golden --out out";
    selftest(here, &format!("{model} --write-golden --quant q8_0")).expect(0, &[]);
    selftest(here, model).expect(0, &["q8_0", ": as golden/gemma3.cpu-"]);

    // Another kind of device, and numbers that are kept in another way, have no golden file here.
    let path = golden(&here.join("golden"), "gemma3");
    edit(&path, 0, |head| head["device_kind"] = json!("cuda-sm_90"));
    std::fs::set_permissions(here.join("audit"), std::fs::Permissions::from_mode(0o700)).unwrap();
    let other = selftest(here, &format!("{model} --quant q4_k --sandbox off --audit audit"));
    other.expect(
        0,
        &[
            "since the golden files are of cuda-sm_90 (bf16, q8_0), and this is cpu-",
            "(bf16, q4_k)",
            "note     sandbox          none",
            "read by their owner alone",
        ],
    );
}

#[test]
fn golden_files_of_other_weights_or_that_are_damaged_are_errors() {
    let folder = root_with(&[Family::Llama]);
    let here = folder.path();
    // With weights as they are, whose kind of device may be one of its own.
    let as_stored = "--model root/models/llama --golden golden --write-golden --quant none";
    selftest(here, as_stored).expect(0, &["(bf16, none"]);
    let path = golden(&here.join("golden"), "llama");
    let whole = std::fs::read_to_string(&path).unwrap();

    let other = here.join("other/llama");
    let recipe = Recipe { family: Family::Llama, shape: Shape::Tiny, seed: 2, tokenizer: None };
    write_checkpoint(&recipe, &other).unwrap();
    let run = |model: &str| selftest(here, &format!("--model {model} --golden golden"));
    run("other/llama").expect(3, &["BROKEN", "llama.cpu-", "was made for weights with the sha256"]);

    let model = "root/models/llama";
    let broken = |text: &str, parts: &[&str]| {
        std::fs::write(&path, text).unwrap();
        run(model).expect(3, parts);
    };
    let cut: Vec<&str> = whole.lines().take(9).collect();
    broken(&cut.join("\n"), &["llama.cpu-", "it has 8 calls, not 16"]);
    broken(&whole[..whole.len() - 40], &["llama.cpu-", ", line 17: "]);
    broken("", &[", line 1: "]);
    broken(&whole.replacen("\"schema\":1", "\"schema\":9", 1), &["it has the schema 9"]);
    let calls = whole.replacen("\"calls_sha256\":\"", "\"calls_sha256\":\"0", 1);
    broken(&calls, &["was made by version", "which makes other calls"]);
    std::fs::write(&path, [0xff, 0xfe, b'\n']).unwrap();
    run(model).expect(3, &["llama.cpu-", "utf-8"]);

    std::fs::write(
        &path,
        whole.replacen("\"finish_reason\":\"length\"", "\"finish_reason\":\"stop\"", 1),
    )
    .unwrap();
    run(model).expect(1, &["it ended by Length"]);
}

#[test]
fn what_is_not_there_is_named() {
    let folder = root_with(&[Family::Llama]);
    let here = folder.path();
    selftest(here, "--root nowhere").expect(3, &["there is no directory at nowhere", "hint: "]);
    selftest(here, "--root root").expect(3, &["root has no MANIFEST.json"]);
    selftest(here, "--root root/models/llama --write-golden").expect(3, &["models has no models"]);
    selftest(here, "--model root/models/llama --golden none").expect(2, &["golden files at none"]);
    selftest(here, "--model root/models/llama --write-golden").expect(2, &["--golden DIR"]);
    selftest(here, "--model no-such-model").expect(2, &["no model is called `no-such-model`"]);
    selftest(here, "--root root --model llama --device tpu --write-golden").expect(2, &["tpu"]);
    for bad in ["{", r#"{"format": 2, "name": "x", "version": "1", "files": []}"#] {
        std::fs::write(here.join("root/MANIFEST.json"), bad).unwrap();
        selftest(here, "--root root").expect(3, &["root/MANIFEST.json: "]);
    }
    let outside = json!({"format": 1, "name": "x", "version": "1", "files": [
        {"path": "../x", "size_bytes": 1, "sha256": "00", "role": "doc"},
    ]});
    std::fs::write(here.join("root/MANIFEST.json"), outside.to_string()).unwrap();
    selftest(here, "--root root").expect(3, &["the path `../x` leads outside"]);
    // Nothing half-written stays, and nothing was made.
    assert_eq!(files_below(here).iter().filter(|path| path.ends_with("selftest.json")).count(), 0);
    assert!(!here.join("root/golden").exists());
}
