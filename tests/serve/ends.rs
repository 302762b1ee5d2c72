//! How a server, its clients and its engines end, each while the others go on.
#![allow(clippy::disallowed_methods, reason = "the server under test is on this machine")]

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use clap::Parser;
use serde_json::{Value, json};
use wardround::diagnosis::Blame;
use wardround::engine::{Request, Sampling};
use wardround::experiment::hardware::{Compute, DeviceChoice, Hardware};
use wardround::experiment::models::Models;
use wardround::hub::HubOptions;
use wardround::model::Family;
use wardround::serve::{ServeOptions, Served, ServedModel, serve};

use crate::client::{Answer, Server};
use crate::common;
use crate::systems::QUICK;

const CHAT: &str = "/v1/chat/completions";

/// Options where nothing is said of them.
#[derive(Parser)]
struct Unsaid {
    #[command(flatten)]
    options: ServeOptions,
}

/// A chat that is answered until the context is full.
fn long() -> Value {
    json!({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3000, "ignore_eos": true, "seed": 1})
}

#[test]
fn clients_that_are_gone_free_their_place() {
    let server = Server::one(Family::Qwen3, "");
    let text = long().to_string();
    for is_stream in [true, false] {
        let clients: Vec<_> = (0..40)
            .map(|_| match is_stream {
                true => server.stream(long()).stream,
                false => {
                    let mut stream = server.connect();
                    let head = format!(
                        "POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                        text.len()
                    );
                    stream.write_all(format!("{head}{text}").as_bytes()).unwrap();
                    stream
                }
            })
            .collect();
        let began = Instant::now();
        while server.metric("num_requests_running") == 0.0 {
            assert!(began.elapsed() < Duration::from_secs(20), "nothing runs");
        }
        drop(clients);
        let began = Instant::now();
        while server.metric("num_requests_running") + server.metric("num_requests_waiting") > 0.0 {
            assert!(began.elapsed() < Duration::from_secs(20), "still running");
            std::thread::sleep(Duration::from_millis(20));
        }
        println!("40 clients that went away were gone after {:?}", began.elapsed());
        // The engine frees their pages in its next step.
        while server.metric("kv_cache_usage_perc") > 0.0 {
            assert!(began.elapsed() < Duration::from_secs(20), "pages are held");
        }
    }
}

#[test]
fn slow_heads_and_slow_bodies_are_cut_and_honest_ones_are_not() {
    let server = Server::one(Family::Qwen3, "--client-timeout 1");
    let silent: Vec<_> = (0..20).map(|_| server.connect()).collect();
    let trickling: Vec<_> = (0..20).map(|_| server.connect()).collect();
    let mut slow = server.connect();
    slow.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{").unwrap();
    let began = Instant::now();
    let mut open = trickling.iter().collect::<Vec<_>>();
    // A byte every tenth of a second is no head within one.
    for byte in b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-a: b".iter().cycle() {
        open.retain_mut(|stream| stream.write_all(&[*byte]).is_ok());
        assert!(began.elapsed() < Duration::from_secs(10), "{} are still open", open.len());
        if open.is_empty() {
            break;
        }
        let asked = Instant::now();
        assert_eq!(server.get("/health").status, 200);
        assert!(asked.elapsed() < Duration::from_secs(2));
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut text = String::new();
    let _ = slow.read_to_string(&mut text);
    assert!(text.contains("408"), "{text}");
    for mut stream in silent {
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        assert!(!ended.is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
    }
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_signal_lets_streams_finish_and_takes_nothing_new() {
    let server = Server::one(Family::Qwen3, "--drain 60");
    let mut body = long();
    body["max_tokens"] = json!(60);
    let stream = server.stream(body);
    stream.wait();
    server.signal("-TERM");
    let answer = stream.read();
    assert!(answer.events().1, "{answer:?}");
    let mut server = server;
    assert!(server.process.wait().unwrap().success());
    let refused = TcpStream::connect(&server.address);
    assert!(refused.is_err());
}

#[test]
fn a_drain_that_ends_too_early_tells_the_streams() {
    let server = Server::one(Family::Qwen3, "--drain 0");
    let stream = server.stream(long());
    stream.wait();
    server.signal("-TERM");
    let answer = stream.read();
    let (events, is_whole) = answer.events();
    assert!(!is_whole && events.last().unwrap()["error"]["code"] == "draining", "{answer:?}");
    let mut server = server;
    assert_eq!(server.process.wait().unwrap().code(), Some(1));
}

#[test]
fn a_killed_server_leaves_cut_streams_and_a_log_that_goes_on() {
    let flags = format!("{QUICK} --audit audit");
    let mut server = Server::start(&flags);
    let messages = json!([{"role": "user", "content": "Which?\nA) one\nB) two"}]);
    let asked = json!({"model": "cot-sc", "messages": messages, "seed": 9});
    let first = server.post(CHAT, &asked);
    assert_eq!(first.status, 200, "{first:?}");
    let mut body = long();
    body["model"] = json!("qwen3");
    let stream = server.stream(body);
    stream.wait();
    server.process.kill().unwrap();
    let answer = stream.read();
    assert!(answer.status == 200 && !answer.body.contains("[DONE]"), "{answer:?}");
    // Everything that was answered was written before; the next server reads it and goes on.
    let folder = std::mem::replace(&mut server.folder, tempfile::tempdir().unwrap());
    drop(server);
    let server = Server::start_in(folder, &flags);
    let again = server.post(CHAT, &asked);
    assert_eq!(again.json()["choices"], first.json()["choices"]);
    let trail = std::fs::read_to_string(server.folder.path().join("audit/trail.jsonl")).unwrap();
    let cases = trail.lines().filter(|line| line.contains("\"event\":\"request\""));
    assert_eq!(cases.count(), 2, "{trail}");
}

/// The answer of the server on a port; `None` where it listens no more.
fn ask(port: u16, method: &str, target: &str, body: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let head = format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    let length = body.len();
    let request =
        format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).ok()?;
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    Answer::of(&bytes)
}

/// One tiny model, as `serve` would load it.
fn loaded() -> Served {
    let hardware = Hardware {
        compute: Compute {
            on: DeviceChoice { threads: Some(1), ..DeviceChoice::default() },
            ..Compute::default()
        },
        context: Some(1024),
        kv_tokens: Some(8192),
        ..Hardware::default()
    };
    let name = common::synthetic(Family::Qwen3).to_string_lossy().into_owned();
    let hub = HubOptions::capture().unwrap().local();
    let models = Models::describe(&[name], &hardware, &hub, |_| Ok(Vec::new())).unwrap();
    let pages = models.memory[0].options.pages;
    let backbone = models.start().unwrap().backbones.remove(0);
    let model = ServedModel::new("qwen3", backbone, pages);
    Served { models: vec![Arc::new(model)], ..Served::default() }
}

#[test]
fn a_dead_engine_ends_what_runs_with_an_error_and_then_the_server() {
    // One that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut options = Unsaid::parse_from([""]).options;
    options.listen.port = port;
    let (sender, engines) = channel();
    let load = move || {
        let loaded = loaded();
        sender.send(loaded.models[0].backbone.clone()).unwrap();
        Ok(loaded)
    };
    let server = std::thread::spawn(move || serve(options, || Ok(()), load));
    let backbone = engines.recv().unwrap();
    while ask(port, "GET", "/health", "").is_none_or(|answer| answer.status != 200) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let running: Vec<_> = [true, false]
        .map(|is_stream| {
            let mut body = long();
            body["stream"] = json!(is_stream);
            body["max_tokens"] = json!(16_000);
            std::thread::spawn(move || ask(port, "POST", CHAT, &body.to_string()).unwrap())
        })
        .into();
    while crate::common::snapshot(&backbone.engine).unwrap().running < 2 {
        std::thread::sleep(Duration::from_millis(10));
    }
    // An event's listener that panics takes the engine's thread with it.
    let request = Request {
        tokens: vec![5],
        max_tokens: 1,
        sampling: Sampling { ..common::GREEDY },
        ..Request::default()
    };
    let mut has_panicked = false;
    let on_event = move |_| assert!(std::mem::replace(&mut has_panicked, true), "on purpose");
    let _poison = backbone.engine.submit_with(request, Box::new(on_event)).unwrap();
    let answers: Vec<Answer> = running.into_iter().map(|thread| thread.join().unwrap()).collect();
    // Until it is seen to be dead, and the socket is closed.
    while let Some(health) = ask(port, "GET", "/health", "") {
        assert_eq!(health.status, 503, "{health:?}");
    }
    let (streamed, whole) = (&answers[0], &answers[1]);
    assert!(streamed.status == 200 && !streamed.body.contains("[DONE]"), "{streamed:?}");
    assert!(streamed.events().0.last().unwrap()["error"].is_object(), "{streamed:?}");
    assert!(whole.status >= 500, "{whole:?}");
    let failure = server.join().unwrap().unwrap_err();
    assert!(failure.to_string().contains("on purpose"), "{failure}");
    assert_eq!(failure.blame(), Blame::Machine);
}
