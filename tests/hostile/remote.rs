//! What a server answers: status, headers and bodies that it should not send.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use wardround::panel::remote::{Address, RemoteModel, RemoteOptions, RemoteRequest};
use wardround::record::Message;

use super::damage::{damaged, withstands};

const BODY: &str = r#"{"id": "x", "object": "chat.completion", "created": 1, "model": "tiny", "choices": [{"index": 0, "message": {"role": "assistant", "content": "{\"answer\": \"B\"}", "refusal": null}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3}}}"#;
const COMPLAINT: &str = r#"{"error": {"message": "Unknown parameter: 'seed'.", "type": "invalid_request_error", "param": "seed", "code": "unknown_parameter"}}"#;
const DETAIL: &str = r#"{"detail": [{"loc": ["body", "seed"], "msg": "extra fields not permitted", "type": "value_error"}]}"#;

fn answer(status: &str, more: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{more}Connection: close\r\n\r\n{body}"
    )
}

fn serve(mut connection: TcpStream, bytes: &[u8]) {
    let mut request = [0; 16 << 10];
    let _ = connection.set_read_timeout(Some(Duration::from_secs(5)));
    let _ = connection.read(&mut request);
    let _ = connection.write_all(bytes);
}

#[test]
fn answers_of_a_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let said = Arc::clone(&bytes);
    thread::spawn(move || {
        for connection in listener.incoming() {
            let bytes = said.lock().unwrap().clone();
            serve(connection.unwrap(), &bytes);
        }
    });
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n{:x}\r\n{BODY}\r\n0\r\n\r\n",
        BODY.len()
    );
    let streamed = format!("data: {BODY}\n\ndata: [DONE]\n\n");
    let good = [
        answer("200 OK", "", BODY),
        chunked,
        answer("200 OK", "", &streamed),
        answer("400 Bad Request", "", COMPLAINT),
        answer("422 Unprocessable Content", "", DETAIL),
        answer("429 Too Many Requests", "Retry-After: 1\r\n", COMPLAINT),
        answer("503 Service Unavailable", "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n", "busy"),
        answer("307 Temporary Redirect", "Location: http://127.0.0.1:1/\r\n", ""),
    ];
    let address = Address::parse(&format!("openai:tiny@http://127.0.0.1:{port}")).unwrap();
    withstands("answer of a server", damaged(good), |answer| {
        *bytes.lock().unwrap() = answer;
        let options = RemoteOptions {
            timeout: Duration::from_secs(2),
            attempts: 1,
            first_pause: Duration::from_millis(1),
            ..RemoteOptions::default()
        };
        let model = RemoteModel::open(&address, options).unwrap();
        let request = RemoteRequest {
            messages: vec![Message::new("user", "Which?")],
            max_tokens: Some(12),
            ..RemoteRequest::default()
        };
        let _ = model.complete(&request, &AtomicBool::new(false));
    });
}
