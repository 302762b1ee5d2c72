//! `impact --audit`: of what a server answered, what another model changes, and nothing else.

use serde_json::{Value, json};
use wardround::model::Family;
use wardround::synth::{Recipe, Shape, write_checkpoint};

use crate::audit::run;
use crate::client::Server;
use crate::systems::QUICK;

#[test]
fn another_model_changes_the_lines_that_it_answered() {
    let server = Server::start(&format!("{QUICK} --audit audit --audit-content full"));
    let completion =
        |model: &str| json!({"model": model, "prompt": "He has", "max_tokens": 8, "seed": 3});
    let question = json!({"question": "Is it?", "options": ["yes", "no"], "seed": 9});
    let note = "Fever for two days. Malaria is treated with aspirin.";
    assert_eq!(server.post("/v1/completions", &completion("gemma3")).status, 200);
    assert_eq!(server.post("/v1/completions", &completion("qwen3")).status, 200);
    assert_eq!(server.post("/v1/ask", &question).status, 200);
    assert_eq!(server.post("/v1/check", &json!({"text": note, "seed": 5})).status, 200);
    assert_eq!(server.post("/v1/completions", &completion("llama")).status, 200);
    let folder = server.kill();
    let path = folder.path();
    let numbers: Vec<u64> = std::fs::read_to_string(path.join("audit/trail.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["event"] == "request" || line["event"] == "case")
        .map(|line| line["seq"].as_u64().unwrap())
        .collect();
    let (code, said) = run(path, &format!("audit forget audit {} --why asked", numbers[4]));
    assert_eq!(code, Some(0), "{said}");

    let (code, said) = run(path, "impact --audit audit --offline --kv-tokens 32768");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("1 case could not be compared"), "{said}");
    assert!(
        said.contains("0 changed, 0 with the same outcome, 4 equal, 1 not comparable"),
        "{said}"
    );
    assert!(said.contains("not comparable: 1 case; its texts were deleted"), "{said}");
    assert!(!said.contains("now another"), "{said}");

    let recipe = Recipe { family: Family::Qwen3, shape: Shape::Tiny, seed: 2, tokenizer: None };
    write_checkpoint(&recipe, &path.join("other")).unwrap();
    let other = "--panel gemma3,llama,qwen3=other --offline --kv-tokens 32768";
    let (code, said) = run(path, &format!("impact --audit audit {other} --out impact"));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("now another: fingerprint of qwen3 wr_"), "{said}");
    assert!(said.contains("now another: fingerprint of cot-sc wr_"), "{said}");
    let impact = std::fs::read_to_string(path.join("impact/impact.json")).unwrap();
    let impact: Value = serde_json::from_str(&impact).unwrap();
    let cases = impact["kept"][0]["cases"].as_array().unwrap();
    let of = |place: usize| cases.iter().find(|case| case["line"] == numbers[place]).unwrap();
    assert_eq!(cases.len(), 5);
    for place in [0, 3] {
        assert_eq!(of(place)["class"], "equal", "{}", of(place));
    }
    let completion = of(1);
    assert_eq!(completion["class"], "changed", "{completion}");
    assert!(completion["calls"][0]["token"].is_u64() && completion["from"] != completion["to"]);
    let asked = of(2);
    assert_ne!(asked["class"], "equal", "{asked}");
    assert_eq!(asked["calls"][0]["kind"], "completion", "{asked}");
    // A line that is another thing, and one alone.
    let (code, said) = run(path, "impact 1 --audit audit --offline");
    assert_eq!((code, said.contains("is none of request, case")), (Some(2), true), "{said}");
    let (code, said) = run(path, &format!("impact {} --audit audit {other}", numbers[0]));
    assert_eq!((code, said.contains(" 1 equal, 0 not")), (Some(0), true), "{said}");
    let (code, said) = run(path, &format!("impact {} --audit audit --offline", numbers[4]));
    assert_eq!((code, said.contains("nothing could be compared")), (Some(1), true), "{said}");
}
