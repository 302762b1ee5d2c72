//! What a server refuses, and to whom.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wardround::model::Family;

use crate::client::{Ask, Pending, Server, add_key, wardround};
use crate::common;

const CHAT: &str = "/v1/chat/completions";

fn long() -> Value {
    json!({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 400, "ignore_eos": true, "seed": 1})
}

#[test]
fn errors_name_place_and_reason() {
    let server = Server::one(Family::Qwen3, "--max-body 2600");
    let user = |content: &str| json!({"messages": [{"role": "user", "content": content}]});
    let post = |body: &Value| server.post(CHAT, body);
    let with = |name: &str, value: &str| {
        let headers = [("content-type", "application/json"), (name, value)];
        server.ask(&Ask { method: "POST", path: CHAT, headers: &headers, body: "{}" })
    };
    let cases = [
        (post(&json!({"messages": []})), 400, "invalid_value"),
        (
            post(&json!({"model": "gpt-9", "messages": user("a")["messages"]})),
            404,
            "model_not_found",
        ),
        (post(&user(&"a ".repeat(1500))), 413, "body_too_large"),
        (server.post_text(CHAT, "text/plain", "{}"), 415, "unsupported_media_type"),
        (server.post_text(CHAT, "application/json", "{"), 400, "invalid_json"),
        (with("host", "localhost"), 400, "invalid_value"),
        (server.get("/v1/nothing"), 404, "unknown_url"),
        (server.get("/v1/models/%ff"), 400, "invalid_value"),
        (server.post("/v1/check", &json!({"text": "a", "seeed": 2})), 400, "unsupported_parameter"),
        (server.get(CHAT), 405, "method_not_allowed"),
    ];
    for (reply, status, code) in cases {
        assert_eq!(reply.code(), (status, code.to_owned()), "{reply:?}");
    }
    for host in ["evil.example", "localhost.evil.example", "é", "[::1].evil.example"] {
        let mut stream = server.connect();
        let head = format!("GET /health HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        assert_eq!(
            Pending { stream }.read().code(),
            (403, "host_not_allowed".to_owned()),
            "{host}"
        );
    }
    for (name, value) in [
        ("stop_token_ids", json!([7])),
        ("min_tokens", json!(9)),
        ("tool_choice", json!("required")),
    ] {
        let mut body = user("a");
        (body["max_tokens"], body[name]) = (json!(8), value);
        let reply = post(&body);
        assert_eq!(
            (reply.status, &reply.json()["error"]["param"]),
            (400, &json!(name)),
            "{reply:?}"
        );
    }
    let prompt: Vec<u32> = vec![5; 400];
    let reply = server.post("/v1/completions", &json!({"prompt": prompt, "max_tokens": 1, "n": 1}));
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(server.get("/v1/models/").status, 404);
}

#[test]
fn prompts_beyond_the_context_are_refused_in_the_words_that_clients_look_for() {
    let server = Server::one(Family::Qwen3, "");
    let prompt: Vec<u32> = vec![5; 1024];
    let reply = server.post("/v1/completions", &json!({"prompt": prompt, "max_tokens": 1}));
    assert_eq!(reply.code(), (400, "context_length_exceeded".to_owned()));
    assert_eq!(reply.json()["error"]["param"], "prompt");
    // Where nothing is said of the answer's length too.
    let long = json!({"messages": [{"role": "user", "content": "x ".repeat(3000)}]});
    let refused = server.post(CHAT, &long).json();
    assert_eq!(refused["error"]["code"], "context_length_exceeded");
    assert_eq!(refused["error"]["param"], "messages");
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
fn unknown_fields_are_told() {
    let body = json!({"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, "zeta": 1, "user": "me"});
    let server = Server::one(Family::Qwen3, "");
    let ignored = |path: &str, body: &Value| {
        let reply = server.post(path, body);
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()["wardround"]["ignored"].clone()
    };
    assert_eq!(ignored(CHAT, &body), json!(["zeta", "user"]));
    // Where no response has the list they are mistakes.
    let refused = server.post("/tokenize", &json!({"prompt": "a", "zeta": 1, "eta": null}));
    assert_eq!(refused.code(), (400, "unsupported_parameter".to_owned()));
    // What is null is not there.
    let nulls =
        json!({"prompt": "a", "max_tokens": 1, "zeta": null, "response_format": {"type": "text"}});
    assert_eq!(ignored("/v1/completions", &nulls), json!([]));
}

#[test]
fn paths_say_which_methods_they_take() {
    let server = Server::one(Family::Qwen3, "");
    for (method, path, allowed) in
        [("GET", CHAT, "POST"), ("POST", "/v1/models", "GET,HEAD"), ("GET", "/v1/check", "POST")]
    {
        let reply = server.ask(&Ask { method, path, ..Ask::default() });
        assert_eq!((reply.status, reply.header("allow")), (405, allowed), "{method} {path}");
    }
}

#[test]
fn keys_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let lab = add_key(folder.path(), "lab");
    let server = Server::start_in(folder, "--keys keys");
    let with = |path: &str, key: &str| {
        let headers = [("authorization", &*format!("Bearer {key}"))];
        server.ask(&Ask { method: "GET", path, headers: &headers, body: "" })
    };
    assert_eq!(server.get("/health").status, 200);
    let refused = server.get("/v1/models");
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, "Bearer"));
    assert_eq!(server.get("/metrics").status, 401);
    assert_eq!((with("/v1/models", &lab).status, with("/metrics", &lab).status), (200, 200));
    assert_eq!(with("/v1/models", "wr_wrong").status, 401);
    // A key that was made meanwhile counts after SIGHUP.
    let late = add_key(server.folder.path(), "late");
    server.signal("-HUP");
    let started = Instant::now();
    while with("/metrics", &late).status != 200 {
        assert!(started.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(server.said().matches("the keys were read again").count(), 1);
    // A file that cannot be read is not said to have been read.
    std::fs::write(server.folder.path().join("keys"), "lab api").unwrap();
    server.signal("-HUP");
    while !server.said().contains("the keys stay as they were: ") {
        assert!(started.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(with("/metrics", &late).status, 200);
    assert_eq!(server.said().matches("the keys were read again").count(), 1);
}

#[test]
fn a_full_queue_says_so_and_when_to_come_back() {
    let server = Server::one(Family::Qwen3, "--max-queue 4");
    let replies: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| server.post(CHAT, &long()))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let full = replies.iter().filter(|reply| reply.status == 429);
    for reply in full.clone() {
        assert_eq!(reply.code().1, "queue_full");
        assert!(reply.header("retry-after").parse::<u64>().unwrap() >= 1);
    }
    assert!(replies.iter().filter(|reply| reply.status == 200).count() >= 4);
    assert!(full.count() <= 4);
}

#[test]
fn what_is_not_there_is_told_before_anything_is_bound_or_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let model = common::synthetic(Family::Qwen3).display().to_string();
    std::fs::write(folder.path().join("open-keys"), "").unwrap();
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(folder.path().join("open-keys"), everybody).unwrap();
    for (flags, code, said) in [
        ("no-such-model", 2, "no-such-model"),
        ("no-such/folder/of-weights", 2, "no-such/folder/of-weights"),
        (&*format!("{model} --system no-such-system"), 2, "the systems are"),
        (&*format!("{model} --system medmad --set medmad.zeta=1"), 2, "the system's settings are"),
        (&*format!("{model} --system medprompt"), 2, "shows exemplars, and a server has neither"),
        (&*format!("{model} --system medreflex"), 2, "wardround check"),
        (&*format!("{model} --system medmad --prompts no-such-folder"), 2, "no-such-folder"),
        (&*format!("{model} --keys no-such-keys"), 2, "wardround keys add"),
        (&*format!("{model} --keys open-keys"), 2, "chmod go-w"),
    ] {
        let arguments = format!("serve {flags} --port 0 --offline");
        let ended = wardround(folder.path()).args(arguments.split(' ')).output().unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(code), "{flags}: {stderr}");
        assert!(ended.stdout.is_empty() && stderr.contains(said), "{flags}: {stderr}");
    }
}

#[test]
fn an_address_that_others_can_reach_is_asked_for() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_wardround"))
        .args(["serve", "a", "--host", "0.0.0.0", "--port", "0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--insecure"));
}

#[test]
fn a_document_by_schema_has_no_long_runs_of_whitespace() {
    let server = Server::one(Family::Qwen3, "");
    let schema = json!({"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"], "additionalProperties": false});
    for seed in 0..4 {
        let body = json!({"messages": [{"role": "user", "content": "a"}], "seed": seed, "temperature": 1, "max_tokens": 400,
            "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}});
        let reply = server.post(CHAT, &body).json();
        assert_eq!(reply["choices"][0]["finish_reason"], "stop", "{reply}");
        let text = reply["choices"][0]["message"]["content"].as_str().unwrap();
        assert!(serde_json::from_str::<Value>(text).unwrap()["a"].is_string(), "{text}");
    }
}

#[test]
fn all_bodies_have_one_budget() {
    let server = Server::one(Family::Qwen3, "--max-bodies 300000");
    let full =
        server.post(CHAT, &json!({"messages": [{"role": "user", "content": "a ".repeat(60_000)}]}));
    assert_eq!(full.code(), (429, "budget_full".to_owned()));
    let many = format!("{{\"metadata\": [{}0]}}", "0,".repeat(300_000));
    let server = Server::one(Family::Qwen3, "");
    for path in [CHAT, "/v1/completions", "/tokenize", "/v1/check"] {
        let refused = server.post_text(path, "application/json", &many);
        assert_eq!(refused.code(), (413, "body_too_large".to_owned()), "{path}");
    }
}

#[test]
fn no_request_takes_more_than_its_share_even_of_an_idle_server() {
    let server = Server::one(Family::Qwen3, "");
    let prompts: Vec<&str> = vec!["a"; 256];
    let all =
        server.post("/v1/completions", &json!({"prompt": prompts, "n": 16, "max_tokens": 900}));
    assert_eq!(all.code(), (429, "queue_full".to_owned()));
    let logprobs = json!({"messages": long()["messages"], "n": 16, "max_tokens": 1000, "logprobs": true, "top_logprobs": 20});
    let refused = server.post(CHAT, &logprobs);
    assert_eq!((refused.code().0, &refused.json()["error"]["param"]), (400, &json!("logprobs")));
    let mut body = json!({"prompt": "a", "max_tokens": 1});
    for number in 0..20_000 {
        body[format!("{number}{}", "z".repeat(100))] = json!(1);
    }
    let ignored = server.post("/v1/completions", &body);
    assert!(ignored.status == 200 && ignored.body.len() < 10_000, "{}", ignored.body.len());
}

#[test]
fn the_worst_texts_are_answered_or_refused_at_once_and_delay_nobody() {
    let server = Server::start(crate::systems::QUICK);
    let texts = ["a.", "a", "(", "1 ", "7.1a", "\n", "e\u{301}", "<b>", "患者。", "Dr. ", "A: "];
    for unit in texts {
        // As much as `--max-body` takes of a text whose characters are escaped.
        let text = unit.repeat((4 << 20) / unit.len() - 100);
        let body = json!({"text": text});
        let began = Instant::now();
        let slowest = std::thread::scope(|scope| {
            let posted = scope.spawn(|| server.post("/v1/check", &body).code());
            let mut slowest = Duration::ZERO;
            while !posted.is_finished() {
                let asked = Instant::now();
                assert_eq!(server.get("/health").status, 200);
                slowest = slowest.max(asked.elapsed());
            }
            assert_eq!(posted.join().unwrap(), (400, "context_length_exceeded".to_owned()));
            slowest
        });
        assert!(began.elapsed() < Duration::from_secs(10), "{unit:?}: {:?}", began.elapsed());
        assert!(slowest < Duration::from_secs(1), "{unit:?}: {slowest:?}");
    }
}

/// What one client sends may be long: the engines' threads, which others wait for, go first.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_read_requests_give_way_to_those_that_compute() {
    let server = Server::one(Family::Qwen3, "");
    assert_eq!(server.post(CHAT, &long()).status, 200);
    let read = |path: std::path::PathBuf| {
        let stat = std::fs::read_to_string(path).unwrap();
        let (name, fields) = stat.split_once('(').unwrap().1.rsplit_once(") ").unwrap();
        // The 19th of all, the third being the first behind the name.
        let niceness: i32 = fields.split(' ').nth(16).unwrap().parse().unwrap();
        (name.to_owned(), niceness, stat.clone())
    };
    let (_, own, _) = read("/proc/self/stat".into());
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.process.id())).unwrap();
    let (mut reading, mut computing) = (0, 0);
    for task in tasks {
        let (name, niceness, stat) = read(task.unwrap().path().join("stat"));
        match name.as_str() {
            "serve" => {
                assert_eq!(niceness, (own + 10).min(19), "{stat}");
                reading += 1;
            }
            name if name.starts_with("engine") || name.starts_with("cpu") => {
                assert_eq!(niceness, own, "{stat}");
                computing += 1;
            }
            _ => {}
        }
    }
    assert!(reading > 0 && computing > 0, "{reading} {computing}");
}
