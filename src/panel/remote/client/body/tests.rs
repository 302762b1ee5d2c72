//! What is sent in each form.

use super::*;
use crate::record::Message;

fn message(role: &str, content: &str) -> Message {
    Message::new(role, content)
}

fn request() -> RemoteRequest {
    RemoteRequest {
        messages: vec![message("system", "You are a doctor."), message("user", "Which?")],
        seed: 1 << 40 | 7,
        ..RemoteRequest::default()
    }
}

fn written(request: &RemoteRequest, forms: Forms) -> Value {
    serde_json::from_slice(&forms.write("m", request)).unwrap()
}

/// The forms after each of `refusals` was heard.
fn after(request: &RemoteRequest, refusals: &[&str]) -> Forms {
    refusals.iter().fold(Forms::default(), |forms, refusal| {
        let error = ServerError::read(400, refusal.as_bytes());
        forms.after_rejection(&error, request).unwrap()
    })
}

#[test]
fn what_is_not_asked_for_is_not_sent() {
    assert_eq!(
        written(&request(), Forms::default()),
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "You are a doctor."},
                {"role": "user", "content": "Which?"},
            ],
            "n": 1,
            "seed": 7,
        })
    );
}

#[test]
fn what_is_left_to_the_provider_is_not_sent() {
    let request = RemoteRequest { omit_seed: true, ..request() };
    let body = written(&request, Forms::default());
    let keys: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["model", "messages", "n"]);
}

#[test]
fn limits_and_thinking_are_sent_where_they_are_set() {
    let request = RemoteRequest { max_tokens: Some(512), thinking: Some(false), ..request() };
    let text = String::from_utf8(Forms::default().write("m", &request)).unwrap();
    for part in [r#""max_tokens":512,"#, r#""chat_template_kwargs":{"enable_thinking":false}"#] {
        assert!(text.contains(part), "{text}");
    }
    let forms = after(&request, &["max_tokens", "chat_template_kwargs", "seed"]);
    let body = written(&request, forms);
    assert_eq!(body["max_completion_tokens"], 512);
    for gone in ["max_tokens", "chat_template_kwargs", "seed"] {
        assert_eq!(body.get(gone), None);
    }
}

#[test]
fn sampling_is_sent_as_it_was_set_and_nothing_else_of_it() {
    let sampling = SamplingChoice {
        temperature: Some(0.2),
        top_p: Some(1.0),
        max_tokens: Some(5),
        ..SamplingChoice::default()
    };
    let request = RemoteRequest { sampling, ..request() };
    let text = String::from_utf8(Forms::default().write("m", &request)).unwrap();
    assert!(text.contains(r#""n":1,"temperature":0.2,"top_p":1.0,"seed":7"#), "{text}");
    assert!(!["top_k", "min_p", "max_tokens"].iter().any(|name| text.contains(name)), "{text}");
    let sampling = SamplingChoice { top_k: Some(0), min_p: Some(0.05), ..request.sampling };
    let body = written(&RemoteRequest { sampling, ..request }, Forms::default());
    assert_eq!((body["top_k"].as_u64(), body["min_p"].as_f64()), (Some(0), Some(0.05)));
}

#[test]
fn a_schema_is_sent_in_the_form_that_the_server_takes_without_our_own_keyword() {
    let request = RemoteRequest {
        grammar: Some(Grammar::JsonSchema(
            r#"{"type": "object", "x-guidance": {"item_separator": ", "}}"#.to_owned(),
        )),
        ..request()
    };
    let schema = json!({"type": "object"});
    let expected = [
        json!({"type": "json_schema", "json_schema": {"name": "record", "strict": true, "schema": schema}}),
        json!({"type": "json_schema", "json_schema": {"name": "record", "schema": schema}}),
        json!({"type": "json_object", "schema": schema}),
        Value::Null,
    ];
    for (steps, format) in expected.iter().enumerate() {
        let forms = after(&request, &vec!["response_format"; steps]);
        assert_eq!(written(&request, forms)["response_format"], *format);
    }
}

#[test]
fn a_regex_or_grammar_goes_the_way_of_vllm() {
    let with = |grammar| RemoteRequest { grammar: Some(grammar), ..request() };
    let regex = with(Grammar::Regex("[AB]".to_owned()));
    assert_eq!(written(&regex, Forms::default())["structured_outputs"], json!({"regex": "[AB]"}));
    let lark = with(Grammar::Lark("start: \"A\"".to_owned()));
    assert_eq!(
        written(&lark, Forms::default())["structured_outputs"],
        json!({"grammar": "start: \"A\""})
    );
    let body = written(&regex, after(&regex, &["structured_outputs"]));
    assert_eq!(body.get("structured_outputs"), None);
}

fn limited() -> RemoteRequest {
    RemoteRequest {
        grammar: Some(Grammar::JsonSchema("{}".to_owned())),
        max_tokens: Some(8),
        ..RemoteRequest::default()
    }
}

fn server_error(status: u16, message: &str) -> ServerError {
    ServerError::read(status, message.as_bytes())
}

#[test]
fn a_schema_gives_way_step_by_step_until_it_is_gone() {
    let refusal = server_error(400, "this response_format is unavailable");
    let mut forms = Forms::default();
    for step in 1..4 {
        assert!(forms.constrain(&limited()));
        forms = forms.after_rejection(&refusal, &limited()).unwrap();
        assert_eq!(forms.0[1], step);
    }
    assert!(!forms.constrain(&limited()));
    assert_eq!(forms.after_rejection(&refusal, &limited()), None);
}

#[test]
fn what_is_left_out_is_said() {
    let thinks = RemoteRequest { thinking: Some(true), ..limited() };
    assert_eq!(Forms::default().not_sent(&thinks), [] as [&str; 0]);
    let left = RemoteRequest { omit_seed: true, ..limited() };
    assert_eq!(Forms::default().not_sent(&left), ["seed", "enable_thinking"]);
    let rejected = server_error(400, "no seed, please");
    let forms = Forms::default().after_rejection(&rejected, &thinks).unwrap();
    assert_eq!(forms.not_sent(&thinks), ["seed"]);
    assert_eq!(Forms::default().after_rejection(&rejected, &left), None);
}

#[test]
fn only_what_was_sent_is_blamed() {
    let regex = server_error(400, "no regex here");
    assert_eq!(Forms::default().after_rejection(&regex, &limited()), None);
    let thinking = server_error(400, "unknown chat_template_kwargs");
    assert_eq!(Forms::default().after_rejection(&thinking, &limited()), None);
    let other = server_error(400, "the prompt is too long");
    assert_eq!(Forms::default().after_rejection(&other, &limited()), None);
}

#[test]
fn a_crash_is_blamed_on_unmistakable_words_alone() {
    let crash = |message| Forms::default().after_rejection(&server_error(500, message), &limited());
    assert!(crash("('body', 'response_format', 'type')").is_some());
    assert_eq!(crash("could not seed the database schema"), None);
    assert_eq!(
        Forms::default().after_rejection(&server_error(503, "response_format"), &limited()),
        None
    );
}

#[test]
fn what_is_learnt_is_said_once_and_never_unlearnt() {
    let mut known = Forms::default();
    let forms = Forms([1, 2, 0, 0, 0, 0]);
    assert_eq!(
        known.learn(forms, &limited()),
        [
            "does not support `seed`; sending no seed",
            "does not support a strict `json_schema` as `response_format`; sending a `json_object` with its schema",
        ]
    );
    assert_eq!(known.learn(forms, &limited()), Vec::<String>::new());
    assert_eq!(known.learn(Forms::default(), &limited()), Vec::<String>::new());
    assert_eq!(known, forms);
    let unconstrained = known.learn(Forms([0, 3, 0, 0, 0, 0]), &limited());
    assert!(unconstrained[0].contains("text is unconstrained"), "{unconstrained:?}");
}
