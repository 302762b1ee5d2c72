//! What another attempt may better, and the pauses before it.

use crate::diagnosis::Diagnosis;
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::super::backoff;
use super::super::fake_server::{Act, ok, play, said, status};
use super::{GO, always, ask, open, options, request};
use crate::panel::remote::{Address, RemoteModel, RemoteOptions};

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
        Act::Chunked { body: whole, is_complete: false },
    ] {
        let server = play(vec![act.clone(), said("B")]);
        assert_eq!(ask(&server).unwrap().text, "B", "{act:?}");
        assert_eq!(server.requests().len(), 2, "{act:?}");
    }
}

#[test]
fn what_does_not_pass_costs_the_item_and_says_why() {
    for (act, said) in [
        (status(500, r#"{"error": {"message": "out of memory"}}"#), "HTTP 500: out of memory"),
        (status(429, "slow down"), "HTTP 429: slow down"),
        (status(200, "not JSON"), "cannot be read"),
        (ok(json!({"choices": []})), "has no choices"),
        (Act::Close, "3 attempts"),
    ] {
        let (error, requests) = always(act);
        let told = error.to_string();
        assert!(told.contains("gave no answer (3 attempts)") && told.contains(said), "{told}");
        assert!(error.concerns_item() && error.hint().unwrap().contains("wardround resume"));
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
    assert!(error.to_string().contains("gave no answer (3 attempts)"), "{error}");
    assert!(error.to_string().contains(&port.to_string()), "{error}");
    assert!(model.look_up(&GO).is_err());
}

#[test]
fn a_silent_endpoint_times_out_and_is_asked_again() {
    let server = play(vec![Act::Hang, said("B")]);
    let brief = RemoteOptions { timeout: Duration::from_millis(300), ..options() };
    let start = Instant::now();
    open(&server, brief).complete(&request(), &GO).unwrap();
    assert_eq!(server.requests().len(), 2);
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert!(start.elapsed() < Duration::from_secs(8));
}

#[test]
fn a_pause_that_the_server_asks_for_is_kept_by_everybody() {
    let server = play(vec![
        Act::Answer(429, vec![("retry-after", "0.8".to_owned())], String::new()),
        said("B"),
    ]);
    let model = open(&server, options());
    let start = Instant::now();
    thread::scope(|scope| {
        let first = scope.spawn(|| model.complete(&request(), &GO).unwrap());
        thread::sleep(Duration::from_millis(400));
        let second = scope.spawn(|| model.complete(&request(), &GO).unwrap());
        first.join().unwrap();
        second.join().unwrap();
    });
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    for later in &requests[1..] {
        assert!(later.at - start >= Duration::from_millis(800), "{requests:?}");
    }
}

#[test]
fn a_pause_beyond_patience_is_not_waited_for() {
    let headers = vec![("retry-after", "86400".to_owned())];
    let act = Act::Answer(429, headers, "tomorrow".to_owned());
    let (error, requests) = always(act);
    assert!(error.to_string().contains("(1 attempt)"), "{error}");
    assert_eq!(requests, 1);
}

#[test]
fn a_pause_doubles_up_to_a_minute_and_depends_on_the_seed_alone() {
    let second = Duration::from_secs(1);
    for (attempt, most) in [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (40, 60), (u32::MAX, 60)] {
        for seed in 0..100 {
            let pause = backoff(seed, attempt, second);
            let most = Duration::from_secs(most);
            assert!(pause >= most / 2 && pause <= most, "{attempt}: {pause:?}");
            assert_eq!(pause, backoff(seed, attempt, second));
        }
    }
    let pauses: std::collections::HashSet<_> =
        (0..100).map(|seed| backoff(seed, 1, second)).collect();
    assert_eq!(pauses.len(), 100);
}
