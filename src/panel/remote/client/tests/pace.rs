//! How many requests are under way, and how they stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::super::fake_server::{Act, play, said, serve, status};
use super::{GO, open, options, request};
use crate::panel::PanelError;
use crate::panel::remote::{RemoteOptions, RemoteRequest};
use crate::record::Message;

#[test]
fn no_more_requests_are_under_way_than_allowed() {
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    let server = serve(|request, number| {
        MOST.fetch_max(1 + INSIDE.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        thread::sleep(Duration::from_millis(20));
        INSIDE.fetch_sub(1, Ordering::SeqCst);
        match number % 3 {
            0 => status(500, ""),
            _ => said(request.body["messages"][0]["content"].as_str().unwrap()),
        }
    });
    let four = RemoteOptions { max_in_flight: 4, attempts: 20, ..options() };
    let model = open(&server, four);
    thread::scope(|scope| {
        for number in 0..24 {
            let model = &model;
            scope.spawn(move || {
                let content = format!("question {number}");
                let request = RemoteRequest {
                    messages: vec![Message::new("user", content.clone())],
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
fn a_stop_ends_a_request_a_pause_and_a_wait() {
    let pausing = Act::Answer(429, vec![("retry-after", "60".to_owned())], String::new());
    for act in [Act::Hang, pausing] {
        let server = play(vec![act]);
        let model = Arc::new(open(&server, options()));
        let stop = Arc::new(AtomicBool::new(false));
        let start = Instant::now();
        let sent = model.send(request(), stop.clone());
        while server.requests().is_empty() {
            thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(sent().unwrap_err(), PanelError::Interrupted));
        assert!(start.elapsed() < Duration::from_secs(3));
    }
}
