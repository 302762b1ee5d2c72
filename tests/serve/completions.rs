//! Chats and completions: the same bytes in every way of asking.

use serde_json::{Value, json};
use wardround::model::Family;

use crate::client::Server;
use crate::common;

fn hello(extra: Value) -> Value {
    let mut body =
        json!({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 12, "seed": 7});
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    body
}

const CHAT: &str = "/v1/chat/completions";

#[test]
fn streamed_and_whole_answers_are_the_same_bytes_at_any_concurrency() {
    let server = Server::one(Family::Qwen3, "");
    let whole = server.post(CHAT, &hello(json!({"logprobs": true, "top_logprobs": 3}))).json();
    let text = whole["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(!text.is_empty());
    let asked: Vec<Value> = std::thread::scope(|scope| {
        let ask = |index: usize| {
            let server = &server;
            scope.spawn(move || {
                let other = json!({"messages": [{"role": "user", "content": format!("{index}")}], "max_tokens": 9});
                server.post(CHAT, &other);
                server.post(CHAT, &hello(json!({"logprobs": true, "top_logprobs": 3}))).json()
            })
        };
        let threads: Vec<_> = (0..16).map(ask).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for other in asked {
        assert_eq!(other["choices"], whole["choices"]);
        assert_eq!(other["wardround"]["request"], whole["wardround"]["request"]);
    }
    let stream = hello(
        json!({"stream": true, "stream_options": {"include_usage": true}, "logprobs": true, "top_logprobs": 3}),
    );
    let (events, is_whole) = server.post(CHAT, &stream).events();
    assert!(is_whole);
    let content =
        |event: &Value| event["choices"][0]["delta"]["content"].as_str().unwrap_or("").to_owned();
    assert_eq!(events.iter().map(content).collect::<String>(), text);
    let entries = events.iter().flat_map(|event| {
        event["choices"][0]["logprobs"]["content"].as_array().cloned().unwrap_or_default()
    });
    let entries: Vec<Value> = entries.collect();
    assert_eq!(Value::from(entries.clone()), whole["choices"][0]["logprobs"]["content"]);
    let bytes: Vec<u8> = entries
        .iter()
        .flat_map(|entry| entry["bytes"].as_array().unwrap())
        .map(|byte| byte.as_u64().unwrap() as u8)
        .collect();
    // A character that never becomes whole is U+FFFD in a text.
    assert_eq!(String::from_utf8_lossy(&bytes), text);
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    let last = events.last().unwrap();
    assert_eq!(
        (&last["choices"], &last["usage"]["completion_tokens"]),
        (&json!([]), &whole["usage"]["completion_tokens"])
    );
    assert_eq!(events.iter().filter(|event| event.get("usage").is_some()).count(), 1);
    assert_eq!(last["wardround"], whole["wardround"]);
    // Without the usage, the last chunk has them.
    let stream = hello(json!({"stream": true, "logprobs": true, "top_logprobs": 3}));
    let (events, _) = server.post(CHAT, &stream).events();
    assert_eq!(events.last().unwrap()["wardround"], whole["wardround"]);
    assert_eq!(events.iter().filter(|event| event.get("wardround").is_some()).count(), 1);
}

#[test]
fn choices_differ_and_the_first_is_that_of_one() {
    let server = Server::one(Family::Qwen3, "");
    let several = server.post(CHAT, &hello(json!({"n": 4, "temperature": 1.0, "top_k": 0}))).json();
    let one = server.post(CHAT, &hello(json!({"temperature": 1.0, "top_k": 0}))).json();
    let text =
        |answer: &Value, index: usize| answer["choices"][index]["message"]["content"].clone();
    assert_eq!(text(&several, 0), text(&one, 0));
    assert!((1..4).any(|index| text(&several, index) != text(&several, 0)));
    // Without a seed, the same question is answered anew.
    let anew = json!({"seed": null, "temperature": 1.0, "top_k": 0});
    let (first, second) =
        (server.post(CHAT, &hello(anew.clone())).json(), server.post(CHAT, &hello(anew)).json());
    assert_ne!(first["wardround"]["seed"], second["wardround"]["seed"]);
    // And the seed that was drawn gives the same answer again.
    let again = json!({"seed": first["wardround"]["seed"], "temperature": 1.0, "top_k": 0});
    assert_eq!(server.post(CHAT, &hello(again)).json()["choices"], first["choices"]);
}

#[test]
fn what_lm_eval_reads_is_there_to_the_last_token() {
    let server = Server::one(Family::Llama, "");
    let ids: Vec<u32> = (5..25).collect();
    let body = json!({"prompt": [ids], "echo": true, "logprobs": 1, "max_tokens": 1, "temperature": 0, "seed": 1234});
    let answer = server.post("/v1/completions", &body).json();
    let logprobs = &answer["choices"][0]["logprobs"];
    let list = |name: &str| logprobs[name].as_array().unwrap().clone();
    assert_eq!(
        (list("tokens").len(), list("token_logprobs").len(), list("top_logprobs").len()),
        (21, 21, 21)
    );
    assert_eq!(
        (&list("token_logprobs")[0], &list("top_logprobs")[0]),
        (&Value::Null, &Value::Null)
    );
    for (logprob, top) in list("token_logprobs").iter().zip(list("top_logprobs")).skip(1) {
        let top: Vec<f64> =
            top.as_object().unwrap().values().map(|value| value.as_f64().unwrap()).collect();
        let logprob = logprob.as_f64().unwrap();
        assert!(
            top.contains(&logprob) && top.iter().all(|other| *other >= logprob || top.len() == 2)
        );
    }
    // Alone, in a batch, and scored without generating: the same numbers.
    let mut batch = body.clone();
    batch["prompt"] = json!([[9, 9, 9], ids, ids]);
    let batched = server.post("/v1/completions", &batch).json();
    for index in [1, 2] {
        assert_eq!(batched["choices"][index]["logprobs"], *logprobs);
    }
    let mut scored = body;
    scored["max_tokens"] = json!(0);
    let scored = server.post("/v1/completions", &scored).json();
    let known = scored["choices"][0]["logprobs"]["token_logprobs"].as_array().unwrap().clone();
    assert_eq!(known, list("token_logprobs")[..20]);
    let mut streamed =
        json!({"prompt": [ids], "echo": true, "logprobs": 1, "max_tokens": 4, "temperature": 0});
    let whole = server.post("/v1/completions", &streamed).json();
    streamed["stream"] = json!(true);
    let (events, is_whole) = server.post("/v1/completions", &streamed).events();
    assert!(is_whole);
    let text: String =
        events.iter().map(|event| event["choices"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(text, whole["choices"][0]["text"].as_str().unwrap());
    // A prompt alone is echoed without log-probabilities too.
    let bare = json!({"prompt": "The heart", "echo": true, "max_tokens": 0});
    let echoed = server.post("/v1/completions", &bare).json();
    assert_eq!(echoed["choices"][0]["text"], "The heart", "{echoed}");
    assert_eq!(echoed["choices"][0]["logprobs"], Value::Null);
    assert_eq!(echoed["usage"]["completion_tokens"], 0);
}

#[test]
fn grammars_hold_and_those_that_cannot_be_followed_are_said() {
    let server = Server::one(Family::Qwen3, "");
    let schema = json!({"type": "object", "properties": {"answer": {"enum": ["A", "B"]}}, "required": ["answer"], "additionalProperties": false,
        "x-guidance": {"whitespace_flexible": false}});
    let format = json!({"type": "json_schema", "json_schema": {"name": "a", "schema": schema}});
    let answer =
        server.post(CHAT, &hello(json!({"response_format": format, "max_tokens": 60}))).json();
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    let value: Value = serde_json::from_str(text).unwrap();
    assert!(["A", "B"].contains(&value["answer"].as_str().unwrap()), "{text}");
    let choice = json!({"structured_outputs": {"choice": ["yes", "no"]}});
    let answer = server.post(CHAT, &hello(choice)).json();
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(["yes", "no"].contains(&text), "{text}");
    let properties: serde_json::Map<String, Value> =
        (0..500).map(|index| (format!("p{index}"), json!({"type": "string"}))).collect();
    let format = |schema: Value| json!({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}});
    let wide = format(json!({"type": "object", "properties": properties}));
    let reply = server.post(CHAT, &hello(wide));
    assert!(
        reply.status == 200
            || ["schema_too_complex", "invalid_schema"].contains(&reply.code().1.as_str()),
        "{reply:?}"
    );
    let reply = server.post(CHAT, &hello(format(json!({"type": "nonsense"}))));
    assert_eq!(reply.code(), (400, "invalid_schema".to_owned()));
}

#[test]
fn tokens_are_counted_with_and_without_special_ones() {
    let server = Server::one(Family::Gemma3, "");
    let text = "The heart; a β blocker\n";
    let with = server.post("/tokenize", &json!({"prompt": text})).json();
    let without =
        server.post("/tokenize", &json!({"prompt": text, "add_special_tokens": false})).json();
    let (with_count, count) = (with["count"].as_u64().unwrap(), without["count"].as_u64().unwrap());
    assert!(with_count == count || with_count == count + 1);
    assert_eq!(with["tokens"].as_array().unwrap().len() as u64, with_count);
    let info = server.get("/tokenizer_info").json();
    assert!(info["chat_template"].as_str().unwrap().len() > 10);
    assert!(info.get("pad_token").is_some());
}

#[test]
fn a_model_that_computes_no_numbers_is_a_fault_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("qwen3");
    std::fs::create_dir(&model).unwrap();
    for entry in std::fs::read_dir(common::synthetic(Family::Qwen3)).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, model.join(path.file_name().unwrap())).unwrap();
    }
    // A NaN in the final norm.
    let path = model.join("model.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let tensor = &header["model.norm.weight"];
    let start = 8 + length + tensor["data_offsets"][0].as_u64().unwrap() as usize;
    let nan = match tensor["dtype"].as_str() {
        Some("F32") => f32::NAN.to_le_bytes().to_vec(),
        _ => vec![0xc0, 0x7f],
    };
    bytes[start..start + nan.len()].copy_from_slice(&nan);
    std::fs::write(&path, bytes).unwrap();
    let server = Server::start_in(folder, "--context 1024");
    let schema = json!({"type": "json_object"});
    let scored =
        json!({"prompt": "one", "max_tokens": 1, "echo": true, "logprobs": 1, "temperature": 0});
    for (path, mut body) in [
        (CHAT, hello(json!({}))),
        (CHAT, hello(json!({"response_format": schema}))),
        ("/v1/completions", scored),
    ] {
        body["model"] = "qwen3".into();
        let answer = server.post(path, &body);
        assert_eq!(answer.code(), (500, "internal".to_owned()), "{}", answer.json());
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("computed numbers that are not finite"), "{message}");
    }
    // The others answer on.
    let mut body = hello(json!({}));
    body["model"] = "llama".into();
    assert!(server.post(CHAT, &body).json()["choices"].is_array());
    body["repetition_penalty"] = 1e-38.into();
    assert_eq!(server.post(CHAT, &body).code().0, 400);
}
