//! What is downloaded: checkpoints, their tokenizers and templates, encoders and scorers.

use std::path::Path;

use wardround::chat::{ChatTemplate, Message};
use wardround::encoder::{Document, Encoder, EncoderOptions, Pair, Reranker};
use wardround::generation::Generation;
use wardround::hub::CheckpointFiles;
use wardround::hub::gguf::import;
use wardround::model::{Config, Family};
use wardround::ops::checkpoint::Checkpoint;
use wardround::ops::{Cpu, Device};
use wardround::scorers::Bleurt;
use wardround::tokenizer::Tokenizer;

use super::damage::{damaged, damaged_text, withstands};
use crate::common::{goldens, synthetic};

pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &to),
            false => drop(std::fs::copy(&path, &to).unwrap()),
        }
    }
}

/// The first `length` bytes of a file.
fn beginning(path: &Path, length: usize) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap();
    bytes.truncate(length);
    bytes
}

#[test]
fn weights() {
    let file = goldens().join("scorers/tiny-bert/model.safetensors");
    let whole = std::fs::read(&file).unwrap();
    let header = u64::from_le_bytes(whole[..8].try_into().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    // Mostly headers: they are what is parsed.
    let good = [beginning(&file, header as usize + 2000), whole];
    withstands("safetensors", damaged(good), |bytes| {
        std::fs::write(&path, bytes).unwrap();
        if let Ok(checkpoint) = Checkpoint::open(std::slice::from_ref(&path)) {
            let _ = checkpoint.get("embeddings.LayerNorm.bias", &[32]);
        }
    });
}

#[test]
fn indexes_of_shards() {
    let good = r#"{"metadata": {"total_size": 12}, "weight_map": {"a.weight": "model-00001-of-00002.safetensors", "b.weight": "model-00002-of-00002.safetensors"}}"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors.index.json");
    withstands("index of shards", damaged([good]), |bytes| {
        std::fs::write(&path, bytes).unwrap();
        let _ = CheckpointFiles::find(folder.path());
    });
}

#[test]
fn configurations() {
    let families = Family::ALL.map(synthetic);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    let good = families.iter().map(|family| std::fs::read(family.join("config.json")).unwrap());
    withstands("config.json", damaged(good), |bytes| {
        std::fs::write(&path, bytes).unwrap();
        let _ = Config::read(&path);
    });
    let good =
        families.iter().map(|family| std::fs::read(family.join("generation_config.json")).unwrap());
    withstands("generation_config.json", damaged(good), |bytes| {
        std::fs::write(&path, bytes).unwrap();
        let _ = Generation::read(Some(&path), &[1]);
    });
}

#[test]
fn chat_templates() {
    let families = Family::ALL.map(synthetic);
    let good = families.iter().map(|family| template(family)).chain(published_templates());
    let folder = tempfile::tempdir().unwrap();
    let messages = ["system", "user", "assistant", "user"]
        .map(|role| Message::new(role, format!("What the {role} says.")));
    withstands("chat template", damaged_text(good), |text| {
        std::fs::write(folder.path().join("chat_template.jinja"), text).unwrap();
        if let Ok(template) = ChatTemplate::load(folder.path()) {
            for thinking in [false, true] {
                let _ = template.render(&messages, thinking);
            }
        }
    });
}

/// Those of a folder that is not ours, where there is one.
fn published_templates() -> Vec<String> {
    let folder = std::env::var_os("WARDROUND_TEMPLATES");
    let entries = folder.into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| path.extension().is_some_and(|end| end == "jinja"));
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

fn template(folder: &Path) -> String {
    let alone = folder.join("chat_template.jinja");
    if alone.exists() {
        return std::fs::read_to_string(alone).unwrap();
    }
    let config = crate::common::golden::read(&folder.join("tokenizer_config.json"));
    config["chat_template"].as_str().unwrap().to_owned()
}

#[test]
fn tokenizers() {
    let good = ["scorers/tiny-bert", "encoders/tiny-mean"]
        .map(|name| std::fs::read(goldens().join(name).join("tokenizer.json")).unwrap());
    let bytes = std::fs::read(synthetic(Family::Llama).join("tokenizer.json")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    withstands("tokenizer.json", damaged(good.into_iter().chain([bytes])), |bytes| {
        std::fs::write(&path, bytes).unwrap();
        if let Ok(tokenizer) = Tokenizer::load(&path) {
            let ids = tokenizer.encode("Vitamin B12, 38.5 °C; 你好").unwrap_or_default();
            let _ = tokenizer.decode(&ids);
        }
    });
}

/// Damages one file of a folder after another, and opens the folder.
fn folder_withstands(from: &Path, files: &[&'static str], open: impl Fn(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        copy(from, folder.path());
        let good = std::fs::read(from.join(file)).unwrap();
        withstands(file, damaged([good]), |bytes| {
            std::fs::write(folder.path().join(file), bytes).unwrap();
            open(folder.path());
        });
    }
}

#[test]
fn encoders() {
    for (name, weights) in [("tiny-mean", "model.safetensors"), ("tiny-cls", "pytorch_model.bin")] {
        let files = ["config.json", "encoder.toml", weights];
        folder_withstands(&goldens().join("encoders").join(name), &files, |folder| {
            if let Ok(encoder) = crate::common::open_encoder(folder) {
                let _ = encoder.embed(&["One.", "Two of them."]);
            }
        });
    }
}

/// What retrieval takes, with prompts and widths.
#[test]
fn encoders_and_rerankers_with_a_table_of_their_own() {
    let device = Device::Cpu(Cpu::new(2).unwrap());
    let options = |folder: &Path| EncoderOptions::new(folder, device.clone());
    let embed = |folder: &Path| {
        if let Ok(encoder) = Encoder::open(&options(folder)) {
            let document = Document { title: "Croup", text: "A barking cough." };
            let _ = encoder.embed_documents(&[document]);
            let _ = encoder.embed_queries(&["croup", ""]);
        }
    };
    let table = |output: &str| {
        format!(
            "output = \"{output}\"\nquery = \"{{query}}\"\ndocument = \"T: {{title}}\\n{{text}}\"\n\
             query_tokens = 64\ndocument_tokens = 64\nwidths = [4, 8]"
        )
    };
    let with_table = |name: &str, output: &str| {
        let folder = tempfile::tempdir().unwrap();
        copy(&goldens().join(name), folder.path());
        std::fs::write(folder.path().join("encoder.toml"), table(output)).unwrap();
        folder
    };
    let encoder = with_table("encoders/tiny-mean", "mean");
    folder_withstands(encoder.path(), &["encoder.toml", "config.json"], embed);
    let reranker = with_table("retrieval/tiny-cross", "one-logit");
    folder_withstands(reranker.path(), &["encoder.toml", "config.json"], |folder| {
        if let Ok(reranker) = Reranker::open(&options(folder)) {
            let _ = reranker.score(&[Pair { query: "croup", title: "", text: "A barking cough." }]);
        }
    });
}

#[test]
fn scorers_with_sentence_pieces() {
    let files = ["config.json", "spm.model", "pytorch_model.bin"];
    folder_withstands(&goldens().join("scorers/tiny-bleurt"), &files, |folder| {
        if let Ok(bleurt) = Bleurt::load(folder) {
            let _ = bleurt.score(&[("a bird".to_owned(), "a bird sings".to_owned())]);
        }
    });
}

/// What ten minutes of damaged bytes found: a whole number of sixteen bytes where there was one of one.
#[test]
fn a_pickle_with_a_number_beyond_eight_bytes_is_refused() {
    let from = goldens().join("scorers/tiny-bleurt");
    let folder = tempfile::tempdir().unwrap();
    copy(&from, folder.path());
    let mut bytes = std::fs::read(from.join("pytorch_model.bin")).unwrap();
    let small = bytes.windows(2).position(|pair| pair == b"K\x10").unwrap();
    bytes[small] = 0x8a;
    std::fs::write(folder.path().join("pytorch_model.bin"), bytes).unwrap();
    let error = Bleurt::load(folder.path()).err().unwrap().to_string();
    assert!(error.contains("pytorch_model.bin"), "{error}");
}

/// As PyTorch wrote them before 1.6: behind a magic number.
#[test]
fn pickles_that_double_or_nest_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    copy(&goldens().join("scorers/tiny-bleurt"), folder.path());
    let mut doubles = b"\x80\x02X\x02\0\0\0abq\0".to_vec();
    for place in 0..39 {
        doubles.extend([b'h', place, b'h', place, 0x86, b'q', place + 1]);
    }
    doubles.push(b'.');
    let nests = [b"\x80\x02N".as_slice(), &[0x85; 2_000_000], b"."].concat();
    super::lost();
    for pickle in [doubles, nests] {
        let magic = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.".as_slice();
        std::fs::write(folder.path().join("pytorch_model.bin"), [magic, &pickle].concat()).unwrap();
        let error = Bleurt::load(folder.path()).err().unwrap().to_string();
        assert!(error.contains("reading the pickle would need more than 68 MB"), "{error}");
    }
}

#[test]
fn gguf_files() {
    let cases = crate::common::gguf::index().cases;
    let longest = cases.iter().map(|case| case.whole().len()).max().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (path, directory) = (folder.path().join("model.gguf"), folder.path().join("model"));
    withstands("GGUF", damaged(cases.iter().map(|case| case.head())), |mut bytes| {
        // Numbers enough for every tensor, so that what follows the header is reached.
        bytes.resize(bytes.len().next_multiple_of(32) + longest, 0);
        std::fs::write(&path, bytes).unwrap();
        match import(&path, &directory) {
            Ok(()) => std::fs::remove_dir_all(&directory).unwrap(),
            Err(_) => assert!(!directory.exists()),
        }
    });
}
