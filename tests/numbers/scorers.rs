//! Learned metrics against bert-score and bleurt-pytorch on tiny random checkpoints of the true architectures.

use std::fs;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use serde_json::Value;
use wardround::diagnosis::{Blame, Diagnosis};
use wardround::encoder::EncoderError;
use wardround::scorers::{BertScore, BertScoreModel, Bleurt, sentence_pieces};

use crate::common;

fn folder() -> PathBuf {
    common::goldens().join("scorers")
}

fn expected() -> Value {
    common::golden::read(&folder().join("expected.json"))
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

fn case(name: &str) -> Value {
    let expected = expected();
    let cases = expected["cases"].as_array().unwrap();
    let case = cases.iter().find(|case| case["name"] == name).unwrap();
    // What the comparison can tell apart.
    let tolerance = expected["tolerance"].as_f64().unwrap();
    for (mistake, moves) in case["mistakes"].as_object().into_iter().flatten() {
        assert!(moves.as_f64().unwrap() > 5.0 * tolerance, "{mistake}");
    }
    case.clone()
}

fn pairs() -> Vec<(String, String)> {
    let pairs: Vec<(String, String)> = read(&expected()["pairs"]);
    assert!(pairs.len() >= 30);
    pairs
}

fn baseline() -> f64 {
    let [_, _, f] = read(&expected()["baseline"]);
    f
}

/// How the tiny checkpoint is to be read.
fn model(name: &str) -> BertScoreModel {
    let config = fs::read_to_string(folder().join(name).join("config.json")).unwrap();
    let config: Value = serde_json::from_str(&config).unwrap();
    let published = match name {
        "tiny-deberta" => BertScoreModel::ENGLISH,
        _ => BertScoreModel::MULTILINGUAL,
    };
    BertScoreModel {
        vocabulary: config["vocab_size"].as_u64().unwrap() as usize,
        layer: case(name)["layers"].as_u64().unwrap() as usize,
        baseline: None,
        ..published
    }
}

fn open(name: &str) -> BertScore {
    BertScore::load(&folder().join(name), &model(name)).unwrap()
}

#[test]
fn bertscore_tokens_equal_transformers() {
    for name in ["tiny-deberta", "tiny-bert"] {
        let (scorer, case) = (open(name), case(name));
        let ids: Vec<[Vec<u32>; 2]> = read(&case["ids"]);
        for ((reference, candidate), ids) in pairs().iter().zip(&ids) {
            assert_eq!(scorer.tokens(reference).unwrap(), ids[0], "{reference:?}");
            assert_eq!(scorer.tokens(candidate).unwrap(), ids[1], "{candidate:?}");
        }
    }
}

#[test]
fn states_equal_transformers() {
    let bytes = fs::read(folder().join("expected.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let chosen: Vec<usize> = read(&expected()["states"]);
    for name in ["tiny-deberta", "tiny-bert"] {
        let scorer = open(name);
        let mut furthest = 0.0_f32;
        for &index in &chosen {
            let (reference, candidate) = &pairs()[index];
            for (side, text) in [("reference", reference), ("candidate", candidate)] {
                let golden = tensors.tensor(&format!("{name}.{index}.{side}")).unwrap();
                let states = scorer.states(text).unwrap();
                assert_eq!([states.len(), states[0].len()], *golden.shape());
                let (numbers, _) = golden.data().as_chunks::<4>();
                let numbers = numbers.iter().copied().map(f32::from_le_bytes);
                for (ours, theirs) in states.iter().flatten().zip(numbers) {
                    assert!((ours - theirs).abs() <= 1e-5 * theirs.abs().max(1.0), "{text:?}");
                    furthest = furthest.max((ours - theirs).abs());
                }
            }
        }
        println!("{name}: states within {furthest:.2e}");
    }
}

#[test]
fn f_equals_bert_score() {
    for name in ["tiny-deberta", "tiny-bert"] {
        let case = case(name);
        let rescaled = BertScoreModel { baseline: Some(baseline()), ..model(name) };
        let rescaled = BertScore::load(&folder().join(name), &rescaled).unwrap();
        for (field, scorer) in [("raw", open(name)), ("rescaled", rescaled)] {
            let golden: Vec<[Option<f64>; 3]> = read(&case[field]);
            let scores = scorer.score(&pairs()).unwrap();
            assert_eq!(scores.len(), golden.len());
            let mut furthest = 0.0_f64;
            for ((score, golden), pair) in scores.iter().zip(&golden).zip(&pairs()) {
                // Where bert-score divides zero by zero.
                let theirs = golden[2].unwrap_or(match field {
                    "raw" => 0.0,
                    _ => *score,
                });
                let apart = (score - theirs).abs();
                assert!(apart <= 1e-5, "{field} {pair:?}: {score}, not {theirs}");
                furthest = furthest.max(apart);
            }
            println!("{name}: {field} scores within {furthest:.2e}");
        }
    }
}

#[test]
fn bleurt_equals_its_port() {
    let scorer = Bleurt::load(&folder().join("tiny-bleurt")).unwrap();
    let case = case("tiny-bleurt");
    let ids: Vec<Vec<u32>> = read(&case["ids"]);
    let types: Vec<Vec<u32>> = read(&case["types"]);
    for (at, (reference, candidate)) in pairs().iter().enumerate() {
        let tokens = scorer.tokens(reference, candidate).unwrap();
        assert_eq!(tokens, (ids[at].clone(), types[at].clone()), "{reference:?} {candidate:?}");
    }
    let golden: Vec<f64> = read(&case["scores"]);
    let scores = scorer.score(&pairs()).unwrap();
    assert_eq!(scores.len(), golden.len());
    let mut furthest = 0.0_f64;
    for (ours, theirs) in scores.iter().zip(&golden) {
        assert!((ours - theirs).abs() <= 1e-5, "{ours}, not {theirs}");
        furthest = furthest.max((ours - theirs).abs());
    }
    println!("tiny-bleurt: scores within {furthest:.2e}");
}

#[test]
fn pieces_equal_sentencepiece() {
    for name in ["pieces-bytes", "pieces-spaces"] {
        let pieces = sentence_pieces(&folder().join(format!("{name}.model")), &[]).unwrap();
        let golden: Vec<Vec<u32>> = read(&case(name)["ids"]);
        let texts = pairs();
        let texts = texts.iter().flat_map(|pair| [&pair.0, &pair.1]);
        for (text, golden) in texts.zip(&golden) {
            let encoding = pieces.encode(text.as_str(), false).unwrap();
            assert_eq!(encoding.get_ids(), *golden, "{name}: {text:?}");
        }
    }
}

#[test]
fn a_table_of_characters_that_is_damaged_is_refused_or_costs_its_text() {
    let copy = copy("tiny-bleurt");
    let path = copy.path().join("spm.model");
    let whole = fs::read(&path).unwrap();
    // The last field of bytes that is more than a kilobyte long: how long its trie is, the trie, replacements.
    let table = whole.windows(2).rposition(|pair| pair == b"\x12\xfa").unwrap() + 3;
    assert_eq!(whole[table..table + 4], 1024_u32.to_le_bytes());
    let damaged = |at: usize, word: u32| {
        let mut damaged = whole.clone();
        damaged[at..at + 4].copy_from_slice(&word.to_le_bytes());
        fs::write(&path, damaged).unwrap();
        Bleurt::load(copy.path())
    };
    let error = damaged(table, u32::MAX).err().unwrap().to_string();
    assert!(error.contains("precompiled_charsmap is damaged"), "{error}");
    let astray = damaged(table + 4, u32::MAX >> 1).unwrap();
    for text in ["a", "the spleen is enlarged"] {
        assert!(astray.tokens(text, "b").is_err(), "{text}");
    }
}

#[test]
fn no_bit_depends_on_the_pairs_beside() {
    let pairs = pairs();
    let scorer = open("tiny-deberta");
    let together = scorer.score(&pairs).unwrap();
    let mut reversed: Vec<_> = pairs.iter().rev().cloned().collect();
    reversed.extend(pairs.clone());
    let backwards = scorer.score(&reversed).unwrap();
    let bleurt = Bleurt::load(&folder().join("tiny-bleurt")).unwrap();
    let bleurts = bleurt.score(&pairs).unwrap();
    for (at, pair) in pairs.iter().enumerate() {
        assert_eq!(scorer.score(std::slice::from_ref(pair)).unwrap()[0], together[at]);
        assert_eq!(backwards[pairs.len() - 1 - at], together[at]);
        assert_eq!(backwards[pairs.len() + at], together[at]);
        assert_eq!(bleurt.score(std::slice::from_ref(pair)).unwrap()[0], bleurts[at]);
    }
    assert_eq!(scorer.score(&[]).unwrap(), [0.0; 0]);
    assert_eq!(bleurt.score(&[]).unwrap(), [0.0; 0]);
}

#[test]
fn pickles_of_before_pytorch_1_6_are_read_too() {
    let copy = copy("tiny-deberta");
    let older = copy.path().join("older.bin");
    let newer = copy.path().join("pytorch_model.bin");
    assert_ne!(fs::read(&older).unwrap()[..4], fs::read(&newer).unwrap()[..4]);
    let expected = open("tiny-deberta").score(&pairs()).unwrap();
    fs::rename(&older, &newer).unwrap();
    let load = || BertScore::load(copy.path(), &model("tiny-deberta"));
    assert_eq!(load().unwrap().score(&pairs()).unwrap(), expected);

    let whole = fs::read(&newer).unwrap();
    for length in [20, 1000, whole.len() / 2, whole.len() - 1] {
        fs::write(&newer, &whole[..length]).unwrap();
        let error = load().err().unwrap();
        assert!(error.to_string().contains("weights"), "{length}: {error}");
    }
}

fn copy(name: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(folder().join(name)).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    copy
}

/// Loads the checkpoint of `folder` as the tiny one called `name`.
fn refusal(name: &str, folder: &Path) -> EncoderError {
    match name {
        "tiny-bleurt" => Bleurt::load(folder).err().unwrap(),
        _ => BertScore::load(folder, &model(name)).err().unwrap(),
    }
}

#[test]
fn what_is_missing_is_named_with_its_card() {
    for (name, file, named, card) in [
        ("tiny-deberta", "config.json", "config.json is missing", "deberta-xlarge-mnli"),
        ("tiny-deberta", "vocab.json", "vocab.json is missing", "deberta-xlarge-mnli"),
        ("tiny-deberta", "merges.txt", "merges.txt is missing", "deberta-xlarge-mnli"),
        ("tiny-deberta", "pytorch_model.bin", "neither", "deberta-xlarge-mnli"),
        ("tiny-bert", "model.safetensors", "neither", "bert-base-multilingual-cased"),
        ("tiny-bleurt", "spm.model", "spm.model is missing", "bleurt-20"),
        ("tiny-bleurt", "pytorch_model.bin", "neither", "bleurt-20"),
    ] {
        let copy = copy(name);
        fs::remove_file(copy.path().join(file)).unwrap();
        let error = refusal(name, copy.path());
        let message = error.to_string();
        for part in [named, card, copy.path().to_str().unwrap()] {
            assert!(message.contains(part), "{part}: {message}");
        }
        let hint = error.hint().unwrap();
        assert!(hint.contains(&format!("wardround models fetch {card} --to DIR")), "{hint}");
        assert_eq!(error.blame(), Blame::Artefact);
    }
    let error = refusal("tiny-bleurt", Path::new("/no/such/folder"));
    assert!(error.to_string().contains("/no/such/folder"), "{error}");
    assert!(error.hint().unwrap().contains("models fetch bleurt-20 --to DIR"));
}

const HEADS: &str = "\"num_attention_heads\": 4";

#[test]
fn what_is_another_model_is_refused() {
    for (name, old, new, named) in [
        ("tiny-deberta", "\"deberta\"", "\"deberta-v2\"", "`model_type` is `deberta-v2`"),
        ("tiny-deberta", "c2p|p2c", "c2p", "`pos_att_type` is `c2p`"),
        ("tiny-deberta", "\"gelu\"", "\"gelu_new\"", "`hidden_act` is `gelu_new`"),
        (
            "tiny-deberta",
            "\"relative_attention\": true",
            "\"relative_attention\": false",
            "`relative_attention`",
        ),
        ("tiny-deberta", "\"num_hidden_layers\": 4", "\"num_hidden_layers\": 2", "not at least 3"),
        ("tiny-bert", "\"vocab_size\": ", "\"vocab_size\": 1", "`vocab_size`"),
        ("tiny-bleurt", "\"bleurt\"", "\"rembert\"", "`model_type` is `rembert`"),
        ("tiny-bleurt", "\"type_vocab_size\": 2", "\"type_vocab_size\": 1", "`type_vocab_size`"),
        ("tiny-bleurt", "\"embedding_size\": 8", "\"embedding_size\": 16", "pytorch_model.bin"),
        ("tiny-bert", HEADS, "\"num_attention_heads\": 0", "do not divide into 0 heads"),
        ("tiny-bleurt", HEADS, "\"num_attention_heads\": 0", "do not divide into 0 heads"),
        ("tiny-bleurt", HEADS, "\"num_attention_heads\": 3", "do not divide into 3 heads"),
        ("tiny-deberta", "\"hidden_size\": 16", "\"hidden_size\": 32", "pytorch_model.bin"),
    ] {
        let copy = copy(name);
        let path = copy.path().join("config.json");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(old), "{name}: {old}");
        // Read before the change: the shape that is asked for.
        let model = (name != "tiny-bleurt").then(|| model(name));
        fs::write(&path, text.replace(old, new)).unwrap();
        let error = match &model {
            Some(model) => BertScore::load(copy.path(), model).err(),
            None => Bleurt::load(copy.path()).err(),
        };
        let message = error.unwrap().to_string();
        assert!(message.contains(named), "{message}");
    }
}

#[test]
fn a_list_of_position_kinds_means_what_their_string_means() {
    let copy = copy("tiny-deberta");
    let path = copy.path().join("config.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"c2p|p2c\"", "[\"c2p\", \"p2c\"]")).unwrap();
    let scorer = BertScore::load(copy.path(), &model("tiny-deberta")).unwrap();
    let expected = open("tiny-deberta").score(&pairs()[5..9]).unwrap();
    assert_eq!(scorer.score(&pairs()[5..9]).unwrap(), expected);
}

#[test]
fn damaged_files_are_named() {
    for (name, file) in [
        ("tiny-deberta", "config.json"),
        ("tiny-deberta", "vocab.json"),
        ("tiny-deberta", "pytorch_model.bin"),
        ("tiny-bert", "tokenizer.json"),
        ("tiny-bert", "model.safetensors"),
        ("tiny-bleurt", "spm.model"),
        ("tiny-bleurt", "pytorch_model.bin"),
    ] {
        let copy = copy(name);
        let path = copy.path().join(file);
        let whole = fs::read(&path).unwrap();
        for damaged in [&whole[..whole.len() / 2], b""] {
            fs::write(&path, damaged).unwrap();
            let error = refusal(name, copy.path());
            assert!(error.to_string().contains(file), "{error}");
            assert_eq!(error.blame(), Blame::Artefact, "{error}");
        }
    }
}

#[test]
#[ignore = "needs WARDROUND_DEBERTA, a folder of deberta-xlarge-mnli"]
fn with_weights_deberta_finds_equal_texts_equal() {
    equal_texts_are_equal("WARDROUND_DEBERTA", &BertScoreModel::ENGLISH);
}

#[test]
#[ignore = "needs WARDROUND_BERT_MULTILINGUAL, a folder of bert-base-multilingual-cased"]
fn with_weights_multilingual_bert_finds_equal_texts_equal() {
    equal_texts_are_equal("WARDROUND_BERT_MULTILINGUAL", &BertScoreModel::MULTILINGUAL);
}

#[test]
#[ignore = "needs WARDROUND_BERT_CHINESE, a folder of bert-base-chinese"]
fn with_weights_chinese_bert_finds_equal_texts_equal() {
    equal_texts_are_equal("WARDROUND_BERT_CHINESE", &BertScoreModel::CHINESE);
}

fn equal_texts_are_equal(variable: &str, model: &BertScoreModel) {
    let directory = std::env::var_os(variable).expect(variable);
    let scorer = BertScore::load(Path::new(&directory), model).unwrap();
    for (pair, score) in pairs().iter().zip(scorer.score(&pairs()).unwrap()) {
        println!("{} {score:?}", model.card);
        if pair.0 == pair.1 && !pair.0.is_empty() {
            assert!((score - 1.0).abs() < 1e-4);
        }
    }
}

#[test]
#[ignore = "needs WARDROUND_BLEURT_D12, a folder of bleurt-20-d12"]
fn with_weights_bleurt_20_d12_scores_as_its_port_says() {
    let directory = std::env::var_os("WARDROUND_BLEURT_D12").expect("WARDROUND_BLEURT_D12");
    // The example of bleurt-pytorch's own page.
    let pairs = [
        ("a bird chirps by the window", "a bird chirps by the window"),
        ("this is a random sentence", "this looks like a random sentence"),
    ];
    let pairs = pairs.map(|(reference, candidate)| (reference.to_owned(), candidate.to_owned()));
    let scorer = Bleurt::load(Path::new(&directory)).unwrap();
    let scores = scorer.score(&pairs).unwrap();
    for (ours, theirs) in scores.iter().zip([0.960_441_4, 0.808_005_0]) {
        assert!((ours - theirs).abs() < 1e-4, "{ours}, not {theirs}");
    }
}
