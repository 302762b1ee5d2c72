//! An endpoint on the loopback for tests, with a script of ways to misbehave.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    headers: HashMap<String, String>,
    pub body: Value,
    pub at: Instant,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// What becomes of one request.
#[derive(Clone, Debug)]
pub enum Act {
    /// This status, these headers, this body.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// Nothing is ever sent.
    Hang,
    /// The connection closes without a word.
    Close,
    /// The whole length is promised and half of the body sent.
    Half(String),
    /// In chunks; the last one is missing unless it is to be complete.
    Chunked { body: String, is_complete: bool },
    /// This many bytes, all spaces, without a length promised.
    Endless(usize),
    /// This many bytes, all spaces, packed by gzip.
    Packed(usize),
}

pub struct FakeServer {
    pub port: u16,
    requests: Receiver<Request>,
}

/// A completion that says `text`.
pub fn said(text: &str) -> Act {
    ok(json!({
        "model": "m-1",
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }))
}

pub fn ok(body: Value) -> Act {
    Act::Answer(200, Vec::new(), body.to_string())
}

pub fn status(status: u16, body: &str) -> Act {
    Act::Answer(status, Vec::new(), body.to_owned())
}

impl FakeServer {
    /// Answers the request number `n`, counted from 0, as `script` says.
    pub fn serve(script: impl Fn(&Request, usize) -> Act + Send + Sync + 'static) -> FakeServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = channel();
        let script = Arc::new(script);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let stream = stream.unwrap();
                let (sender, script) = (sender.clone(), Arc::clone(&script));
                thread::spawn(move || {
                    answer(stream, |request| script(request, number), &sender);
                });
            }
        });
        FakeServer { port, requests }
    }

    /// Plays `acts` one after the other; the last one from then on.
    pub fn play(acts: Vec<Act>) -> FakeServer {
        FakeServer::serve(move |_, number| acts[number.min(acts.len() - 1)].clone())
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The requests since the last call.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }
}

fn answer(mut stream: TcpStream, act: impl Fn(&Request) -> Act, log: &Sender<Request>) {
    let Some(request) = read(&stream) else {
        return;
    };
    let act = act(&request);
    // A test that has ended no longer listens.
    let _ = log.send(request);
    let mut send = |text: &str| stream.write_all(text.as_bytes());
    let head = "HTTP/1.1 200 X\r\nconnection: close\r\n";
    // A client that has seen enough hangs up.
    let _ = match act {
        Act::Hang => {
            thread::sleep(Duration::from_secs(10));
            Ok(())
        }
        Act::Close => Ok(()),
        Act::Answer(status, headers, body) => {
            let headers: String =
                headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let length = body.len();
            send(&format!(
                "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
            ))
        }
        Act::Half(body) => {
            let half = &body[..body.len() / 2];
            send(&format!("{head}content-length: {}\r\n\r\n{half}", body.len()))
        }
        Act::Chunked { body, is_complete } => {
            let (first, second) = body.split_at(body.len() / 2);
            let mut text = format!("{head}transfer-encoding: chunked\r\n\r\n");
            for chunk in [first, second] {
                text += &format!("{:x}\r\n{chunk}\r\n", chunk.len());
            }
            send(&(text + if is_complete { "0\r\n\r\n" } else { "" }))
        }
        Act::Endless(bytes) => {
            let _ = send(&format!("{head}\r\n"));
            send(&" ".repeat(bytes))
        }
        Act::Packed(bytes) => {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            packed.write_all(&vec![b' '; bytes]).unwrap();
            let body = packed.finish().unwrap();
            let length = body.len();
            let _ =
                send(&format!("{head}content-encoding: gzip\r\ncontent-length: {length}\r\n\r\n"));
            stream.write_all(&body)
        }
    };
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
    let headers: HashMap<String, String> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request {
        method: method.to_owned(),
        path: rest.split(' ').next()?.to_owned(),
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        at,
    })
}
