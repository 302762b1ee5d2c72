//! Builders of records for tests: a plan, a round, an item, a call, each plausible until a test changes it.

use serde_json::json;

use crate::data::Item;
use crate::experiment::chain::Chain;
use crate::experiment::contents::Contents;
use crate::experiment::plan::Plan;
use crate::record::*;

/// The panel's members and their backbones.
pub const AGENTS: [(&str, &str); 3] =
    [("sym", "gemma-3-4b-it"), ("ddx", "llama-3.2-3b-instruct"), ("guide", "qwen3-4b")];

/// A round over `answers`; each weighs 0.5, and the most frequent wins, the first of equals.
pub fn round<const N: usize>(number: u32, answers: [&str; N]) -> RoundLine {
    let count = |answer: &str| answers.iter().filter(|other| **other == answer).count();
    let most = answers.iter().map(|answer| count(answer)).max().unwrap_or(0);
    let aggregate = answers.iter().find(|answer| count(answer) == most);
    RoundLine {
        round: number,
        stage: stage(number),
        agents: (0..N).map(|agent| AGENTS[agent % AGENTS.len()].0.to_owned()).collect(),
        labels: Vec::new(),
        answers: answers.map(String::from).to_vec(),
        confidences: vec![0.75; N],
        weights: vec![0.5; N],
        aggregate: aggregate.unwrap_or(&"").to_string(),
        brief: String::new(),
    }
}

fn stage(round: u32) -> Stage {
    match round {
        0 => Stage::Initial,
        _ => Stage::Round,
    }
}

pub fn item(id: &str, gold: Option<&str>, rounds: Vec<RoundLine>, answer: &str) -> AnswerLine {
    AnswerLine {
        dataset: "ward".into(),
        run: 1,
        item: id.into(),
        gold: gold.map(String::from),
        correct: gold.map(|gold| gold == answer),
        answer: answer.into(),
        team_confidence: Some(0.5),
        rationale: "It fits the picture with the fewest objections.".into(),
        rounds_run: rounds.len().saturating_sub(1) as u32,
        calls: 3 * rounds.len() as u32,
        rounds,
        tie: false,
        ..AnswerLine::default()
    }
}

pub fn call(item: &str, agent: &str, round: u32) -> CallLine {
    let message = |role: &str, content: String| Message::new(role, content);
    let purpose = if round == 0 { "initial" } else { "debate" };
    CallLine {
        seq: 0,
        dataset: "ward".into(),
        run: 1,
        item: item.into(),
        agent: agent.into(),
        round,
        purpose: purpose.into(),
        sample: 0,
        stage: stage(round),
        request: "3c".repeat(32),
        answered_by: None,
        backbone: "gemma-3-4b-it".into(),
        messages: vec![
            message(
                "system",
                format!("You are {agent}, in the {purpose} stage. Return JSON with fields: …"),
            ),
            message("user", "Instructions. Is it so?".into()),
        ],
        sampling: SamplingLine {
            temperature: Some(0.6),
            top_k: Some(20),
            top_p: Some(0.95),
            min_p: None,
            repetition_penalty: None,
            max_tokens: Some(1024),
            constrained: true,
            not_sent: Vec::new(),
        },
        seed: 3_141_592_653_589_793,
        text: "{}".into(),
        tokens: Vec::new(),
        record: Reply::of(json!({"answer": "A", "confidence": 0.75})),
        parse: Parse::Ok,
        usage: Usage {
            prompt_tokens: 812,
            cached_tokens: 640,
            completion_tokens: 371,
            forced_tokens: 118,
        },
        finish_reason: FinishReason::Stop,
        elapsed_ms: 4210,
        prev: String::new(),
        hash: String::new(),
    }
}

/// A plan of two runs without items.
pub fn plan() -> Plan {
    let member = |(agent, backbone): (&str, &str)| {
        json!({
            "agent": agent, "backbone": backbone, "path": format!("/models/{backbone}"),
            "repository": null, "revision": null,
            "weights_sha256": "4f1c9d0b7a6e5f83".repeat(4), "config_sha256": "77".repeat(32), "tokenizer_sha256": "0a1b2c3d4e5f6071".repeat(4),
            "template_sha256": "9e8d7c6b5a493827".repeat(4), "family": backbone.split('-').next(),
            "dtype": "bf16", "quantisation": "none", "kv_dtype": "bf16", "thinking": false,
            "temperature": 0.5, "top_k": 20, "top_p": null, "min_p": null, "repetition_penalty": null,
            "eos_ids": [1], "context": 8192
        })
    };
    let plan = json!({
        "schema": 1, "version": "0.1.0", "created_at": "2026-11-02T09:00:00Z", "system": "medmad", "synthetic": false,
        "seed": 7, "runs": 2, "decoding": "grammar", "prompts_sha256": "5a".repeat(32), "prompts": null,
        "settings": {"t_max": 3, "confidence": true, "counterfactual": "paper"},
        "dataset": {"name": "ward", "format": "mcq", "path": "/data/ward.jsonl", "sha256": "77".repeat(32),
            "items_sha256": "88".repeat(32), "items": []},
        "panel": AGENTS.map(member),
        "device_kind": "x86_64 avx2", "engine": {"device": "cpu", "threads": 8, "max_batch": 16, "max_in_flight": 8},
        "host": {"name": "bench-2", "system": "Linux", "cpu": "a CPU", "cores": 8, "memory_bytes": 34_359_738_368_u64}
    });
    serde_json::from_value(plan).unwrap()
}

/// As if a run directory had been read.
pub fn contents(
    plan: Plan,
    texts: Vec<Item>,
    items: Vec<ItemLine>,
    calls: Vec<CallLine>,
) -> Contents {
    let mut contents = Contents {
        path: "run".into(),
        versions: vec![plan.version.clone()],
        plan,
        plan_sha256: String::new(),
        texts: texts.into_iter().map(|text| (text.id().to_owned(), text)).collect(),
        calls: Chain::empty(""),
        items: Chain::empty(""),
        searches: Chain::empty(""),
    };
    contents.calls.records = calls;
    contents.items.records = items;
    contents
}

/// A page holds all that it shows, allows its own script alone, and says what it is for.
pub fn assert_asks_for_nothing(page: &str) {
    for request in
        ["http://", "https://", "src=", "url(", "@import", "<link", "<img", "<iframe", "fetch("]
    {
        assert!(!page.contains(request), "{request}");
    }
    let script = page.split("<script>").nth(1).unwrap();
    let script = script.split("</script>").next().unwrap();
    assert!(page.contains(&crate::report::content_policy(script)));
    assert!(page.contains("Decision support, not a diagnosis."));
}
