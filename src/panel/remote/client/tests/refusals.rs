//! What an endpoint refuses for good: the run, an item, or a parameter that is left out from then on.

use crate::diagnosis::Diagnosis;
use serde_json::json;

use super::super::fake_server::{Act, ok, play, said, serve, status};
use super::{GO, always, ask, is_constrained, open, options, request};
use crate::panel::remote::{RemoteOptions, RemoteRequest};
use crate::panel::{PanelError, SamplingChoice};
use crate::record::{FinishReason, Grammar};

fn with_schema() -> RemoteRequest {
    RemoteRequest {
        grammar: Some(Grammar::JsonSchema(r#"{"type": "object"}"#.to_owned())),
        ..request()
    }
}

#[test]
fn what_another_attempt_would_not_better_ends_the_run_at_once() {
    let quota = r#"{"error": {"message": "pay first", "code": "insufficient_quota"}}"#;
    for (act, said) in [
        (
            status(401, r#"{"error": {"message": "no such key"}}"#),
            "refuses to be asked (HTTP 401): no such key",
        ),
        (status(403, ""), "refuses to be asked (HTTP 403)"),
        (status(429, quota), "pay first"),
        (status(404, "nothing here"), "refuses to be asked (HTTP 404)"),
        (status(307, ""), "refuses to be asked (HTTP 307)"),
        (
            status(400, r#"{"error": {"message": "what?", "code": "model_not_found"}}"#),
            "refuses to be asked (HTTP 400): what?",
        ),
    ] {
        let (error, requests) = always(act);
        assert!(error.to_string().contains(said), "{error}");
        assert!(!error.concerns_item() && error.hint().is_some(), "{error}");
        assert_eq!(requests, 1, "{error}");
    }
}

#[test]
fn a_prompt_that_is_refused_costs_its_item_at_once() {
    for (act, said) in [
        (
            status(400, r#"{"error": {"message": "too long"}}"#),
            "refuses the prompt (HTTP 400): too long",
        ),
        (status(413, ""), "refuses the prompt (HTTP 413)"),
    ] {
        let (error, requests) = always(act);
        assert!(error.to_string().contains(said), "{error}");
        assert!(error.concerns_item(), "{error}");
        assert_eq!(requests, 1, "{error}");
    }
}

#[test]
fn what_a_filter_withholds_is_a_refusal_of_that_call_and_the_item_goes_on() {
    let filtered = json!({"error": {"message": "harm", "code": "content_filter"}});
    let withheld =
        json!({"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]});
    for act in [status(400, &filtered.to_string()), ok(filtered.clone()), ok(withheld)] {
        let server = play(vec![act]);
        let refused = ask(&server).unwrap();
        assert_eq!((refused.text.as_str(), refused.finish_reason), ("", FinishReason::Refusal));
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn an_answer_that_holds_no_reply_is_asked_for_again_and_then_an_error() {
    let choice = |message: serde_json::Value| {
        ok(json!({"choices": [{"message": message, "finish_reason": "stop"}]}))
    };
    let stream = "data: {\"choices\": [{\"delta\": {\"content\": \"The\"}}]}\n\n";
    for act in [
        choice(json!({"content": null})),
        choice(json!({"content": null, "tool_calls": [{"id": "1"}]})),
        ok(json!({"choices": []})),
        status(200, stream),
        status(200, ""),
    ] {
        let (error, requests) = always(act);
        assert!(error.to_string().contains("gave no answer"), "{error}");
        assert!(error.concerns_item());
        assert_eq!(requests, 3, "{error}");
    }
}

#[test]
fn a_sampling_parameter_that_an_endpoint_lacks_ends_the_run() {
    let unknown = r#"{"error": {"message": "Unrecognized request argument supplied: top_k"}}"#;
    let sampling =
        SamplingChoice { top_k: Some(20), top_p: Some(0.9), ..SamplingChoice::default() };
    for (sampling, blamed) in [(sampling, true), (SamplingChoice::default(), false)] {
        let server = play(vec![status(400, unknown)]);
        let request = RemoteRequest { sampling, ..request() };
        let error = open(&server, options()).complete(&request, &GO).unwrap_err();
        assert_eq!(error.hint().is_some_and(|hint| hint.contains("slot.AGENT")), blamed);
        assert!(error.to_string().contains("top_k") && error.concerns_item() != blamed, "{error}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_redirect_does_not_carry_the_key_away() {
    let other = play(vec![said("B")]);
    let place = format!("{}/v1/chat/completions", other.url());
    for code in [302, 307, 308] {
        let headers = vec![("location", place.clone())];
        let server = play(vec![Act::Answer(code, headers, String::new())]);
        let error = ask(&server).unwrap_err();
        assert!(matches!(error, PanelError::Refused { .. }), "{error}");
    }
    assert!(other.requests().is_empty());
}

#[test]
fn an_answer_without_end_is_cut_off() {
    // Megabytes are kilobytes when they are packed.
    for act in [Act::Endless(17 << 20), Act::Packed(17 << 20)] {
        let server = play(vec![act]);
        let once = RemoteOptions { attempts: 1, ..options() };
        let error = open(&server, once).complete(&request(), &GO).unwrap_err();
        assert!(error.to_string().contains("larger than"), "{error}");
        assert!(error.concerns_item());
    }
}

#[test]
fn a_parameter_that_is_refused_is_left_out_from_then_on() {
    // As a server that knows neither `json_schema` nor `seed`, and says so in two ways.
    let server = serve(|request, _| {
        if request.body.get("seed").is_some() {
            return status(400, r#"{"error": {"message": "Unrecognized argument: seed"}}"#);
        }
        match request.body["response_format"]["type"].as_str() {
            Some("json_schema") => status(
                422,
                r#"{"detail": [{"loc": ["body", "response_format", "type"], "msg": "no"}]}"#,
            ),
            _ => said("{}"),
        }
    });
    let model = open(&server, options());
    let first = model.complete(&with_schema(), &GO).unwrap();
    assert_eq!(server.requests().len(), 4);
    assert!(is_constrained(&first));

    let second = model.complete(&with_schema(), &GO).unwrap();
    assert!(is_constrained(&second));
    let asked = server.requests();
    assert_eq!(asked.len(), 1);
    let sent = &asked[0].body;
    assert_eq!(sent["response_format"]["type"], "json_object");
    assert_eq!(sent.get("seed"), None);
}

#[test]
fn a_server_without_any_schema_is_asked_freely_and_the_completion_says_so() {
    let server = serve(|request, _| match request.body.get("response_format") {
        Some(_) => status(400, "response_format is not supported"),
        None => said("B"),
    });
    let completion = open(&server, options()).complete(&with_schema(), &GO).unwrap();
    assert!(!is_constrained(&completion));
}

#[test]
fn a_refusal_that_had_another_cause_teaches_nothing() {
    let server = play(vec![status(400, "the seed of the matter is the prompt")]);
    let model = open(&server, options());
    let error = model.complete(&with_schema(), &GO).unwrap_err();
    assert!(error.to_string().contains("refuses the prompt"), "{error}");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    // The next request has its seed again.
    let _ = model.complete(&with_schema(), &GO);
    assert!(server.requests()[0].body.get("seed").is_some());
}
