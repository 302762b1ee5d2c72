//! A server on the loopback for tests: what arrives is kept, and whoever plays it answers.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use serde_json::Value;

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub method: String,
    pub path: String,
    headers: HashMap<String, String>,
    /// Null where it is no JSON.
    pub body: Value,
    pub at: Instant,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    fn read(stream: &TcpStream) -> Option<Request> {
        let mut reader = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let at = Instant::now();
        let (method, rest) = lines.first()?.split_once(' ')?;
        let headers = lines[1..].iter().filter_map(|line| line.split_once(':'));
        let headers: HashMap<String, String> = headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body = serde_json::from_slice(&body).unwrap_or_default();
        let path = rest.split(' ').next()?.to_owned();
        Some(Request { method: method.to_owned(), path, headers, body, at })
    }
}

pub struct FakeHttp {
    port: u16,
    requests: Receiver<Request>,
}

impl FakeHttp {
    /// Has each request answered on a thread of its own; `answer` is told its number, from 0.
    pub fn serve(
        answer: impl Fn(&Request, usize, &mut TcpStream) + Send + Sync + 'static,
    ) -> FakeHttp {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = channel();
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                let (sender, answer) = (sender.clone(), Arc::clone(&answer));
                thread::spawn(move || {
                    let Some(request) = Request::read(&stream) else { return };
                    // A test that has ended no longer listens.
                    let _ = sender.send(request.clone());
                    answer(&request, number, &mut stream);
                });
            }
        });
        FakeHttp { port, requests }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The requests since the last call.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }
}

/// Sends a whole answer; a client that has seen enough hangs up.
pub fn send(stream: &mut TcpStream, status: u16, headers: &[(&str, String)], body: &[u8]) {
    let mut headers = headers.to_vec();
    headers.push(("content-length", body.len().to_string()));
    write_head(stream, status, &headers);
    let _ = stream.write_all(body);
}

pub fn write_head(stream: &mut TcpStream, status: u16, headers: &[(&str, String)]) {
    let mut head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let _ = stream.write_all(format!("{head}\r\n").as_bytes());
}

/// So many blanks, packed by gzip.
pub fn packed_blanks(bytes: usize) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&vec![b' '; bytes]).unwrap();
    packed.finish().unwrap()
}
