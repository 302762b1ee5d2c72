//! The audit log: chained, without texts unless asked, and nothing is served without it.

use serde_json::{Value, json};

use crate::client::{Server, wardround};
use crate::systems::QUICK;

const QUESTION: &str = "Is the canary yellow?";

fn lines(server: &Server) -> Vec<Value> {
    let text = std::fs::read_to_string(server.folder.path().join("audit/trail.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn asked() -> Value {
    json!({"question": QUESTION, "options": ["yes", "no"], "seed": 9})
}

#[test]
fn a_case_is_logged_by_sums_alone_and_the_chain_goes_on_after_a_restart() {
    let server = Server::start(&format!("{QUICK} --audit audit"));
    assert_eq!(server.post("/v1/ask", &asked()).status, 200);
    assert_eq!(server.post("/v1/ask", &asked()).status, 200);
    let log = lines(&server);
    let events: Vec<&str> = log.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["start", "case", "case"]);
    assert_eq!(log[1]["input"], log[2]["input"]);
    assert_eq!(log[1]["output"], log[2]["output"]);
    assert_eq!(
        (&log[1]["system"], &log[1]["seed"], &log[1]["status"]),
        (&json!("cot-sc"), &json!(9), &json!("done"))
    );
    let folder = server.folder.path().join("audit");
    assert!(!folder.join("content").exists());
    for line in &log {
        assert!(!line.to_string().contains("canary"), "{line}");
    }
    use std::os::unix::fs::PermissionsExt;
    for (path, mode) in
        [(folder.clone(), 0o700), (folder.join("trail.jsonl"), 0o600), (folder.join("key"), 0o600)]
    {
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            mode,
            "{}",
            path.display()
        );
    }
    let copy = tempfile::tempdir().unwrap();
    std::fs::create_dir(copy.path().join("audit")).unwrap();
    for name in ["trail.jsonl", "key"] {
        std::fs::copy(folder.join(name), copy.path().join("audit").join(name)).unwrap();
    }
    let (code, said) = server.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("canary"));

    let server = Server::start_in(copy, &format!("{QUICK} --audit audit --audit-content full"));
    assert_eq!(server.post("/v1/ask", &asked()).status, 200);
    let log = lines(&server);
    assert_eq!(log.len(), 5);
    assert_eq!(log[3]["prev"], log[2]["hash"]);
    assert_eq!(log[4]["input"], log[1]["input"]);
    let id = log[4]["content"].as_str().unwrap();
    let path = server.folder.path().join("audit/content").join(&id[..2]).join(format!("{id}.json"));
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(kept["input"]["question"], QUESTION);
}

#[test]
fn a_log_that_was_changed_is_not_continued() {
    let server = Server::start(&format!("{QUICK} --audit audit"));
    assert_eq!(server.post("/v1/ask", &asked()).status, 200);
    let folder = server.folder.path();
    let path = folder.join("audit/trail.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::create_dir(folder.join("other")).unwrap();
    for (changed, said) in [
        (text.replace("cot-sc", "mdagents"), "line 2"),
        (text.lines().nth(1).unwrap().to_owned() + "\n", "does not follow"),
        (text.trim_end().to_owned(), "cut off"),
    ] {
        std::fs::write(folder.join("other/trail.jsonl"), changed).unwrap();
        let done = wardround(folder)
            .args("serve gemma3 --port 0 --offline --audit other".split(' '))
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(3), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
}
