//! The audit trail: chained, without texts unless asked, and nothing is served without it.

use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use serde_json::{Value, json};

use crate::client::{Ask, Server, wardround};
use crate::systems::QUICK;

const QUESTION: &str = "Is the canary yellow?";

fn lines_in(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("audit/trail.jsonl")).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn lines(server: &Server) -> Vec<Value> {
    lines_in(server.folder.path())
}

/// The lines of an event.
fn of<'a>(lines: &'a [Value], event: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

fn asked() -> Value {
    let text = format!("{QUESTION}\nA) yes\nB) no");
    json!({"model": "cot-sc", "messages": [{"role": "user", "content": text}], "seed": 9})
}

fn chat(stream: bool) -> Value {
    let messages = json!([{"role": "user", "content": "Where does the canary sing?"}]);
    json!({"model": "gemma3", "messages": messages, "max_tokens": 6, "seed": 4, "temperature": 1, "stream": stream})
}

/// Runs a verb. Gives its exit code and what it said.
fn run(folder: &Path, arguments: &str) -> (Option<i32>, String) {
    let done = wardround(folder).args(arguments.split(' ')).output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_case_is_logged_by_sums_alone_and_the_chain_goes_on_after_a_restart() {
    let server = Server::start(&format!("{QUICK} --audit audit"));
    assert_eq!(server.post("/v1/chat/completions", &asked()).status, 200);
    assert_eq!(server.post("/v1/chat/completions", &asked()).status, 200);
    let log = lines(&server);
    let events: Vec<&str> = log.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["start", "begun", "request", "begun", "request"]);
    let cases = of(&log, "request");
    for (begun, case) in of(&log, "begun").into_iter().zip(&cases) {
        for name in ["call", "input", "request", "model", "actor"] {
            assert_eq!(begun[name], case[name], "{name}");
        }
        assert!(begun.get("output").is_none());
    }
    assert_eq!(cases[0]["input"], cases[1]["input"]);
    assert_eq!(cases[0]["output"], cases[1]["output"]);
    assert_eq!(
        (&cases[0]["model"], &cases[0]["seed"], &cases[0]["status"], &cases[0]["from"]),
        (&json!("cot-sc"), &json!(9), &json!("done"), &json!("127.0.0.1"))
    );
    let folder = server.folder.path().join("audit");
    assert!(!folder.join("content").exists());
    for line in &log {
        assert!(!line.to_string().contains("canary"), "{line}");
    }
    for (path, mode) in
        [(folder.clone(), 0o700), (folder.join("trail.jsonl"), 0o600), (folder.join("key"), 0o600)]
    {
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            mode,
            "{}",
            path.display()
        );
    }
    let copy = tempfile::tempdir().unwrap();
    std::fs::DirBuilder::new().mode(0o700).create(copy.path().join("audit")).unwrap();
    for name in ["trail.jsonl", "trail.head", "key"] {
        std::fs::copy(folder.join(name), copy.path().join("audit").join(name)).unwrap();
    }
    let (code, said) = server.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("canary"));
    // The head that the end tells proves that nothing is cut off.
    let head = said.lines().find_map(|line| line.strip_prefix("audit head 6 ")).unwrap();
    let (code, said) = run(copy.path(), &format!("audit verify audit --head {head}"));
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("its end was cut off"), "{said}");

    let flags = format!("{QUICK} --audit audit --audit-content full");
    let server = Server::start_in(copy, &flags);
    assert_eq!(server.post("/v1/chat/completions", &asked()).status, 200);
    let log = lines(&server);
    assert_eq!(log.len(), 8);
    assert_eq!(log[5]["prev"], log[4]["hash"]);
    assert_eq!(log[7]["input"], log[2]["input"]);
    let id = log[7]["content"].as_str().unwrap();
    let path = server.folder.path().join("audit/content").join(format!("{id}.json"));
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let asked = kept["input"]["messages"][0]["content"].as_str().unwrap();
    assert!(asked.starts_with(QUESTION) && kept["output"].is_string(), "{kept}");
}

#[test]
fn every_completion_has_its_line_however_it_was_sent_and_its_text_can_be_deleted() {
    let server = Server::start("--audit audit --audit-content full");
    let whole = server.post("/v1/chat/completions", &chat(false)).json();
    let (events, is_whole) = server.post("/v1/chat/completions", &chat(true)).events();
    assert!(is_whole && events.len() > 2);
    let prompt =
        json!({"model": "llama", "prompt": ["one canary", "two"], "max_tokens": 3, "n": 2});
    assert_eq!(server.post("/v1/completions", &prompt).status, 200);
    // What nothing was generated for has no line.
    assert_eq!(server.post("/v1/chat/completions", &json!({"model": "gemma3"})).status, 400);
    assert_eq!(server.post("/v1/chat/completions", &json!({"model": "other"})).status, 400);
    let log = lines(&server);
    let requests = of(&log, "request");
    assert_eq!(requests.len(), 3);
    assert_eq!(
        (&requests[0]["path"], &requests[0]["model"], &requests[0]["status"], &requests[0]["seed"]),
        (&json!("/v1/chat/completions"), &json!("gemma3"), &json!("done"), &json!(4))
    );
    assert_eq!(requests[0]["output"], requests[1]["output"]);
    assert_eq!(requests[0]["request"], requests[1]["request"]);
    assert_ne!(requests[0]["request"], whole["wardround"]["request"]);
    assert_eq!(requests[0]["usage"], whole["usage"]);
    assert_eq!(requests[2]["finish"], json!(["length", "length", "length", "length"]));
    // A client that goes away leaves a line too.
    let long = json!({"model": "gemma3", "prompt": "x", "max_tokens": 3000, "ignore_eos": true, "stream": true});
    let headers = [("content-type", "application/json")];
    let body = long.to_string();
    let pending = server.send(&Ask {
        method: "POST",
        path: "/v1/completions",
        headers: &headers,
        body: &body,
    });
    // Not before some of the text is there.
    let mut read = Vec::new();
    while !read.windows(6).any(|part| part == b"data: ") {
        let mut bytes = [0; 256];
        let count = (&pending.stream).read(&mut bytes).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&read));
        read.extend(&bytes[..count]);
    }
    drop(pending);
    let began = std::time::Instant::now();
    while of(&lines(&server), "request").len() < 4 {
        assert!(began.elapsed().as_secs() < 60, "the line does not come");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    // How much of it was sent is told.
    let log = lines(&server);
    let (cancelled, begun) = (of(&log, "request")[3], of(&log, "begun"));
    assert_eq!((&cancelled["status"], begun.len()), (&json!("cancelled"), 4));
    assert!(cancelled["sent_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{cancelled}");
    assert_eq!((&begun[3]["call"], &begun[3]["input"]), (&cancelled["call"], &cancelled["input"]));
    let requests = of(&log, "request");

    let folder = server.folder.path();
    let digest = whole["wardround"]["request"].as_str().unwrap();
    let (code, said) = run(folder, &format!("audit show audit --request {digest}"));
    assert_eq!((code, said.lines().count()), (Some(0), 4), "{said}");
    let (code, said) = run(folder, "audit verify audit");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("4 kept, 0 deleted"), "{said}");
    // One process writes to a trail.
    let forget = format!("audit forget audit {} --why asked", requests[2]["seq"]);
    let (code, said) = run(folder, &forget);
    assert_eq!((code, said.contains("another process writes")), (Some(2), true), "{said}");
    let folder = server.kill();
    let (code, said) = run(folder.path(), &forget);
    assert_eq!((code, said.contains("1 text deleted")), (Some(0), true), "{said}");
    for missing in [forget.as_str(), "audit forget audit 999"] {
        let (code, said) = run(folder.path(), missing);
        assert_eq!(
            (code, said.contains("of 1 line the trail keeps no text")),
            (Some(1), true),
            "{said}"
        );
    }
    let (code, said) = run(folder.path(), "audit show audit --request 00");
    assert_eq!((code, said.contains("no line is of the answer 00")), (Some(1), true), "{said}");
    let (code, said) = run(folder.path(), "audit show audit");
    assert_eq!((code, said.matches(r#""event":"request""#).count()), (Some(0), 4), "{said}");
    let (code, said) = run(folder.path(), "audit verify audit");
    assert_eq!((code, said.contains("3 kept, 1 deleted")), (Some(0), true), "{said}");
}

#[test]
fn the_line_of_a_case_is_found_by_its_response() {
    let server = Server::start(&format!("{QUICK} --audit audit"));
    let answer = server.post("/v1/chat/completions", &asked()).json();
    let digest = answer["wardround"]["request"].as_str().unwrap();
    let (code, said) = run(server.folder.path(), &format!("audit show audit --request {digest}"));
    assert_eq!((code, said.lines().count()), (Some(0), 2), "{said}");
    assert!(said.contains(r#""event":"begun""#), "{said}");
    assert!(said.contains(r#""event":"request""#), "{said}");
}

#[test]
fn a_trail_that_was_changed_is_not_continued() {
    let server = Server::start(&format!("{QUICK} --audit audit"));
    assert_eq!(server.post("/v1/chat/completions", &asked()).status, 200);
    let folder = server.folder.path();
    let path = folder.join("audit/trail.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::create_dir(folder.join("other")).unwrap();
    for name in ["key", "trail.head"] {
        std::fs::copy(folder.join("audit").join(name), folder.join("other").join(name)).unwrap();
    }
    std::fs::set_permissions(folder.join("other"), PermissionsExt::from_mode(0o700)).unwrap();
    for (changed, said) in [
        (text.replace("cot-sc", "mdagents"), "line 2: the line was changed"),
        (text.lines().nth(1).unwrap().to_owned() + "\n", "line 1: the line was changed"),
        (text.clone() + "more", "the line does not begin with its schema"),
    ] {
        std::fs::write(folder.join("other/trail.jsonl"), changed).unwrap();
        let (code, stderr) = run(folder, "serve gemma3 --port 0 --offline --audit other");
        assert_eq!(code, Some(3), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
}

/// Bodies of many small values were kept parsed, at twenty times their length.
#[test]
#[cfg(target_os = "linux")]
fn a_stream_under_way_holds_no_more_than_its_body() {
    let server = Server::start("--audit audit");
    // As many values as a body may have, and text to 4 MB.
    let filler = "0,".repeat(200_000) + "\"" + &"x".repeat(3_600_000) + "\",";
    let body = format!(
        "{{\"model\": \"gemma3\", \"prompt\": \"x\", \"max_tokens\": 3000, \"ignore_eos\": true, \"stream\": true, \"metadata\": [{filler}0]}}"
    );
    let headers = [("content-type", "application/json")];
    let ask = || Ask { method: "POST", path: "/v1/completions", headers: &headers, body: &body };
    // One after another: what reading a body took is free again, and is kept by the allocator for the next that the same thread reads.
    let mut under_way = Vec::new();
    let mut begin = |count: usize| {
        for _ in 0..count {
            let one = server.send(&ask());
            one.wait();
            // A stream, and no refusal.
            let mut head = [0; 12];
            one.stream.peek(&mut head).unwrap();
            assert_eq!(String::from_utf8_lossy(&head), "HTTP/1.1 200");
            under_way.push(one);
        }
        server.memory()
    };
    let before = begin(8);
    let grown = begin(4).saturating_sub(before);
    let bodies = 4 * body.len();
    // The values of one body would be more than twice its bytes; a few pages more or less are the allocator's.
    assert!(grown < bodies * 5 / 2, "{grown} bytes for four streams of {bodies} in total");
}

#[test]
fn who_leaves_the_stream_of_a_system_leaves_a_line_of_what_was_sent() {
    let server = Server::start(&format!("{QUICK} --audit audit"));
    let question = "Which vitamin is retinol?\nA) Vitamin A\nB) Vitamin D";
    let messages = json!([{"role": "user", "content": question}]);
    let pending = server.stream(json!({"model": "cot-sc", "messages": messages}));
    let mut read = Vec::new();
    while !read.windows(6).any(|part| part == b"data: ") {
        let mut bytes = [0; 256];
        let count = (&pending.stream).read(&mut bytes).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&read));
        read.extend(&bytes[..count]);
    }
    drop(pending);
    let began = std::time::Instant::now();
    let left = loop {
        if let [left] = of(&lines(&server), "request")[..] {
            break left.clone();
        }
        assert!(began.elapsed().as_secs() < 60, "the line does not come");
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    let told = (&left["path"], &left["status"]);
    assert_eq!(told, (&json!("/v1/chat/completions"), &json!("cancelled")));
    assert!(left["sent_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{left}");
    assert_eq!(left["request"].as_str().map(str::len), Some(64));
}

#[test]
fn no_answer_goes_without_its_line_whenever_the_server_is_killed() {
    let mut folder = tempfile::tempdir().unwrap();
    let mut answered = 0;
    for round in 0..3 {
        let server = Server::start_in(folder, "--audit audit");
        // Four clients ask until the server is gone.
        let before = of(&lines(&server), "request").len();
        let count = |server: &Server| of(&lines(server), "request").len() - before;
        answered += std::thread::scope(|scope| {
            let clients: Vec<_> = (0..4).map(|_| scope.spawn(|| answers(&server))).collect();
            // Not before there are some, and then at any point.
            while count(&server) < 4 {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            std::thread::sleep(std::time::Duration::from_millis(37 * round));
            server.signal("-KILL");
            clients.into_iter().map(|client| client.join().unwrap()).sum::<usize>()
        });
        folder = server.kill();
        let all = lines_in(folder.path());
        let done = of(&all, "request").iter().filter(|line| line["status"] == "done").count();
        assert!(done >= answered, "{answered} answers, {done} lines");
        // Each was begun first.
        let begun = of(&all, "begun").len();
        assert!(begun >= of(&all, "request").len() && begun >= answered, "{begun} begun");
        let (code, said) = run(folder.path(), "audit verify audit");
        assert_eq!(code, Some(0), "{said}");
    }
    assert!(answered > 0);
}

/// Whole answers until the server is gone.
fn answers(server: &Server) -> usize {
    let headers = [("content-type", "application/json")];
    let body = chat(true).to_string();
    let ask = Ask { method: "POST", path: "/v1/chat/completions", headers: &headers, body: &body };
    std::iter::from_fn(|| server.try_ask(&ask).filter(|answer| answer.events().1)).count()
}

#[test]
fn nothing_is_served_while_the_trail_cannot_be_written_and_again_once_it_can() {
    let server = Server::start("--audit audit --audit-content full");
    let ask = |server: &Server| server.post("/v1/chat/completions", &chat(false));
    assert_eq!(ask(&server).status, 200);
    // What stands where texts go stands for a disk that is full.
    let (content, aside) =
        (server.folder.path().join("audit/content"), server.folder.path().join("aside"));
    std::fs::rename(&content, &aside).unwrap();
    std::fs::write(&content, "").unwrap();
    let refused = ask(&server);
    assert_eq!(refused.code(), (503, "audit_failed".to_owned()));
    assert!(!refused.body.contains("choices"));
    assert_eq!(ask(&server).header("retry-after"), "60");
    let (events, is_whole) = server.post("/v1/chat/completions", &chat(true)).events();
    assert!(!is_whole && events.is_empty());
    std::fs::remove_file(&content).unwrap();
    std::fs::rename(&aside, &content).unwrap();
    let began = std::time::Instant::now();
    while ask(&server).status != 200 {
        assert!(began.elapsed().as_secs() < 20, "it stays refused");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(of(&lines(&server), "error").len(), 1);
    let (code, said) = run(server.folder.path(), "audit verify audit");
    assert_eq!(code, Some(0), "{said}");
}

/// A system of one's own is served under its file's name, which is read once.
#[test]
fn a_file_is_served_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own=1.toml");
    let text = "takes = \"questions\"\n[[stage]]\nname = \"answer\"\nuser = \"{question}\\n{options}\\nReply with a letter.\"\nreply = \"letter\"\n";
    std::fs::write(&file, text).unwrap();
    let server = Server::start_in(
        folder,
        "--system own=1.toml=qwen3 --set own=1.max_tokens=8 --audit audit",
    );
    std::fs::remove_file(&file).unwrap();
    let entry = server.get("/v1/models/own=1").json();
    assert_eq!(entry["wardround"]["kind"], "system");
    let content = "Which vitamin is retinol?\nA) Vitamin A\nB) Vitamin D";
    let body =
        json!({"model": "own=1", "messages": [{"role": "user", "content": content}], "seed": 5});
    let answer = server.post("/v1/chat/completions", &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(of(&lines(&server), "request").len(), 1);
}

/// No text of a prompt, a note or a key is in what the process leaves behind, whatever goes wrong.
#[test]
fn a_canary_is_found_nowhere() {
    const CANARY: &str = "tweetzalcoatl";
    let folder = tempfile::tempdir().unwrap();
    let made = run(folder.path(), "keys add keys ward");
    let key = made.1.trim().lines().next().unwrap().to_owned();
    let server = Server::start_in(folder, &format!("{QUICK} --keys keys --audit audit"));
    let bearer = format!("Bearer {key}");
    let post = |path: &str, kind: &str, body: &str| {
        let headers = [("authorization", bearer.as_str()), ("content-type", kind)];
        server.ask(&Ask { method: "POST", path, headers: &headers, body })
    };
    let json = "application/json";
    let messages = |text: &str| json!([{"role": "user", "content": text}]);
    for round in 0..10 {
        let text = format!("{CANARY} {round}");
        let chat = json!({"model": "gemma3", "messages": messages(&text), "max_tokens": 2});
        assert_eq!(post("/v1/chat/completions", json, &chat.to_string()).status, 200);
        let odd = json!({"model": CANARY, "messages": messages(&text)}).to_string();
        let long = json!({"model": "gemma3", "prompt": CANARY.repeat(9000)}).to_string();
        let schema = json!({"model": "gemma3", "messages": messages(&text), "structured_outputs": {"regex": format!("({CANARY}")}});
        for (path, kind, body) in [
            ("/v1/chat/completions", json, odd.as_str()),
            ("/v1/chat/completions", json, CANARY),
            ("/v1/completions", json, &long),
            ("/v1/chat/completions", json, &schema.to_string()),
            ("/v1/check", "text/plain", " "),
            ("/v1/check", CANARY, CANARY),
            ("/v1/check", json, &json!({CANARY: CANARY}).to_string()),
            (&format!("/{CANARY}"), json, "{}"),
        ] {
            assert!(post(path, kind, body).status >= 400, "{path} {kind}");
        }
    }
    let note = json!({"text": format!("{CANARY} was given. Well.")}).to_string();
    assert_eq!(post("/v1/check", json, &note).status, 200);
    let wrong = format!("Bearer {CANARY}");
    let headers = [("authorization", wrong.as_str())];
    let refused =
        server.ask(&Ask { method: "GET", path: "/v1/models", headers: &headers, body: "" });
    assert_eq!(refused.status, 401);
    let headers = [("authorization", bearer.as_str())];
    let metrics = server.ask(&Ask { method: "GET", path: "/metrics", headers: &headers, body: "" });
    assert_eq!(metrics.status, 200);
    let log = lines(&server);
    assert_eq!(of(&log, "request").len(), 11);
    let trail = std::fs::read_to_string(server.folder.path().join("audit/trail.jsonl")).unwrap();
    server.signal("-SEGV");
    let said = server.said();
    let folder = server.kill();
    for (place, text) in [("metrics", &metrics.body), ("the trail", &trail), ("stderr", &said)] {
        assert!(!text.contains(CANARY) && !text.contains(&key), "{place}");
    }
    let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
    for name in files {
        assert!(!name.to_string_lossy().contains("core"), "{name:?}");
    }
}
