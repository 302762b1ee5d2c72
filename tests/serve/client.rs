//! A server of tiny models in a process of its own, and an HTTP client of a few lines that opens a connection a request.
#![allow(clippy::disallowed_methods, reason = "the server under test is on this machine")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use wardround::model::Family;

use crate::common;

/// What the tests' models may take, and no more.
const MACHINE: &str = "--port 0 --offline --threads 2 --kv-tokens 32768";
/// Beyond it a server hangs.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A server that is killed when the test ends.
pub struct Server {
    /// Where it runs; what it says is in `stderr`.
    pub folder: tempfile::TempDir,
    pub process: Child,
    pub address: String,
}

/// A response, whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: String,
}

/// A request, without its connection's own headers.
#[derive(Default)]
pub struct Ask<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a str,
}

/// The binary in a folder, without the user's environment.
pub fn wardround(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wardround"));
    command.current_dir(folder).stdin(Stdio::null());
    for (name, _) in std::env::vars() {
        if name.starts_with("WARDROUND_") || name.starts_with("HF_") {
            command.env_remove(name);
        }
    }
    command
}

/// A new key in the folder's file `keys`.
pub fn add_key(folder: &Path, name: &str) -> String {
    let arguments = ["keys", "add", "keys", name];
    let made = wardround(folder).args(arguments).output().unwrap();
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

impl Server {
    /// Serves gemma3, llama and qwen3 with these flags, once they are loaded.
    pub fn start(flags: &str) -> Server {
        Server::start_in(tempfile::tempdir().unwrap(), flags)
    }

    pub fn start_in(folder: tempfile::TempDir, flags: &str) -> Server {
        Server::of(&[Family::Gemma3, Family::Llama, Family::Qwen3], folder, flags)
    }

    /// Serves one model, of 1,024 tokens of context unless the flags say otherwise.
    pub fn one(family: Family, flags: &str) -> Server {
        let context = if flags.contains("--context") { "" } else { "--context 1024" };
        Server::of(&[family], tempfile::tempdir().unwrap(), &format!("{context} {flags}"))
    }

    /// Serves the models of `families` under their names, which are links in the folder.
    fn of(families: &[Family], folder: tempfile::TempDir, flags: &str) -> Server {
        let mut arguments = flags.to_owned();
        for family in families {
            let link = folder.path().join(family.name());
            if !link.exists() {
                std::os::unix::fs::symlink(common::synthetic(*family), link).unwrap();
            }
            arguments += &format!(" {}", family.name());
        }
        let command = wardround(folder.path());
        Server::run(command, folder, &arguments)
    }

    pub fn run(mut command: Command, folder: tempfile::TempDir, arguments: &str) -> Server {
        let stderr = std::fs::File::create(folder.path().join("stderr")).unwrap();
        let mut process = command
            .arg("serve")
            .args(MACHINE.split_whitespace())
            .args(arguments.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let mut first = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let address = first.trim().rsplit("//").next().unwrap().to_owned();
        let server = Server { folder, process, address };
        assert!(!server.address.is_empty(), "{}", server.said());
        let began = Instant::now();
        while server.get("/health").status != 200 {
            assert!(began.elapsed() < PATIENCE, "the models do not load: {}", server.said());
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// Everything on stderr so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("stderr")).unwrap()
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask(&Ask { method: "GET", path, ..Ask::default() })
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_text(path, "application/json", &body.to_string())
    }

    pub fn post_text(&self, path: &str, kind: &str, body: &str) -> Answer {
        self.ask(&Ask { method: "POST", path, headers: &[("content-type", kind)], body })
    }

    pub fn ask(&self, ask: &Ask) -> Answer {
        self.send(ask).read()
    }

    /// Sends a chat whose answer is streamed.
    pub fn stream(&self, mut body: Value) -> Pending {
        body["stream"] = Value::Bool(true);
        let headers = [("content-type", "application/json")];
        let (path, body) = ("/v1/chat/completions", body.to_string());
        self.send(&Ask { method: "POST", path, headers: &headers, body: &body })
    }

    /// What comes of a request; `None` where the server is gone.
    pub fn try_ask(&self, ask: &Ask) -> Option<Answer> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.write_all(self.text(ask).as_bytes()).ok()?;
        let mut bytes = Vec::new();
        // What came before the end counts.
        let _ = stream.read_to_end(&mut bytes);
        Answer::of(&bytes)
    }

    /// Sends a request whose answer is read later, or never.
    pub fn send(&self, ask: &Ask) -> Pending {
        let mut stream = self.connect();
        // The server may have said no before it took everything.
        let _ = stream.write_all(self.text(ask).as_bytes());
        Pending { stream }
    }

    fn text(&self, ask: &Ask) -> String {
        let Ask { method, path, headers, body } = ask;
        let mut text =
            format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        for (name, value) in *headers {
            text += &format!("{name}: {value}\r\n");
        }
        text + &format!("content-length: {}\r\n\r\n{body}", body.len())
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// A number of the metrics, summed over models.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").body;
        let lines = text.lines().filter_map(|line| line.strip_prefix(&format!("wardround:{name}")));
        let own = lines.filter(|rest| rest.starts_with(['{', ' ']));
        own.filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// Sends the process a signal.
    pub fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Bytes that the process holds.
    #[cfg(target_os = "linux")]
    pub fn memory(&self) -> usize {
        let status = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        let kibibytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kibibytes << 10
    }

    /// Kills the server where it stands. Gives its folder.
    pub fn kill(mut self) -> tempfile::TempDir {
        self.signal("-KILL");
        self.process.wait().unwrap();
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }

    /// Ends the server by SIGTERM. Gives its exit code and what it said.
    pub fn end(mut self) -> (Option<i32>, String) {
        self.signal("-TERM");
        (self.process.wait().unwrap().code(), self.said())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A request that was sent; dropping it closes the connection.
pub struct Pending {
    pub stream: TcpStream,
}

impl Pending {
    /// Waits until some of the answer is there.
    pub fn wait(&self) {
        assert_eq!(self.stream.peek(&mut [0]).unwrap(), 1);
    }

    pub fn read(mut self) -> Answer {
        let mut bytes = Vec::new();
        let _ = self.stream.read_to_end(&mut bytes);
        Answer::of(&bytes).unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&bytes)))
    }
}

impl Answer {
    /// What these bytes say first; `None` where they are no response.
    pub fn of(bytes: &[u8]) -> Option<Answer> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = head.lines();
        let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
        let headers: HashMap<String, String> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let body = &bytes[end + 4..];
        let is_chunked = headers.get("transfer-encoding").is_some_and(|kind| kind == "chunked");
        let body = if is_chunked { unchunk(body) } else { body.to_vec() };
        Some(Answer { status, headers, body: String::from_utf8(body).ok()? })
    }

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

/// The content of whole chunks.
fn unchunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = bytes.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        let Some(chunk) = bytes.get(end + 2..end + 2 + size).filter(|chunk| !chunk.is_empty())
        else {
            break;
        };
        whole.extend_from_slice(chunk);
        bytes = bytes.get(end + 4 + size..).unwrap_or_default();
    }
    whole
}
