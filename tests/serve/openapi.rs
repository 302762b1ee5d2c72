//! Every response is what the description says.

use serde_json::{Value, json};
use wardround::model::Family;

use crate::client::{Answer, Ask, Server, add_key};
use crate::common::json_schema::is_valid;
use crate::systems::QUICK;

/// A schema with its references filled in.
fn resolved(schema: &Value, document: &Value) -> Value {
    match schema {
        Value::Object(map) => match map.get("$ref").and_then(Value::as_str) {
            Some(reference) => {
                let found = document.pointer(reference.trim_start_matches('#'));
                resolved(found.unwrap_or_else(|| panic!("{reference}")), document)
            }
            None => {
                map.iter().map(|(key, value)| (key.clone(), resolved(value, document))).collect()
            }
        },
        Value::Array(list) => list.iter().map(|value| resolved(value, document)).collect(),
        other => other.clone(),
    }
}

/// Whether a value is of the schema of this name, or what is posted to this path gives it.
pub fn check(document: &Value, name: &str, value: &Value) {
    let schema = match name.starts_with('/') {
        true => {
            let answer = &document["paths"][name]["post"]["responses"]["200"];
            &answer["content"]["application/json"]["schema"]
        }
        false => &document["components"]["schemas"][name],
    };
    let schema = resolved(schema, document);
    assert!(is_valid(&schema, value), "no {name}: {value:#}");
}

#[test]
fn responses_are_as_described() {
    let server = Server::one(Family::Qwen3, "");
    let document = server.get("/openapi.json").json();
    let check_one = |name: &str, reply: &Answer| check(&document, name, &reply.json());
    assert_eq!(server.get("/v1/health").json(), json!({"status": "ok"}));
    check_one("ModelList", &server.get("/v1/models"));
    check_one("ModelEntry", &server.get("/v1/models/qwen3"));
    check_one("TokenizerInfo", &server.get("/tokenizer_info"));
    check_one("Tokens", &server.post("/tokenize", &json!({"prompt": "a"})));
    check_one("Text", &server.post("/detokenize", &json!({"tokens": [5]})));
    let messages = json!([{"role": "user", "content": "Hello"}]);
    check_one("ErrorBody", &server.get("/nothing"));
    check_one("ErrorBody", &server.post("/v1/chat/completions", &json!({})));
    for extra in [
        json!({}),
        json!({"logprobs": true, "top_logprobs": 2, "n": 2}),
        json!({"enable_thinking": true}),
    ] {
        let mut body = json!({"messages": messages, "max_tokens": 6});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        check_one("Reply", &server.post("/v1/chat/completions", &body));
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
        let (events, is_whole) = server.post("/v1/chat/completions", &body).events();
        assert!(is_whole);
        events.iter().for_each(|event| check(&document, "Reply", event));
    }
    for extra in [json!({}), json!({"echo": true, "logprobs": 2})] {
        let mut body = json!({"prompt": ["Hello", "You"], "max_tokens": 4});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        check_one("Reply", &server.post("/v1/completions", &body));
        body["stream"] = json!(true);
        let (events, _) = server.post("/v1/completions", &body).events();
        events.iter().for_each(|event| check(&document, "Reply", event));
    }
}

#[test]
fn responses_of_systems_are_as_described() {
    let server = Server::start(&format!("{QUICK} --default-seed 1"));
    let document = server.get("/openapi.json").json();
    let check_one = |name: &str, answer: &Answer| check(&document, name, &answer.json());
    check_one("ModelList", &server.get("/v1/models"));
    check_one("ModelEntry", &server.get("/v1/models/medguards"));
    for (model, text) in
        [("cot-sc", "Which?\nA) one\nB) two"), ("medguards", "Malaria is treated with aspirin.")]
    {
        let mut body = json!({"model": model, "messages": [{"role": "user", "content": text}]});
        check_one("Reply", &server.post("/v1/chat/completions", &body));
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
        let (events, is_whole) = server.post("/v1/chat/completions", &body).events();
        assert!(is_whole);
        events.iter().for_each(|event| check(&document, "Reply", event));
    }
    check_one("ErrorBody", &server.post("/v1/check", &json!({})));
    check_one("ErrorBody", &server.post_text("/v1/check", "text/csv", "a"));
}

/// What a request may hold stands there by name, with its bounds.
#[test]
fn requests_are_described_by_their_fields() {
    let server = Server::one(Family::Qwen3, "");
    let document = server.get("/openapi.json").json();
    let chat = &document["paths"]["/v1/chat/completions"]["post"]["requestBody"];
    let parts = chat["content"]["application/json"]["schema"]["allOf"].as_array().unwrap();
    let whole = resolved(&parts.clone().into(), &document);
    let properties = |name: &str| {
        let mut parts = whole.as_array().unwrap().iter();
        parts.find_map(|part| part["properties"].get(name)).cloned()
    };
    assert!(properties("messages").is_some() && properties("response_format").is_some());
    let n = properties("n").unwrap().to_string();
    assert!(n.contains("\"minimum\":1") && n.contains("\"maximum\":16"), "{n}");
}

#[test]
fn every_path_that_is_described_is_there_for_those_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let key = add_key(folder.path(), "ward", "admin");
    let server = Server::start_in(folder, "--keys keys");
    let document = server.get("/openapi.json").json();
    let bearer = format!("Bearer {key}");
    for (path, operations) in document["paths"].as_object().unwrap() {
        let path = path.replace("{id}", "qwen3");
        let (method, operation) = match operations.get("get") {
            Some(operation) => ("GET", operation),
            None => ("POST", &operations["post"]),
        };
        let ask = |headers: &[(&str, &str)]| {
            let body = if method == "POST" { "{}" } else { "" };
            server.ask(&Ask { method, path: &path, headers, body })
        };
        let json = ("content-type", "application/json");
        let reply = ask(&[json, ("authorization", &bearer)]);
        let is_there =
            ![401, 403, 405].contains(&reply.status) && !reply.body.contains("unknown_url");
        assert!(is_there, "{path}: {reply:?}");
        let is_public = operation["security"].as_array().is_some_and(Vec::is_empty);
        assert_eq!(ask(&[json]).status == 401, !is_public, "{path} without a key");
    }
    // Two keys are no caller.
    let two = [("authorization", bearer.as_str()), ("authorization", "Bearer wr_other")];
    let two = Ask { method: "GET", path: "/v1/models", headers: &two, body: "" };
    assert_eq!(server.ask(&two).code(), (400, "invalid_value".to_owned()));
    // What there is not says so to those with a key alone.
    assert_eq!(server.get("/nothing").status, 401);
    let headers = [("authorization", bearer.as_str())];
    let nothing = Ask { method: "GET", path: "/nothing", headers: &headers, body: "" };
    assert_eq!(server.ask(&nothing).status, 404);
    let wrong = Ask { method: "PUT", path: "/v1/models", headers: &headers, body: "" };
    assert_eq!(server.ask(&wrong).status, 405);
    assert_eq!(server.ask(&Ask { headers: &[], ..wrong }).status, 401);
}
