//! Panel members behind an endpoint: a whole run against a server of the test's own, and what ends one.

use serde_json::{Value, json};
use wardround::experiment::contents::Contents;
use wardround::record::Parse;

use crate::binary::{Scratch, outcome};
pub use crate::common::endpoint::{said, serve};

const QUICK: &str = "run zero-shot --data questions.jsonl --format mcq --remote-attempts 1";

#[test]
fn a_run_with_a_remote_member_is_logged_verified_and_not_replayed() {
    let scratch = Scratch::new();
    scratch.questions(3);
    let member = serve(|request| {
        let user = request["messages"].as_array().unwrap().last().unwrap();
        assert!(user["content"].to_string().contains("Seven times"));
        assert_eq!(request["model"], "tiny");
        assert!(request["seed"].is_u64() && request.get("temperature").is_none());
        said("B")
    });
    let run = scratch.wardround(format!("{QUICK} --panel {member} --out out"));
    assert!(run.succeeded().stderr.contains("cannot be generated again"), "{run:?}");
    scratch.wardround("verify out").succeeded();
    let contents = Contents::read(&scratch.path("out")).unwrap();
    assert_eq!(contents.plan.panel[0].backbone, member);
    assert_eq!(contents.calls.records.len(), 3);
    for call in &contents.calls.records {
        assert_eq!((call.text.as_str(), call.request.as_str()), ("B", ""));
        assert_eq!((call.sampling.temperature, call.usage.cached_tokens), (None, 16));
        assert!(call.sampling.constrained && call.tokens.is_empty());
        let answered_by = call.answered_by.as_ref().unwrap();
        assert_eq!(answered_by.model.as_deref(), Some("tiny-2026"));
    }
    let page = std::fs::read_to_string(scratch.path("out/report.html")).unwrap();
    assert!(page.contains("as the provider decodes"));
    scratch.wardround("replay out").refused(2, &["cannot be generated again byte for byte"]);
    // What is finished asks nobody: a plan of a remote member can be taken up.
    scratch.wardround("resume out").succeeded();
}

/// A server that repeats the prompt in its error does not put it on stderr or into the log.
#[test]
fn what_an_endpoint_quotes_of_a_prompt_is_not_told() {
    for status in [400, 500] {
        let scratch = Scratch::new();
        scratch.questions(1);
        let member = serve(move |request| {
            let message = format!("cannot answer {}: too odd", request["messages"]);
            (status, json!({"error": {"message": message}}))
        });
        let run = scratch.wardround(format!("{QUICK} --panel {member} --out out"));
        assert!(run.stderr.contains("its reason quotes the prompt"), "{run:?}");
        let log = std::fs::read_to_string(scratch.path("out/items.jsonl")).unwrap_or_default();
        for text in [&run.stderr, &run.stdout, &log] {
            assert!(!text.contains("Seven times"), "{text}");
        }
    }
}

#[test]
fn a_plan_that_somebody_hands_over_does_not_say_who_gets_the_key() {
    let scratch = Scratch::new();
    scratch.questions(1);
    let member = serve(|_| said("B"));
    scratch.wardround(format!("{QUICK} --panel {member} --out out")).succeeded();
    let plan = std::fs::read_to_string(scratch.path("out/plan.toml")).unwrap();
    let other = plan.replace(&member, "openai:tiny@https://models.invalid/v1");
    assert_ne!(plan, other);
    scratch.write("out/plan.toml", other);
    for arguments in ["resume out", "run --plan out/plan.toml --out again"] {
        let mut command = scratch.command(arguments);
        outcome(command.env("WARDROUND_API_KEY", "sk-hush")).refused(
            2,
            &["no argument of this command names it", "set WARDROUND_API_KEY_MODELS_INVALID"],
        );
    }
}

#[test]
fn a_panel_may_be_half_here_and_half_elsewhere() {
    let scratch = Scratch::new();
    scratch.panel();
    scratch.questions(1);
    let member = serve(|_| said(r#"{"answer": "C", "confidence": 0.9, "cot": ["a", "b", "c"]}"#));
    let run = format!(
        "run medmad --data questions.jsonl --format mcq --set record_chars=8 --set t_max=0 \
         --panel gemma3,{member},qwen3 --out out"
    );
    scratch.wardround(run).succeeded();
    let contents = Contents::read(&scratch.path("out")).unwrap();
    assert_eq!(contents.answers().into_values().next().unwrap().rounds[0].answers[1], "C");
    let remote: Vec<bool> = contents.plan.panel.iter().map(|one| one.is_remote()).collect();
    assert_eq!(remote, [false, true, false]);
}

#[test]
fn an_endpoint_is_sent_the_sampling_that_was_set_and_nothing_else() {
    let scratch = Scratch::new();
    scratch.questions(1);
    let member = serve(|request| match request.get("min_p") {
        Some(_) => {
            (400, json!({"error": {"message": "Unrecognized request argument supplied: min_p"}}))
        }
        None => {
            let names = ["temperature", "top_p", "max_tokens", "top_k"];
            let sent: Vec<&Value> = names.iter().map(|name| &request[*name]).collect();
            assert_eq!(json!(sent), json!([0.2, 1.0, 512, null]));
            said("B")
        }
    });
    // The paper's GPT-4o-mini (MedGuards, App. A.2).
    let preset = "--temperature 0.2 --top-p 1.0 --set max_tokens=512";
    scratch.wardround(format!("{QUICK} --panel {member} {preset} --out out")).succeeded();
    let contents = Contents::read(&scratch.path("out")).unwrap();
    let agent = contents.plan.panel[0].agent.clone();
    let told = &contents.calls.records[0].sampling;
    assert_eq!((told.temperature, told.top_p, told.top_k), (Some(0.2), Some(1.0), None));
    assert_eq!((told.max_tokens, contents.plan.panel[0].top_p), (Some(512), Some(1.0)));
    let page = std::fs::read_to_string(scratch.path("out/report.html")).unwrap();
    assert!(page.contains("temperature 0.2, top-p 1, the rest as the provider decodes"));
    scratch.wardround("verify out").succeeded();
    // The plan asks for the same again.
    scratch.wardround("run --plan out/plan.toml --out again").succeeded();
    scratch
        .wardround(format!("{QUICK} --panel {member} --set slot.{agent}.min_p=0.1 --out refused"))
        .refused(2, &["supplied: min_p", "slot.AGENT.NAME"]);
}

#[test]
fn what_is_left_to_a_provider_is_not_sent_and_the_log_says_so() {
    let scratch = Scratch::new();
    scratch.questions(1);
    let member = serve(|request| {
        for left in ["max_tokens", "max_completion_tokens", "seed", "chat_template_kwargs"] {
            assert_eq!(request.get(left), None, "{left}");
        }
        said("B")
    });
    let left = "--set max_tokens=provider --set thinking=provider --set call_seed=provider";
    scratch.wardround(format!("{QUICK} --panel {member} {left} --out out")).succeeded();
    let contents = Contents::read(&scratch.path("out")).unwrap();
    let told = &contents.calls.records[0].sampling;
    assert_eq!(told.max_tokens, None);
    assert_eq!(told.not_sent, ["seed", "enable_thinking"]);
    assert_eq!(contents.plan.panel[0].thinking, None);
    scratch.wardround("verify out").succeeded();
    scratch.wardround("run --plan out/plan.toml --out again").succeeded();
    scratch.panel();
    scratch
        .wardround(format!("{QUICK} --panel gemma3 --set thinking=provider --out local"))
        .refused(2, &["thinking=provider leaves thinking to an endpoint", "is a local model"]);
}

#[test]
fn what_a_providers_filter_withholds_is_one_refused_call_of_a_debate() {
    let scratch = Scratch::new();
    scratch.questions(1);
    let filtered =
        serve(|_| (400, json!({"error": {"message": "harm", "code": "content_filter"}})));
    let member = serve(|_| said(r#"{"answer": "C", "confidence": 0.9}"#));
    let run = format!(
        "run medmad --data questions.jsonl --format mcq --set t_max=0 --panel {filtered},{member},{member} --out out"
    );
    scratch.wardround(run).succeeded();
    let contents = Contents::read(&scratch.path("out")).unwrap();
    let answer = contents.answers().into_values().next().unwrap();
    assert_eq!((answer.answer.as_str(), answer.error.as_deref()), ("C", None));
    assert_eq!(answer.rounds[0].answers, ["", "C", "C"]);
    let refused = contents.calls.records.iter().filter(|call| call.parse == Parse::Refused);
    assert_eq!(refused.count(), 1);
}

#[test]
fn an_endpoint_that_fails_costs_the_item_and_one_that_is_dead_or_forbidden_the_run() {
    let scratch = Scratch::new();
    scratch.questions(2);
    let failing = serve(|_| (500, json!({"error": {"message": "out of order"}})));
    scratch
        .wardround(format!("{QUICK} --panel {failing} --out failing"))
        .refused(1, &["2 of 2 items errored", "out of order"]);
    let dead = "openai:tiny@http://127.0.0.1:9/v1";
    scratch.wardround(format!("{QUICK} --panel {dead} --out dead")).refused(70, &["127.0.0.1:9"]);
    scratch
        .wardround(format!("{QUICK} --panel {failing} --out offline --offline"))
        .refused(2, &["cannot be asked"]);
    assert!(!scratch.path("offline").exists());
    scratch
        .wardround(format!("{QUICK} --panel openai:tiny --out nowhere"))
        .refused(2, &["is no address of an endpoint"]);
}
