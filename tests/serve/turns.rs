//! Bodies that come slowly: they keep nobody waiting but their own key.

use std::io::Write;
use std::net::TcpStream;
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

/// Whether an answer begins within this time.
fn is_answered_within(stream: &TcpStream, time: Duration) -> bool {
    stream.set_read_timeout(Some(time)).unwrap();
    let has_begun = stream.peek(&mut [0]).is_ok_and(|bytes| bytes > 0);
    stream.set_read_timeout(Some(crate::client::PATIENCE)).unwrap();
    has_begun
}

#[test]
fn slow_bodies_of_one_key_keep_its_fourth_request_waiting_and_no_other_key() {
    let folder = tempfile::tempdir().unwrap();
    let key = |name: &str| add_key(folder.path(), name, "api");
    let (slow, other) = (key("slow"), key("other"));
    let link = folder.path().join("qwen3");
    std::os::unix::fs::symlink(common::synthetic(Family::Qwen3), link).unwrap();
    let command = wardround(folder.path());
    let server = Server::run(command, folder, "qwen3 --context 1024 --keys keys");
    let expected = json!(whole(&server, &other).read().json()["count"]);
    assert!(expected.as_u64().is_some_and(|count| count > 0), "{expected}");

    let mut held: Vec<Pending> = (0..3).map(|_| begun(&server, &slow)).collect();
    let began = Instant::now();
    let fourth = loop {
        let fourth = whole(&server, &slow);
        for _ in 0..3 {
            let asked = Instant::now();
            let answer = whole(&server, &other).read();
            assert_eq!((answer.status, &answer.json()["count"]), (200, &expected));
            assert!(asked.elapsed() < LONG, "another key waits: {:?}", asked.elapsed());
        }
        // Until the server has taken all three, it is answered.
        if !is_answered_within(&fourth.stream, Duration::from_millis(500)) {
            break fourth;
        }
        assert!(began.elapsed() < LONG, "a key has more than three bodies read at once");
    };
    // One of the three comes to its end, and the fourth has its turn.
    let mut first = held.remove(0);
    first.stream.write_all(&BODY.as_bytes()[1..]).unwrap();
    for answer in [first.read(), fourth.read()] {
        assert_eq!((answer.status, &answer.json()["count"]), (200, &expected));
    }
}
