//! GGUF files against gguf-py: numbers of blocks, and golden checkpoints that go the way to llama.cpp and back.

use std::path::Path;

use candle_core::Device;
use candle_core::quantized::GgmlDType;
use candle_core::quantized::ggml_file::qtensor_from_ggml;
use safetensors::SafeTensors;
use wardround::generation::Generation;
use wardround::hub::gguf::import;
use wardround::hub::{HubOptions, Status, resolve, verify};
use wardround::model::Config;
use wardround::tokenizer::Tokenizer;

use crate::common::gguf::index;
use crate::common::golden::cases;
use crate::common::{self, goldens};

#[test]
fn blocks_of_every_type_are_the_numbers_that_ggufs_own_reader_gives() {
    let bytes = std::fs::read(goldens().join("gguf/blocks.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let kinds = [
        (0, GgmlDType::F32),
        (1, GgmlDType::F16),
        (2, GgmlDType::Q4_0),
        (3, GgmlDType::Q4_1),
        (6, GgmlDType::Q5_0),
        (7, GgmlDType::Q5_1),
        (8, GgmlDType::Q8_0),
        (10, GgmlDType::Q2K),
        (11, GgmlDType::Q3K),
        (12, GgmlDType::Q4K),
        (13, GgmlDType::Q5K),
        (14, GgmlDType::Q6K),
        (30, GgmlDType::BF16),
    ];
    assert_eq!(kinds.len(), tensors.len() / 2);
    for (id, kind) in kinds {
        let blocks = tensors.tensor(&format!("{id}.blocks")).unwrap();
        let expected = tensors.tensor(&format!("{id}.numbers")).unwrap();
        assert_eq!(blocks.shape()[1], kind.type_size(), "{kind:?}");
        let shape = vec![blocks.shape()[0], kind.block_size()];
        // candle wants the blocks where their numbers may lie.
        let own = blocks.data().to_vec();
        let read = qtensor_from_ggml(kind, &own, shape, &Device::Cpu).unwrap();
        let read = read.dequantize(&Device::Cpu).unwrap().flatten_all().unwrap();
        let numbers = read.to_vec1::<f32>().unwrap();
        let found: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        assert!(found == expected.data(), "{kind:?}");
    }
}

#[test]
fn an_imported_model_has_the_bits_and_the_tokens_of_the_one_it_was_converted_from() {
    let index = index();
    for case in &index.cases {
        let folder = tempfile::tempdir().unwrap();
        let (file, directory) = (folder.path().join("x.gguf"), folder.path().join("model"));
        case.write(&file);
        import(&file, &directory).unwrap();
        let golden = cases().into_iter().find(|golden| golden.name == case.name).unwrap();
        let read = |directory: &Path| Config::read(&directory.join("config.json")).unwrap();
        let (ours, theirs) = (read(&directory), read(&golden.directory));
        assert_eq!(Config { eos_ids: theirs.eos_ids.clone(), ..ours }, theirs, "{}", case.name);
        let expected = golden.ours();
        let imported = common::golden::Golden { directory: directory.clone(), ..golden };
        assert!(imported.ours() == expected, "{}", case.name);
        imported.check(&expected);
        let tokenizer = Tokenizer::load(&directory.join("tokenizer.json")).unwrap();
        for (text, ids) in index.texts.iter().zip(&case.ids) {
            assert_eq!(tokenizer.encode_with(text, true).unwrap(), *ids, "{}: {text:?}", case.name);
        }
        let generation = |directory: &Path| {
            let path = directory.join("generation_config.json");
            let mut generation = Generation::read(Some(&path), &[]).unwrap();
            generation.eos_ids.sort_unstable();
            generation
        };
        let published = goldens().join("models").join(&case.name);
        let (ours, theirs) = (generation(&directory), generation(&published));
        assert_eq!(ours.eos_ids, theirs.eos_ids, "{}", case.name);
        let options = HubOptions::from_lookup(|_| None).unwrap().local();
        let checks = verify(&resolve(directory.to_str().unwrap(), &options).unwrap()).unwrap();
        assert!(checks.iter().all(|check| matches!(check.status, Status::Ok(_))), "{checks:?}");
        assert!(checks.len() >= 5, "{checks:?}");
    }
}
