//! What a server refuses, how it ends, and what it does for clients that misbehave.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Server;

const CHAT: &str = "/v1/chat/completions";

fn long() -> Value {
    json!({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3000, "ignore_eos": true, "seed": 1})
}

#[test]
fn errors_name_place_and_reason() {
    let server = Server::start(&["--max-body", "2000"]);
    let user = |content: &str| json!({"messages": [{"role": "user", "content": content}]});
    let post = |body: &Value| server.post(CHAT, body);
    let cases = [
        (post(&json!({"messages": []})), 400, "invalid_value"),
        (
            post(&json!({"model": "gpt-9", "messages": user("a")["messages"]})),
            404,
            "model_not_found",
        ),
        (post(&user(&"a ".repeat(1500))), 413, "body_too_large"),
        (
            server.post_with(CHAT, "content-type: text/plain\r\n", "{}"),
            415,
            "unsupported_media_type",
        ),
        (server.post_with(CHAT, "content-type: application/json\r\n", "{"), 400, "invalid_json"),
        (
            server.post_with(
                CHAT,
                "content-type: application/json\r\norigin: http://evil.example\r\n",
                "{}",
            ),
            403,
            "origin_not_allowed",
        ),
        (server.get("/v1/nothing"), 404, "unknown_url"),
        (server.get(CHAT), 405, "method_not_allowed"),
        (
            server.send("GET /health HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n"),
            403,
            "host_not_allowed",
        ),
    ];
    for (reply, status, code) in cases {
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{reply:?}");
        assert!(reply.header("x-request-id").is_some(), "{reply:?}");
    }
    let prompt: Vec<u32> = vec![5; 400];
    let reply = server.post("/v1/completions", &json!({"prompt": prompt, "max_tokens": 1, "n": 1}));
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(server.get("/v1/models/").status, 200);
}

#[test]
fn prompts_beyond_the_context_are_refused_in_the_words_that_clients_look_for() {
    let server = Server::start(&[]);
    let prompt: Vec<u32> = vec![5; 1024];
    let reply = server.post("/v1/completions", &json!({"prompt": prompt, "max_tokens": 1}));
    assert_eq!((reply.status, reply.code().as_str()), (400, "context_length_exceeded"));
    // Where nothing is said of the answer's length too.
    let long = json!({"messages": [{"role": "user", "content": "x ".repeat(3000)}]});
    assert_eq!(server.post(CHAT, &long).code(), "context_length_exceeded");
    let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("maximum context length is 1024 tokens"), "{message}");
    let reply = server
        .post(
            "/v1/completions",
            &json!({"prompt": prompt[..1018], "max_tokens": 100, "ignore_eos": true}),
        )
        .json();
    assert_eq!(reply["choices"][0]["finish_reason"], "length");
    assert_eq!(reply["usage"]["completion_tokens"], 6);
}

#[test]
fn unknown_fields_are_told_and_refused_by_a_strict_server() {
    let body = json!({"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, "zeta": 1, "user": "me"});
    let reply = Server::start(&[]).post(CHAT, &body);
    assert_eq!(reply.header("x-wardround-ignored").as_deref(), Some("zeta"));
    assert_eq!(reply.json()["wardround"]["ignored"], json!(["zeta"]));
    let reply = Server::start(&["--strict"]).post(CHAT, &body);
    assert_eq!((reply.status, reply.code().as_str()), (400, "unsupported_parameter"));
}

#[test]
fn keys_are_asked_for_and_roles_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    let file = file.to_str().unwrap();
    let add = |name: &str, role: &str| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_wardround"))
            .args(["keys", "add", file, name, "--role", role])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let (api, metrics) = (add("lab", "api"), add("watch", "metrics"));
    let server = Server::start(&["--keys", file]);
    let with = |path: &str, key: &str| {
        server.send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n"))
    };
    assert_eq!(server.get("/health").status, 200);
    let refused = server.get("/v1/models");
    assert_eq!(
        (refused.status, refused.header("www-authenticate").as_deref()),
        (401, Some("Bearer"))
    );
    assert_eq!(with("/v1/models", &api).status, 200);
    assert_eq!(with("/v1/models", &metrics).status, 403);
    assert_eq!((with("/metrics", &metrics).status, with("/metrics", &api).status), (200, 403));
    let statuses: Vec<u16> = (0..12).map(|_| with("/v1/models", "wr_wrong").status).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
    // A key that was made meanwhile counts after SIGHUP; one that holds is never locked out.
    let late = add("late", "admin");
    server.signal("-HUP");
    let started = Instant::now();
    while with("/metrics", &late).status != 200 {
        assert!(started.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_full_queue_says_so_and_when_to_come_back() {
    let server = Server::start(&["--max-queue", "4"]);
    let replies: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| server.post(CHAT, &long()))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let full = replies.iter().filter(|reply| reply.status == 429);
    for reply in full.clone() {
        assert_eq!(reply.code(), "queue_full");
        assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    }
    assert!(replies.iter().filter(|reply| reply.status == 200).count() >= 4);
    assert!(full.count() <= 4);
}

/// A number of the metrics.
fn metric(server: &Server, name: &str) -> f64 {
    let text = server.get("/metrics").body;
    let line = text.lines().find(|line| line.starts_with(&format!("wardround:{name}{{")));
    line.and_then(|line| line.rsplit(' ').next()).unwrap().parse().unwrap()
}

#[test]
fn clients_that_are_gone_free_their_place() {
    let server = Server::start(&[]);
    for is_stream in [true, false] {
        let mut body = long();
        body["stream"] = json!(is_stream);
        let text = body.to_string();
        let request = format!(
            "POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
            text.len()
        );
        let streams: Vec<_> = (0..10)
            .map(|_| {
                let mut stream = server.connect();
                stream.write_all(request.as_bytes()).unwrap();
                stream
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300));
        drop(streams);
        let started = Instant::now();
        while metric(&server, "num_requests_running") + metric(&server, "num_requests_waiting")
            > 0.0
        {
            assert!(started.elapsed() < Duration::from_secs(20), "still running");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    assert!(metric(&server, "kv_cache_usage_perc") < 1e-9);
}

#[test]
fn slow_heads_and_slow_bodies_are_cut_and_honest_ones_are_not() {
    let server = Server::start(&["--header-timeout", "1", "--body-timeout", "1"]);
    let mut silent: Vec<_> = (0..20).map(|_| server.connect()).collect();
    let mut slow = server.connect();
    slow.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{").unwrap();
    let started = Instant::now();
    assert_eq!(server.get("/health").status, 200);
    let mut text = String::new();
    let _ = slow.read_to_string(&mut text);
    assert!(text.contains("408"), "{text}");
    for stream in &mut silent {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_signal_lets_streams_finish_and_takes_nothing_new() {
    let mut server = Server::start(&["--drain", "60"]);
    let mut body = long();
    (body["stream"], body["max_tokens"]) = (json!(true), json!(60));
    let text = body.to_string();
    let mut stream = server.connect();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        text.len()
    );
    stream.write_all(format!("{head}{text}").as_bytes()).unwrap();
    let mut first = [0; 64];
    stream.read_exact(&mut first).unwrap();
    server.signal("-TERM");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("data: [DONE]"), "{rest}");
    assert!(server.process.wait().unwrap().success());
}

#[test]
fn a_drain_that_ends_too_early_tells_the_streams() {
    let mut server = Server::start(&["--drain", "0"]);
    let mut body = long();
    body["stream"] = json!(true);
    let text = body.to_string();
    let mut stream = server.connect();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        text.len()
    );
    stream.write_all(format!("{head}{text}").as_bytes()).unwrap();
    let mut first = [0; 64];
    stream.read_exact(&mut first).unwrap();
    server.signal("-TERM");
    let mut rest = String::new();
    let _ = stream.read_to_string(&mut rest);
    assert!(rest.contains("\"code\":\"draining\"") && !rest.contains("[DONE]"), "{rest}");
    assert_eq!(server.process.wait().unwrap().code(), Some(1));
}

#[test]
fn an_address_that_others_can_reach_needs_keys_and_tls() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_wardround"))
        .args(["serve", "a", "--host", "0.0.0.0", "--port", "0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--insecure"));
}
