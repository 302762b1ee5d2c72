//! Systems that answer as models do.

use serde_json::{Value, json};

use crate::client::{Ask, Server, wardround};

/// Systems whose cases take a fraction of a second.
pub const QUICK: &str = "--system cot-sc=qwen3 --system medguards=llama --set cot-sc.record_chars=16 --set cot-sc.max_tokens=24 \
                         --set medguards.agents=1 --set medguards.max_tokens=12";
const DEBATE: &str = "--system medmad --system medguards=llama --set medmad.record_chars=16 --set medmad.max_tokens=32 --set medmad.t_max=0";
const QUESTION: &str = "Which vitamin is retinol?\nA) Vitamin A\nB) Vitamin D\nC) Vitamin K";
const NOTE: &str = "Fever for two days. Malaria is treated with aspirin.";

fn chat(model: &str, content: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": content}], "seed": 5})
}

fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[test]
fn a_system_answers_as_a_model_streamed_and_whole_with_the_bytes_of_a_run() {
    let server = Server::start(DEBATE);
    let list = server.get("/v1/models").json();
    let ids: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["gemma3", "llama", "qwen3", "medmad", "medguards"]);
    let entry = server.get("/v1/models/medguards").json();
    assert_eq!(entry["wardround"]["kind"], "system");
    assert_eq!(entry["wardround"]["synthetic"], true);

    let whole = server.post("/v1/chat/completions", &chat("medmad", QUESTION));
    assert_eq!(whole.status, 200, "{whole:?}");
    let whole = whole.json();
    let again = server.post("/v1/chat/completions", &chat("medmad", QUESTION)).json();
    assert_eq!(whole["choices"], again["choices"]);
    assert_eq!(whole["wardround"]["record"], again["wardround"]["record"]);
    let message = &whole["choices"][0]["message"];
    assert_eq!(whole["wardround"]["seed"], 5);
    assert!(whole["wardround"]["record"].get("hash").is_none());

    let body = with(
        chat("medmad", QUESTION),
        json!({"stream": true, "stream_options": {"include_usage": true}}),
    );
    let (events, is_whole) = server.post("/v1/chat/completions", &body).events();
    assert!(is_whole);
    let deltas = events.iter().map(|event| &event["choices"][0]["delta"]);
    let sum: String = deltas.filter_map(|delta| delta["content"].as_str()).collect();
    assert_eq!(sum, message["content"].as_str().unwrap());
    let last = events.last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["wardround"]["record"], whole["wardround"]["record"]);
    assert_eq!(last["usage"]["total_tokens"], whole["usage"]["total_tokens"]);

    is_the_run(&server, &whole["wardround"]["record"]);
}

/// A run of the same question in a file named as documented gives the same line.
fn is_the_run(server: &Server, record: &Value) {
    let folder = server.folder.path();
    let line = json!({"id": record["item"], "question": "Which vitamin is retinol?",
        "options": {"A": "Vitamin A", "B": "Vitamin D", "C": "Vitamin K"}});
    std::fs::write(folder.join("serve.jsonl"), line.to_string()).unwrap();
    let arguments = "run medmad --data serve.jsonl --format mcq --panel gemma3,llama,qwen3 --seed 5 --set record_chars=16 \
                     --set max_tokens=32 --set t_max=0 --out run --offline";
    let done = wardround(folder).args(arguments.split_whitespace()).output().unwrap();
    // Random weights write noise.
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() || told.contains("has a result"), "{told}");
    let items = std::fs::read_to_string(folder.join("run/items.jsonl")).unwrap();
    let mut item: Value = serde_json::from_str(items.lines().next().unwrap()).unwrap();
    for name in ["schema", "prev", "hash"] {
        item.as_object_mut().unwrap().remove(name);
    }
    assert_eq!(item, *record);
}

#[test]
fn what_a_system_cannot_honour_is_refused_and_what_it_ignores_is_listed() {
    let server = Server::start(QUICK);
    let refused = |more: Value| {
        let answer = server.post("/v1/chat/completions", &with(chat("cot-sc", QUESTION), more));
        (answer.status, answer.json()["error"]["param"].clone())
    };
    for (name, value) in [
        ("response_format", json!({"type": "json_object"})),
        ("logprobs", json!(true)),
        ("tools", json!([{"type": "function"}])),
        ("guided_choice", json!(["A"])),
        ("prompt_logprobs", json!(1)),
        ("return_token_ids", json!(true)),
        ("continue_final_message", json!(true)),
        ("suffix", json!("a")),
        ("temperature", json!("hot")),
    ] {
        assert_eq!(refused(json!({name: value})), (400, json!(name)));
    }
    for n in [2, 17] {
        assert_eq!(refused(json!({"n": n})), (400, json!("n")));
    }
    assert_eq!(
        refused(json!({"messages": [{"role": "user", "content": "Which?"}]})),
        (400, json!("messages"))
    );
    assert_eq!(
        refused(json!({"messages": [{"role": "assistant", "content": QUESTION}]})),
        (400, json!("messages"))
    );
    let unknown = server.post("/v1/chat/completions", &chat("mdagents", QUESTION));
    assert_eq!(unknown.code(), (404, "model_not_found".to_owned()));

    let body = json!({"model": "cot-sc", "seed": 5, "n": 1, "temperature": 0.5, "user": "x", "zeta": 1, "tools": [],
        "response_format": {"type": "text"},
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]});
    let answer = server.post("/v1/chat/completions", &body);
    let answer = answer.json();
    let ignored = json!(["messages[0]", "temperature", "user", "zeta", "response_format"]);
    assert_eq!(answer["wardround"]["ignored"], ignored);
    assert_eq!(answer["wardround"]["record"]["run"], 1);
    // What has no effect changes nothing.
    let one = server.post("/v1/chat/completions", &chat("cot-sc", QUESTION)).json();
    assert_eq!(one["choices"], answer["choices"]);
}

#[test]
fn a_note_system_checks_the_message_and_a_gone_client_stops_its_case() {
    let server = Server::start(&format!("{QUICK} --max-cases 1"));
    let answer = server.post("/v1/chat/completions", &chat("medguards", NOTE)).json();
    let content = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(
        content.contains("What the agents said") && content.contains("not a diagnosis"),
        "{content}"
    );
    assert_eq!(answer["wardround"]["record"]["kind"], "note");

    // Ten cases of clients that go away; the next one need not wait for them to be worked through.
    let body = with(chat("cot-sc", QUESTION), json!({"stream": true})).to_string();
    let headers = [("content-type", "application/json")];
    let ask = Ask { method: "POST", path: "/v1/chat/completions", headers: &headers, body: &body };
    for _ in 0..10 {
        let pending = server.send(&ask);
        pending.wait();
    }
    let began = std::time::Instant::now();
    assert_eq!(server.post("/v1/chat/completions", &chat("medguards", NOTE)).status, 200);
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}

#[test]
fn cases_are_kept_in_a_store_of_calls_that_was_not_there_and_answered_from_it() {
    let server = Server::start(&format!("{QUICK} --calls calls"));
    let check = || server.post("/v1/check", &json!({"text": NOTE, "seed": 3})).json();
    let first = check();
    let lines = || {
        let folders = std::fs::read_dir(server.folder.path().join("calls")).unwrap();
        let files = folders.map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
        files.map(Iterator::count).sum::<usize>()
    };
    let kept = lines();
    assert!(kept > 0);
    let again = check();
    assert_eq!(first["wardround"]["record"]["kind"], "note");
    // Computed again, its prompts' tokens would be cached ones.
    for field in ["record", "usage"] {
        assert_eq!(first["wardround"][field], again["wardround"][field]);
    }
    assert_eq!(lines(), kept);
}
