//! Notes to check.

use serde_json::{Value, json};

use crate::client::Server;
use crate::systems::QUICK;

const NOTE: &str = "Fever for two days. Malaria is treated with aspirin.";

#[test]
fn a_note_is_checked_in_both_forms_with_one_outcome() {
    let server = Server::start(&format!("{QUICK} --default-seed 3"));
    let post = |kind: &str, body: &str| server.post_text("/v1/check", kind, body);
    let plain = post("text/plain; charset=utf-8", NOTE);
    assert_eq!(plain.status, 200, "{plain:?}");
    let plain = plain.json();
    assert!(plain.get("has_error").is_some() && plain["agents"].is_array());
    assert_eq!(
        (&plain["wardround"]["seed"], &plain["wardround"]["system"]),
        (&json!(3), &json!("medguards"))
    );
    let asked = post("application/json", &json!({"text": NOTE, "seed": 3}).to_string());
    let (mut expected, mut other) = (plain, asked.json());
    // Prompts that were computed before are not computed again.
    for value in [&mut expected, &mut other] {
        value["wardround"]["usage"]["prompt_tokens_details"] = Value::Null;
    }
    assert_eq!(other, expected);
    let twice = post("application/json", r#"{"text": "Fever.", "text": "Cough."}"#);
    assert_eq!(twice.code(), (400, "invalid_json".to_owned()));
    assert!(twice.body.contains("comes twice"), "{}", twice.body);
    assert_eq!(post("application/pdf", "x").code().0, 415);
    assert_eq!(post("text/plain", " ").code(), (400, "invalid_value".to_owned()));
    assert_eq!(post("application/json", "{}").code(), (400, "missing_parameter".to_owned()));
    let odd = json!({"text": NOTE, "txet": 1}).to_string();
    assert_eq!(post("application/json", &odd).code(), (400, "unsupported_parameter".to_owned()));
    let other = json!({"text": NOTE, "system": "cot-sc"}).to_string();
    assert_eq!(post("application/json", &other).code(), (404, "model_not_found".to_owned()));
    let language = json!({"text": NOTE, "language": "latin"}).to_string();
    assert_eq!(post("application/json", &language).code(), (400, "invalid_value".to_owned()));
}

#[test]
fn a_note_that_no_model_can_read_is_refused_before_it_is_queued() {
    // A few tokens more than the prompt of medguards alone.
    let server = Server::start(&format!("{QUICK} --context 290 --default-seed 1"));
    let long = "Fever for two days. ".repeat(200);
    let document = json!({"text": long}).to_string();
    // The last one could be read, but not within the system's prompts.
    for (kind, body) in
        [("text/plain", &*long), ("application/json", &document), ("text/plain", NOTE)]
    {
        let refused = server.post_text("/v1/check", kind, body);
        assert_eq!(refused.code(), (400, "context_length_exceeded".to_owned()));
        assert_eq!(refused.json()["error"]["param"], "text");
    }
}
