//! An endpoint on the loopback for tests, with a script of ways to misbehave.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::fake_http::{FakeHttp, Request, packed_blanks, send, write_head};

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

/// Answers the request number `n`, counted from 0, as `script` says.
pub fn serve(script: impl Fn(&Request, usize) -> Act + Send + Sync + 'static) -> FakeHttp {
    FakeHttp::serve(move |request, number, stream| answer(stream, script(request, number)))
}

/// Plays `acts` one after the other; the last one from then on.
pub fn play(acts: Vec<Act>) -> FakeHttp {
    serve(move |_, number| acts[number.min(acts.len() - 1)].clone())
}

fn answer(stream: &mut TcpStream, act: Act) {
    match act {
        Act::Hang => thread::sleep(Duration::from_secs(10)),
        Act::Close => {}
        Act::Answer(status, headers, body) => send(stream, status, &headers, body.as_bytes()),
        Act::Half(body) => {
            write_head(stream, 200, &[("content-length", body.len().to_string())]);
            let _ = stream.write_all(&body.as_bytes()[..body.len() / 2]);
        }
        Act::Chunked { body, is_complete } => {
            write_head(stream, 200, &[("transfer-encoding", "chunked".to_owned())]);
            let (first, second) = body.split_at(body.len() / 2);
            let chunk = |chunk: &str| format!("{:x}\r\n{chunk}\r\n", chunk.len());
            let end = if is_complete { "0\r\n\r\n" } else { "" };
            let _ = stream.write_all((chunk(first) + &chunk(second) + end).as_bytes());
        }
        Act::Endless(bytes) => {
            write_head(stream, 200, &[]);
            let _ = stream.write_all(&vec![b' '; bytes]);
        }
        Act::Packed(bytes) => {
            let encoding = [("content-encoding", "gzip".to_owned())];
            send(stream, 200, &encoding, &packed_blanks(bytes));
        }
    }
}
