//! Notes to check, questions to ask, and cases that are asked for again.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Answer, Ask, Server, add_key};
use crate::page::{cookie, form, token};
use crate::systems::QUICK;

const NOTE: &str = "Fever for two days. Malaria is treated with aspirin.";

fn post(server: &Server, kind: &str, body: &str, more: &[(&str, &str)]) -> Answer {
    let headers = [&[("content-type", kind)], more].concat();
    server.ask(&Ask { method: "POST", path: "/v1/check", headers: &headers, body })
}

/// The case once it has ended.
fn ended(server: &Server, place: &str) -> Value {
    let began = Instant::now();
    loop {
        let case = server.get(place).json();
        if case["status"] != "queued" && case["status"] != "running" {
            return case;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{case}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_note_is_checked_in_both_forms_with_one_outcome() {
    let server = Server::start(&format!("{QUICK} --default-seed 3"));
    let plain = post(&server, "text/plain; charset=utf-8", NOTE, &[]);
    assert_eq!(plain.status, 200, "{plain:?}");
    let plain = plain.json();
    assert!(plain.get("has_error").is_some() && plain["agents"].is_array());
    assert_eq!(
        (&plain["wardround"]["seed"], &plain["wardround"]["system"]),
        (&json!(3), &json!("medguards"))
    );
    let asked =
        post(&server, "application/json", &json!({"text": NOTE, "seed": 3}).to_string(), &[]);
    let (mut expected, mut other) = (plain, asked.json());
    // Prompts that were computed before are not computed again.
    for value in [&mut expected, &mut other] {
        value["wardround"]["usage"]["prompt_tokens_details"] = Value::Null;
    }
    assert_eq!(other, expected);
    let twice = post(&server, "application/json", r#"{"text": "Fever.", "text": "Cough."}"#, &[]);
    assert_eq!(twice.code(), (400, "invalid_json".to_owned()));
    assert!(twice.body.contains("comes twice"), "{}", twice.body);
    assert_eq!(post(&server, "application/pdf", "x", &[]).code().0, 415);
    assert_eq!(post(&server, "text/plain", " ", &[]).code(), (400, "invalid_value".to_owned()));
    assert_eq!(
        post(&server, "application/json", "{}", &[]).code(),
        (400, "missing_parameter".to_owned())
    );
    let odd = json!({"text": NOTE, "txet": 1}).to_string();
    assert_eq!(
        post(&server, "application/json", &odd, &[]).code(),
        (400, "unsupported_parameter".to_owned())
    );
    let other = json!({"text": NOTE, "system": "cot-sc"}).to_string();
    assert_eq!(
        post(&server, "application/json", &other, &[]).code(),
        (404, "model_not_found".to_owned())
    );
    let language = json!({"text": NOTE, "language": "latin"}).to_string();
    assert_eq!(
        post(&server, "application/json", &language, &[]).code(),
        (400, "invalid_value".to_owned())
    );
}

#[test]
fn a_case_is_asked_for_again_followed_and_seen_by_its_own_key_alone() {
    let folder = tempfile::tempdir().unwrap();
    let key = |name: &str, role: &str| format!("Bearer {}", add_key(folder.path(), name, role));
    let (ward, other, metrics) =
        (key("ward", "clinician"), key("other", "api"), key("m", "metrics"));
    let server = Server::start_in(folder, &format!("{QUICK} --keys keys"));
    let get = |path: &str, key: &str| {
        server.ask(&Ask { method: "GET", path, headers: &[("authorization", key)], body: "" })
    };
    let question = json!({"question": "Which?", "options": ["one", "two"], "seed": 1}).to_string();
    let headers = [
        ("content-type", "application/json"),
        ("prefer", "wait=1, respond-async"),
        ("authorization", &ward),
    ];
    let taken =
        server.ask(&Ask { method: "POST", path: "/v1/ask", headers: &headers, body: &question });
    assert_eq!((taken.status, taken.header("preference-applied")), (202, "respond-async"));
    let place = taken.header("location").to_owned();
    let stream = get(&format!("{place}/events"), &ward);
    let names: Vec<&str> =
        stream.body.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(names.last(), Some(&"done"), "{}", stream.body);
    assert!(names[..names.len() - 1].iter().all(|name| *name == "call") && names.len() == 4);
    let case = get(&place, &ward).json();
    assert_eq!((&case["status"], &case["system"]), (&json!("done"), &json!("cot-sc")));
    assert_eq!(case["calls"].as_array().unwrap().len(), names.len() - 1);
    assert_eq!(case["outcome"]["wardround"]["record"]["calls"], names.len() - 1);
    assert_eq!(case["item"]["question"], "Which?");
    // Who comes late hears it all.
    assert_eq!(get(&format!("{place}/events"), &ward).events().0.len(), names.len());
    assert_eq!(get(&place, &other).code(), (404, "case_not_found".to_owned()));
    assert_eq!(get(&format!("{place}/events"), &other).code().0, 404);
    assert_eq!(get(&place, &metrics).code().0, 403);
    assert_eq!(server.get(&place).code().0, 401);
    assert_eq!(get("/v1/models", &ward).code().0, 403);
}

#[test]
fn a_note_that_no_model_can_read_is_refused_before_it_is_kept() {
    // A few tokens more than the prompt of medguards alone.
    let flags = "--audit audit --audit-content full --context 290 --default-seed 1";
    let server = Server::start(&format!("{QUICK} {flags}"));
    let long = "Fever for two days. ".repeat(200);
    let document = json!({"text": long}).to_string();
    let later = [("prefer", "respond-async")];
    for (kind, body) in [("text/plain", &long), ("application/json", &document)] {
        for more in [&[][..], &later] {
            let refused = post(&server, kind, body, more);
            assert_eq!(refused.code(), (400, "context_length_exceeded".to_owned()));
            assert_eq!(refused.json()["error"]["param"], "text");
        }
    }
    let index = server.get("/");
    let fields = [("token", &*token(&index)), ("system", "medguards"), ("text", &long)];
    let refused = form(&server, "/cases", &fields, &[("cookie", &cookie(&index))]);
    assert!(refused.status == 400 && refused.body.contains("maximum context length"));
    assert!(!server.get("/").body.contains("/cases/"), "a case is kept");
    // One that they could read, but not within the system's prompts, fails and says why.
    let taken = post(&server, "text/plain", NOTE, &later);
    let case = ended(&server, taken.header("location"));
    assert_eq!(
        (&case["status"], &case["error"]["code"], &case["error"]["param"]),
        (&json!("error"), &json!("context_length_exceeded"), &json!("text"))
    );
}

#[test]
fn sixteen_streams_follow_a_waiting_case_and_no_more() {
    let server = Server::start(&format!("{QUICK} --max-cases 1"));
    let headers = [("content-type", "application/json"), ("prefer", "respond-async")];
    let messages = json!([{"role": "user", "content": "Which?\nA) one\nB) two"}]);
    let chat = json!({"model": "cot-sc", "messages": messages, "n": 16, "seed": 1});
    let busy = server.stream(chat);
    busy.wait();
    let question = json!({"question": "Which?", "options": ["one", "two"], "seed": 2}).to_string();
    let ask = Ask { method: "POST", path: "/v1/ask", headers: &headers, body: &question };
    let path = format!("{}/events", server.ask(&ask).header("location"));
    let follow = || server.send(&Ask { method: "GET", path: &path, ..Ask::default() });
    let mut followers: Vec<_> = (0..16).map(|_| follow()).collect();
    followers.iter().for_each(crate::client::Pending::wait);
    assert_eq!(server.get(&path).code(), (429, "key_limit".to_owned()));
    // Who leaves makes room, once the server has seen it.
    followers.pop();
    drop(busy);
    assert!(followers.pop().unwrap().read().body.contains("event: done"));
    assert!(server.get(&path).body.contains("event: done"));
}
