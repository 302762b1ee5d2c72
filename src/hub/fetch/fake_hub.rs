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
    /// The listed sum is another file's.
    Lie,
    /// The listing has names alone.
    Bare,
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
        let path = request.path.split('?').next().unwrap_or_default();
        let mut fault = fault_of(&repository, path);
        if matches!(fault, Some(Fault::DieOnce(_))) {
            let mut spent = spent.lock().unwrap();
            match spent.contains(&file) {
                true => fault = None,
                false => spent.push(file),
            }
        }
        answer(stream, request, fault, &repository);
    })
}

fn fault_of(repository: &Repository, path: &str) -> Option<Fault> {
    let mut faults = repository.faults.iter();
    faults.find(|(end, _)| path.ends_with(end)).map(|(_, fault)| *fault)
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
            .map(|(name, bytes)| {
                if fault == Some(Fault::Bare) {
                    return serde_json::json!({"rfilename": name});
                }
                let mut sum = Sum::default();
                let is_lie = fault_of(repository, name) == Some(Fault::Lie);
                sum.update(if is_lie { b"another" } else { bytes });
                let large = serde_json::json!({"sha256": sum.finish(), "size": bytes.len()});
                let lfs = (bytes.len() > 64).then_some(large);
                // As long as git's sum.
                let blob = &sha256(bytes)[..40];
                serde_json::json!({"rfilename": name, "size": bytes.len(), "blobId": blob, "lfs": lfs})
            })
            .collect();
        let listing = serde_json::json!({"sha": COMMIT, "siblings": siblings}).to_string();
        let is_known = ["main?blobs=true", &format!("{COMMIT}?blobs=true")].contains(&revision);
        let status = if is_known { 200 } else { 404 };
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
