//! Gemma 3's: windows, stretched positions, scales, norms, two ends and no system turn.

use serde_json::json;
use wardround::generation::Generation;
use wardround::model::config::{RopeConfig, RopeScaling};
use wardround::model::{Config, Family, WantedType};
use wardround::ops::StoredType;

use super::{Chat, chat, every_eos_ends, goldens_expose, message, published, published_chat};
use crate::common::golden;
use crate::common::{self, tokens};

#[test]
fn trap_01_gemma_slides_five_layers_in_six_and_a_window_counts_its_own_position() {
    goldens_expose(
        1,
        &[
            "global attention every fifth layer",
            "layer_types ignored, pattern 6 assumed",
            "sliding_window_pattern ignored",
            "window off",
            "window reaches back W tokens, not W-1",
        ],
    );
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_trap_01_gemmas_published_layers_slide_five_in_six() {
    let config = published("gemma-3-4b-it");
    let layers = config.windows.iter().enumerate();
    let full: Vec<usize> =
        layers.filter_map(|(index, window)| window.is_none().then_some(index)).collect();
    assert_eq!((config.windows.len(), &full[..]), (34, &[5, 11, 17, 23, 29][..]));
    assert_eq!(config.windows[0], Some(1024));
}

#[test]
fn trap_02_gemma_stretches_only_global_layers() {
    goldens_expose(
        2,
        &[
            "linear scaling ignored",
            "linear scaling on local layers too",
            "global theta on local layers",
            "local theta on global layers",
            "rope_parameters ignored",
        ],
    );
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_trap_02_gemmas_published_stretch_is_of_global_layers() {
    let config = published("gemma-3-4b-it");
    let scaling = RopeScaling::Linear { factor: 8.0 };
    assert_eq!(config.full_rope, RopeConfig { theta: 1e6, scaling });
    let scaling = RopeScaling::None;
    assert_eq!(config.sliding_rope, RopeConfig { theta: 1e4, scaling });
}

#[test]
fn trap_03_activations_beyond_f16_stay_numbers() {
    // Gemma's residual reaches 800 000; here a norm makes it a million.
    let directory = common::edited(Family::Gemma3, |name, _, values| {
        if name.ends_with("post_attention_layernorm.weight") {
            values.fill(1e6);
        }
    });
    for wanted in [WantedType::Auto, WantedType::Exactly(StoredType::F32)] {
        let decoder = common::load(directory.path(), wanted);
        let rows = common::logits(&decoder, &tokens(1, 40), 40);
        for row in &rows {
            assert!(row.iter().all(|logit| logit.is_finite()));
            assert!(row.iter().any(|logit| *logit != row[0]));
        }
    }
    // No weight is kept as f16, and what is stored so is widened.
    assert!("f16".parse::<WantedType>().is_err());
    let stored_as_f16 = common::goldens().join("models/llama-rope-parameters");
    let decoder = common::load(&stored_as_f16, WantedType::Auto);
    assert_eq!(decoder.precision.stored, StoredType::F32);
}

#[test]
fn trap_04_gemmas_embeddings_are_scaled_in_the_stored_precision_and_its_head_is_not() {
    goldens_expose(
        4,
        &[
            "tied output table scaled as the input is",
            "embedding scale not rounded to bf16",
            "lm_head.weight ignored, table tied",
        ],
    );
}

#[test]
fn trap_05_gemmas_norms_multiply_by_one_plus_the_weight() {
    goldens_expose(5, &["norm weight w for 1+w", "q_norm and k_norm skipped"]);
}

#[test]
fn trap_06_gemmas_gelu_is_the_tanh_one_and_scores_have_their_own_scale() {
    goldens_expose(6, &["erf gelu", "scores scaled by head_dim", "scores scaled by hidden/heads"]);
    // A softcap, as Gemma 2 has it, is refused, not passed over.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.json");
    let from = common::synthetic(Family::Gemma3).join("config.json");
    let mut config = golden::read(&from);
    config["text_config"]["attn_logit_softcapping"] = json!(50.0);
    std::fs::write(&path, config.to_string()).unwrap();
    let refused = Config::read(&path).unwrap_err().to_string();
    assert!(refused.contains("attn_logit_softcapping"), "{refused}");
}

#[test]
fn trap_07_gemma_ends_its_turns_with_either_of_two_tokens() {
    every_eos_ends(Family::Gemma3, &["<eos>", "<end_of_turn>"]);
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_trap_07_gemmas_published_ends_are_two() {
    let path = common::data().join("configs/gemma-3-4b-it.generation_config.json");
    assert_eq!(Generation::read(Some(&path), &[]).unwrap().eos_ids, [1, 106]);
    // The outer file's ids hold for the nested decoder, too.
    assert_eq!(published("gemma-3-4b-it").eos_ids, [1, 106]);
}

#[test]
fn trap_08_gemmas_system_message_goes_into_the_first_turn_and_one_bos_before_it() {
    has_one_bos_and_no_system_turn(&chat(&common::synthetic(Family::Gemma3)));
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_trap_08_gemmas_published_template_has_no_system_turn() {
    has_one_bos_and_no_system_turn(published_chat(Family::Gemma3));
}

fn has_one_bos_and_no_system_turn((chat, tokenizer): &Chat) {
    let messages = [message("system", "Be brief."), message("user", "Why?")];
    let text = chat.render(&messages, false).unwrap();
    let expected =
        "<bos><start_of_turn>user\nBe brief.\n\nWhy?<end_of_turn>\n<start_of_turn>model\n";
    assert_eq!(text, expected);
    let ids = tokenizer.encode(&text).unwrap();
    let bos = tokenizer.id("<bos>").unwrap();
    assert_eq!(ids.iter().filter(|id| **id == bos).count(), 1);
    let twice = [message("user", "Why?"), message("user", "Why?")];
    let refused = chat.render(&twice, false).unwrap_err().to_string();
    assert!(refused.contains("alternate"), "{refused}");
}
