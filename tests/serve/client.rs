//! A server of tiny models in a process of its own, and an HTTP client of a few lines.
#![expect(clippy::disallowed_methods, reason = "the server under test is on this machine")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use wardround::model::Family;

use crate::common;

/// A running server; it ends with this.
pub struct Server {
    pub process: Child,
    pub address: String,
}

/// What a server answered.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Server {
    /// With the tiny Qwen3 alone, and these flags.
    pub fn start(flags: &[&str]) -> Server {
        Server::of(&[Family::Qwen3], flags)
    }

    /// With tiny models named after their families.
    pub fn of(families: &[Family], flags: &[&str]) -> Server {
        let models = families.iter().map(|family| common::synthetic(*family));
        let models: Vec<String> = models
            .zip(families)
            .map(|(path, family)| format!("{}={}", family.name(), path.display()))
            .collect();
        let mut process = Command::new(env!("CARGO_BIN_EXE_wardround"))
            .arg("serve")
            .args(models)
            .args([
                "--offline",
                "--port",
                "0",
                "--threads",
                "2",
                "--kv-tokens",
                "32768",
                "--context",
                "1024",
            ])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit("//").next().unwrap().to_owned();
        let server = Server { process, address };
        let started = Instant::now();
        while server.get("/health").status != 200 {
            assert!(started.elapsed() < Duration::from_secs(120), "the server does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    pub fn get(&self, path: &str) -> Reply {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_with(path, "content-type: application/json\r\n", &body.to_string())
    }

    pub fn post_with(&self, path: &str, headers: &str, body: &str) -> Reply {
        let length = body.len();
        self.send(format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
        ))
    }

    /// The answer to these bytes.
    pub fn send(&self, request: impl AsRef<[u8]>) -> Reply {
        let mut stream = self.connect();
        // The server may have said no before it took everything.
        let _ = stream.write_all(request.as_ref());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Reply::of(&bytes)
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
        stream
    }

    /// Sends the process a signal.
    pub fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Reply {
    fn of(bytes: &[u8]) -> Reply {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if is_chunked { unchunked(body) } else { body.to_owned() };
        Reply { status, head: head.to_owned(), body }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap().to_owned()
    }

    pub fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }

    /// The objects of an event stream; whether it ended as it should.
    pub fn events(&self) -> (Vec<Value>, bool) {
        let data: Vec<&str> =
            self.body.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        let is_whole = data.last() == Some(&"[DONE]");
        let objects = data.iter().filter(|data| **data != "[DONE]");
        (objects.map(|data| serde_json::from_str(data).unwrap()).collect(), is_whole)
    }
}

fn unchunked(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).unwrap_or(0);
        if length == 0 || rest.len() < length {
            break;
        }
        text += &rest[..length];
        body = rest[length..].strip_prefix("\r\n").unwrap_or("");
    }
    text
}
