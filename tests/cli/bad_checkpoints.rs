//! Models that are broken or beyond what the decoder runs: refused by name, before a line is written.

use std::path::Path;

use serde_json::{Value, json};
use wardround::model::Family;

use crate::binary::{Outcome, Scratch};

/// Runs a question on a tiny Llama that `harm` was done to.
fn run_harmed(harm: impl Fn(&Path)) -> (Scratch, Outcome) {
    let scratch = Scratch::new();
    scratch.questions(1);
    harm(&scratch.model(Family::Llama));
    let outcome = scratch.run_one("out", "");
    (scratch, outcome)
}

/// The same, refused before the run directory was made.
#[track_caller]
fn refused(harm: impl Fn(&Path), parts: &[&str]) {
    let (scratch, outcome) = run_harmed(harm);
    outcome.refused(3, parts);
    assert!(!scratch.path("out").exists());
}

fn set(model: &Path, field: &str, value: Value) {
    let path = model.join("config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config[field] = value;
    std::fs::write(path, config.to_string()).unwrap();
}

fn change_weights(model: &Path, change: impl Fn(&mut Vec<u8>)) {
    let path = model.join("model.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_file_that_is_missing() {
    let remove =
        |name: &'static str| move |model: &Path| std::fs::remove_file(model.join(name)).unwrap();
    let whole = "hint: copy or fetch the whole of the model's repository";
    refused(
        remove("model.safetensors"),
        &["llama has no weights: neither model.safetensors nor", whole],
    );
    refused(remove("config.json"), &["llama lacks config.json", whole]);
    refused(remove("tokenizer.json"), &["llama lacks tokenizer.json", whole]);
    refused(
        remove("chat_template.jinja"),
        &[
            "no chat template in ",
            "neither chat_template.jinja, chat_template.json nor tokenizer_config.json",
        ],
    );
}

#[test]
fn a_shard_that_is_missing() {
    let shard = |model: &Path| {
        std::fs::remove_file(model.join("model.safetensors")).unwrap();
        let index = json!({"weight_map": {"a": "model-00001-of-00002.safetensors"}});
        std::fs::write(model.join("model.safetensors.index.json"), index.to_string()).unwrap();
    };
    refused(shard, &["llama lacks model-00001-of-00002.safetensors"]);
}

#[test]
fn weights_that_are_cut_short_or_corrupt() {
    let again = "hint: the file is damaged or cut short: copy or fetch it again";
    let unsound = "llama/model.safetensors is not a sound safetensors file: ";
    let cuts: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes.truncate(bytes.len() - 1),
        |bytes| bytes.truncate(4),
        |bytes| bytes.clear(),
        |bytes| bytes[..8].fill(0xff),
    ];
    for cut in cuts {
        refused(|model| change_weights(model, cut), &[unsound, again]);
    }
}

#[test]
fn a_tensor_of_another_shape_or_none_at_all() {
    let (_, outcome) = run_harmed(|model| set(model, "intermediate_size", json!(96)));
    outcome.refused(
        3,
        &[
            "tensor `model.layers.0.mlp.gate_proj.weight` in ",
            "llama/model.safetensors has shape [128, 64], but config.json asks for [96, 64]",
            "hint: config.json and the weights are not of one model",
        ],
    );
    let (_, outcome) = run_harmed(|model| set(model, "num_hidden_layers", json!(4)));
    outcome.refused(3, &["no tensor `model.layers.3.", "llama/model.safetensors"]);
    refused(
        |model| set(model, "vocab_size", json!(9)),
        &["tensor `model.embed_tokens.weight`", "[9, 64]"],
    );
}

#[test]
fn an_architecture_or_a_field_that_the_decoder_does_not_run() {
    let mistral = |model: &Path| set(model, "architectures", json!(["MistralForCausalLM"]));
    refused(
        mistral,
        &[
            "llama/config.json: `architectures` is ",
            "MistralForCausalLM",
            "known: Gemma3ForConditionalGeneration",
        ],
    );
    let cannot = "which wardround cannot run";
    for (field, value, shown) in [
        ("attention_bias", json!(true), "`attention_bias` is true"),
        ("hidden_act", json!("gelu_new"), "`hidden_act` is "),
        ("rope_scaling", json!({"rope_type": "longrope", "factor": 4.0}), "longrope"),
    ] {
        refused(|model| set(model, field, value.clone()), &["llama/config.json: ", shown, cannot]);
    }
    refused(|model| set(model, "num_attention_heads", Value::Null), &["`num_attention_heads`"]);
}

#[test]
fn a_file_that_is_no_json() {
    for (name, message) in [
        ("config.json", "llama/config.json: EOF"),
        ("tokenizer.json", "cannot read "),
        ("tokenizer_config.json", "llama/tokenizer_config.json: EOF"),
        ("generation_config.json", "llama/generation_config.json: EOF"),
    ] {
        refused(|model| std::fs::write(model.join(name), "{").unwrap(), &[message, name]);
    }
}

#[test]
fn a_chat_template_that_does_not_compile() {
    let broken =
        |model: &Path| std::fs::write(model.join("chat_template.jinja"), "a\n{% if %}").unwrap();
    refused(
        broken,
        &["the chat template of ", "llama/chat_template.jinja does not compile: ", "(line 2)"],
    );
}

#[test]
fn a_chat_template_that_refuses_the_messages() {
    let picky = "{{ raise_exception('no system role, please') }}";
    let (_, outcome) =
        run_harmed(|model| std::fs::write(model.join("chat_template.jinja"), picky).unwrap());
    outcome.refused(
        1,
        &[
            "1 of 1 item errored, the first of them q1: the chat template of ",
            "refuses these messages: no system role, please",
        ],
    );
}

/// Makes the first number of the final norm a NaN.
fn break_final_norm(model: &Path) {
    change_weights(model, |bytes| {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        let tensor = &header["model.norm.weight"];
        let start = 8 + length + tensor["data_offsets"][0].as_u64().unwrap() as usize;
        let nan = match tensor["dtype"].as_str().unwrap() {
            "F32" => f32::NAN.to_le_bytes().to_vec(),
            _ => vec![0xc0, 0x7f],
        };
        bytes[start..start + nan.len()].copy_from_slice(&nan);
    });
}

#[test]
fn numbers_that_are_not_finite_are_an_error_of_the_item_and_of_every_command() {
    let (scratch, run) = run_harmed(break_final_norm);
    let broken =
        "the model llama computed numbers that are not finite (NaN or infinity) at position";
    run.refused(1, &["1 of 1 item errored", broken]);
    let items = std::fs::read_to_string(scratch.path("out").join("items.jsonl")).unwrap();
    assert!(items.contains("not finite"), "{items}");
    for command in [
        "generate --model llama --prompt Hello --max-tokens 3",
        "generate --model llama --prompt Hello --max-tokens 3 --temperature 0",
        "generate --logits --model llama --tokens 3,4,5",
    ] {
        let outcome = scratch.wardround(command);
        outcome.refused(3, &[broken]);
        assert!(!outcome.stderr.contains("schema"), "{outcome:#?}");
    }
}

#[test]
fn temperatures_and_penalties_beyond_what_numbers_hold_are_defined_or_refused() {
    let scratch = Scratch::new();
    scratch.model(Family::Llama);
    let generate = |more: &str| {
        scratch.wardround(format!(
            "generate --model llama --prompt Hello --max-tokens 5 --json {more}"
        ))
    };
    let greedy = generate("--temperature 0");
    for temperature in ["1e-38", "1e-6"] {
        let outcome = generate(&format!("--temperature {temperature}"));
        assert_eq!(outcome.succeeded().stdout, greedy.succeeded().stdout);
    }
}

#[test]
fn a_head_of_its_own_is_used_and_said_though_the_config_ties_it() {
    let scratch = Scratch::new();
    let model = scratch.model(Family::Llama);
    let generate =
        || scratch.wardround("generate --model llama --prompt Hello --max-tokens 4 --json");
    let untied = generate();
    assert!(!untied.succeeded().stderr.contains("lm_head"));
    let path = model.join("model.safetensors");
    let bytes = std::fs::read(&path).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let is_tied = !tensors.names().iter().any(|name| name.contains("lm_head"));
    let table = tensors.tensor("model.embed_tokens.weight").unwrap();
    let (shape, dtype) = (table.shape().to_vec(), table.dtype());
    let reversed: Vec<u8> = {
        let row = table.data().len() / shape[0];
        table.data().chunks(row).rev().flatten().copied().collect()
    };
    for (head, differs) in [(table.data(), false), (&reversed, true)] {
        let view = safetensors::tensor::TensorView::new(dtype, shape.clone(), head).unwrap();
        let mut all: Vec<(String, safetensors::tensor::TensorView)> = tensors.tensors();
        all.retain(|(name, _)| name != "lm_head.weight");
        all.push(("lm_head.weight".to_owned(), view));
        safetensors::serialize_to_file(all, None, &path).unwrap();
        set(&model, "tie_word_embeddings", json!(true));
        let outcome = generate();
        let said = outcome.succeeded().stderr.contains("lm_head.weight differs from it");
        assert_eq!(said, differs, "{outcome:#?}");
        if is_tied {
            assert_eq!(outcome.stdout == untied.stdout, !differs, "{outcome:#?}");
        }
    }
}

#[test]
fn a_gguf_file_becomes_a_model_and_nothing_becomes_of_a_damaged_one() {
    let scratch = Scratch::new();
    let case = crate::common::gguf::index().cases.swap_remove(2);
    let mut whole = case.whole();
    scratch.write("model.gguf", &whole);
    let imported = scratch.wardround("models import model.gguf imported");
    assert_eq!(imported.succeeded().stdout, "imported\n");
    let verified = scratch.wardround("models verify imported");
    assert!(verified.succeeded().stdout.contains("qwen3, 3 layers"), "{verified:#?}");
    assert!(verified.stdout.contains("chat template"), "{verified:#?}");
    let written = scratch.wardround("generate --model imported --prompt pain --max-tokens 4");
    assert!(!written.succeeded().stdout.is_empty());
    let again = scratch.wardround("models import model.gguf imported --quiet");
    again.refused(2, &["imported exists and is not an empty directory: choose a new one"]);
    whole.pop();
    scratch.write("model.gguf", whole);
    let damaged = scratch.wardround("models import model.gguf other");
    damaged.refused(3, &["tensor needs", "remaining in file", "hint: take another file"]);
    let names =
        std::fs::read_dir(scratch.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!names.into_iter().any(|name| name.to_string_lossy().contains("other")));
}

#[test]
fn a_configuration_that_is_longer_than_any_is_not_summed_first() {
    let scratch = Scratch::new();
    scratch.model(Family::Llama);
    let config = std::fs::OpenOptions::new().write(true).open(scratch.path("llama/config.json"));
    // Of holes: reading all of it would take minutes.
    config.unwrap().set_len(40 << 30).unwrap();
    scratch
        .wardround("models verify llama")
        .refused(3, &["llama/config.json", "it is longer than 67108864 bytes"]);
}
