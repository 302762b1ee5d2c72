//! A hub on the loopback for tests: one tiny repository, and ways to misbehave.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::digest::{Sum, sha256};
use crate::fake_http::{FakeHttp, Request, packed_blanks, send, write_head};

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

/// What the hub serves; a file longer than 64 bytes counts as large.
pub struct Repository {
    /// The hub id.
    pub id: &'static str,
    pub files: Vec<(&'static str, Vec<u8>)>,
    pub faults: Vec<(&'static str, Fault)>,
}

pub fn serve(repository: Repository) -> FakeHttp {
    let spent = Mutex::new(Vec::new());
    FakeHttp::serve(move |request, _, stream| {
        let file = request.path.rsplit('/').next().unwrap_or_default().to_owned();
        let fault = repository.faults.iter().find(|(path, _)| request.path.ends_with(path));
        let mut fault = fault.map(|(_, fault)| *fault);
        if request.method == "GET" && matches!(fault, Some(Fault::DieOnce(_))) {
            let mut spent = spent.lock().unwrap();
            match spent.contains(&file) {
                true => fault = None,
                false => spent.push(file),
            }
        }
        answer(stream, request, fault, &repository);
    })
}

fn answer(
    stream: &mut TcpStream,
    request: &Request,
    fault: Option<Fault>,
    repository: &Repository,
) {
    match fault {
        Some(Fault::Hang) => return thread::sleep(Duration::from_secs(10)),
        Some(Fault::Deny(status, code)) => {
            return send(stream, status, &[("x-error-code", code.to_owned())], b"");
        }
        Some(Fault::Bloat) => {
            let encoding = [("content-encoding", "gzip".to_owned())];
            return send(stream, 200, &encoding, &packed_blanks(65 << 20));
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
        return send(stream, status, &[], listing.as_bytes());
    }
    let resolve = format!("/{}/resolve/{COMMIT}/", repository.id);
    let name = request.path.strip_prefix(&resolve).or_else(|| request.path.strip_prefix("/store/"));
    // Datasets are named by their whole address.
    let name = name.or_else(|| request.path.strip_prefix('/'));
    match repository.files.iter().find(|(file, _)| Some(*file) == name) {
        Some((name, bytes)) => send_file(stream, request, fault, name, bytes),
        None => send(stream, 404, &[("x-error-code", "EntryNotFound".to_owned())], b""),
    }
}

fn send_file(
    stream: &mut TcpStream,
    request: &Request,
    fault: Option<Fault>,
    name: &str,
    bytes: &[u8],
) {
    let mut headers = Vec::new();
    if bytes.len() > 64 {
        let mut sum = Sum::default();
        sum.update(if fault == Some(Fault::Lie) { b"another" } else { bytes });
        headers.push(("x-linked-etag", format!("\"{}\"", sum.finish())));
        headers.push(("x-linked-size", bytes.len().to_string()));
    }
    // As long as git's sum.
    headers.push(("etag", format!("W/\"{}\"", &sha256(bytes)[..40])));
    if fault == Some(Fault::Elsewhere) && !request.path.starts_with("/store/") {
        // By another name of the same port.
        let port = stream.local_addr().unwrap().port();
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
