//! Good requests, odd values for their fields, and heads on the border of what HTTP allows.

use serde_json::{Value, json};

/// A good request.
#[derive(Clone, Debug)]
pub struct Good {
    pub path: &'static str,
    pub kind: &'static str,
    pub body: String,
}

fn good(path: &'static str, body: &Value) -> Good {
    Good { path, kind: "application/json", body: body.to_string() }
}

/// Bodies for models, each with as many fields as go together.
pub fn completions() -> Vec<Good> {
    const CHAT: &str = "/v1/chat/completions";
    let messages = json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Hé 🩺"}]}]);
    let schema = json!({"type": "object", "properties": {"a": {"enum": ["A", "B"]}, "b": {"type": "array", "items": {"type": "integer"}}},
        "required": ["a"], "additionalProperties": false});
    vec![
        good(
            CHAT,
            &json!({"model": "qwen3", "messages": messages, "max_tokens": 1, "temperature": 0.5, "top_p": 0.9, "top_k": 5, "min_p": 0.1,
                "repetition_penalty": 1.1, "frequency_penalty": 0.5, "presence_penalty": -0.5, "seed": 3,
                "n": 2, "stop": ["x", "y"], "ignore_eos": true, "logprobs": true, "top_logprobs": 3, "user": "me"}),
        ),
        good(
            CHAT,
            &json!({"messages": messages, "max_completion_tokens": 2, "stream": true,
                "stream_options": {"include_usage": true}, "chat_template_kwargs": {"enable_thinking": true},
                "reasoning_effort": "low", "tools": [], "tool_choice": "none"}),
        ),
        good(
            CHAT,
            &json!({"messages": messages, "max_tokens": 1, "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}}),
        ),
        good(
            CHAT,
            &json!({"messages": messages, "max_tokens": 1, "structured_outputs": {"regex": "(a|b){1,3}[0-9]+"}}),
        ),
        good(
            CHAT,
            &json!({"messages": messages, "max_tokens": 1, "structured_outputs": {"grammar": "start: \"a\" | \"b\" start"}}),
        ),
        good(
            CHAT,
            &json!({"messages": messages, "max_tokens": 1, "structured_outputs": {"choice": ["yes", "no"]}}),
        ),
        good(
            "/v1/completions",
            &json!({"prompt": ["Once", "Twice"], "max_tokens": 1, "logprobs": 2, "echo": true, "n": 2}),
        ),
        good(
            "/v1/completions",
            &json!({"prompt": [[5, 6, 7], [8, 9]], "max_tokens": 0, "echo": true, "add_special_tokens": false}),
        ),
        good("/tokenize", &json!({"prompt": "The heart", "add_special_tokens": true})),
        good(
            "/v1/embeddings",
            &json!({"input": ["the spleen", "5 mg"], "encoding_format": "base64", "dimensions": 16, "input_type": "query", "user": "a"}),
        ),
    ]
}

/// Bodies for systems.
pub fn cases() -> Vec<Good> {
    let question = "Which vitamin is retinol?\nA) Vitamin A\nB) Vitamin D\nC) Vitamin K";
    let chat = |model: &str, content: &str| json!({"model": model, "messages": [{"role": "user", "content": content}], "seed": 5, "n": 1, "stream": false});
    let note = "Fever for two days. Malaria is treated with aspirin.";
    vec![
        good("/v1/check", &json!({"text": note, "system": "medguards", "seed": 3})),
        good("/v1/chat/completions", &chat("cot-sc", question)),
        good("/v1/chat/completions", &chat("medguards", note)),
    ]
}

/// What a value of a field may be instead.
pub fn odd_values() -> Vec<Value> {
    let deep = (0..100).fold(json!([]), |inner, _| json!([inner]));
    let wide: Value = (0..2000).map(|index| (format!("k{index}"), json!(index))).collect();
    vec![
        Value::Null,
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(1),
        json!(0.5),
        json!(1e308),
        json!(-1e-308),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(4_294_967_295_u64),
        json!(16.0),
        json!(""),
        json!("a"),
        json!(" \n\t"),
        json!("\u{0}\u{7f}\u{feff}\u{202e}"),
        json!("🩺你好\u{301}"),
        json!("<|im_start|>system<|im_end|></think><eos><bos>"),
        json!("(a?){300}a{300}"),
        json!("((("),
        json!("(?=a)\\1"),
        json!("start: start"),
        json!("%import common.X"),
        json!("{{ 'x' * 99999999 }}{% for x in range(999999) %}"),
        json!("x".repeat(5000)),
        json!([]),
        json!([null]),
        json!({}),
        json!({"type": "object", "properties": {"a": {"$ref": "#"}}}),
        json!({"$ref": "http://evil.example/schema"}),
        json!({"type": "text"}),
        json!({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}),
        json!({"role": "assistant", "content": null, "tool_calls": [{}]}),
        json!({"role": "tool", "content": "x"}),
        json!(vec![0; 300]),
        json!(vec!["a"; 300]),
        json!([[1], "a", {}]),
        deep,
        wide,
    ]
}

/// Heads that stand on the border of what HTTP allows, and beyond.
pub fn heads() -> Vec<Vec<u8>> {
    let body = json!({"prompt": "a"}).to_string();
    let long = "a".repeat(40_000);
    let many: String = (0..150).map(|index| format!("x-{index}: a\r\n")).collect();
    let post = |headers: &str, body: &str| {
        format!("POST /tokenize HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}\r\n{body}").into_bytes()
    };
    let get = |target: &str, headers: &str| {
        format!("GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n")
            .into_bytes()
    };
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let length = format!("content-length: {}\r\n", body.len());
    vec![
        post(&length, &body),
        post(&format!("{length}{length}"), &body),
        post(&format!("{length}content-length: 3\r\n"), &body),
        post("content-length: 12, 12\r\n", &body),
        post("content-length: -1\r\n", &body),
        post("content-length: +12\r\n", &body),
        post("content-length: 99999999999999999999\r\n", &body),
        post("content-length: 18446744073709551615\r\n", &body),
        post("transfer-encoding: chunked\r\n", &chunked),
        post(&format!("transfer-encoding: chunked\r\n{length}"), &chunked),
        post(&format!("{length}transfer-encoding: chunked\r\n"), &chunked),
        post("transfer-encoding: chunked, chunked\r\n", &chunked),
        post("transfer-encoding: gzip, chunked\r\n", &chunked),
        post("transfer-encoding: chunked, identity\r\n", &chunked),
        post("transfer-encoding: xchunked\r\n", &chunked),
        post(&format!("expect: 100-continue\r\n{length}"), &body),
        post(&format!("expect: tea\r\n{length}"), &body),
        post(&format!("content-encoding: gzip\r\n{length}"), &body),
        get("/health", ""),
        get("/health", "x-folded: a\r\n b\r\n"),
        get("/health", "x-nul: a\0b\r\n"),
        get("/health", "x bad: a\r\n"),
        get("/health", ": a\r\n"),
        get("/health", "x-colon : a\r\n"),
        get("/health", "x-request-id: a b\r\nx-request-id: \u{e9}\r\n"),
        get("/health", "host: evil.example\r\n"),
        get("/health", "origin: null\r\n"),
        get(
            "/health",
            "upgrade: h2c\r\nconnection: upgrade, http2-settings\r\nhttp2-settings: AAMAAABk\r\n",
        ),
        get("/health", &format!("x-long: {long}\r\n")),
        get("/health", &many),
        get("/health?", "cookie: a=; a=\"a\r\n"),
        get("//health//", ""),
        get("/v1/models/..%2f..%2fetc%2fpasswd", ""),
        get("/v1/models/%ff%00", ""),
        get("/v1/models/%F0%9F%A9%BA", ""),
        get("/tokenizer_info?model=%ff&model=qwen3", ""),
        get("http://evil.example/health", ""),
        get("*", ""),
        get("/%", ""),
        get(&format!("/{long}"), ""),
        b"GET /health HTTP/1.0\r\n\r\n".to_vec(),
        b"GET /health HTTP/1.1\r\n\r\n".to_vec(),
        b"GET /health\r\n\r\n".to_vec(),
        b"GET /health HTTP/2.0\r\n\r\n".to_vec(),
        b"GET /health HTTP/1.1\nhost: localhost\nconnection: close\n\n".to_vec(),
        b"GET /health HTTP/1.1\rhost: localhost\r\r".to_vec(),
        b"\r\n\r\nGET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"OPTIONS * HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".to_vec(),
        b"CONNECT evil.example:443 HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec(),
        b"TRACE / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".to_vec(),
        "GÄT /héalth HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".as_bytes().to_vec(),
    ]
}
