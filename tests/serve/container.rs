//! The server of `deploy/Containerfile`, as its example runs it: its environment, its words, and a model behind them.
#![allow(clippy::disallowed_methods, reason = "the server under test is on this machine")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wardround::model::Family;

use crate::client::{Answer, add_key};
use crate::common;

const CONTAINERFILE: &str = include_str!("../../deploy/Containerfile");

/// The rest of the one line that begins with this word.
fn line(word: &str) -> &'static str {
    let mut lines = CONTAINERFILE.lines().filter_map(|line| line.strip_prefix(word));
    let line = lines.next().unwrap().trim();
    assert_eq!(lines.next(), None, "{word}");
    line
}

/// The status of `/health`, and of a chat with this key; 0 where nobody listens yet.
fn ask(address: &str, request: &str) -> u16 {
    let Ok(mut stream) = TcpStream::connect(address) else { return 0 };
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    Answer::of(&bytes).map_or(0, |answer| answer.status)
}

#[test]
fn the_containers_entry_point_starts_with_its_own_environment_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let key = add_key(folder.path(), "ward");
    let place = |path: &str| {
        let within = Path::new(path.trim_start_matches('/'));
        let name = within.file_name().unwrap();
        folder.path().join(name).display().to_string()
    };
    assert_eq!(line("ENTRYPOINT"), r#"["/usr/bin/wardround"]"#);
    let words = line("#         wardround ").split(' ');
    let words = words.map(|word| if word.starts_with('/') { place(word) } else { word.to_owned() });
    let mut words: Vec<String> = words.collect();
    // The model stands last.
    words.pop();
    let mut command = Command::new(env!("CARGO_BIN_EXE_wardround"));
    command.env_clear().current_dir(folder.path()).args(&words);
    let mut names = Vec::new();
    let given = line("#         -e ").trim_end_matches('\\').split("-e ").map(str::trim);
    for pair in line("ENV").split_whitespace().chain(given) {
        let (name, value) = pair.split_once('=').unwrap();
        names.push(name);
        command.env(name, if value.starts_with('/') { place(value) } else { value.to_owned() });
    }
    assert!(names.contains(&"WARDROUND_OFFLINE"), "{names:?}");
    command.args(["--port", "0", "--context", "1024", "--kv-tokens", "4096", "--threads", "1"]);
    command.arg(common::synthetic(Family::Qwen3));
    let stderr = std::fs::File::create(folder.path().join("stderr")).unwrap();
    let mut server = command.stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
    let mut listening = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut listening).unwrap();
    let port = listening.trim().rsplit(':').next().unwrap();
    let address = format!("127.0.0.1:{port}");
    let said = || std::fs::read_to_string(folder.path().join("stderr")).unwrap();
    let health = "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let began = Instant::now();
    while ask(&address, health) != 200 {
        assert_eq!(server.try_wait().unwrap(), None, "{}", said());
        assert!(began.elapsed() < Duration::from_secs(120), "{}", said());
        std::thread::sleep(Duration::from_millis(20));
    }
    let body = r#"{"model": "qwen3", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2}"#;
    let chat = |key: &str| {
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    assert_eq!(ask(&address, &chat(&key)), 200, "{}", said());
    assert_eq!(ask(&address, &chat("another")), 401, "{}", said());
    assert!(folder.path().join("audit/trail.jsonl").is_file(), "{}", said());
    // STOPSIGNAL
    assert_eq!(line("STOPSIGNAL"), "SIGTERM");
    let id = server.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(server.wait().unwrap().success(), "{}", said());
}
