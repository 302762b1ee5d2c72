//! A system that searches, through HTTP, and who asks as a reverse proxy says.

use std::path::Path;

use serde_json::{Value, json};

use crate::client::{Ask, Server, add_key, wardround};
use crate::common::retrieval::write_brief_prompts;
use crate::systems::QUICK;

const DESCRIPTION: &str = r#"name = "ward"
[[source]]
label = "ward"
format = "jsonl"
path = "passages.jsonl"
licence = "own"
redistribute = true
"#;
/// Few and short steps.
const SEARCHING: &str = "--system medreflex=qwen3 --corpus corpus --prompts prompts --set medreflex.rerank=off --set medreflex.rerank_top_k=1 \
                         --set medreflex.record_chars=4 --set medreflex.react_turns=2 --set medreflex.reflexion_turns=1 --set medreflex.reviewers=2";
const NOTE: &str = "A woman with asthma came with wheezing. Propranolol was given for the attack.";

/// A folder with a corpus of our own sentences, by a tiny encoder, and prompts of a few words.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let passages = root.join("src/cli/demo/passages.jsonl");
    std::fs::copy(passages, folder.path().join("passages.jsonl")).unwrap();
    std::fs::write(folder.path().join("ward.toml"), DESCRIPTION).unwrap();
    write_brief_prompts(&folder.path().join("prompts/medreflex"));
    let encoder = root.join("tests/goldens/encoders/tiny-mean");
    let built = wardround(folder.path())
        .args(["corpus", "build", "ward.toml", "--out", "corpus", "--quiet", "--encoder"])
        .arg(encoder)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    folder
}

#[test]
fn a_system_that_searches_is_asked_as_a_model_and_checks_notes() {
    let server = Server::start_in(folder(), SEARCHING);
    let checked = server.post("/v1/check", &json!({"text": NOTE, "seed": 3}));
    assert_eq!(checked.status, 200, "{checked:?}");
    let made = checked.json()["wardround"].clone();
    assert_eq!(made["system"], "medreflex");
    assert!(made["record"]["search"]["turns"].is_array(), "{made}");
    let chat =
        json!({"model": "medreflex", "seed": 3, "messages": [{"role": "user", "content": NOTE}]});
    let answer = server.post("/v1/chat/completions", &chat).json();
    assert_eq!(answer["wardround"]["record"], made["record"]);
    let reasoning = answer["choices"][0]["message"]["reasoning_content"].as_str().unwrap();
    assert_eq!(json!(reasoning.lines().count()), made["record"]["calls"], "{reasoning}");
    let headers = [("content-type", "text/plain"), ("prefer", "respond-async")];
    let taken = server.ask(&Ask {
        method: "POST",
        path: "/v1/check?seed=3",
        headers: &headers,
        body: NOTE,
    });
    let place = taken.header("location");
    assert!(server.get(&format!("{place}/events")).body.contains("event: done"));
    let case = server.get(place).json();
    assert!(case["searches"].is_array());
    assert_eq!(case["outcome"]["wardround"]["record"], made["record"]);
}

#[test]
fn a_trusted_proxy_says_who_asks_and_each_sees_their_own_cases() {
    let folder = tempfile::tempdir().unwrap();
    let key = format!("Bearer {}", add_key(folder.path(), "lab", "api"));
    let server =
        Server::start_in(folder, &format!("{QUICK} --keys keys --trust-user-header x-remote-user"));
    let get = |path: &str, user: &str| {
        server.ask(&Ask { method: "GET", path, headers: &[("x-remote-user", user)], body: "" })
    };
    let index = get("/", "dr.ho");
    assert!(index.status == 200 && index.body.contains("dr.ho</span>"), "{index:?}");
    // A word of the proxy is a clinician's key: it opens cases and nothing else.
    assert_eq!(get("/v1/models", "dr.ho").status, 401);
    assert_eq!(get("/metrics", "dr.ho").status, 401);
    for nobody in ["", " "] {
        let sent = get("/cases/abc", nobody);
        assert_eq!((sent.status, sent.header("location")), (303, "/login"));
    }
    let question = json!({"question": "Which?", "options": ["one", "two"], "seed": 1}).to_string();
    let headers = [
        ("content-type", "application/json"),
        ("prefer", "respond-async"),
        ("x-remote-user", "dr.ho"),
    ];
    let taken =
        server.ask(&Ask { method: "POST", path: "/v1/ask", headers: &headers, body: &question });
    assert_eq!(taken.status, 202, "{taken:?}");
    let place = taken.header("location");
    assert_eq!(get(place, "dr.ho").status, 200);
    assert_eq!(get(place, "dr.no").code(), (404, "case_not_found".to_owned()));
    let own: Value = server
        .ask(&Ask { method: "GET", path: place, headers: &[("authorization", &key)], body: "" })
        .json();
    assert_eq!(own["error"]["code"], "case_not_found");

    // A user has a limit as a key has.
    let folder = tempfile::tempdir().unwrap();
    add_key(folder.path(), "lab", "api");
    let flags = format!("{QUICK} --keys keys --trust-user-header x-remote-user --max-per-key 1");
    let server = Server::start_in(folder, &flags);
    let asks = (0..30).map(|_| {
        server.ask(&Ask { method: "POST", path: "/v1/ask", headers: &headers, body: &question })
    });
    let refused: Vec<_> = asks.filter(|answer| answer.status != 202).collect();
    assert!(!refused.is_empty(), "one user may fill the queue");
    for answer in refused {
        assert_eq!(answer.code(), (429, "key_limit".to_owned()));
    }

    // Without the flag a header is a header.
    let folder = tempfile::tempdir().unwrap();
    add_key(folder.path(), "lab", "api");
    let server = Server::start_in(folder, &format!("{QUICK} --keys keys"));
    let headers = [("content-type", "application/json"), ("x-remote-user", "dr.ho")];
    let refused =
        server.ask(&Ask { method: "POST", path: "/v1/ask", headers: &headers, body: &question });
    assert_eq!(refused.code(), (401, "invalid_api_key".to_owned()));
    assert!(refused.body.contains("this needs an API key"), "{refused:?}");
    let headers = [("content-type", "application/json"), ("authorization", "Bearer wr_wrong")];
    let refused =
        server.ask(&Ask { method: "POST", path: "/v1/ask", headers: &headers, body: &question });
    assert!(refused.body.contains("unknown, or was revoked"), "{refused:?}");
}
