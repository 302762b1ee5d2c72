//! Damaged bodies, heads and chunks: never a 5xx, a hang or a panic, and honest requests are answered afterwards. Inputs are counted
//! and chosen as those of tests/hostile.

mod inputs;

use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use wardround::model::Family;

use self::inputs::{Good, cases, completions, heads, odd_values};
use crate::client::{Answer, Server};
use crate::common::goldens;
use crate::damage::{damaged, withstands};

/// What nothing here may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of the server's process; it holds tiny models.
const MOST_MEMORY_KIB: u64 = 1 << 20;
/// Of clients that never end what they send the tests would wait for long.
const IMPATIENT: &str = "--client-timeout 1";

/// Puts a value in the place of the node of this number, counted through the whole tree.
fn replace(tree: &mut Value, at: &mut u32, with: &Value) {
    if *at == 0 {
        *tree = with.clone();
    }
    *at = at.wrapping_sub(1);
    match tree {
        Value::Array(list) => list.iter_mut().for_each(|inner| replace(inner, at, with)),
        Value::Object(map) => map.values_mut().for_each(|inner| replace(inner, at, with)),
        _ => {}
    }
}

/// A good body with up to three of its values replaced.
fn replaced(body: String) -> BoxedStrategy<Vec<u8>> {
    let values = proptest::sample::select(odd_values());
    proptest::collection::vec((1..40_u32, values), 1..4)
        .prop_map(move |changes| {
            let Ok(mut tree) = serde_json::from_str::<Value>(&body) else {
                return body.clone().into_bytes();
            };
            for (mut at, value) in changes {
                replace(&mut tree, &mut at, &value);
            }
            tree.to_string().into_bytes()
        })
        .boxed()
}

/// A request whose body is damaged, by its values or by its bytes.
fn bodies(goods: Vec<Good>) -> BoxedStrategy<(Good, Vec<u8>)> {
    let of = |good: Good| {
        let body = prop_oneof![replaced(good.body.clone()), damaged([good.body.clone()])];
        (Just(good), body)
    };
    proptest::sample::select(goods).prop_flat_map(of).boxed()
}

/// How bytes are sent.
#[derive(Clone, Debug)]
struct Sent {
    bytes: Vec<u8>,
    /// Whether the client says that no more comes.
    ends: bool,
}

/// Everything that the server says to these bytes until it closes the connection.
fn exchange(server: &Server, sent: &Sent) -> Vec<u8> {
    let mut stream = server.connect();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // A server that has heard enough may close before all is written.
    let _ = stream.write_all(&sent.bytes);
    if sent.ends {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut said = Vec::new();
    if let Err(error) = stream.read_to_end(&mut said) {
        let hangs = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(!hangs, "it hangs: {}", String::from_utf8_lossy(&said));
    }
    let has_failed = said.windows(10).any(|window| window == b"HTTP/1.1 5");
    assert!(!has_failed, "{}", String::from_utf8_lossy(&said));
    said
}

/// What the server answers to a whole request.
fn answer(server: &Server, good: &Good, body: &[u8]) -> Answer {
    let (Good { path, kind, .. }, length) = (good, body.len());
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
    );
    let sent = Sent { bytes: [head.as_bytes(), body].concat(), ends: false };
    let none =
        || panic!("no answer to {}\n{}", String::from_utf8_lossy(&sent.bytes), server.said());
    Answer::of(&exchange(server, &sent)).unwrap_or_else(none)
}

/// The server is whole after all that: it answers, nothing panicked, nothing grew.
fn is_well(server: &Server) {
    let honest = json!({"model": "qwen3", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2, "seed": 1});
    let answer = server.post("/v1/chat/completions", &honest);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(!server.said().contains("panicked"), "{}", server.said());
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.id()));
    let peak = status.ok().and_then(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    });
    assert!(peak.is_none_or(|kib| kib < MOST_MEMORY_KIB), "{peak:?}");
}

#[test]
fn bodies_for_models() {
    let encoder = goldens().join("encoders/tiny-mean");
    let flags = format!("--context 128 --max-body 100000 {}", encoder.display());
    let server = Server::one(Family::Qwen3, &flags);
    let (done, refused) = (Cell::new(0), Cell::new(0));
    withstands("bodies for models", bodies(completions()), |(good, body)| {
        let answer = answer(&server, &good, &body);
        let count = if answer.status == 200 { &done } else { &refused };
        assert!(answer.status == 200 || !answer.code().1.is_empty(), "{answer:?}");
        count.set(count.get() + 1);
    });
    println!("{} of them were answered, {} refused", done.get(), refused.get());
    assert!(done.get() > 0 && refused.get() > 0);
    is_well(&server);
}

#[test]
fn bodies_for_systems() {
    let flags = "--system cot-sc=qwen3 --system medguards=llama --set cot-sc.max_tokens=8 --set medguards.agents=1 --set medguards.max_tokens=4";
    let server = Server::start(&format!("{flags} --context 2048 --max-queue 8 --default-seed 1"));
    let done = Cell::new(0);
    withstands("bodies for systems", bodies(cases()), |(good, body)| {
        let answer = answer(&server, &good, &body);
        assert!(answer.status == 200 || !answer.code().1.is_empty(), "{answer:?}");
        done.set(done.get() + u32::from(answer.status == 200));
    });
    println!("{} of them were answered", done.get());
    assert!(done.get() > 0);
    is_well(&server);
}

/// Damaged bytes; now and then the client leaves open whether more comes, which costs a timeout.
fn sent(bytes: BoxedStrategy<Vec<u8>>) -> BoxedStrategy<Sent> {
    let ends = prop_oneof![15 => Just(true), 1 => Just(false)];
    (bytes, ends).prop_map(|(bytes, ends)| Sent { bytes, ends }).boxed()
}

#[test]
fn heads_of_requests() {
    let server = Server::one(Family::Qwen3, IMPATIENT);
    // Each as it is, by a client that waits.
    for bytes in heads() {
        exchange(&server, &Sent { bytes, ends: false });
    }
    withstands("heads of requests", sent(damaged(heads())), |sent| {
        exchange(&server, &sent);
    });
    is_well(&server);
}

#[test]
fn chunks_of_bodies() {
    let server = Server::one(Family::Qwen3, IMPATIENT);
    let head = "POST /tokenize HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    let framed = |chunks: &str| [head.as_bytes(), chunks.as_bytes()].concat();
    let whole = exchange(
        &server,
        &Sent {
            bytes: framed("5\r\n{\"pro\r\n9;a=\"b\"\r\nmpt\":\"a\"}\r\n0\r\nx-trailer: a\r\n\r\n"),
            ends: false,
        },
    );
    assert_eq!(Answer::of(&whole).unwrap().status, 200, "{}", String::from_utf8_lossy(&whole));
    let bad = [
        "e\r\n{\"prompt\":\"a\"}0\r\n\r\n",
        "-1\r\n{\"prompt\":\"a\"}\r\n0\r\n\r\n",
        "0x5\r\n{\"pro\r\n0\r\n\r\n",
        "fffffffffffffffff\r\n{\"pro\r\n0\r\n\r\n",
        "ffffffffffffffff\r\n{\"pro",
        "7fffffffffffffff\r\n{\"pro\r\n0\r\n\r\n",
        "\r\n0\r\n\r\n",
        " 5\r\n{\"pro\r\n0\r\n\r\n",
        "5 ;\r\n{\"pro\r\n0\r\n\r\n",
        "5\n{\"pro\n0\n\n",
        "zz\r\n\r\n",
        "0\r\nbad trailer\r\n\r\n",
        "0\r\n",
    ];
    for chunks in bad {
        exchange(&server, &Sent { bytes: framed(chunks), ends: false });
    }
    let extended = format!("5;{}\r\n{{\"pro\r\n0\r\n\r\n", "x".repeat(50_000));
    let trailers: String = (0..3000).map(|index| format!("x-{index}: a\r\n")).collect();
    let small: String = r#"{"prompt":"abc"}"#.chars().map(|c| format!("1\r\n{c}\r\n")).collect();
    let goods = [
        "10\r\n{\"prompt\":\"abc\"}\r\n0\r\n\r\n".to_owned(),
        format!("{small}0\r\n\r\n"),
        extended,
        format!("10\r\n{{\"prompt\":\"abc\"}}\r\n0\r\n{trailers}\r\n"),
        bad[3].to_owned(),
    ];
    let damaged = damaged(goods).prop_map(move |chunks| [head.as_bytes(), &chunks].concat());
    withstands("chunks of bodies", sent(damaged.boxed()), |sent| {
        exchange(&server, &sent);
    });
    is_well(&server);
}
