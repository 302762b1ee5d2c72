//! A remote member against a real server: llama-cpp-python's, with a tiny random model.
//!
//! Runs where `WARDROUND_LLAMA_PYTHON` names a Python that has `llama-cpp-python[server]` and `gguf`.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use wardround::panel::PanelError;
use wardround::panel::remote::{Address, ApiKey, RemoteModel, RemoteOptions, RemoteRequest};
use wardround::record::Grammar;
use wardround::record::{FinishReason, Message};

const KEY: &str = "sk-tiny";
const CONTEXT: &str = "512";
static GO: AtomicBool = AtomicBool::new(false);

struct Server {
    process: Child,
    port: u16,
    log: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn start(python: &Path, folder: &Path) -> Server {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/tiny_gguf.py");
    let weights = folder.join("tiny.gguf");
    let written = Command::new(python).arg(script).arg(&weights).status().unwrap();
    assert!(written.success(), "gguf and numpy must be importable");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let log = folder.join("server.log");
    let output = std::fs::File::create(&log).unwrap();
    let process = Command::new(python)
        .args(["-m", "llama_cpp.server", "--host", "127.0.0.1", "--model_alias", "tiny"])
        .args(["--n_ctx", CONTEXT, "--api_key", KEY, "--port", &port.to_string()])
        .arg("--model")
        .arg(&weights)
        .stdout(Stdio::null())
        .stderr(output)
        .spawn()
        .unwrap();
    Server { process, port, log }
}

fn open(server: &Server, model: &str, key: &str) -> RemoteModel {
    let url = format!("http://127.0.0.1:{}", server.port);
    let address = Address::parse(&format!("openai:{model}@{url}")).unwrap();
    let key = ApiKey::from_lookup(&address, &[], |name| {
        (name == "WARDROUND_API_KEY").then(|| OsString::from(key))
    });
    let options = RemoteOptions {
        key: key.unwrap(),
        timeout: Duration::from_secs(60),
        attempts: 3,
        first_pause: Duration::from_millis(50),
        ..RemoteOptions::default()
    };
    RemoteModel::open(&address, options).unwrap()
}

fn wait_until_it_answers(server: &mut Server, model: &RemoteModel) {
    let start = Instant::now();
    while let Err(error) = model.look_up(&GO) {
        let log = std::fs::read_to_string(&server.log).unwrap();
        assert!(server.process.try_wait().unwrap().is_none(), "the server died:\n{log}");
        assert!(start.elapsed() < Duration::from_secs(120), "{error}\n{log}");
        thread::sleep(Duration::from_millis(200));
    }
}

fn request(content: &str, seed: u64) -> RemoteRequest {
    RemoteRequest {
        messages: vec![Message::new("user", content)],
        max_tokens: Some(12),
        seed,
        ..RemoteRequest::default()
    }
}

#[test]
#[ignore = "needs WARDROUND_LLAMA_PYTHON, a Python with llama-cpp-python[server]"]
fn with_server_a_real_one_is_spoken_to() {
    let python = std::env::var_os("WARDROUND_LLAMA_PYTHON").map(PathBuf::from);
    let python = python.expect("WARDROUND_LLAMA_PYTHON");
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(&python, folder.path());
    let model = open(&server, "tiny", KEY);
    wait_until_it_answers(&mut server, &model);

    seeds_and_lengths_are_heeded(&model);
    a_schema_holds_in_the_form_that_the_server_knows(&model);
    many_threads_are_answered_each(&model);
    what_is_wrong_is_told_apart(&server, &model);
}

fn seeds_and_lengths_are_heeded(model: &RemoteModel) {
    model.look_up(&GO).unwrap();
    let say = |seed| model.complete(&request("Which?", seed), &GO).unwrap();
    let first = say(5);
    assert_eq!(first.text, say(5).text);
    // Beyond 31 bits, where the server's own type ends.
    assert_eq!(first.text, say(5 + (1 << 52)).text);
    assert_ne!(first.text, say(6).text);
    assert_eq!(first.finish_reason, FinishReason::Length);
    assert_eq!(first.usage.completion_tokens, 12);
    assert!(first.usage.prompt_tokens > 10);
    let answered_by = first.elsewhere.as_ref().unwrap().answered_by.as_ref().unwrap();
    assert_eq!(answered_by.model.as_deref(), Some("tiny"));
}

/// The server knows `json_object` alone, and answers anything else with 500.
fn a_schema_holds_in_the_form_that_the_server_knows(model: &RemoteModel) {
    let schema = r#"{
        "type": "object",
        "properties": {"answer": {"enum": ["A", "B"]}},
        "required": ["answer"],
        "additionalProperties": false
    }"#;
    let constrained = RemoteRequest {
        grammar: Some(Grammar::JsonSchema(schema.to_owned())),
        max_tokens: Some(200),
        ..request("Which?", 9)
    };
    // The second time the form is known.
    for _ in 0..2 {
        let completion = model.complete(&constrained, &GO).unwrap();
        assert!(completion.elsewhere.as_ref().unwrap().constrained);
        let record: serde_json::Value = serde_json::from_str(&completion.text).unwrap();
        assert!(["A", "B"].contains(&record["answer"].as_str().unwrap()), "{record}");
    }
}

fn many_threads_are_answered_each(model: &RemoteModel) {
    let alone: Vec<_> =
        (0..8).map(|seed| model.complete(&request("Which?", seed), &GO).unwrap().text).collect();
    let together: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|seed| scope.spawn(move || model.complete(&request("Which?", seed), &GO).unwrap()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap().text).collect()
    });
    assert_eq!(alone, together);
}

fn what_is_wrong_is_told_apart(server: &Server, model: &RemoteModel) {
    let long = model.complete(&request(&"word ".repeat(1000), 0), &GO).unwrap_err();
    assert!(long.to_string().contains("refuses the prompt (HTTP 400)"), "{long}");
    assert!(long.concerns_item() && long.to_string().contains(CONTEXT), "{long}");
    let stranger = open(server, "tiny", "sk-wrong");
    let denied = stranger.complete(&request("Which?", 0), &GO).unwrap_err();
    assert!(matches!(denied, PanelError::Refused { status: 401, .. }), "{denied}");
    assert!(!denied.concerns_item());
}
