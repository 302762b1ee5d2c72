//! A server with tiny models and a client that opens a connection a request.
#![allow(clippy::disallowed_methods, reason = "the server under test is on this machine")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use wardround::model::Family;
use wardround::synth::{Recipe, Shape, write_checkpoint};

/// A server that is killed when the test ends.
pub struct Server {
    pub folder: tempfile::TempDir,
    child: Child,
    address: String,
}

/// A response, whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The code of an error, after its status.
    pub fn code(&self) -> (u16, String) {
        (self.status, self.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
    }

    /// The objects of a stream, and whether it ended with its mark.
    pub fn events(&self) -> (Vec<Value>, bool) {
        let lines = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let (ends, events): (Vec<&str>, Vec<&str>) = lines.partition(|line| *line == "[DONE]");
        (events.iter().map(|event| serde_json::from_str(event).unwrap()).collect(), ends.len() == 1)
    }
}

/// A request, without its connection's own headers.
#[derive(Default)]
pub struct Ask<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a str,
}

/// Three tiny models by family in a folder.
pub fn models(folder: &Path) -> [PathBuf; 3] {
    [Family::Gemma3, Family::Llama, Family::Qwen3].map(|family| {
        let path = folder.join(family.name());
        if !path.exists() {
            let recipe = Recipe { family, shape: Shape::Tiny, seed: 1, tokenizer: None };
            write_checkpoint(&recipe, &path).unwrap();
        }
        path
    })
}

/// The binary in a folder, without the user's environment.
pub fn wardround(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wardround"));
    command.current_dir(folder);
    for (name, _) in std::env::vars() {
        if name.starts_with("WARDROUND_") || name.starts_with("HF_") {
            command.env_remove(name);
        }
    }
    command
}

impl Server {
    /// Serves gemma3, llama and qwen3 with these flags, once they are loaded.
    pub fn start(flags: &str) -> Server {
        Server::start_in(tempfile::tempdir().unwrap(), flags)
    }

    pub fn start_in(folder: tempfile::TempDir, flags: &str) -> Server {
        models(folder.path());
        let arguments = format!("serve gemma3 llama qwen3 --port 0 --offline {flags}");
        let mut child = wardround(folder.path())
            .args(arguments.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let address = first.trim().strip_prefix("listening on http://");
        let Some(address) = address.map(str::to_owned) else {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("{said}");
        };
        let server = Server { folder, child, address };
        let began = Instant::now();
        while server.get("/health").status != 200 {
            assert!(began.elapsed() < Duration::from_secs(120), "the models do not load");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask(&Ask { method: "GET", path, ..Ask::default() })
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        let headers = [("content-type", "application/json")];
        self.ask(&Ask { method: "POST", path, headers: &headers, body: &body.to_string() })
    }

    pub fn ask(&self, ask: &Ask) -> Answer {
        self.send(ask).read()
    }

    /// Sends a request whose answer is read later, or never.
    pub fn send(&self, ask: &Ask) -> Pending {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        let Ask { method, path, headers, body } = ask;
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        for (name, value) in *headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("content-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        Pending { stream }
    }

    /// Ends the server by SIGTERM. Gives its exit code and what it said.
    pub fn end(mut self) -> (Option<i32>, String) {
        let id = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().unwrap();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request that was sent; dropping it closes the connection.
pub struct Pending {
    stream: TcpStream,
}

impl Pending {
    /// Waits until so many bytes of the answer are there, at most.
    pub fn peek(&self, bytes: usize) -> usize {
        self.stream.peek(&mut vec![0; bytes]).unwrap()
    }

    pub fn read(mut self) -> Answer {
        let mut bytes = Vec::new();
        self.stream.read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: HashMap<String, String> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let body = &bytes[end + 4..];
        let is_chunked = headers.get("transfer-encoding").is_some_and(|kind| kind == "chunked");
        let body = if is_chunked { unchunk(body) } else { body.to_vec() };
        Answer { status, headers, body: String::from_utf8(body).unwrap() }
    }
}

fn unchunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = bytes.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            break;
        }
        whole.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + 4 + size..];
    }
    whole
}
