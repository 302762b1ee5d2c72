//! Notes to check.

use serde_json::{Value, json};

use crate::client::Server;
use crate::systems::QUICK;

const NOTE: &str = "Fever for two days. Malaria is treated with aspirin.";

#[test]
fn a_note_is_checked() {
    let server = Server::start(&format!("{QUICK} --default-seed 3"));
    let post = |body: &str| server.post_text("/v1/check", "application/json", body);
    let checked = post(&json!({"text": NOTE}).to_string());
    assert_eq!(checked.status, 200, "{checked:?}");
    let checked = checked.json();
    assert!(checked.get("has_error").is_some() && checked["agents"].is_array());
    assert_eq!(
        (&checked["wardround"]["seed"], &checked["wardround"]["system"]),
        (&json!(3), &json!("medguards"))
    );
    let asked = post(&json!({"text": NOTE, "seed": 3, "system": "medguards"}).to_string());
    let (mut expected, mut other) = (checked, asked.json());
    // Prompts that were computed before are not computed again.
    for value in [&mut expected, &mut other] {
        value["wardround"]["usage"]["prompt_tokens_details"] = Value::Null;
    }
    assert_eq!(other, expected);
    let twice = post(r#"{"text": "Fever.", "text": "Cough."}"#);
    assert_eq!(twice.code(), (400, "invalid_json".to_owned()));
    assert!(twice.body.contains("comes twice"), "{}", twice.body);
    assert_eq!(server.post_text("/v1/check", "text/plain", NOTE).code().0, 415);
    for (body, status, code) in [
        (json!({"text": " "}), 400, "invalid_value"),
        (json!({}), 400, "missing_parameter"),
        (json!({"text": NOTE, "txet": 1}), 400, "unsupported_parameter"),
        (json!({"text": NOTE, "system": "cot-sc"}), 404, "model_not_found"),
        (json!({"text": NOTE, "language": "english"}), 400, "unsupported_parameter"),
    ] {
        assert_eq!(post(&body.to_string()).code(), (status, code.to_owned()), "{body}");
    }
}

#[test]
fn a_note_that_no_model_can_read_is_refused() {
    // A few tokens more than the prompt of medguards alone.
    let server = Server::start(&format!("{QUICK} --context 290 --default-seed 1"));
    let long = "Fever for two days. ".repeat(200);
    // The last one could be read, but not within the system's prompts.
    for text in [&*long, NOTE] {
        let refused = server.post("/v1/check", &json!({"text": text}));
        assert_eq!(refused.code(), (400, "context_length_exceeded".to_owned()));
        assert_eq!(refused.json()["error"]["param"], "text");
    }
}
