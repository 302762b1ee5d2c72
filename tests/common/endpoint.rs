//! An endpoint of a test's own, on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use serde_json::{Value, json};

/// Answers every chat by `answer`, which gives a status and a body, until the test ends; gives its address. A body that is a text is
/// sent as it stands.
pub fn serve(answer: impl Fn(&Value) -> (u16, Value) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        thread::scope(|scope| {
            for stream in listener.incoming().flatten() {
                scope.spawn(|| converse(stream, &answer));
            }
        });
    });
    format!("openai:tiny@http://{address}/v1")
}

/// Requests of one connection, one after another.
fn converse(stream: TcpStream, answer: &(impl Fn(&Value) -> (u16, Value) + Sync)) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.to_ascii_lowercase());
        }
        let length = lines.iter().find_map(|line| line.strip_prefix("content-length:"));
        let length = length.map_or(0, |length| length.trim().parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let (status, reply) = match lines[0].starts_with("get") {
            true => (200, json!({"data": [{"id": "tiny"}]})),
            false => answer(&serde_json::from_slice(&body).unwrap()),
        };
        let reply = reply.as_str().map_or_else(|| reply.to_string(), str::to_owned);
        let length = reply.len();
        let head = format!(
            "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        if stream.write_all((head + &reply).as_bytes()).is_err() {
            return;
        }
    }
}

pub fn said(text: &str) -> (u16, Value) {
    let reply = json!({
        "model": "tiny-2026", "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 30, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 16}}
    });
    (200, reply)
}
