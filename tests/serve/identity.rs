//! Who asks: callers of one name are not one, who asks is said once, and nobody learns what others asked.

use std::time::{Duration, Instant};

use serde_json::json;
use wardround::model::Family;

use crate::client::{Answer, Ask, Server, add_key, wardround};
use crate::systems::QUICK;

/// A server of one model to callers with keys.
fn serve(folder: tempfile::TempDir, flags: &str) -> Server {
    let link = folder.path().join("qwen3");
    std::os::unix::fs::symlink(crate::common::synthetic(Family::Qwen3), link).unwrap();
    let command = wardround(folder.path());
    Server::run(command, folder, &format!("qwen3 --context 1024 --keys keys {flags}"))
}

/// Asks with a long prompt, always the same.
fn ask(server: &Server, key: &str) -> Answer {
    let prompt = "The patient of bed 4 has syphilis and does not know it. ".repeat(8);
    let body = json!({"prompt": prompt, "max_tokens": 1, "seed": 1}).to_string();
    let bearer = format!("Bearer {key}");
    let headers = [("content-type", "application/json"), ("authorization", &*bearer)];
    server.ask(&Ask { method: "POST", path: "/v1/completions", headers: &headers, body: &body })
}

/// How many tokens of it were computed before.
fn cached(answer: &Answer) -> u64 {
    answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap()
}

#[test]
fn a_key_made_anew_under_an_old_name_is_another_caller() {
    let folder = tempfile::tempdir().unwrap();
    let old = add_key(folder.path(), "ward");
    let server = serve(folder, "--audit audit");
    assert_eq!(cached(&ask(&server, &old)), 0);
    let revoked = wardround(server.folder.path()).args(["keys", "revoke", "keys", "ward"]).status();
    assert!(revoked.unwrap().success());
    let new = add_key(server.folder.path(), "ward");
    server.signal("-HUP");
    let began = Instant::now();
    let first = loop {
        let answer = ask(&server, &new);
        if answer.status == 200 {
            break answer;
        }
        assert!(began.elapsed() < Duration::from_secs(100));
        std::thread::sleep(Duration::from_millis(200));
    };
    assert_eq!(cached(&first), 0);
    assert_eq!(ask(&server, &old).status, 401);
    // The trail tells them apart, and reveals no key.
    let text = std::fs::read_to_string(server.folder.path().join("audit/trail.jsonl")).unwrap();
    assert!(!text.contains(&old) && !text.contains(&new));
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let requests: Vec<_> = lines.filter(|line| line["event"] == "request").collect();
    assert_eq!((&requests[0]["actor"], &requests[1]["actor"]), (&json!("ward"), &json!("ward")));
    assert!(requests[0]["identity"].as_str().unwrap().starts_with("key:"));
    assert_ne!(requests[0]["identity"], requests[1]["identity"]);
}

#[test]
fn who_asks_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let key = format!("Bearer {}", add_key(folder.path(), "ward"));
    let server = serve(folder, "");
    let headers = [("authorization", &*key), ("authorization", "Bearer wr_other")];
    let asked = Ask { method: "GET", path: "/v1/models", headers: &headers, body: "" };
    assert_eq!(server.ask(&asked).code(), (400, "invalid_value".to_owned()));
    let refused = |headers: &[(&str, &str)]| {
        let asked = server.ask(&Ask { method: "GET", path: "/v1/models", headers, body: "" });
        assert_eq!(asked.code(), (401, "invalid_api_key".to_owned()));
        asked.body
    };
    // A header that a proxy would set is no key.
    assert!(refused(&[("x-remote-user", "dr.ho")]).contains("this needs an API key"));
    assert!(refused(&[("authorization", "Bearer wr_wrong")]).contains("unknown, or was revoked"));
}

/// A browser asks first before it posts JSON from a page of another site, and is given no leave; what it posts without asking is no JSON.
#[test]
fn what_a_page_of_another_site_posts_is_refused() {
    let server = Server::start(QUICK);
    for path in ["/v1/check", "/v1/chat/completions", "/v1/embeddings"] {
        let origin = [
            ("origin", "http://evil.example"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type"),
        ];
        let leave = server.ask(&Ask { method: "OPTIONS", path, headers: &origin, body: "" });
        assert_eq!(leave.status, 405, "{leave:?}");
        assert!(leave.headers.keys().all(|name| !name.starts_with("access-control-")), "{leave:?}");
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
            let posted = server.post_text(path, kind, r#"{"text": "Fever for two days."}"#);
            assert_eq!(posted.code(), (415, "unsupported_media_type".to_owned()), "{kind}");
        }
    }
}

#[test]
fn cached_tokens_tell_nothing_of_what_others_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (ward, lab) = (add_key(folder.path(), "ward"), add_key(folder.path(), "lab"));
    let server = serve(folder, "");
    assert_eq!(cached(&ask(&server, &ward)), 0);
    assert!(cached(&ask(&server, &ward)) > 0, "the own prompt is found again");
    assert_eq!(cached(&ask(&server, &lab)), 0);
}
