//! What is durable before a client sees it, while the trail's disk is slow or somebody else writes.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wardround::model::Family;

use crate::client::{PATIENCE, Pending, Server};

/// How long a reply must wait for its line here; far more than it takes to begin one.
const DELAY: Duration = Duration::from_millis(1500);

fn count(folder: &Path, event: &str) -> usize {
    let text = std::fs::read_to_string(folder.join("audit/trail.jsonl")).unwrap();
    text.matches(&format!("\"event\":\"{event}\"")).count()
}

fn chat() -> Value {
    let messages = json!([{"role": "user", "content": "Where does the canary sing?"}]);
    json!({"messages": messages, "max_tokens": 6, "seed": 4})
}

/// Whether nothing of an answer comes within this time.
fn is_silent_for(pending: &Pending, time: Duration) -> bool {
    pending.stream.set_read_timeout(Some(time)).unwrap();
    let is_silent = pending.stream.peek(&mut [0]).is_err();
    pending.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    is_silent
}

/// The line stands in the file as soon as it is written; what a power cut leaves of it is another matter, until the disk was told.
#[test]
#[ignore = "needs strace"]
fn with_strace_a_stream_begins_when_its_line_was_synced_and_not_when_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let model = crate::common::synthetic(Family::Qwen3);
    std::os::unix::fs::symlink(model, folder.path().join("qwen3")).unwrap();
    let mut command = std::process::Command::new("strace");
    let inject = format!("inject=fdatasync:delay_enter={}", DELAY.as_micros());
    command.current_dir(folder.path()).args(["-f", "-qq", "-o", "calls", "-e", "trace=fdatasync"]);
    command.args(["-e", &inject, env!("CARGO_BIN_EXE_wardround")]);
    let flags = "qwen3 --context 1024 --audit audit --sandbox off";
    let mut server = Server::run(command, folder, flags);
    let path = server.folder.path();
    // Nothing else is under way.
    while server.get("/health").status != 200 {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(2 * DELAY);
    let pending = server.stream(chat());
    let began = Instant::now();
    while count(path, "begun") == 0 {
        assert!(began.elapsed() < PATIENCE, "no line is written");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(is_silent_for(&pending, DELAY / 2), "a byte came before the line was synced");
    let answer = pending.read();
    assert!(answer.status == 200 && answer.events().1, "{answer:?}");
    // The server is strace's child, and would outlive it.
    let process = server.process.id();
    let children = format!("/proc/{process}/task/{process}/children");
    let child = std::fs::read_to_string(children).unwrap();
    let ended = std::process::Command::new("kill").args(["-KILL", child.trim()]).status();
    assert!(ended.unwrap().success());
    server.process.wait().unwrap();
}
