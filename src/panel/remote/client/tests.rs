//! Asking an endpoint on the loopback, which fails in every way.

use std::ffi::OsString;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::super::key::WARDROUND_API_KEY;
use super::super::{
    Address, ApiKey, RemoteCompletion, RemoteError, RemoteModel, RemoteOptions, RemoteRequest,
};
use super::fake_server::{Act, FakeServer, ok, said, status};
use crate::engine::Grammar;
use crate::hub::Barrier;
use crate::run::records::{FinishReason, Message};

const SECRET: &str = "sk-hush-hush";
static GO: AtomicBool = AtomicBool::new(false);

fn address(server: &FakeServer) -> Address {
    Address::parse(&format!("openai:org/m@{}", server.url())).unwrap()
}

/// Brief for a user, long for the loopback.
fn options() -> RemoteOptions {
    RemoteOptions {
        timeout: Duration::from_secs(5),
        attempts: 3,
        first_pause: Duration::from_millis(2),
        ..RemoteOptions::default()
    }
}

fn key(address: &Address) -> Option<ApiKey> {
    ApiKey::from_lookup(address, |name| {
        (name == WARDROUND_API_KEY).then(|| OsString::from(SECRET))
    })
    .unwrap()
}

fn open(server: &FakeServer, options: RemoteOptions) -> RemoteModel {
    let address = address(server);
    let key = key(&address);
    RemoteModel::open(&address, RemoteOptions { key, ..options }).unwrap()
}

fn request() -> RemoteRequest {
    RemoteRequest {
        messages: vec![Message {
            role: "user".to_owned(),
            content: "Which?".to_owned(),
        }],
        seed: 11,
        ..RemoteRequest::default()
    }
}

fn with_schema() -> RemoteRequest {
    RemoteRequest {
        grammar: Some(Grammar::JsonSchema(r#"{"type": "object"}"#.to_owned())),
        ..request()
    }
}

fn ask(server: &FakeServer) -> Result<RemoteCompletion, RemoteError> {
    open(server, options()).complete(&request(), &GO)
}

/// The second attempt's answer after a first that went wrong so.
fn second_after(act: Act) -> RemoteCompletion {
    let server = FakeServer::play(vec![act, said("B")]);
    let completion = ask(&server).unwrap();
    assert_eq!(completion.text, "B");
    assert_eq!(server.requests().len(), 2);
    completion
}

/// What comes of an endpoint that always does the same, and how often it was asked.
fn always(act: Act) -> (RemoteError, usize) {
    let server = FakeServer::play(vec![act]);
    let error = ask(&server).unwrap_err();
    (error, server.requests().len())
}

#[test]
fn a_completion_is_asked_for_and_read() {
    let server = FakeServer::play(vec![said("B")]);
    let completion = ask(&server).unwrap();
    assert_eq!(completion.text, "B");
    assert_eq!(completion.finish_reason, FinishReason::Stop);
    assert_eq!(completion.usage.prompt_tokens, 3);
    assert_eq!(completion.model.as_deref(), Some("m-1"));
    assert_eq!((completion.attempts, completion.is_constrained), (1, false));
    assert_eq!(completion.notes, Vec::<String>::new());

    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    let sent = &requests[0];
    assert_eq!(
        (sent.method.as_str(), sent.path.as_str()),
        ("POST", "/v1/chat/completions")
    );
    assert_eq!(
        sent.header("authorization"),
        Some(&*format!("Bearer {SECRET}"))
    );
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(sent.body["model"], "org/m");
    assert_eq!(sent.body["seed"], 11);
}

#[test]
fn without_a_key_none_is_sent() {
    let server = FakeServer::play(vec![said("B")]);
    let model = RemoteModel::open(&address(&server), options()).unwrap();
    model.complete(&request(), &GO).unwrap();
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[test]
fn what_may_pass_is_tried_again() {
    let whole = json!({"choices": [{"message": {"content": "B"}}]}).to_string();
    for act in [
        status(408, ""),
        status(409, ""),
        status(429, "slow down"),
        status(500, "{}"),
        status(503, "<html>"),
        status(200, "{\"choices\": [{\"mess"),
        status(200, "not JSON"),
        status(200, ""),
        ok(json!({"choices": []})),
        ok(json!({"object": "list"})),
        ok(json!({"error": {"code": 429, "message": "upstream"}})),
        Act::Close,
        Act::Half(whole.clone()),
        Act::Chunked {
            body: whole,
            is_complete: false,
        },
    ] {
        let completion = second_after(act.clone());
        assert_eq!(completion.attempts, 2, "{act:?}");
    }
}

#[test]
fn a_chunked_answer_is_read_whole() {
    let body = json!({"choices": [{"message": {"content": "Bé"}}]}).to_string();
    let server = FakeServer::play(vec![Act::Chunked {
        body,
        is_complete: true,
    }]);
    assert_eq!(ask(&server).unwrap().text, "Bé");
}

#[test]
fn what_does_not_pass_costs_the_item_and_says_why() {
    for (act, said) in [
        (
            status(500, r#"{"error": {"message": "out of memory"}}"#),
            "HTTP 500: out of memory",
        ),
        (status(429, "slow down"), "HTTP 429: slow down"),
        (status(200, "not JSON"), "not JSON"),
        (ok(json!({"choices": []})), "choices are empty"),
        (Act::Close, "3 attempts"),
    ] {
        let (error, requests) = always(act);
        assert!(
            matches!(error, RemoteError::Exhausted { attempts: 3, .. }),
            "{error}"
        );
        assert!(error.to_string().contains(said), "{error}");
        assert!(error.concerns_item() && error.hint().unwrap().contains("--resume"));
        assert_eq!(requests, 3);
    }
}

#[test]
fn a_dead_endpoint_costs_the_item() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let address = Address::parse(&format!("openai:m@http://127.0.0.1:{port}")).unwrap();
    let model = RemoteModel::open(&address, options()).unwrap();
    let error = model.complete(&request(), &GO).unwrap_err();
    assert!(
        matches!(error, RemoteError::Exhausted { attempts: 3, .. }),
        "{error}"
    );
    assert!(error.to_string().contains(&port.to_string()), "{error}");
    assert!(model.look_up(&GO).is_err());
}

#[test]
fn a_silent_endpoint_times_out_and_is_asked_again() {
    let server = FakeServer::play(vec![Act::Hang, said("B")]);
    let brief = RemoteOptions {
        timeout: Duration::from_millis(300),
        ..options()
    };
    let start = Instant::now();
    let completion = open(&server, brief).complete(&request(), &GO).unwrap();
    assert_eq!(completion.attempts, 2);
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert!(start.elapsed() < Duration::from_secs(8));
}

#[test]
fn a_pause_that_the_server_asks_for_is_kept_by_everybody() {
    let server = FakeServer::play(vec![
        Act::Answer(429, vec![("retry-after", "0.8".to_owned())], String::new()),
        said("B"),
    ]);
    let model = open(&server, options());
    let start = Instant::now();
    thread::scope(|scope| {
        let first = scope.spawn(|| model.complete(&request(), &GO).unwrap());
        thread::sleep(Duration::from_millis(400));
        let second = scope.spawn(|| model.complete(&request(), &GO).unwrap());
        assert_eq!(first.join().unwrap().attempts, 2);
        assert_eq!(second.join().unwrap().attempts, 1);
    });
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    for later in &requests[1..] {
        assert!(
            later.at - start >= Duration::from_millis(800),
            "{requests:?}"
        );
    }
}

#[test]
fn milliseconds_are_a_pause_too() {
    let server = FakeServer::play(vec![
        Act::Answer(
            503,
            vec![("retry-after-ms", "120".to_owned())],
            String::new(),
        ),
        said("B"),
    ]);
    ask(&server).unwrap();
    let requests = server.requests();
    assert!(requests[1].at - requests[0].at >= Duration::from_millis(120));
}

#[test]
fn a_pause_beyond_patience_is_not_waited_for() {
    let until = "Fri, 31 Dec 2100 23:59:59 GMT";
    let act = Act::Answer(
        429,
        vec![("retry-after", until.to_owned())],
        "tomorrow".to_owned(),
    );
    let (error, requests) = always(act);
    assert!(
        matches!(error, RemoteError::Exhausted { attempts: 1, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("(1 attempt)"), "{error}");
    assert_eq!(requests, 1);
}

#[test]
fn what_another_attempt_would_not_better_ends_the_run_at_once() {
    let quota = r#"{"error": {"message": "pay first", "code": "insufficient_quota"}}"#;
    for (act, said) in [
        (
            status(401, r#"{"error": {"message": "no such key"}}"#),
            "denies access (HTTP 401)",
        ),
        (status(403, ""), "denies access (HTTP 403)"),
        (status(429, quota), "pay first"),
        (
            status(404, "nothing here"),
            "no such model or place (HTTP 404)",
        ),
        (status(307, ""), "no such model or place (HTTP 307)"),
        (
            status(
                400,
                r#"{"error": {"message": "what?", "code": "model_not_found"}}"#,
            ),
            "no such model",
        ),
        (
            status(
                400,
                r#"{"error": {"message": "only 1", "param": "temperature"}}"#,
            ),
            "does not take `temperature`",
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
    let filtered = r#"{"error": {"message": "harm", "code": "content_filter"}}"#;
    let withheld =
        json!({"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]});
    for (act, said) in [
        (
            status(400, r#"{"error": {"message": "too long"}}"#),
            "refuses the prompt (HTTP 400): too long",
        ),
        (status(413, ""), "refuses the prompt (HTTP 413)"),
        (status(400, filtered), "withheld the answer: harm"),
        (ok(withheld), "withheld the answer"),
    ] {
        let (error, requests) = always(act);
        assert!(error.to_string().contains(said), "{error}");
        assert!(error.concerns_item(), "{error}");
        assert_eq!(requests, 1, "{error}");
    }
}

#[test]
fn a_redirect_does_not_carry_the_key_away() {
    let other = FakeServer::play(vec![said("B")]);
    let place = format!("{}/v1/chat/completions", other.url());
    for code in [302, 307, 308] {
        let headers = vec![("location", place.clone())];
        let server = FakeServer::play(vec![Act::Answer(code, headers, String::new())]);
        let error = ask(&server).unwrap_err();
        assert!(matches!(error, RemoteError::NotFound { .. }), "{error}");
    }
    assert!(other.requests().is_empty());
}

#[test]
fn an_answer_without_end_is_cut_off() {
    let server = FakeServer::play(vec![Act::Endless(1 << 20)]);
    let short = RemoteOptions {
        most_bytes: 10_000,
        ..options()
    };
    let error = open(&server, short).complete(&request(), &GO).unwrap_err();
    assert!(
        matches!(
            error,
            RemoteError::TooLong {
                most_bytes: 10_000,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.concerns_item());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_parameter_that_is_refused_is_left_out_from_then_on_and_said_once() {
    // As a server that knows neither `json_schema` nor `seed`, and says so in two ways.
    let server = FakeServer::serve(|request, _| {
        if request.body.get("seed").is_some() {
            return status(
                400,
                r#"{"error": {"message": "Unrecognized argument: seed"}}"#,
            );
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
    assert_eq!(model.refused(), Vec::<String>::new());
    let first = model.complete(&with_schema(), &GO).unwrap();
    assert_eq!(first.attempts, 4);
    assert!(first.is_constrained);
    assert_eq!(first.notes.len(), 2, "{:?}", first.notes);
    assert!(
        first.notes[0].contains("refuses `seed`: it gets no seed"),
        "{:?}",
        first.notes
    );
    assert!(
        first.notes[1].contains("gets a `json_object`"),
        "{:?}",
        first.notes
    );
    server.requests();

    let second = model.complete(&with_schema(), &GO).unwrap();
    assert_eq!((second.attempts, second.notes.len()), (1, 0));
    let sent = &server.requests()[0].body;
    assert_eq!(sent["response_format"]["type"], "json_object");
    assert_eq!(sent.get("seed"), None);
    assert_eq!(model.refused(), first.notes);
}

#[test]
fn a_server_without_any_schema_is_asked_freely_and_the_completion_says_so() {
    let server = FakeServer::serve(|request, _| match request.body.get("response_format") {
        Some(_) => status(400, "response_format is not supported"),
        None => said("B"),
    });
    let completion = open(&server, options())
        .complete(&with_schema(), &GO)
        .unwrap();
    assert!(!completion.is_constrained);
    assert!(
        completion.notes[0].contains("text is free"),
        "{:?}",
        completion.notes
    );
}

#[test]
fn a_refusal_that_had_another_cause_teaches_nothing() {
    let server = FakeServer::play(vec![status(400, "the seed of the matter is the prompt")]);
    let model = open(&server, options());
    let error = model.complete(&with_schema(), &GO).unwrap_err();
    assert!(matches!(error, RemoteError::Rejected { .. }), "{error}");
    assert_eq!(server.requests().len(), 2);
    assert_eq!(model.refused(), Vec::<String>::new());
}

#[test]
fn the_key_is_in_no_error_and_no_debug_form() {
    let echo = format!(r#"{{"error": {{"message": "bad key {SECRET}"}}}}"#);
    for code in [400, 401, 404, 500] {
        let server = FakeServer::play(vec![status(code, &echo)]);
        let model = open(&server, options());
        let error = model.complete(&request(), &GO).unwrap_err();
        let shown = format!("{error} {error:?} {:?} {model:?}", error.hint());
        assert!(
            shown.contains("bad key ***") && !shown.contains(SECRET),
            "{shown}"
        );
    }
    let server = FakeServer::play(vec![ok(json!({"error": {"code": 401, "message": SECRET}}))]);
    let error = ask(&server).unwrap_err();
    assert!(!format!("{error:?}").contains(SECRET), "{error:?}");
}

#[test]
fn no_more_requests_are_under_way_than_allowed() {
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    let server = FakeServer::serve(|request, number| {
        MOST.fetch_max(1 + INSIDE.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        thread::sleep(Duration::from_millis(20));
        INSIDE.fetch_sub(1, Ordering::SeqCst);
        match number % 3 {
            0 => status(500, ""),
            _ => said(request.body["messages"][0]["content"].as_str().unwrap()),
        }
    });
    let four = RemoteOptions {
        max_in_flight: 4,
        attempts: 20,
        ..options()
    };
    let model = open(&server, four);
    thread::scope(|scope| {
        for number in 0..24 {
            let model = &model;
            scope.spawn(move || {
                let content = format!("question {number}");
                let request = RemoteRequest {
                    messages: vec![Message {
                        role: "user".to_owned(),
                        content: content.clone(),
                    }],
                    seed: number,
                    ..RemoteRequest::default()
                };
                assert_eq!(model.complete(&request, &GO).unwrap().text, content);
            });
        }
    });
    assert!((2..=4).contains(&MOST.load(Ordering::SeqCst)));
}

#[test]
fn the_rate_limit_counts_every_attempt() {
    // Every 30 ms.
    let server = FakeServer::play(vec![status(500, ""), status(500, ""), said("B")]);
    let slow = RemoteOptions {
        requests_per_minute: Some(2000),
        first_pause: Duration::ZERO,
        attempts: 9,
        ..options()
    };
    let model = open(&server, slow);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| model.complete(&request(), &GO).unwrap());
        }
    });
    let mut starts: Vec<Instant> = server.requests().iter().map(|request| request.at).collect();
    starts.sort();
    assert_eq!(starts.len(), 6);
    assert!(
        starts[5] - starts[0] >= Duration::from_millis(3 * 30),
        "{starts:?}"
    );
}

#[test]
fn a_stop_ends_a_request_a_pause_and_a_wait() {
    let pausing = Act::Answer(429, vec![("retry-after", "60".to_owned())], String::new());
    for act in [Act::Hang, pausing] {
        let server = FakeServer::play(vec![act]);
        let model = open(&server, options());
        let stop = AtomicBool::new(false);
        let start = Instant::now();
        thread::scope(|scope| {
            let asked = scope.spawn(|| model.complete(&request(), &stop).unwrap_err());
            while server.requests().is_empty() {
                thread::sleep(Duration::from_millis(5));
            }
            stop.store(true, Ordering::Relaxed);
            assert!(matches!(asked.join().unwrap(), RemoteError::Interrupted));
        });
        assert!(start.elapsed() < Duration::from_secs(3));
    }
}

#[test]
fn nothing_is_sent_where_it_is_forbidden() {
    let server = FakeServer::play(vec![said("B")]);
    for (barrier, said) in [
        (Barrier::Flag, "--offline"),
        (Barrier::Variable("HF_HUB_OFFLINE"), "HF_HUB_OFFLINE"),
    ] {
        let options = RemoteOptions {
            barrier: Some(barrier),
            ..options()
        };
        let error = RemoteModel::open(&address(&server), options).unwrap_err();
        assert!(matches!(error, RemoteError::Forbidden { .. }), "{error}");
        assert!(
            error.to_string().contains(said) && !error.concerns_item(),
            "{error}"
        );
    }
    assert!(server.requests().is_empty());
}

#[test]
fn the_list_of_models_finds_a_misspelt_one_before_the_run() {
    let list = json!({"data": [{"id": "org/m", "max_model_len": 8192}]});
    let server = FakeServer::play(vec![status(503, ""), ok(list)]);
    let served = open(&server, options()).look_up(&GO).unwrap();
    assert_eq!((served.is_listed, served.context), (Some(true), Some(8192)));
    let asked = server.requests();
    assert_eq!(
        (asked[1].method.as_str(), asked[1].path.as_str()),
        ("GET", "/v1/models")
    );
    assert!(asked[1].header("authorization").is_some());

    let none = FakeServer::play(vec![status(404, "")]);
    assert_eq!(open(&none, options()).look_up(&GO).unwrap().is_listed, None);
    let denied = FakeServer::play(vec![status(401, "")]);
    let error = open(&denied, options()).look_up(&GO).unwrap_err();
    assert!(matches!(error, RemoteError::Denied { .. }), "{error}");
}

#[test]
fn an_image_is_shown_and_one_that_is_missing_costs_its_item_without_a_request() {
    let server = FakeServer::play(vec![said("B")]);
    let model = open(&server, options());
    let shown = RemoteRequest {
        image: Some("https://host/scan.png".to_owned()),
        ..request()
    };
    model.complete(&shown, &GO).unwrap();
    let parts = &server.requests()[0].body["messages"][0]["content"];
    assert_eq!(parts[0]["image_url"]["url"], "https://host/scan.png");
    assert_eq!(parts[1]["text"], "Which?");
    let missing = RemoteRequest {
        image: Some("/nowhere/scan.png".to_owned()),
        ..request()
    };
    let error = model.complete(&missing, &GO).unwrap_err();
    assert!(matches!(error, RemoteError::Image { .. }), "{error}");
    assert!(server.requests().is_empty());
}
