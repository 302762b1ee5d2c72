//! A hub on the loopback for tests: one tiny repository, and ways to misbehave.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use sha1::{Digest, Sha1};

use crate::digest::Sum;
use crate::digest::hex;

pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
pub const REPOSITORY: &str = "org/tiny";

/// How the hub treats one path.
#[derive(Clone, Copy, PartialEq)]
pub enum Fault {
    /// The connection dies after this many bytes of the body, once.
    DieOnce(usize),
    /// Nothing is ever sent.
    Hang,
    /// The first connection brings this many bytes of the body and falls silent; later ones bring none.
    Stall(usize),
    /// This status, with this `x-error-code`.
    Deny(u16, &'static str),
    /// More than a listing may have, packed by gzip.
    Bloat,
    /// The etag's sum is another file's.
    Lie,
    /// A range is answered with the whole file.
    IgnoreRange,
    /// The file is redirected to another host, as the hub does for large ones.
    Elsewhere,
}

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub method: String,
    pub path: String,
    headers: HashMap<String, String>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

pub struct FakeHub {
    pub endpoint: String,
    requests: Receiver<Request>,
}

/// What the hub serves; a file longer than 64 bytes counts as large.
pub struct Repository {
    /// The hub id.
    pub id: &'static str,
    pub files: Vec<(&'static str, Vec<u8>)>,
    pub faults: Vec<(&'static str, Fault)>,
}

impl FakeHub {
    pub fn serve(repository: Repository) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = channel();
        let repository = Arc::new(repository);
        thread::spawn(move || {
            let mut spent = Vec::new();
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let Some(request) = read(&stream) else {
                    continue;
                };
                let file = request.path.rsplit('/').next().unwrap_or_default().to_owned();
                let fault = repository.faults.iter().find(|(path, _)| request.path.ends_with(path));
                let fault = fault.map(|(_, fault)| *fault).filter(|fault| {
                    let is_spent = request.method == "GET" && spent.contains(&file);
                    !(is_spent && matches!(fault, Fault::DieOnce(_)))
                });
                if request.method == "GET" && matches!(fault, Some(Fault::DieOnce(_))) {
                    spent.push(file);
                }
                let (sender, repository) = (sender.clone(), Arc::clone(&repository));
                thread::spawn(move || answer(stream, &request, fault, &repository, port, &sender));
            }
        });
        Self { endpoint: format!("http://127.0.0.1:{port}"), requests }
    }

    /// The requests since the last call.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next()?;
    let (method, rest) = first.split_once(' ')?;
    let headers = lines.take_while(|line| !line.is_empty());
    let headers = headers.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    });
    Some(Request {
        method: method.to_owned(),
        path: rest.split(' ').next()?.to_owned(),
        headers: headers.collect(),
    })
}

fn answer(
    mut stream: TcpStream,
    request: &Request,
    fault: Option<Fault>,
    repository: &Repository,
    port: u16,
    log: &Sender<Request>,
) {
    // A test that has ended no longer listens.
    let _ = log.send(request.clone());
    match fault {
        Some(Fault::Hang) => return thread::sleep(Duration::from_secs(10)),
        Some(Fault::Deny(status, code)) => {
            return send(&mut stream, status, &[("x-error-code", code.to_owned())], b"");
        }
        Some(Fault::Bloat) => {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(&vec![b' '; 65 << 20]).unwrap();
            let encoding = [("content-encoding", "gzip".to_owned())];
            return send(&mut stream, 200, &encoding, &packed.finish().unwrap());
        }
        _ => {}
    }
    if let Some(revision) =
        request.path.strip_prefix(&format!("/api/models/{}/revision/", repository.id))
    {
        let siblings: Vec<_> = repository
            .files
            .iter()
            .map(|(name, _)| serde_json::json!({"rfilename": name}))
            .collect();
        let listing = serde_json::json!({"sha": COMMIT, "siblings": siblings}).to_string();
        let status = if ["main", COMMIT].contains(&revision) { 200 } else { 404 };
        return send(&mut stream, status, &[], listing.as_bytes());
    }
    let resolve = format!("/{}/resolve/{COMMIT}/", repository.id);
    let name = request.path.strip_prefix(&resolve).or_else(|| request.path.strip_prefix("/store/"));
    // Datasets are named by their whole address.
    let name = name.or_else(|| request.path.strip_prefix('/'));
    match repository.files.iter().find(|(file, _)| Some(*file) == name) {
        Some((name, bytes)) => send_file(&mut stream, request, fault, name, bytes, port),
        None => send(&mut stream, 404, &[("x-error-code", "EntryNotFound".to_owned())], b""),
    }
}

fn send_file(
    stream: &mut TcpStream,
    request: &Request,
    fault: Option<Fault>,
    name: &str,
    bytes: &[u8],
    port: u16,
) {
    let mut headers = Vec::new();
    if bytes.len() > 64 {
        let mut sum = Sum::default();
        sum.update(if fault == Some(Fault::Lie) { b"another" } else { bytes });
        headers.push(("x-linked-etag", format!("\"{}\"", sum.finish())));
        headers.push(("x-linked-size", bytes.len().to_string()));
    }
    let lie: &[u8] = if fault == Some(Fault::Lie) { b"another" } else { bytes };
    let mut git = Sha1::new_with_prefix(format!("blob {}\0", lie.len()));
    git.update(lie);
    headers.push(("etag", format!("W/\"{}\"", hex(&git.finalize()))));
    if fault == Some(Fault::Elsewhere) && !request.path.starts_with("/store/") {
        headers.push(("location", format!("http://localhost:{port}/store/{name}")));
        return send(stream, 302, &headers, b"");
    }
    let range = request.header("range").filter(|_| fault != Some(Fault::IgnoreRange));
    let start: Option<usize> =
        range.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let (status, body) = match start {
        Some(start) => {
            headers.push((
                "content-range",
                format!("bytes {start}-{}/{}", bytes.len() - 1, bytes.len()),
            ));
            (206, &bytes[start..])
        }
        None => (200, bytes),
    };
    if request.method == "HEAD" {
        headers.push(("content-length", body.len().to_string()));
        return write_head(stream, status, &headers);
    }
    match fault {
        Some(Fault::DieOnce(after)) => {
            headers.push(("content-length", body.len().to_string()));
            write_head(stream, status, &headers);
            let _ = stream.write_all(&body[..after]);
        }
        Some(Fault::Stall(after)) => {
            headers.push(("content-length", body.len().to_string()));
            write_head(stream, status, &headers);
            let _ = stream.write_all(&body[..if start.is_some() { 0 } else { after }]);
            thread::sleep(Duration::from_secs(10));
        }
        _ => send(stream, status, &headers, body),
    }
}

fn send(stream: &mut TcpStream, status: u16, headers: &[(&str, String)], body: &[u8]) {
    let mut headers = headers.to_vec();
    headers.push(("content-length", body.len().to_string()));
    write_head(stream, status, &headers);
    let _ = stream.write_all(body);
}

fn write_head(stream: &mut TcpStream, status: u16, headers: &[(&str, String)]) {
    let mut head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let _ = stream.write_all(format!("{head}\r\n").as_bytes());
}
