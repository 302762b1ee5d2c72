//! `corpus`: a small one of our own, built, searched, checked and damaged.

use std::path::Path;

use serde_json::Value;
use wardround::encoder::{EncoderOptions, Pair, Reranker};
use wardround::ops::{Cpu, Device};

use crate::binary::Scratch;

pub const DESCRIPTION: &str = "name = \"own\"\n[[source]]\nlabel = \"ward\"\nformat = \"jsonl\"\npath = \"ward.jsonl\"\nlicence = \"internal\"\n";
const ROWS: &str = "{\"id\": \"a\", \"title\": \"Eclampsia\", \"text\": \"Magnesium is the first choice in eclampsia.\", \"date\": \"2021-05-03\"}\n{\"id\": \"b\", \"title\": \"Asthma\", \"text\": \"Salbutamol by inhaler, then steroids.\"}\n{\"id\": \"c\", \"text\": \"Rest and fluids.\"}\n{\"id\": \"d\", \"text\": \"No treatment.\"}\n";

/// With a tiny encoder beside the rows.
pub fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("own.toml", DESCRIPTION);
    scratch.write("ward.jsonl", ROWS);
    let encoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/encoders/tiny-mean");
    std::os::unix::fs::symlink(encoder, scratch.path("encoder")).unwrap();
    scratch
}

const WARD: &str = r#"name = "ward"
[[source]]
label = "ward"
format = "jsonl"
path = "passages.jsonl"
licence = "own"
redistribute = true
"#;

/// A corpus of our own sentences, by a tiny encoder, as `corpus`.
pub fn write_corpus(scratch: &Scratch) {
    scratch.write("ward.toml", WARD);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::copy(root.join("tests/common/passages.jsonl"), scratch.path("passages.jsonl"))
        .unwrap();
    let encoder = root.join("tests/goldens/encoders/tiny-mean");
    scratch
        .wardround(format!(
            "corpus build ward.toml --encoder {} --out corpus --quiet",
            encoder.display()
        ))
        .succeeded();
}

pub const BUILD: &str = "corpus build own.toml --encoder encoder --out out";

#[test]
fn a_corpus_is_built_shown_searched_and_checked() {
    let scratch = scratch();
    let built = scratch.wardround(BUILD);
    assert_eq!(built.code, Some(0), "{built:#?}");
    let id = built.stdout.trim().to_owned();
    assert_eq!(id.len(), 64);
    let verified = scratch.wardround("corpus verify out");
    let shown = &verified.succeeded().stdout;
    assert!(shown.contains("internal (not to be handed on)") && shown.contains(&id), "{shown}");
    let plain = scratch.wardround("corpus search out eclampsia");
    let plain: Value = serde_json::from_str(&plain.succeeded().stdout).unwrap();
    assert_eq!(plain["corpus"][0], *id);
    let shown = plain["shown"].as_array().unwrap();
    assert_eq!(shown.len(), 4);
    assert!(shown.iter().any(|passage| passage["date"] == "2021-05-03"), "{plain}");
    // Corpora of one encoder are searched together.
    std::fs::create_dir(scratch.path("more")).unwrap();
    scratch.write("more/more.md", "# Sepsis\nThirty millilitres a kilogram.\n");
    scratch.write("more.toml", "name = \"more\"\n[[source]]\nlabel = \"more\"\nformat = \"folder\"\npath = \"more\"\nlicence = \"internal\"\n");
    scratch.wardround("corpus build more.toml --encoder encoder --out added").succeeded();
    let page = scratch.wardround("corpus search out,added sepsis --sources more");
    assert!(page.stdout.contains("more/more.md#0") && page.stdout.contains("Sepsis"), "{page:#?}");
}

/// A tiny cross-encoder.
pub fn reranker(scratch: &Scratch) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/retrieval/tiny-cross");
    std::fs::create_dir(scratch.path("reranker")).unwrap();
    for file in ["config.json", "model.safetensors", "tokenizer.json"] {
        std::fs::copy(from.join(file), scratch.path("reranker").join(file)).unwrap();
    }
    let table = "output = \"one-logit\"\nquery_tokens = 64\ndocument_tokens = 64\n";
    scratch.write("reranker/encoder.toml", table);
}

#[test]
fn a_reranker_orders_what_was_retrieved() {
    let scratch = scratch();
    reranker(&scratch);
    scratch.wardround(BUILD).succeeded();
    let query = "treatment";
    let search = |more: &str| {
        let found = scratch.wardround(format!("corpus search out {query} {more}"));
        serde_json::from_str::<Value>(&found.succeeded().stdout).unwrap()
    };
    let (plain, reranked) = (search(""), search("--reranker reranker --rerank-top-k 3"));
    assert_eq!(plain["retrieved"], reranked["retrieved"]);
    let device = Device::Cpu(Cpu::new(1).unwrap());
    let model = Reranker::open(&EncoderOptions::new(&scratch.path("reranker"), device)).unwrap();
    let text = |passage: &Value, field: &str| passage[field].as_str().unwrap().to_owned();
    let mut expected: Vec<(f32, String)> = Vec::new();
    for passage in plain["shown"].as_array().unwrap() {
        let (title, text_) = (text(passage, "title"), text(passage, "text"));
        let pair = Pair { query, title: &title, text: &text_ };
        expected.push((model.score(&[pair]).unwrap()[0], text(passage, "chunk")));
    }
    expected.sort_by(|one, other| other.0.total_cmp(&one.0));
    let shown = reranked["shown"].as_array().unwrap();
    assert_eq!((expected.len(), shown.len()), (4, 3));
    for ((logit, chunk), passage) in expected.iter().zip(shown) {
        assert_eq!(text(passage, "chunk"), *chunk);
        let score = 1.0 / (1.0 + (-f64::from(*logit)).exp());
        assert!((passage["score"].as_f64().unwrap() - score).abs() < 1e-6, "{passage}");
    }
}

/// A folder as `models fetch CARD --to DIR` leaves it: nothing in it but its provenance says how the model is used.
fn fetched(scratch: &Scratch, folder: &str, golden: &str, repository: &str) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(golden);
    std::fs::create_dir_all(scratch.path(folder)).unwrap();
    for file in ["config.json", "model.safetensors", "tokenizer.json"] {
        std::fs::copy(from.join(file), scratch.path(folder).join(file)).unwrap();
    }
    let provenance =
        format!("repository = \"{repository}\"\nrevision = \"{}\"\n[sha256]\n", "0".repeat(40));
    scratch.write(&format!("{folder}/provenance.toml"), provenance);
}

#[test]
fn models_are_known_by_where_they_were_fetched_from_and_cut_where_they_are_told() {
    let scratch = scratch();
    let repository = "NeuML/pubmedbert-base-embeddings-matryoshka";
    fetched(&scratch, "plain", "encoders/tiny-mean", repository);
    fetched(&scratch, "cross", "retrieval/tiny-cross", "ncbi/MedCPT-Cross-Encoder");
    let build = "corpus build own.toml --encoder plain";
    scratch.wardround(format!("{build} --out whole")).succeeded();
    scratch.wardround(format!("{build} --document-tokens 8 --out cut")).succeeded();
    let manifest = |corpus: &str| {
        let text = std::fs::read_to_string(scratch.path(corpus).join("corpus.toml")).unwrap();
        text.parse::<toml::Table>().unwrap()["encoder"].clone()
    };
    let (whole, cut) = (manifest("whole"), manifest("cut"));
    assert_eq!(whole["name"].as_str(), Some("pubmedbert-matryoshka"));
    assert_eq!(whole["document"].as_str(), Some("TITLE: {title}\nTEXT: {text}"));
    // The model itself has room for no more than 41.
    let tokens = |encoder: &toml::Value| encoder["document_tokens"].as_integer();
    assert_eq!((tokens(&whole), tokens(&cut)), (Some(41), Some(8)));

    let scores = |more: &str| {
        let found = scratch.wardround(format!("corpus search cut eclampsia {more}"));
        let found: Value = serde_json::from_str(&found.succeeded().stdout).unwrap();
        let shown = found["shown"].as_array().unwrap().clone();
        let mut scores: Vec<_> = shown
            .iter()
            .map(|one| (one["chunk"].to_string(), one["score"].as_f64().unwrap()))
            .collect();
        scores.sort_by(|one, other| one.0.cmp(&other.0));
        scores
    };
    let whole = scores("--reranker cross");
    assert_ne!(whole, scores("--reranker cross --reranker-tokens 12"));
    scratch
        .wardround("corpus search cut eclampsia --reranker-tokens 12")
        .refused(2, &["--reranker"]);
}

#[test]
fn a_cards_name_stands_for_its_files_in_the_cache() {
    let scratch = scratch();
    let cache = ".cache/huggingface/hub/models--NeuML--pubmedbert-base-embeddings-matryoshka";
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let snapshot = format!("{cache}/snapshots/{commit}");
    fetched(&scratch, &snapshot, "encoders/tiny-mean", "");
    std::fs::remove_file(scratch.path(&snapshot).join("provenance.toml")).unwrap();
    scratch.write(&format!("{snapshot}/tokenizer_config.json"), "{}");
    std::fs::create_dir(scratch.path(cache).join("refs")).unwrap();
    scratch.write(&format!("{cache}/refs/main"), commit);
    scratch
        .wardround("corpus build own.toml --encoder pubmedbert-matryoshka --out out")
        .succeeded();
    scratch.wardround("corpus search out eclampsia").succeeded();
    let mut offline =
        scratch.command("corpus build own.toml --encoder medcpt-article-encoder --out b");
    crate::binary::outcome(offline.env("HF_HUB_OFFLINE", "1"))
        .refused(3, &["medcpt-article-encoder"]);
}

#[test]
fn many_queries_are_answered_as_each_alone() {
    let scratch = scratch();
    scratch.wardround(BUILD).succeeded();
    let long = "fever ".repeat(60);
    let queries = ["eclampsia", "asthma", "", long.trim(), "eclampsia"];
    scratch.write("queries.txt", format!("\u{feff}{}", queries.join("\r\n")));
    let parsed = |text: &str| {
        let mut found: Value = serde_json::from_str(text).unwrap();
        found.as_object_mut().unwrap().remove("took");
        found
    };
    let together = scratch.wardround("corpus search out --queries queries.txt --top-k 3");
    let together: Vec<Value> = together.succeeded().stdout.lines().map(parsed).collect();
    assert_eq!(together.len(), queries.len());
    for (query, found) in queries.iter().zip(&together) {
        let mut alone = scratch.command("corpus search out --top-k 3");
        let alone = crate::binary::outcome(alone.arg(query));
        assert_eq!(parsed(&alone.succeeded().stdout), *found);
        assert_eq!(
            (&found["query"], found["query_cut"] == true),
            (&(*query).into(), *query == long.trim())
        );
    }
    assert_eq!(together[2]["shown"], serde_json::json!([]));
    scratch
        .wardround("corpus search out eclampsia --queries queries.txt")
        .refused(2, &["cannot be used with"]);
}

#[test]
fn what_cannot_be_is_refused_with_its_code() {
    let scratch = scratch();
    scratch
        .wardround("corpus build medquad --data-dir . --encoder encoder --out out")
        .refused(3, &["source `medquad` has no input at", "hint: name the folder"]);
    scratch
        .wardround("corpus build nothing --data-dir . --encoder encoder --out out")
        .refused(2, &["no corpus is called `nothing`", "medquad"]);
    scratch.wardround("corpus build own.toml --out out").refused(2, &["--encoder <DIR|CARD>"]);
    scratch.write("bad.toml", format!("{DESCRIPTION}colour = 1\n"));
    scratch
        .wardround("corpus build bad.toml --encoder encoder --out out")
        .refused(2, &["bad.toml does not describe a corpus: line "]);
    scratch.write("ward.jsonl", "{\"text\": \"x\"}\n{\"text\"\n");
    scratch.wardround(BUILD).refused(2, &["ward.jsonl:2: EOF while parsing an object"]);
    scratch.write("ward.jsonl", ROWS);
    // What a build left that was refused half way goes on once its input is right again, and here it is not.
    scratch.wardround(BUILD).refused(2, &["was begun with other inputs", "its plan.toml has"]);
    std::fs::remove_file(scratch.path("ward.jsonl")).unwrap();
    scratch.wardround(BUILD).refused(3, &["source `ward` has no input at", "ward.jsonl"]);
    scratch.write("ward.jsonl", ROWS);
    scratch
        .wardround("corpus verify out")
        .refused(3, &["was not built to its end", "hint: the `corpus build` that began it"]);
    scratch.wardround("corpus verify absent").refused(3, &["there is no corpus at absent"]);
    std::fs::remove_dir_all(scratch.path("out")).unwrap();
    assert_eq!(scratch.wardround(BUILD).code, Some(0));
    scratch.wardround(BUILD).refused(2, &["out exists and is not empty"]);
    scratch
        .wardround("corpus search out x --sources wards")
        .refused(2, &["no source is called `wards`; known: ward"]);
    scratch
        .wardround("corpus search out x --rerank cross-encoder")
        .refused(2, &["reranking by a cross-encoder needs one"]);
    scratch
        .wardround("corpus search out x --rerank embedding")
        .refused(2, &["has no vectors at full width"]);
    let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/encoders/tiny-cls");
    scratch
        .wardround(format!("corpus search out x --encoder {}", other.display()))
        .refused(2, &["the encoder's `", "differs"]);
    std::fs::write(scratch.path("out/vectors.bin"), "short").unwrap();
    scratch
        .wardround("corpus search out x")
        .refused(3, &["vectors.bin is damaged: it has 5 bytes, and corpus.toml says"]);
    let verify = scratch.wardround("corpus verify out");
    verify.refused(3, &["out is damaged"]);
    assert!(verify.stdout.contains("vectors.bin      has 5 bytes"), "{verify:#?}");
}
