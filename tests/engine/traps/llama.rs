//! Llama's: stretched frequencies, three ends, tied tables and a date.

use wardround::chat::ChatTemplate;
use wardround::generation::Generation;
use wardround::model::Family;
use wardround::model::config::{RopeConfig, RopeScaling};

use super::{every_eos_ends, goldens_expose, message, published, published_chat};
use crate::common;

#[test]
fn trap_15_llamas_frequencies_are_stretched_past_the_original_length() {
    goldens_expose(
        15,
        &["scaling ignored", "scaled linearly", "frequencies in bf16", "rope_parameters ignored"],
    );
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_trap_15_llamas_published_frequencies_are_stretched() {
    let config = published("llama-3.2-3b-instruct");
    let scaling = RopeScaling::Llama3 {
        factor: 32.0,
        low_frequency: 1.0,
        high_frequency: 4.0,
        original_positions: 8192.0,
    };
    assert_eq!(config.full_rope, RopeConfig { theta: 5e5, scaling });
}

#[test]
fn trap_16_llama_has_three_ends_tied_tables_and_a_date() {
    goldens_expose(16, &["lm_head.weight ignored, table tied", "theta left at its default"]);
    let names = ["<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"];
    every_eos_ends(Family::Llama, &names);
    // A template that asks for the day gets one that never changes.
    let directory = tempfile::tempdir().unwrap();
    let template = "{{ strftime_now('%d %b %Y') }}";
    std::fs::write(directory.path().join("chat_template.jinja"), template).unwrap();
    let chat = ChatTemplate::load(directory.path()).unwrap();
    assert_eq!(chat.render(&[], false).unwrap(), "26 Jul 2024");
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_trap_16_llamas_published_files_have_three_ends_and_a_date() {
    let (chat, _) = published_chat(Family::Llama);
    let text = chat.render(&[message("user", "Why?")], false).unwrap();
    assert!(text.contains("Today Date: 26 Jul 2024\n"), "{text}");
    let path = common::data().join("configs/llama-3.2-3b-instruct.generation_config.json");
    let generation = Generation::read(Some(&path), &[]).unwrap();
    assert_eq!(generation.eos_ids, [128_001, 128_008, 128_009]);
    assert!(published("llama-3.2-3b-instruct").tied_embeddings);
}
