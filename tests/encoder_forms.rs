//! Encoders and rerankers in every form that retrieval takes, against sentence-transformers and transformers: tiny random
//! ones of the true architecture, whole, in any batch, and as what they are not.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use serde_json::Value;
use wardround::diagnosis::{Blame, Diagnosis};
use wardround::encoder::{Document, Encoder, EncoderError, EncoderOptions, Pair, Reranker};
use wardround::model::WantedType;
use wardround::ops::{Cpu, Device, Quantisation, StoredType};

struct Goldens {
    queries: Vec<String>,
    documents: Vec<(String, String)>,
    expected: Value,
    bytes: Vec<u8>,
}

impl Goldens {
    fn read() -> Goldens {
        let folder = common::goldens().join("retrieval");
        let expected = common::golden::read(&folder.join("expected.json"));
        let part = |document: &Value, name: &str| document[name].as_str().unwrap().to_owned();
        let documents = expected["documents"].as_array().unwrap().iter();
        Goldens {
            queries: serde_json::from_value(expected["queries"].clone()).unwrap(),
            documents: documents.map(|one| (part(one, "title"), part(one, "text"))).collect(),
            bytes: fs::read(folder.join("expected.safetensors")).unwrap(),
            expected,
        }
    }

    fn queries(&self) -> Vec<&str> {
        self.queries.iter().map(String::as_str).collect()
    }

    fn documents(&self) -> Vec<Document<'_>> {
        self.documents.iter().map(|(title, text)| Document { title, text }).collect()
    }

    /// Every query with every document.
    fn pairs(&self) -> Vec<Pair<'_>> {
        let mut pairs = Vec::new();
        for query in &self.queries {
            pairs.extend(self.documents.iter().map(|(title, text)| Pair { query, title, text }));
        }
        pairs
    }

    fn check(&self, name: &str, ours: &[Vec<f32>]) {
        let tensors = SafeTensors::deserialize(&self.bytes).unwrap();
        let tensor = tensors.tensor(name).unwrap();
        let (numbers, _) = tensor.data().as_chunks::<4>();
        let theirs: Vec<f32> = numbers.iter().copied().map(f32::from_le_bytes).collect();
        assert_eq!(tensor.shape(), [ours.len(), ours[0].len()], "{name}");
        let largest = theirs.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
        let tolerance = self.expected["tolerance"].as_f64().unwrap() as f32 * largest;
        let mut furthest = 0.0_f32;
        for (at, (ours, theirs)) in ours.iter().flatten().zip(&theirs).enumerate() {
            assert!((ours - theirs).abs() <= tolerance, "{name} {at}: {ours}, not {theirs}");
            furthest = furthest.max((ours - theirs).abs() / largest);
        }
        println!("{name}: within {furthest:.2e} of the largest number");
    }
}

fn options(folder: &Path) -> EncoderOptions {
    EncoderOptions::new(folder, Device::Cpu(Cpu::new(2).unwrap()))
}

/// A copy of a golden folder with an `encoder.toml`.
struct Copy(tempfile::TempDir);

impl Copy {
    fn of(folder: &str, own: &str) -> Copy {
        let copy = Copy(tempfile::tempdir().unwrap());
        copy.add(folder, "");
        fs::write(copy.path().join("encoder.toml"), own).unwrap();
        copy
    }

    fn add(&self, folder: &str, below: &str) {
        let to = self.path().join(below);
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(common::goldens().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
            }
        }
    }

    fn remove(&self, file: &str) {
        fs::remove_file(self.path().join(file)).unwrap();
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

const TITLED: &str = r#"document = "TITLE: {title}\nTEXT: {text}""#;

/// PubMedBERT's way: means, cut to the first numbers, titled documents.
fn cut() -> Copy {
    let copy = Copy::of(
        "encoders/tiny-mean",
        &format!(
            "output = \"mean\"\nwidths = [4, 8]\nquery_tokens = 24\ndocument_tokens = 24\n{TITLED}"
        ),
    );
    copy.remove("modules.json");
    copy
}

/// MedCPT's way: two models, pairs, first states.
fn medcpt() -> Copy {
    let copy = Copy::of(
        "encoders/tiny-cls",
        "output = \"cls\"\npair = true\nquery_folder = \"query\"\nquery_tokens = 12\ndocument_tokens = 24",
    );
    copy.add("encoders/tiny-mean", "query");
    copy.remove("modules.json");
    copy
}

fn cross() -> Copy {
    let own = "output = \"one-logit\"\nquery_tokens = 24\ndocument_tokens = 24\n";
    Copy::of("retrieval/tiny-cross", &format!("{own}{TITLED}"))
}

fn qwen3() -> Copy {
    Copy::of(
        "retrieval/tiny-qwen3",
        "output = \"last-token\"\nnormalised = true\nquery_tokens = 512\ndocument_tokens = 512\n\
         query = \"Instruct: Given a web search query, retrieve relevant passages that answer the query\\nQuery:{query}\"",
    )
}

fn yes_no(goldens: &Goldens) -> Copy {
    let quoted = |name: &str| toml::Value::from(goldens.expected[name].as_str().unwrap());
    let own = format!(
        "output = \"yes-no\"\nquery_tokens = 200\ndocument_tokens = 200\nprefix = {}\nsuffix = {}\n\
         query = \"<Instruct>: Judge.\\n<Query>: {{query}}\\n\"\n\
         document = \"<Document>: {{title}}\\n{{text}}\"\nuntitled = \"<Document>: {{text}}\"",
        quoted("prefix"),
        quoted("suffix"),
    );
    Copy::of("retrieval/tiny-qwen3-reranker", &own)
}

fn gemma() -> PathBuf {
    common::goldens().join("retrieval/tiny-gemma")
}

#[test]
fn vectors_are_cut_to_their_first_numbers() {
    let (goldens, copy) = (Goldens::read(), cut());
    let narrow = EncoderOptions { dims: Some(8), ..options(copy.path()) };
    let encoder = Encoder::open(&narrow).unwrap();
    assert_eq!(encoder.width(), 8);
    goldens.check("cut.documents", &encoder.embed_documents(&goldens.documents()).unwrap());
    let queries = encoder.embed_queries(&goldens.queries()).unwrap();
    goldens.check("cut.queries", &queries.vectors);
    assert_eq!(queries.cut, [true, false, false, true]);
    let other = EncoderOptions { dims: Some(5), ..options(copy.path()) };
    let error = Encoder::open(&other).err().unwrap();
    assert!(
        error.to_string().ends_with("makes no vectors of 5 numbers; known: 4, 8, 16"),
        "{error}"
    );
    assert_eq!(error.blame(), Blame::Usage);
}

#[test]
fn documents_are_pairs_and_queries_have_a_model_of_their_own() {
    let (goldens, copy) = (Goldens::read(), medcpt());
    let encoder = Encoder::open(&options(copy.path())).unwrap();
    goldens.check("medcpt.documents", &encoder.embed_documents(&goldens.documents()).unwrap());
    let queries = encoder.embed_queries(&goldens.queries()).unwrap();
    goldens.check("medcpt.queries", &queries.vectors);
    assert!(encoder.identity().query_weights_sha256.is_some());
    fs::remove_dir_all(copy.path().join("query")).unwrap();
    let error = Encoder::open(&options(copy.path())).err().unwrap();
    assert!(error.to_string().contains("query"), "{error}");
}

#[test]
fn a_cross_encoder_gives_one_logit_a_pair() {
    let (goldens, copy) = (Goldens::read(), cross());
    let reranker = Reranker::open(&options(copy.path())).unwrap();
    assert!(reranker.is_one_logit());
    let scores = reranker.score(&goldens.pairs()).unwrap();
    goldens.check("cross", &scores.into_iter().map(|score| vec![score]).collect::<Vec<_>>());
}

#[test]
fn a_decoder_embeds_by_its_last_token() {
    let (goldens, copy) = (Goldens::read(), qwen3());
    let encoder = Encoder::open(&options(copy.path())).unwrap();
    goldens.check("qwen3.documents", &encoder.embed_documents(&goldens.documents()).unwrap());
    let queries = encoder.embed_queries(&goldens.queries()).unwrap();
    goldens.check("qwen3.queries", &queries.vectors);
}

#[test]
fn a_decoder_reranks_by_yes_against_no() {
    let goldens = Goldens::read();
    let copy = yes_no(&goldens);
    let reranker = Reranker::open(&options(copy.path())).unwrap();
    assert!(!reranker.is_one_logit());
    let scores = reranker.score(&goldens.pairs()).unwrap();
    goldens
        .check("qwen3-reranker", &scores.into_iter().map(|score| vec![score]).collect::<Vec<_>>());
}

#[test]
fn a_decoder_that_reads_both_ways_embeds_by_the_mean_and_two_layers() {
    let goldens = Goldens::read();
    let encoder = Encoder::open(&options(&gemma())).unwrap();
    let untitled: Vec<Document<'_>> =
        goldens.documents.iter().map(|(_, text)| Document { title: "", text }).collect();
    goldens.check("gemma.documents", &encoder.embed_documents(&untitled).unwrap());
    let queries = encoder.embed_queries(&goldens.queries()).unwrap();
    goldens.check("gemma.queries", &queries.vectors);
}

/// Batches of 1, 7 and 32, and one or three threads.
#[test]
fn no_bit_depends_on_the_batch_or_the_threads() {
    let goldens = Goldens::read();
    let texts: Vec<Document<'_>> = goldens.documents().into_iter().cycle().take(33).collect();
    let pairs: Vec<Pair<'_>> = goldens.pairs().into_iter().cycle().take(33).collect();
    let copies = [cut(), medcpt(), qwen3()];
    let folders = copies.iter().map(|copy| copy.path().to_owned()).chain([gemma()]);
    for folder in folders {
        let mut all = Vec::new();
        for (batch, threads) in [(33, 2), (1, 1), (7, 2), (32, 3)] {
            let device = Device::Cpu(Cpu::new(threads).unwrap());
            let encoder = Encoder::open(&EncoderOptions { device, ..options(&folder) }).unwrap();
            let vectors: Vec<Vec<f32>> = texts
                .chunks(batch)
                .flat_map(|texts| encoder.embed_documents(texts).unwrap())
                .collect();
            all.push(vectors);
        }
        assert!(all.iter().all(|vectors| *vectors == all[0]), "{}", folder.display());
    }
    for copy in [cross(), yes_no(&goldens)] {
        let reranker = Reranker::open(&options(copy.path())).unwrap();
        let together = reranker.score(&pairs).unwrap();
        for batch in [1, 7, 32] {
            let scores: Vec<f32> =
                pairs.chunks(batch).flat_map(|pairs| reranker.score(pairs).unwrap()).collect();
            assert_eq!(scores, together, "{batch}");
        }
    }
}

#[test]
fn narrow_weights_keep_the_order() {
    let (goldens, copy) = (Goldens::read(), qwen3());
    let wide = Encoder::open(&options(copy.path())).unwrap();
    let bf16 = WantedType::Exactly(StoredType::Bf16);
    let narrow = [
        EncoderOptions { dtype: bf16, ..options(copy.path()) },
        EncoderOptions { quantisation: Quantisation::Q8_0, ..options(copy.path()) },
    ];
    let exact = wide.embed_documents(&goldens.documents()).unwrap();
    for options in narrow {
        let encoder = Encoder::open(&options).unwrap();
        assert_ne!(encoder.identity(), wide.identity());
        for (ours, exact) in
            encoder.embed_documents(&goldens.documents()).unwrap().iter().zip(&exact)
        {
            let cosine: f32 = ours.iter().zip(exact).map(|(a, b)| a * b).sum();
            assert!(cosine > 0.995, "{cosine}");
        }
    }
}

#[test]
fn an_identity_says_what_vectors_depend_on() {
    let copy = cut();
    let open = |dims| Encoder::open(&EncoderOptions { dims, ..options(copy.path()) }).unwrap();
    let (whole, narrow) = (open(None), open(Some(4)));
    assert_eq!(whole.identity(), open(Some(16)).identity());
    let (whole, narrow) = (whole.identity().clone(), narrow.identity());
    assert!(!whole.normalised && narrow.normalised);
    assert_eq!((whole.dims, narrow.dims), (16, 4));
    let written = toml::to_string(&whole).unwrap();
    assert_eq!(toml::from_str::<wardround::encoder::EncoderIdentity>(&written).unwrap(), whole);
    let weights = copy.path().join("model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&weights, bytes).unwrap();
    assert_ne!(open(None).identity().weights_sha256, whole.weights_sha256);
}

fn refusal(copy: &Copy) -> EncoderError {
    Encoder::open(&options(copy.path())).err().unwrap()
}

#[test]
fn what_a_folder_does_not_say_is_asked_for() {
    let copy = cut();
    let own = copy.path().join("encoder.toml");
    for (text, named) in [
        ("output = \"mean\"\nquery_tokens = 24", "missing field `document_tokens`"),
        ("output = \"max\"\nquery_tokens = 24\ndocument_tokens = 24", "unknown variant `max`"),
        (
            "output = \"mean\"\nquery_tokens = 24\ndocument_tokens = 24\ndim = 3",
            "unknown field `dim`",
        ),
        ("output = \"mean\"\nquery_tokens = 0\ndocument_tokens = 24", "3 at least"),
        ("output = \"one-logit\"\nquery_tokens = 24\ndocument_tokens = 24", "is a reranker"),
        ("output = \"yes-no\"\nquery_tokens = 24\ndocument_tokens = 24", "is a reranker"),
    ] {
        fs::write(&own, text).unwrap();
        let error = refusal(&copy);
        assert!(error.to_string().contains(named), "{error}");
        assert!(error.blame() == Blame::Artefact && error.hint().is_some());
    }
    copy.remove("encoder.toml");
    let message = refusal(&copy).to_string();
    for field in ["`output`", "`query_tokens`", "`document_tokens`", "modules.json"] {
        assert!(message.contains(field), "{message}");
    }
    let cross = cross();
    assert!(refusal(&cross).to_string().contains("is a reranker"));
    let error = Reranker::open(&options(&gemma())).err().unwrap();
    assert!(error.to_string().contains("is an encoder"), "{error}");
    let decoder = qwen3();
    let own = "output = \"cls\"\nquery_tokens = 24\ndocument_tokens = 24";
    fs::write(decoder.path().join("encoder.toml"), own).unwrap();
    assert!(refusal(&decoder).to_string().contains("without the output `cls`"));
}
