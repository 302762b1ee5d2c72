//! The sandbox on processes of their own: what it forbids is refused, and what runs in it gives the same bytes.

use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::json;
use wardround::model::Family;

use crate::common;

const NOTE: &str = "Fever for two days. Malaria is treated with aspirin.";

fn wardround(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wardround"));
    command.current_dir(folder).args(arguments.split_whitespace());
    for (name, _) in std::env::vars() {
        if name.starts_with("WARDROUND_") || name.starts_with("HF_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs it to its end. Gives what it wrote to stdout.
fn done(mut command: Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{status}: {said}{}", String::from_utf8_lossy(&stdout));
    String::from_utf8(stdout).unwrap()
}

/// A folder with a note and a model.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("note.txt"), NOTE).unwrap();
    let model = folder.path().join("llama");
    std::os::unix::fs::symlink(common::synthetic(Family::Llama), model).unwrap();
    folder
}

const WARD: &str = r#"name = "ward"
[[source]]
label = "ward"
format = "jsonl"
path = "passages.jsonl"
licence = "own"
redistribute = true
"#;

/// Few and short steps of a system that searches.
const SEARCHING: &str = "run medreflex --data notes.jsonl --format notes --offline --quiet --panel llama --corpus corpus --prompts prompts --threads 2 \
                         --kv-tokens 65536 --set rerank=off --set rerank_top_k=1 --set record_chars=4 --set react_turns=2 \
                         --set reflexion_turns=2 --set reviewers=2";

const CHECK: &str = "check note.txt --json --offline --panel llama --set agents=1 --set max_tokens=8 --threads 2 --kv-tokens 8192 --seed 3";

/// Without `--out` a process that was taken over could write to the working directory, such as ~/.bashrc: its own folder is made before it
/// is sealed, in a folder that it cannot write to then.
#[test]
fn a_run_without_out_has_its_own_folder_and_a_refused_one_leaves_none() {
    if common::lacks_landlock() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    let run = format!("{RUN} --sandbox require --quiet");
    let folders = || {
        let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.join("plan.toml").exists()).collect::<Vec<_>>()
    };
    assert!(!wardround(path, &run).output().unwrap().status.success());
    assert_eq!(std::fs::read_dir(path).unwrap().count(), 2);
    std::fs::write(path.join("question.jsonl"), QUESTION).unwrap();
    done(wardround(path, &run));
    let [own] = &folders()[..] else { panic!("{:?}", folders()) };
    let name = own.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("wardround-zero-shot-question-"), "{name}");
    done(wardround(path, &format!("verify {name} --sandbox require")));
    done(wardround(path, &format!("report {name} --sandbox require")));
}

/// A store that several processes share stays where one of them is refused: it was deleted under the others while it was empty.
#[test]
fn a_refused_run_deletes_no_store_of_others() {
    let folder = folder();
    let path = folder.path();
    std::fs::write(path.join("question.jsonl"), "no question").unwrap();
    let refused = wardround(path, &format!("{RUN} --calls store --out out")).output().unwrap();
    assert!(!refused.status.success());
    assert!(path.join("store").is_dir());
}

#[test]
fn a_note_is_checked_with_the_same_bytes_inside_and_what_held_is_in_the_plan() {
    if common::lacks_landlock() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    let outside = done(wardround(path, &format!("{CHECK} --sandbox off")));
    let inside = done(wardround(path, &format!("{CHECK} --sandbox require")));
    assert_eq!(outside, inside);
    std::fs::write(path.join("question.jsonl"), QUESTION).unwrap();
    for mode in ["off", "require"] {
        done(wardround(path, &format!("{RUN} --sandbox {mode} --out {mode}")));
    }
    let plan = |name: &str| std::fs::read_to_string(path.join(name).join("plan.toml")).unwrap();
    assert!(plan("require").contains("sandbox = \"sandbox: files by Landlock ABI"));
    assert!(!plan("off").contains("sandbox = "));
    // What the processor can is asked for inside too.
    let kind = |name: &str| {
        plan(name).lines().find(|line| line.starts_with("device_kind")).map(str::to_owned)
    };
    assert!(kind("off").is_some() && kind("off") == kind("require"), "{:?}", kind("require"));
    done(wardround(path, "verify require"));
}

/// The hub's cache links to where its files lie; a stranger's folder may link to anything.
#[test]
fn links_of_a_model_lead_into_its_blobs_and_nowhere_else() {
    if common::lacks_landlock() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    let (snapshot, blobs) = (path.join("hub/snapshots/rev"), path.join("hub/blobs"));
    std::fs::create_dir_all(&snapshot).unwrap();
    std::fs::create_dir_all(&blobs).unwrap();
    std::fs::create_dir_all(path.join("elsewhere")).unwrap();
    let link = |name: &str, to: &str, target: &str| {
        std::fs::copy(path.join("llama").join(name), path.join(to)).unwrap();
        let _ = std::fs::remove_file(snapshot.join(name));
        std::os::unix::fs::symlink(target, snapshot.join(name)).unwrap();
    };
    for entry in std::fs::read_dir(path.join("llama")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        link(&name, &format!("hub/blobs/{name}"), &format!("../../blobs/{name}"));
    }
    let check = CHECK.replace("--panel llama", "--panel ./hub/snapshots/rev --sandbox require");
    done(wardround(path, &check));
    link("config.json", "elsewhere/config.json", "../../../elsewhere/config.json");
    let Output { status, stderr, .. } = wardround(path, &check).output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    assert!(!status.success() && said.contains("Permission denied"), "{said}");
    done(wardround(path, &check.replace("require", "off")));
}

/// A folder as the hub's own tools lay it out: what it has is links to blobs, from the folders of its modules too.
fn lay_out(from: &Path, snapshot: &Path, blobs: &Path, up: &str) {
    std::fs::create_dir_all(snapshot).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            lay_out(&path, &snapshot.join(name), blobs, &format!("../{up}"));
            continue;
        }
        let blob = format!("{}{name}", up.len());
        std::fs::copy(&path, blobs.join(&blob)).unwrap();
        std::os::unix::fs::symlink(format!("{up}/{blob}"), snapshot.join(name)).unwrap();
    }
}

/// A corpus names its encoder by a directory, whose files alone are let in: where that is of a hub's cache, the files lie in its blobs.
#[test]
fn a_corpus_finds_its_encoder_in_a_hubs_cache_and_nothing_beside_it() {
    if common::lacks_landlock() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::copy(root.join("tests/common/passages.jsonl"), path.join("passages.jsonl")).unwrap();
    let text = "0 A woman with asthma came with wheezing.\n1 Propranolol was given for the attack.";
    let note = json!({"id": "a", "text": text, "gold": {"flag": 0}});
    std::fs::write(path.join("notes.jsonl"), note.to_string()).unwrap();
    std::fs::write(path.join("ward.toml"), WARD).unwrap();
    common::retrieval::write_brief_prompts(&path.join("prompts/medreflex"));
    let (blobs, snapshot) = (path.join("hub/blobs"), path.join("hub/snapshots/rev"));
    std::fs::create_dir_all(&blobs).unwrap();
    lay_out(&root.join("tests/goldens/encoders/tiny-mean"), &snapshot, &blobs, "../../blobs");
    let build = "corpus build ward.toml --encoder hub/snapshots/rev --out corpus --quiet";
    done(wardround(path, build));
    let searched = |out: &str, sandbox: &str| {
        wardround(path, &format!("{SEARCHING} --out {out} --sandbox {sandbox}"))
    };
    // A tiny model hardly asks, but whatever it would ask by is loaded.
    done(searched("inside", "require"));
    let plan = std::fs::read_to_string(path.join("inside/plan.toml")).unwrap();
    assert!(plan.contains("sandbox = \"sandbox: files by Landlock ABI"), "{plan}");
    done(wardround(path, "verify inside"));
    // A link of a file to what is no blob, as a stranger's folder may have.
    std::fs::create_dir(path.join("elsewhere")).unwrap();
    let file = snapshot.join("encoder.toml");
    std::fs::copy(&file, path.join("elsewhere/encoder.toml")).unwrap();
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("../../../elsewhere/encoder.toml", &file).unwrap();
    let refused = searched("refused", "require").output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("Permission denied"), "{said}");
    done(searched("open", "off"));
}

#[test]
fn the_demonstration_runs_inside_too() {
    if common::lacks_landlock() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut demo = wardround(path, "demo --quiet --sandbox require --out run");
    demo.env("XDG_CACHE_HOME", path);
    done(demo);
    let plan = std::fs::read_to_string(path.join("run/plan.toml")).unwrap();
    assert!(plan.contains("sandbox = \"sandbox: files by Landlock ABI"), "{plan}");
    done(wardround(path, "verify run"));
}

#[test]
fn models_that_are_asked_elsewhere_are_no_sandbox() {
    let folder = folder();
    let command = wardround(
        folder.path(),
        &CHECK.replace("--panel llama", "--panel http://127.0.0.1:9/v1#x --sandbox require"),
    );
    let Output { status, stderr, .. } = { command }.output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(2), "{said}");
}

const RUN: &str = "run zero-shot --data question.jsonl --format mcq --offline --panel llama --set max_tokens=8 --threads 2 --kv-tokens 8192";
const QUESTION: &str = r#"{"id": "a", "question": "Which vitamin is retinol?", "options": {"A": "A", "B": "D"}, "answer": "A"}"#;

/// Whatever opens what others made is sealed, and does all of its work there.
#[test]
fn every_verb_does_its_work_inside() {
    if common::lacks_landlock() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::write(path.join("question.jsonl"), QUESTION).unwrap();
    std::fs::write(path.join("ward.toml"), WARD).unwrap();
    std::fs::copy(root.join("tests/common/passages.jsonl"), path.join("passages.jsonl")).unwrap();
    let encoder = root.join("tests/goldens/encoders/tiny-mean");
    let encoder = encoder.display();
    for line in [
        &format!("{RUN} --out run"),
        "report run",
        "replay run --threads 2 --kv-tokens 8192 --offline",
        "rate export run --out rated",
        "systems ls",
        "recipe show new-notes",
        "data ls",
        "data verify question.jsonl --format mcq",
        "models ls",
        "models synth llama made --seed 5 --tokenizer llama",
        "models verify ./made",
        "generate --model llama --prompt Hello --max-tokens 2 --offline",
        "generate --logits --model llama --tokens 1,2 --offline",
        "bench --model llama --prompt-tokens 16 --generate-tokens 2 --repetitions 1 --offline --quiet",
        &format!("corpus build ward.toml --encoder {encoder} --out corpus --quiet"),
        "corpus search corpus asthma",
        "corpus verify corpus",
        "keys add keys ward",
        "keys revoke keys ward",
    ] {
        done(wardround(path, &format!("{line} --sandbox require")));
    }
}

/// The list has what a whole check and a whole run make: nothing of it is refused once it is sealed.
#[test]
#[ignore = "needs strace"]
fn with_strace_no_call_is_missing_from_the_list() {
    if common::lacks_landlock() {
        return;
    }
    let folder = folder();
    std::fs::write(folder.path().join("question.jsonl"), QUESTION).unwrap();
    for command in [CHECK.to_owned(), format!("{RUN} --out run")] {
        let arguments = format!("{command} --sandbox require");
        let mut traced = traced(folder.path(), &arguments);
        let output = traced.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let refused = refused(folder.path());
        assert!(refused.is_empty(), "{refused:?}");
    }
}

fn traced(folder: &Path, arguments: &str) -> Command {
    let binary = env!("CARGO_BIN_EXE_wardround");
    let arguments = format!("-f -o calls {binary} {arguments}");
    let mut command = Command::new("strace");
    command.current_dir(folder).args(arguments.split_whitespace());
    command
}

/// The calls that were refused behind the last seal.
fn refused(folder: &Path) -> Vec<String> {
    let calls = std::fs::read_to_string(folder.join("calls")).unwrap();
    let sealed = calls.rfind("seccomp(").unwrap();
    let refused = |line: &&str| line.contains("= -1 EPERM") || line.contains("= -1 ENOSYS");
    calls[sealed..].lines().filter(refused).map(str::to_owned).collect()
}

/// A server that answers: it is sealed before the first connection is taken, and misses nothing.
#[test]
#[ignore = "needs strace"]
#[allow(clippy::disallowed_methods, reason = "the server under test is on this machine")]
fn with_strace_a_server_is_sealed_before_it_accepts() {
    if common::lacks_landlock() {
        return;
    }
    let folder = folder();
    let serve = "serve llama --port 0 --offline --threads 2 --kv-tokens 8192 --sandbox require --audit audit";
    let mut traced = traced(folder.path(), serve);
    let mut server = traced.stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    std::io::BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
    let address = address.trim().strip_prefix("listening on http://").unwrap().to_owned();
    let ask = |head: &str, body: &str| {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        let length = body.len();
        let request = format!(
            "{head} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let body = r#"{"prompt": "Fever", "max_tokens": 4}"#;
    let began = std::time::Instant::now();
    while !ask("POST /v1/completions", body).starts_with("HTTP/1.1 200") {
        assert!(began.elapsed().as_secs() < 120, "it does not answer");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    let calls = std::fs::read_to_string(folder.path().join("calls")).unwrap();
    let process = calls.split_whitespace().next().unwrap();
    assert!(Command::new("kill").args(["-TERM", process]).status().unwrap().success());
    assert!(server.wait().unwrap().success());
    let refused = refused(folder.path());
    assert!(refused.is_empty(), "{refused:?}");
    let calls = std::fs::read_to_string(folder.path().join("calls")).unwrap();
    assert!(calls.find("accept4(").unwrap() > calls.rfind("seccomp(").unwrap());
}

/// The calls of a whole check: no socket is made, and no file of the network is opened.
#[test]
#[ignore = "needs strace"]
fn with_strace_no_socket_is_made() {
    let folder = folder();
    let binary = env!("CARGO_BIN_EXE_wardround");
    let arguments =
        format!("-f -o calls -e trace=network,openat,execve {binary} {CHECK} --sandbox off");
    let mut command = Command::new("strace");
    command.current_dir(folder.path()).args(arguments.split_whitespace());
    done(command);
    let calls = std::fs::read_to_string(folder.path().join("calls")).unwrap();
    for forbidden in ["socket(", "connect(", "/etc/resolv.conf", "/etc/hosts"] {
        let line = calls.lines().find(|line| line.contains(forbidden));
        assert!(line.is_none(), "{line:?}");
    }
    assert_eq!(calls.lines().filter(|line| line.contains("execve(")).count(), 1);
}
