//! Bodies that come slowly: they keep nobody waiting.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;
use wardround::model::Family;

use crate::client::{Ask, Pending, Server, add_key, wardround};
use crate::common;

const BODY: &str = r#"{"prompt": "Fever for two days."}"#;
/// More than it takes to answer, less than a body may take to come (30 s).
const LONG: Duration = Duration::from_secs(5);

/// A request of a key whose body has begun, and does not go on.
fn begun(server: &Server, key: &str) -> Pending {
    let mut stream = server.connect();
    let head = format!(
        "POST /tokenize HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{}",
        server.address,
        BODY.len(),
        &BODY[..1]
    );
    stream.write_all(head.as_bytes()).unwrap();
    Pending { stream }
}

/// A whole request of a key, whose answer is not read yet.
fn whole(server: &Server, key: &str) -> Pending {
    let bearer = format!("Bearer {key}");
    let headers = [("content-type", "application/json"), ("authorization", &*bearer)];
    server.send(&Ask { method: "POST", path: "/tokenize", headers: &headers, body: BODY })
}

#[test]
fn bodies_that_are_half_sent_hold_nothing_that_another_waits_for() {
    let folder = tempfile::tempdir().unwrap();
    let key = |name: &str| add_key(folder.path(), name);
    let (slow, other) = (key("slow"), key("other"));
    let link = folder.path().join("qwen3");
    std::os::unix::fs::symlink(common::synthetic(Family::Qwen3), link).unwrap();
    let command = wardround(folder.path());
    let server = Server::run(command, folder, "qwen3 --context 1024 --keys keys --max-queue 2");
    let expected = json!(whole(&server, &other).read().json()["count"]);
    assert!(expected.as_u64().is_some_and(|count| count > 0), "{expected}");

    let held: Vec<Pending> = (0..40).map(|_| begun(&server, &slow)).collect();
    for key in [&other, &slow] {
        let asked = Instant::now();
        let answer = whole(&server, key).read();
        assert_eq!((answer.status, &answer.json()["count"]), (200, &expected));
        assert!(asked.elapsed() < LONG, "{:?}", asked.elapsed());
    }
    // One of them comes to its end, and is answered.
    let mut first = held.into_iter().next().unwrap();
    first.stream.write_all(&BODY.as_bytes()[1..]).unwrap();
    let answer = first.read();
    assert_eq!((answer.status, &answer.json()["count"]), (200, &expected));
}
