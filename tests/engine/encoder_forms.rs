//! Encoders and rerankers in every form that retrieval takes, against sentence-transformers and transformers: tiny random
//! ones of the true architecture, whole, in any batch, and as what they are not.

use std::fs;
use std::path::Path;

use wardround::diagnosis::{Blame, Diagnosis};
use wardround::encoder::{Document, Encoder, EncoderError, EncoderOptions, Reranker};
use wardround::model::WantedType;
use wardround::ops::{Cpu, Device, Quantisation, StoredType};

use crate::common::goldens;
use crate::common::retrieval::{Copy, Goldens, asking, cross, cut, medcpt};

fn options(folder: &Path) -> EncoderOptions {
    EncoderOptions::new(folder, Device::Cpu(Cpu::new(2).unwrap()))
}

#[test]
fn vectors_are_cut_to_their_first_numbers() {
    let (goldens, copy) = (Goldens::read(), cut());
    let narrow = EncoderOptions { dims: Some(8), ..options(copy.path()) };
    let encoder = Encoder::open(&narrow).unwrap();
    assert_eq!(encoder.identity.dims, 8);
    let queries = goldens.check_encoder("cut", &encoder);
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
    goldens.check_encoder("medcpt", &encoder);
    assert!(encoder.identity.query_weights_sha256.is_some());
    fs::remove_dir_all(copy.path().join("query")).unwrap();
    let error = Encoder::open(&options(copy.path())).err().unwrap();
    assert!(error.to_string().contains("query"), "{error}");
}

#[test]
fn a_cross_encoder_gives_one_logit_a_pair() {
    let (goldens, copy) = (Goldens::read(), cross());
    let reranker = Reranker::open(&options(copy.path())).unwrap();
    goldens.check_reranker(&reranker);
}

#[test]
fn queries_and_documents_have_prompts() {
    let copy = asking();
    let mean = crate::common::open_encoder(&goldens().join("encoders/tiny-mean")).unwrap();
    let expected = mean.embed(&["query: croup", "passage: croup"]).unwrap();
    let encoder = crate::common::open_encoder(copy.path()).unwrap();
    assert_eq!(encoder.embed_queries(&["croup"]).unwrap().vectors, expected[..1]);
    let document = Document { title: "", text: "croup" };
    assert_eq!(encoder.embed_documents(&[document]).unwrap(), expected[1..]);
}

/// One, two or three threads.
#[test]
fn no_bit_depends_on_the_batch_or_the_threads() {
    Goldens::read().assert_no_bit_depends_on_the_batch(&|folder, threads| {
        EncoderOptions::new(folder, Device::Cpu(Cpu::new(threads).unwrap()))
    });
}

/// Of two documents whose cosines with a query differ by more than rounding to bf16 moves them.
#[test]
fn bf16_ranks_documents_as_f32_does() {
    const CLOSE: f32 = 0.01;
    let (goldens, copy) = (Goldens::read(), cut());
    let cosines = |stored| {
        let dtype = WantedType::Exactly(stored);
        let options = EncoderOptions { dtype, dims: Some(8), ..options(copy.path()) };
        let encoder = Encoder::open(&options).unwrap();
        let documents = encoder.embed_documents(&goldens.documents()).unwrap();
        let queries = encoder.embed_queries(&goldens.queries()).unwrap().vectors;
        let cosine = |query: &Vec<f32>, document: &Vec<f32>| -> f32 {
            query.iter().zip(document).map(|(a, b)| a * b).sum()
        };
        let of_query = |query| documents.iter().map(|one| cosine(query, one)).collect::<Vec<_>>();
        queries.iter().map(of_query).collect::<Vec<Vec<f32>>>()
    };
    let (exact, narrow) = (cosines(StoredType::F32), cosines(StoredType::Bf16));
    assert_ne!(exact, narrow);
    let (mut compared, mut close) = (0, 0);
    for (exact, narrow) in exact.iter().zip(&narrow) {
        for (one, other) in (0..exact.len()).flat_map(|one| (0..one).map(move |other| (one, other)))
        {
            let distance = exact[one] - exact[other];
            if distance.abs() <= CLOSE {
                close += 1;
                continue;
            }
            compared += 1;
            let found = narrow[one] - narrow[other];
            assert!(
                found.signum() == distance.signum(),
                "{one} and {other}: {found}, not {distance}"
            );
        }
    }
    assert!(close * 4 < compared, "{close} of {compared} are too close to rank");
}

#[test]
fn narrow_weights_keep_the_order() {
    let (goldens, copy) = (Goldens::read(), cut());
    // Cut, they have length 1.
    let options = || EncoderOptions { dims: Some(8), ..options(copy.path()) };
    let wide = Encoder::open(&options()).unwrap();
    let bf16 = WantedType::Exactly(StoredType::Bf16);
    let narrow = [
        EncoderOptions { dtype: bf16, ..options() },
        EncoderOptions { quantisation: Quantisation::Q8_0, ..options() },
    ];
    let exact = wide.embed_documents(&goldens.documents()).unwrap();
    for options in narrow {
        let encoder = Encoder::open(&options).unwrap();
        assert_ne!(encoder.identity, wide.identity);
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
    assert_eq!(whole.identity, open(Some(16)).identity);
    let (whole, narrow) = (whole.identity.clone(), &narrow.identity);
    assert!(!whole.normalised && narrow.normalised);
    assert_eq!((whole.dims, narrow.dims), (16, 4));
    let written = toml::to_string(&whole).unwrap();
    assert_eq!(toml::from_str::<wardround::encoder::EncoderIdentity>(&written).unwrap(), whole);
    let weights = copy.path().join("model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&weights, bytes).unwrap();
    assert_ne!(open(None).identity.weights_sha256, whole.weights_sha256);
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
    ] {
        fs::write(&own, text).unwrap();
        let error = refusal(&copy);
        assert!(error.to_string().contains(named), "{error}");
        assert!(error.blame() == Blame::Artefact && error.hint().is_some());
    }
    fs::remove_file(&own).unwrap();
    let message = refusal(&copy).to_string();
    for field in ["`output`", "`query_tokens`", "`document_tokens`", "encoder.toml"] {
        assert!(message.contains(field), "{message}");
    }
    let config = copy.path().join("config.json");
    let other = fs::read_to_string(&config).unwrap().replace("\"bert\"", "\"qwen3\"");
    fs::write(config, other).unwrap();
    assert!(refusal(&copy).to_string().contains("`model_type` is `qwen3`, not bert"));
    let cross = cross();
    assert!(refusal(&cross).to_string().contains("is a reranker"));
    let error = Reranker::open(&options(asking().path())).err().unwrap();
    assert!(error.to_string().contains("is an encoder"), "{error}");
}
