//! Asking an endpoint on the loopback, which fails in every way.

mod pace;
mod refusals;
mod retries;

use crate::diagnosis::Diagnosis;
use std::ffi::OsString;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::json;

use super::super::key::WARDROUND_API_KEY;
use super::super::{Address, ApiKey, RemoteModel, RemoteOptions, RemoteRequest};
use super::MESSAGE_CHARS;
use super::fake_server::{Act, ok, play, said, status};
use crate::calls::KeptCall;
use crate::fake_http::FakeHttp;
use crate::hub::{HubOptions, OfflineReason};
use crate::panel::PanelError;
use crate::record::{FinishReason, Message};

const SECRET: &str = "sk-hush-hush";
static GO: AtomicBool = AtomicBool::new(false);

fn address(server: &FakeHttp) -> Address {
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
    let lookup = |name: &str| (name == WARDROUND_API_KEY).then(|| OsString::from(SECRET));
    ApiKey::from_lookup(address, &[], lookup).unwrap()
}

fn open(server: &FakeHttp, options: RemoteOptions) -> RemoteModel {
    let address = address(server);
    let key = key(&address);
    RemoteModel::open(&address, RemoteOptions { key, ..options }).unwrap()
}

fn request() -> RemoteRequest {
    RemoteRequest {
        messages: vec![Message::new("user", "Which?")],
        seed: 11,
        ..RemoteRequest::default()
    }
}

fn ask(server: &FakeHttp) -> Result<KeptCall, PanelError> {
    open(server, options()).complete(&request(), &GO)
}

fn is_constrained(said: &KeptCall) -> bool {
    said.elsewhere.as_ref().unwrap().constrained
}

/// What comes of an endpoint that always does the same, and how often it was asked.
fn always(act: Act) -> (PanelError, usize) {
    let server = play(vec![act]);
    let error = ask(&server).unwrap_err();
    (error, server.requests().len())
}

#[test]
fn a_completion_is_asked_for_and_read() {
    let server = play(vec![said("B")]);
    let completion = ask(&server).unwrap();
    assert_eq!(completion.text, "B");
    assert_eq!(completion.finish_reason, FinishReason::Stop);
    assert_eq!(completion.usage.prompt_tokens, 3);
    assert!(!is_constrained(&completion));
    let answered_by = completion.elsewhere.unwrap().answered_by.unwrap();
    assert_eq!(answered_by.model.as_deref(), Some("m-1"));

    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    let sent = &requests[0];
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(sent.header("authorization"), Some(&*format!("Bearer {SECRET}")));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(sent.body["model"], "org/m");
    assert_eq!(sent.body["seed"], 11);
}

#[test]
fn without_a_key_none_is_sent() {
    let server = play(vec![said("B")]);
    let model = RemoteModel::open(&address(&server), options()).unwrap();
    model.complete(&request(), &GO).unwrap();
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[test]
fn a_chunked_answer_is_read_whole() {
    let body = json!({"choices": [{"message": {"content": "Bé"}}]}).to_string();
    let server = play(vec![Act::Chunked { body, is_complete: true }]);
    assert_eq!(ask(&server).unwrap().text, "Bé");
}

#[test]
fn the_key_is_in_no_error_and_no_debug_form() {
    let echo = format!(r#"{{"error": {{"message": "bad key {SECRET}"}}}}"#);
    for code in [400, 401, 404, 500] {
        let server = play(vec![status(code, &echo)]);
        let model = open(&server, options());
        let error = model.complete(&request(), &GO).unwrap_err();
        let shown = format!("{error} {error:?} {:?} {model:?}", error.hint());
        assert!(shown.contains("bad key ***") && !shown.contains(SECRET), "{shown}");
    }
    for answer in [json!({"error": {"code": 401, "message": SECRET}}), json!({"choices": SECRET})] {
        let server = play(vec![ok(answer)]);
        let error = ask(&server).unwrap_err();
        assert!(!format!("{error:?}").contains(SECRET), "{error:?}");
    }
}

#[test]
fn a_key_that_an_endpoint_repeats_is_in_no_answer() {
    let answer = json!({
        "model": format!("m-{SECRET}"),
        "choices": [{"message": {"content": format!("Your key is {SECRET}.")}}],
    });
    let server = play(vec![ok(answer)]);
    let completion = ask(&server).unwrap();
    assert_eq!(completion.text, "Your key is ***.");
    assert!(!format!("{completion:?}").contains(SECRET), "{completion:?}");
}

#[test]
fn a_message_that_is_cut_leaves_no_part_of_the_key_at_the_cut() {
    let echo = format!("{}{SECRET}{}", "x".repeat(MESSAGE_CHARS - 4), "y".repeat(300));
    for code in [400, 401, 500] {
        let server = play(vec![status(code, &echo)]);
        let error = open(&server, options()).complete(&request(), &GO).unwrap_err();
        assert!(error.to_string().contains("xxx***y…"), "{error}");
    }
    let server = play(vec![status(400, &"é".repeat(1000))]);
    let error = ask(&server).unwrap_err().to_string();
    assert!(error.ends_with(&format!(": {}…", "é".repeat(MESSAGE_CHARS))), "{error}");
    let server = play(vec![status(400, "")]);
    assert!(ask(&server).unwrap_err().to_string().ends_with(": no reason given"));
}

#[test]
fn nothing_is_sent_where_it_is_forbidden() {
    let server = play(vec![said("B")]);
    for (reason, said) in [
        (OfflineReason::Flag, "--offline"),
        (OfflineReason::Variable("HF_HUB_OFFLINE"), "HF_HUB_OFFLINE"),
    ] {
        let options = RemoteOptions { offline: Some(reason), ..options() };
        let error = RemoteModel::open(&address(&server), options).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_proxy_is_asked_where_one_variable_names_it_and_errors_say_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://nurse:{SECRET}@{}", listener.local_addr().unwrap());
    let (sender, asked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // It hangs up at once.
            drop(stream);
            sender.send(()).unwrap();
        }
    });
    let ask = |variable: &str, url: &str| {
        let named =
            HubOptions::from_lookup(|name| (name == variable).then(|| proxy.clone().into()));
        let proxy = named.unwrap().proxy;
        let address = Address::parse(&format!("openai:m@{url}")).unwrap();
        let options = RemoteOptions { attempts: 1, proxy, ..options() };
        RemoteModel::open(&address, options)?.complete(&request(), &GO).map(|_| ())
    };
    let away = "http://box.ward.invalid:8000";
    for variable in ["ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy"] {
        let error = ask(variable, away).unwrap_err().to_string();
        assert!(!error.contains("proxy"), "{variable}: {error}");
    }
    let error = ask("WARDROUND_PROXY", "http://127.0.0.1:1").unwrap_err().to_string();
    assert!(!error.contains("proxy"), "{error}");
    assert!(asked.try_recv().is_err(), "the proxy was asked");
    let error = ask("WARDROUND_PROXY", away).unwrap_err();
    let said = format!("{error} {error:?}");
    assert!(said.contains("through the proxy of WARDROUND_PROXY"), "{said}");
    assert!(!said.contains(SECRET), "{said}");
    asked.recv().unwrap();
}

#[test]
fn the_list_of_models_finds_a_wrong_key_before_the_run() {
    let list = json!({"data": [{"id": "org/m", "max_model_len": 8192}]});
    let server = play(vec![status(503, ""), ok(list)]);
    open(&server, options()).look_up(&GO).unwrap();
    let asked = server.requests();
    assert_eq!((asked[1].method.as_str(), asked[1].path.as_str()), ("GET", "/v1/models"));
    assert!(asked[1].header("authorization").is_some());

    let none = play(vec![status(404, "")]);
    open(&none, options()).look_up(&GO).unwrap();
    let denied = play(vec![status(401, "")]);
    let error = open(&denied, options()).look_up(&GO).unwrap_err();
    assert!(matches!(error, PanelError::Refused { status: 401, .. }), "{error}");
}
