//! What dashboards made for vLLM read, behind a prefix of our own.

use serde_json::json;
use wardround::model::Family;

use crate::client::Server;

#[test]
fn dashboards_for_vllm_find_their_names_and_the_numbers_add_up() {
    let server = Server::one(Family::Qwen3, "");
    let body = json!({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 5, "ignore_eos": true});
    let usage = server.post("/v1/chat/completions", &body).json()["usage"].clone();
    let text = server.get("/metrics").body;
    let value = |line: &str| -> f64 {
        let found = text.lines().find_map(|given| given.strip_prefix(line)?.strip_prefix(' '));
        found.unwrap_or_else(|| panic!("{line} is not in {text}")).parse().unwrap()
    };
    const LABELS: &str = r#"{model_name="qwen3",engine="0"}"#;
    let of_model = |name: &str| value(&format!("wardround:{name}{LABELS}"));
    for name in [
        "num_requests_running",
        "num_requests_waiting",
        "kv_cache_usage_perc",
        "num_preemptions_total",
    ] {
        assert_eq!(of_model(name), 0.0, "{name}");
    }
    let tokens = |name: &str| usage[name].as_f64().unwrap();
    assert_eq!(of_model("prompt_tokens_total"), tokens("prompt_tokens"));
    assert_eq!(of_model("generation_tokens_total"), 5.0);
}
