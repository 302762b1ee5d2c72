//! Embeddings over HTTP: the bits of the library, whatever is asked beside them, and everything else refused by name.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use safetensors::SafeTensors;
use serde_json::{Value, json};
use wardround::encoder::{Document, Encoder, EncoderOptions, Side};
use wardround::model::Family;
use wardround::ops::Device;

use crate::client::{Answer, Server, wardround};
use crate::common::retrieval::{Copy, asking};
use crate::common::{self, goldens};

const TEXTS: [&str; 4] = ["the spleen is enlarged", "5 mg", "is the spleen low?", "the"];

/// Links to models under their names in the API.
fn folder(models: &[(&str, &Path)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, model) in models {
        std::os::unix::fs::symlink(model, folder.path().join(name)).unwrap();
    }
    folder
}

fn serve(models: &[(&str, &Path)], flags: &str) -> Server {
    let folder = folder(models);
    let names: Vec<String> = models.iter().map(|(name, _)| (*name).to_owned()).collect();
    let command = wardround(folder.path());
    Server::run(command, folder, &format!("{flags} {}", names.join(" ")))
}

fn options(folder: &Path) -> EncoderOptions {
    EncoderOptions::new(folder, Device::cpu(1).unwrap())
}

fn embed(server: &Server, body: &Value) -> Answer {
    server.post("/v1/embeddings", body)
}

/// The vectors of a response, in either form.
fn vectors(answer: &Answer) -> Vec<Vec<f32>> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let data = answer.json()["data"].clone();
    let vector = |entry: &Value| match &entry["embedding"] {
        Value::String(text) => {
            let bytes = STANDARD.decode(text).unwrap();
            let (numbers, rest) = bytes.as_chunks::<4>();
            assert!(rest.is_empty());
            numbers.iter().copied().map(f32::from_le_bytes).collect()
        }
        numbers => {
            let numbers = numbers.as_array().unwrap().iter();
            numbers.map(|number| number.as_f64().unwrap() as f32).collect()
        }
    };
    data.as_array().unwrap().iter().map(vector).collect()
}

fn refused(answer: &Answer, code: (u16, &str), param: &str, says: &[&str]) {
    let error = &answer.json()["error"];
    assert_eq!(answer.code(), (code.0, code.1.to_owned()), "{answer:?}");
    assert_eq!(error["param"], param);
    let message = error["message"].as_str().unwrap();
    assert!(says.iter().all(|part| message.contains(part)), "{message}");
}

#[test]
fn vectors_are_those_of_a_corpus_in_every_form_and_company() {
    let (mean, asks) = (goldens().join("encoders/tiny-mean"), asking());
    let server = serve(&[("mean", &mean), ("asks", asks.path())], "");
    let library = Encoder::open(&options(&mean)).unwrap();
    let documents = TEXTS.map(|text| Document { title: "", text });
    let expected = library.embed_documents(&documents).unwrap();
    let ask = |extra: Value| {
        let mut body = json!({"model": "mean", "input": TEXTS});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        embed(&server, &body)
    };
    let whole = ask(json!({"user": "ward", "zeta": 1}));
    assert_eq!(whole.json()["wardround"]["ignored"], json!(["user", "zeta"]));
    let count = |text: &&str| library.sequence(Side::Document, text).unwrap().tokens.len();
    let tokens: usize = TEXTS.iter().map(count).sum();
    assert_eq!(whole.json()["usage"], json!({"prompt_tokens": tokens, "total_tokens": tokens}));
    assert_eq!(vectors(&whole), expected);
    assert_eq!(vectors(&ask(json!({"encoding_format": "base64"}))), expected);
    // One text among many others, and among other requests.
    std::thread::scope(|scope| {
        for client in 0..8 {
            let (ask, expected) = (&ask, &expected);
            scope.spawn(move || {
                for turn in 0..8 {
                    let own = (client + turn) % TEXTS.len();
                    let mut texts = vec![TEXTS[own]];
                    texts.extend(TEXTS.iter().cycle().take(turn * 30));
                    let answer = ask(json!({"input": texts, "encoding_format": "base64"}));
                    assert_eq!(vectors(&answer)[0], expected[own]);
                    let alone = ask(json!({"input": TEXTS[own], "encoding_format": "base64"}));
                    assert_eq!(vectors(&alone), expected[own..=own]);
                }
            });
        }
    });

    // Equal requests have equal digests.
    let digest = |extra: Value| ask(extra).json()["wardround"]["request"].clone();
    assert_eq!(digest(json!({})), digest(json!({"encoding_format": "base64"})));
    assert_ne!(digest(json!({})), digest(json!({"input": &TEXTS[1..]})));

    let ask = |model: &str, extra: Value| {
        let mut body = json!({"model": model, "input": TEXTS});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        embed(&server, &body)
    };
    assert_eq!(vectors(&ask("mean", json!({"dimensions": 16}))), expected);
    let why = ask("mean", json!({"dimensions": 8}));
    refused(&why, (400, "invalid_value"), "dimensions", &["vectors of 16 numbers"]);

    // Queries have their own prompt.
    let library = Encoder::open(&options(asks.path())).unwrap();
    let queries = library.embed_queries(&TEXTS).unwrap().vectors;
    assert_eq!(vectors(&ask("asks", json!({"input_type": "query"}))), queries);
    let documents = library.embed_documents(&documents).unwrap();
    assert_eq!(vectors(&ask("asks", json!({}))), documents);
    assert_ne!(documents, queries);
}

#[test]
fn what_is_not_embedded_is_refused_by_name_and_place() {
    let mean = goldens().join("encoders/tiny-mean");
    let qwen3 = common::synthetic(Family::Qwen3);
    let models = [("mean", &*mean), ("qwen3", &*qwen3)];
    let server = serve(&models, "--context 1024");
    let ask = |input: Value| embed(&server, &json!({"input": input}));
    let long = "the ".repeat(30);
    let says = ["input[1] has 32 tokens", "mean reads 24"];
    refused(&ask(json!(["5 mg", long])), (400, "context_length_exceeded"), "input[1]", &says);
    refused(
        &ask(json!("the ".repeat(20_000))),
        (400, "context_length_exceeded"),
        "input[0]",
        &["20002 tokens", "reads 24"],
    );
    for (input, param) in [
        (json!(""), "input[0]"),
        (json!(["5 mg", " \n"]), "input[1]"),
        (json!([]), "input"),
        (json!(vec!["a"; 2049]), "input"),
    ] {
        refused(&ask(input), (400, "invalid_value"), param, &[]);
    }
    let many = json!(vec!["the ".repeat(20); 2048]);
    assert_eq!(ask(many.clone()).status, 200, "2,048 texts are taken");
    // Another tokenizer's ids are numbers too, and their vector would be noise.
    for ids in [json!([true]), json!([2, 5, 3]), json!([[2, 5, 3]])] {
        let says = ["check_embedding_ctx_length=False"];
        refused(&ask(ids), (400, "invalid_type"), "input", &says);
    }
    refused(&embed(&server, &json!({})), (400, "missing_parameter"), "input", &[]);

    // A model of another kind, and one that is not there.
    let all = "there are qwen3 (model), mean (encoder)";
    let chat = json!([{"role": "user", "content": "a"}]);
    for (path, body, says) in [
        ("/v1/embeddings", json!({"input": "a", "model": "qwen3"}), "no encoder `qwen3`"),
        ("/v1/embeddings", json!({"input": "a", "model": "zeta"}), "no encoder `zeta`"),
        ("/v1/chat/completions", json!({"messages": chat, "model": "mean"}), "no model `mean`"),
        ("/v1/completions", json!({"prompt": "a", "model": "mean"}), "no model `mean`"),
    ] {
        let says = [says, all];
        refused(&server.post(path, &body), (404, "model_not_found"), "model", &says);
    }
    // Without a name the only one of its kind is meant.
    assert_eq!(ask(json!("5 mg")).json()["model"], "mean");
    let body = json!({"messages": chat, "max_tokens": 2});
    assert_eq!(server.post("/v1/chat/completions", &body).json()["model"], "qwen3");
}

/// Weights with a row of NaN fail the text that has its word, by its place, and no text beside it.
#[test]
fn numbers_that_are_not_finite_are_an_error_of_the_text_alone() {
    let broken = Copy::of(
        "encoders/tiny-mean",
        "output = \"mean\"\nquery_tokens = 24\ndocument_tokens = 24",
    );
    let path = broken.path().join("model.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let library = Encoder::open(&options(broken.path())).unwrap();
    let word = library.sequence(Side::Document, "spleen").unwrap().tokens[1] as usize;
    let place = {
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let name = "embeddings.word_embeddings.weight";
        let data = tensors.tensor(name).unwrap().data();
        data.as_ptr() as usize - bytes.as_ptr() as usize + 4 * 16 * word
    };
    bytes[place..place + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    let server = serve(&[("broken", broken.path())], "");
    let expected = library.embed(&["5 mg"]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..8 {
                    let answer = embed(&server, &json!({"input": ["5 mg", "the spleen"]}));
                    assert_eq!(answer.code(), (500, "internal".to_owned()));
                    assert!(answer.body.contains("not finite"), "{answer:?}");
                    assert_eq!(answer.header("x-should-retry"), "false");
                    assert_eq!(vectors(&embed(&server, &json!({"input": "5 mg"}))), expected);
                }
            });
        }
    });
}

#[test]
fn the_trail_has_vectors_by_their_sums() {
    let mean = goldens().join("encoders/tiny-mean");
    let server = serve(&[("mean", &mean)], "--audit audit");
    let body = json!({"input": TEXTS});
    let embedded = embed(&server, &json!({"input": TEXTS[0]}));
    assert_eq!(embedded.status, 200);
    assert_eq!(embed(&server, &body).status, 200);
    let text = std::fs::read_to_string(server.folder.path().join("audit/trail.jsonl")).unwrap();
    let lines: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let done: Vec<&Value> = lines.iter().filter(|line| line["event"] == "request").collect();
    assert_eq!(lines.iter().filter(|line| line["event"] == "begun").count(), 2);
    assert_eq!(done.len(), 2);
    assert_eq!(done[0]["path"], "/v1/embeddings");
    assert!(done.iter().all(|line| line["status"] == "done" && line.get("seed").is_none()));
    assert_eq!(done[0]["fingerprint"], embedded.json()["system_fingerprint"]);
}
