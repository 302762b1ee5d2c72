//! A system that searches, through HTTP.

use std::path::Path;

use serde_json::json;

use crate::client::{Server, wardround};
use crate::common::retrieval::write_brief_prompts;

const DESCRIPTION: &str = r#"name = "ward"
[[source]]
label = "ward"
format = "jsonl"
path = "passages.jsonl"
licence = "own"
redistribute = true
"#;
/// Few and short steps.
const SEARCHING: &str = "--system medreflex=qwen3 --corpus corpus --prompts prompts --set medreflex.rerank=off --set medreflex.rerank_top_k=1 \
                         --set medreflex.record_chars=4 --set medreflex.react_turns=2 --set medreflex.reflexion_turns=1 --set medreflex.reviewers=2";
const NOTE: &str = "A woman with asthma came with wheezing. Propranolol was given for the attack.";

/// A folder with a corpus of our own sentences, by a tiny encoder, and prompts of a few words.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let passages = root.join("tests/common/passages.jsonl");
    std::fs::copy(passages, folder.path().join("passages.jsonl")).unwrap();
    std::fs::write(folder.path().join("ward.toml"), DESCRIPTION).unwrap();
    write_brief_prompts(&folder.path().join("prompts/medreflex"));
    let encoder = root.join("tests/goldens/encoders/tiny-mean");
    let built = wardround(folder.path())
        .args(["corpus", "build", "ward.toml", "--out", "corpus", "--quiet", "--encoder"])
        .arg(encoder)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    folder
}

#[test]
fn a_system_that_searches_is_asked_as_a_model_and_checks_notes() {
    let server = Server::start_in(folder(), SEARCHING);
    let checked = server.post("/v1/check", &json!({"text": NOTE, "seed": 3}));
    assert_eq!(checked.status, 200, "{checked:?}");
    let made = checked.json()["wardround"].clone();
    assert_eq!(made["system"], "medreflex");
    assert!(made["record"]["search"]["turns"].is_array(), "{made}");
    let chat =
        json!({"model": "medreflex", "seed": 3, "messages": [{"role": "user", "content": NOTE}]});
    let answer = server.post("/v1/chat/completions", &chat).json();
    assert_eq!(answer["wardround"]["record"], made["record"]);
    let reasoning = answer["choices"][0]["message"]["reasoning_content"].as_str().unwrap();
    assert_eq!(json!(reasoning.lines().count()), made["record"]["calls"], "{reasoning}");
}
