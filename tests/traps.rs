//! The mistakes that engines for these models are known for, one test each; each fails if the mistake is made.
//!
//! Goldens expose some: transformers itself, with the mistake made, moves a checked logit by five tolerances or more
//! (`tests/goldens/README.md`), so an engine within one tolerance has not made it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod common;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use common::golden::{self, Golden};
use common::{GREEDY, OPTIONS, complete, tokens};
use serde_json::json;
use tempfile::TempDir;
use wardround::chat::ChatTemplate;
use wardround::data::{self, Format};
use wardround::engine::{Constraint, FinishReason, Grammar, Request, Sampling};
use wardround::hub::{Checkpoint, CheckpointFiles};
use wardround::model::config::{Layer, RopeConfig, RopeScaling};
use wardround::model::{Config, Family, WantedPrecision, WantedType};
use wardround::ops::{Cpu, Device, Machine, PAGE, StoredType};
use wardround::panel::backbone::{Backbone, Description};
use wardround::panel::generation::Generation;
use wardround::panel::{DecodingMode, Member, Panel, PanelError, SamplingChoice};
use wardround::prompts::PromptSet;
use wardround::record::Message;
use wardround::systems::medmad::settings::Settings;
use wardround::systems::{SystemConfig, Task};
use wardround::tokenizer::Tokenizer;

const FAMILIES: [Family; 3] = [Family::Gemma3, Family::Llama, Family::Qwen3];

/// Our logits are those of transformers wherever a mistake of this trap would show, and `mistakes` are among those.
fn goldens_expose(number: u64, mistakes: &[&str]) {
    let is_trap = |case: &Golden| case.traps.iter().any(|trap| trap.number == number);
    let cases: Vec<Golden> = golden::cases().into_iter().filter(is_trap).collect();
    for case in &cases {
        for trap in &case.traps {
            assert!(trap.moves_logits_by >= 5.0 * case.tolerance, "{}", case.name);
        }
        case.check(&case.ours());
    }
    for mistake in mistakes {
        let exposes = |case: &Golden| case.traps.iter().any(|trap| trap.mistake == *mistake);
        assert!(cases.iter().any(exposes), "nothing exposes: {mistake}");
    }
}

/// A published `config.json`.
fn published(name: &str) -> Config {
    let path = format!("configs/{name}.config.json");
    Config::read(&common::data().join(path)).unwrap()
}

fn message(role: &str, content: &str) -> Message {
    Message::new(role, content)
}

fn describe(directory: &Path) -> Description {
    let checkpoint = Checkpoint {
        name: "test".to_owned(),
        directory: directory.to_owned(),
        repository: None,
        revision: None,
        card: None,
        files: CheckpointFiles::find(directory).unwrap(),
    };
    Description::read(checkpoint, WantedPrecision::default(), Machine::Cpu, 4096).unwrap()
}

type Chat = (ChatTemplate, Arc<Tokenizer>);

fn chat(directory: &Path) -> Chat {
    let template = ChatTemplate::load(directory).unwrap();
    (template, common::tokenizer(directory))
}

/// The published template and tokenizer of a family, read once.
fn published_chat(family: Family) -> &'static Chat {
    static CHATS: [OnceLock<Chat>; 3] = [const { OnceLock::new() }; 3];
    let (index, name) = match family {
        Family::Gemma3 => (0, "gemma3"),
        Family::Llama => (1, "llama3.2"),
        Family::Qwen3 => (2, "qwen3"),
    };
    let directory = common::data().join("tokenizers").join(name);
    CHATS[index].get_or_init(|| chat(&directory))
}

/// A synthetic checkpoint that answers nothing but `token`: its row of the table is the likeliest one's, enlarged.
fn always(family: Family, token: u32) -> TempDir {
    let prompt = tokens(1, 12);
    let likeliest = greedy(&common::synthetic(family), &prompt);
    common::edited(family, |name, width, values| {
        if name.ends_with("embed_tokens.weight") {
            let row: Vec<f32> =
                row(values, width, likeliest).iter().map(|value| value * 8.0).collect();
            row_mut(values, width, token).copy_from_slice(&row);
        }
    })
}

fn row(values: &[f32], width: usize, token: u32) -> &[f32] {
    &values[token as usize * width..][..width]
}

fn row_mut(values: &mut [f32], width: usize, token: u32) -> &mut [f32] {
    &mut values[token as usize * width..][..width]
}

fn device() -> Device {
    Device::Cpu(Cpu::new(2).unwrap())
}

/// The likeliest token after `prompt`, by the decoder alone.
fn greedy(directory: &Path, prompt: &[u32]) -> u32 {
    let decoder = common::load(directory, WantedType::Auto);
    let logits = common::logits(&decoder, prompt, prompt.len()).pop().unwrap();
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    logits.iter().position(|logit| *logit == largest).unwrap() as u32
}

/// Every end-of-turn token that the checkpoint's files name ends a completion, and is no part of its text.
fn every_eos_ends(family: Family, names: &[&str]) {
    let directory = common::synthetic(family);
    let description = describe(&directory);
    let tokenizer = &description.tokenizer;
    let eos_ids: Vec<u32> = names.iter().map(|name| tokenizer.id(name).unwrap()).collect();
    assert_eq!(description.generation.eos_ids, eos_ids);
    for &eos in &eos_ids {
        let directory = always(family, eos);
        let engine = common::engine(directory.path(), tokenizer.clone(), OPTIONS, 2);
        let mut request = Request {
            tokens: tokens(1, 12),
            sampling: GREEDY,
            max_tokens: 20,
            ..Request::default()
        };
        assert_eq!(complete(&engine, request.clone()).tokens[0], eos, "it was to be said");
        request.stop.ids = description.generation.eos_ids.clone();
        let completion = complete(&engine, request);
        assert_eq!((&completion.tokens[..], &*completion.text), (&[eos][..], ""));
        assert_eq!(completion.finish_reason, FinishReason::Stop);
    }
}

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
    let layers = config.layers.iter().enumerate();
    let full: Vec<usize> =
        layers.filter_map(|(index, layer)| (*layer == Layer::Full).then_some(index)).collect();
    assert_eq!((config.layers.len(), &full[..]), (34, &[5, 11, 17, 23, 29][..]));
    assert_eq!(config.layers[0], Layer::Sliding(1024));
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
    assert_eq!(decoder.precision().stored, StoredType::F32);
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

#[test]
fn trap_09_rows_that_no_token_has_are_never_said() {
    for family in FAMILIES {
        let from = common::synthetic(family);
        let tokenizer = common::tokenizer(&from);
        let known = tokenizer.pieces().len() as u32;
        let prompt = tokens(1, 12);
        let likeliest = greedy(&from, &prompt);
        // The padding would win every draw.
        let directory = common::edited(family, |name, width, values| {
            if name.ends_with("embed_tokens.weight") {
                let winner: Vec<f32> =
                    row(values, width, likeliest).iter().map(|value| value * 8.0).collect();
                for row in values.chunks_exact_mut(width).skip(known as usize) {
                    row.copy_from_slice(&winner);
                }
            }
        });
        assert!(greedy(directory.path(), &prompt) >= known, "the padding does not win");
        let engine = common::engine(directory.path(), tokenizer, OPTIONS, 2);
        let grammar = Grammar::Regex(".{8,20}!".to_owned());
        for constraint in [None, Some(Constraint { grammar, after: None })] {
            let request = Request {
                tokens: prompt.clone(),
                constraint,
                max_tokens: 40,
                logprobs: Some(3),
                ..Request::default()
            };
            let completion = complete(&engine, request);
            assert!(completion.tokens.iter().all(|id| *id < known), "{:?}", completion.tokens);
            for sampled in completion.logprobs.iter().flatten() {
                assert!(sampled.top.iter().all(|(id, _)| *id < known), "{sampled:?}");
            }
        }
    }
}

#[test]
fn trap_10_a_question_with_an_image_is_refused_by_a_local_member() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("scans.jsonl");
    let line = r#"{"id": "17", "question": "What is seen?", "options": {"A": "x", "B": "y"}, "answer": "A", "image": "scan.png"}"#;
    std::fs::write(&path, line).unwrap();
    let dataset = data::load(&path, Format::Mcq).unwrap();
    let description = describe(&common::synthetic(Family::Llama));
    let backbone = Backbone::start(description, &device(), OPTIONS).unwrap();
    let backbone = Arc::new(backbone);
    let config = SystemConfig::parse("medmad", &["record_chars=2", "t_max=0"]).unwrap();
    let sampling = SamplingChoice::default();
    let member = |agent| Member { agent, source: backbone.clone(), sampling };
    let (calls, asked) = std::sync::mpsc::channel();
    let panel = Panel {
        members: config.slots().into_iter().map(|slot| member(slot.agent)).collect(),
        recorder: Box::new(calls),
        run_seed: 1,
        decoding: DecodingMode::Grammar,
        ignore_eos: false,
        salt: None,
        thinking: Some(false),
        max_tokens: Some(4096),
        sends_seed: true,
        reask: None,
        stop: Arc::default(),
        retriever: None,
        on_call: Box::new(|_| {}),
    };
    let medmad = config.build(&PromptSet::embedded(), &Default::default()).unwrap();
    let refused = medmad
        .answer(&Task { panel: &panel, dataset: "scans", item: &dataset.items[0], run: 0 })
        .unwrap_err();
    assert!(matches!(&refused, PanelError::Image { item } if item == "17"), "{refused}");
    // The item is lost, the run goes on, and nobody was asked.
    assert!(refused.concerns_item());
    assert!(asked.try_recv().is_err());
}

#[test]
fn trap_11_qwens_heads_are_normed_before_they_turn_and_have_a_width_of_their_own() {
    goldens_expose(11, &["q_norm and k_norm skipped", "theta left at its default"]);
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_trap_11_qwens_published_heads_have_a_width_of_their_own() {
    let config = published("qwen3-4b");
    assert_eq!((config.hidden_size, config.heads, config.head_dim), (2560, 32, 128));
    assert_eq!(config.full_rope.theta, 1e6);
    assert!(config.tied_embeddings);
}

#[test]
fn trap_12_qwen_does_not_think_unless_asked_and_is_not_decoded_greedily() {
    let description = describe(&common::synthetic(Family::Qwen3));
    let sampling =
        Sampling { temperature: 0.6, top_k: Some(20), top_p: Some(0.95), ..Sampling::default() };
    assert_eq!(description.generation.sampling, sampling);
    assert!(!Settings::default().decoding.thinking.is_on());
    thinks_when_asked(&chat(&common::synthetic(Family::Qwen3)));
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_trap_12_qwens_published_template_does_not_think_unless_asked() {
    thinks_when_asked(published_chat(Family::Qwen3));
}

fn thinks_when_asked((chat, tokenizer): &Chat) {
    let turn = "<|im_start|>assistant\n";
    let messages = [message("user", "Why?")];
    let silent = chat.render(&messages, false).unwrap();
    assert!(silent.ends_with(&format!("{turn}<think>\n\n</think>\n\n")), "{silent}");
    let thinking = chat.render(&messages, true).unwrap();
    assert!(thinking.ends_with(turn), "{thinking}");
    let end = tokenizer.id("</think>").unwrap();
    assert!(tokenizer.encode(&silent).unwrap().contains(&end));
}

#[test]
fn trap_13_a_grammar_waits_for_the_end_of_thought() {
    let directory = common::synthetic(Family::Qwen3);
    let description = describe(&directory);
    let think_end = description.tokenizer.id("</think>").unwrap();
    let backbone = Backbone::start(description, &device(), OPTIONS).unwrap();
    assert_eq!(backbone.think_end, Some(think_end));
    let request = Request {
        tokens: tokens(1, 12),
        sampling: Sampling { temperature: 3.0, ..Sampling::default() },
        max_tokens: 120,
        ..Request::default()
    };
    // Noise says `</think>` too seldom: what a free run says in the middle stands for it.
    for seed in 0..5 {
        let request = Request { seed, ..request.clone() };
        let free = complete(&backbone.engine, request.clone()).tokens;
        let end = free[20];
        let at = free.iter().position(|token| *token == end).unwrap();
        let constrained = |after| Request {
            constraint: Some(Constraint {
                grammar: Grammar::Regex("answer: [A-E]{9}".to_owned()),
                after,
            }),
            ..request.clone()
        };
        let completion = complete(&backbone.engine, constrained(Some(end)));
        assert_eq!(completion.tokens[..=at], free[..=at], "thought was constrained");
        let tokenizer = &backbone.description.tokenizer;
        let answer = tokenizer.decode(&completion.tokens[at + 1..]);
        assert!(answer.starts_with("answer: ") && answer.len() == 17, "{answer}");
        assert_eq!(completion.finish_reason, FinishReason::Stop);
        let at_once = complete(&backbone.engine, constrained(None));
        assert!(at_once.text.starts_with("answer: "));
        // Thought that does not end is ended while the answer has room.
        let never = (0..).find(|id| !free.contains(id)).unwrap();
        let cut = complete(&backbone.engine, constrained(Some(never)));
        let at = cut.tokens.iter().position(|token| *token == never).unwrap();
        assert_eq!(cut.tokens[..at], free[..at]);
        let answer = tokenizer.decode(&cut.tokens[at + 1..]);
        assert!(answer.starts_with("answer: ") && answer.len() == 17, "{answer}");
        assert_eq!(cut.finish_reason, FinishReason::Length);
    }
}

#[test]
fn trap_14_qwen_has_two_ends_and_no_beginning() {
    every_eos_ends(Family::Qwen3, &["<|im_end|>", "<|endoftext|>"]);
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_trap_14_qwens_published_files_have_two_ends_and_no_beginning() {
    let (chat, tokenizer) = published_chat(Family::Qwen3);
    let path = common::data().join("configs/qwen3-4b.generation_config.json");
    let config = published("qwen3-4b");
    let generation = Generation::read(Some(&path), &config.eos_ids).unwrap();
    assert_eq!(generation.eos_ids, [151_645, 151_643]);
    let text = chat.render(&[message("user", "Why?")], false).unwrap();
    let ids = tokenizer.encode(&text).unwrap();
    assert_eq!(ids[0], tokenizer.id("<|im_start|>").unwrap());
}

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

#[test]
fn trap_17_a_prompt_begins_once() {
    // As published, the tokenizer would add the token that the template has written already.
    let directory = tempfile::tempdir().unwrap();
    let from = common::synthetic(Family::Llama);
    let mut json = golden::read(&from.join("tokenizer.json"));
    let (name, id) = ("<|begin_of_text|>", common::tokenizer(&from).id("<|begin_of_text|>"));
    json["post_processor"] = json!({
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": name, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {name: {"id": name, "ids": [id], "tokens": [name]}},
    });
    let path = directory.path().join("tokenizer.json");
    std::fs::write(&path, json.to_string()).unwrap();
    #[allow(clippy::disallowed_methods, reason = "the library itself is the reference")]
    let adding = tokenizers::Tokenizer::from_file(&path).unwrap();
    assert_eq!(adding.encode("x", true).unwrap().get_ids()[0], id.unwrap());
    let ours = (ChatTemplate::load(&from).unwrap(), Arc::new(Tokenizer::load(&path).unwrap()));
    begins_once(&ours, name);
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_trap_17_a_published_prompt_begins_once() {
    begins_once(published_chat(Family::Llama), "<|begin_of_text|>");
    begins_once(published_chat(Family::Gemma3), "<bos>");
}

fn begins_once((chat, tokenizer): &Chat, name: &str) {
    let text = chat.render(&[message("user", "Why?")], false).unwrap();
    let ids = tokenizer.encode(&text).unwrap();
    let begin = tokenizer.id(name).unwrap();
    assert_eq!(ids[0], begin);
    assert_eq!(ids.iter().filter(|id| **id == begin).count(), 1, "{name}");
}

#[test]
fn trap_18_of_equal_logits_the_lowest_id_is_said() {
    for family in FAMILIES {
        let from = common::synthetic(family);
        // The table's last rows have no token, and are never said.
        let winners =
            (1..).map(|salt| tokens(salt, 12)).map(|prompt| (greedy(&from, &prompt), prompt));
        let (winner, prompt) = winners.into_iter().find(|(id, _)| (300..800).contains(id)).unwrap();
        // The same row under a lower id and a higher one gives the same logit to the bit.
        let is_free = |id: &u32| !prompt.contains(id);
        let lower = (0..winner).rev().find(is_free).unwrap();
        let higher = (winner + 1..).find(is_free).unwrap();
        let directory = common::edited(family, |name, width, values| {
            if name.ends_with("embed_tokens.weight") {
                let row = row(values, width, winner).to_vec();
                row_mut(values, width, lower).copy_from_slice(&row);
                row_mut(values, width, higher).copy_from_slice(&row);
            }
        });
        let engine = common::engine(directory.path(), common::tokenizer(&from), OPTIONS, 2);
        let one = Sampling { top_k: Some(1), ..Sampling::default() };
        for (sampling, seed) in [(GREEDY, 0), (one, 1), (one, 2), (one, 3), (one, 4)] {
            let request = Request {
                tokens: prompt.clone(),
                sampling,
                seed,
                max_tokens: 1,
                logprobs: Some(3),
                ..Request::default()
            };
            let completion = complete(&engine, request);
            assert_eq!(completion.tokens, [lower], "{}", family.name());
            let top = &completion.logprobs[0].as_ref().unwrap().top;
            let ids: Vec<u32> = top.iter().map(|(id, _)| *id).collect();
            assert_eq!(ids, [lower, winner, higher]);
            assert!(top[0].1 == top[1].1 && top[1].1 == top[2].1);
        }
    }
}

#[test]
fn trap_19_a_prefix_is_one_models_own_and_its_last_token_is_computed() {
    let request = |tokens: Vec<u32>| Request {
        tokens,
        sampling: GREEDY,
        max_tokens: 8,
        logprobs: Some(2),
        ..Request::default()
    };
    let engine = common::synthetic_engine(Family::Qwen3, OPTIONS);
    // Of a prompt of whole pages the last is computed again: its logits are in no page.
    let prompt = tokens(1, 3 * PAGE);
    let first = complete(&engine, request(prompt.clone()));
    let again = complete(&engine, request(prompt.clone()));
    assert_eq!((first.usage.cached_tokens, again.usage.cached_tokens), (0, 2 * PAGE));
    assert_eq!((&first.tokens, &first.logprobs), (&again.tokens, &again.logprobs));
    // The same page after another one is another page.
    let moved = [&tokens(2, PAGE)[..], &prompt[PAGE..]].concat();
    let after = complete(&engine, request(moved.clone()));
    assert_eq!(after.usage.cached_tokens, 0);
    let fresh = common::synthetic_engine(Family::Qwen3, OPTIONS);
    let alone = complete(&fresh, request(moved));
    assert_eq!((after.tokens, after.logprobs), (alone.tokens, alone.logprobs));
    // Another model, and the same one with other weights, know nothing of it.
    let other = common::edited(Family::Qwen3, |_, _, values| {
        values.iter_mut().for_each(|value| *value *= 1.25);
    });
    let tokenizer = common::tokenizer(other.path());
    let other = common::engine(other.path(), tokenizer, OPTIONS, 2);
    let theirs = complete(&other, request(prompt));
    assert_eq!(theirs.usage.cached_tokens, 0);
    assert_ne!(theirs.logprobs, first.logprobs);
}

#[test]
fn trap_20_a_decoded_prefix_has_the_bits_of_a_computed_one() {
    for family in FAMILIES {
        let directory = common::synthetic(family);
        let decoder = common::load(&directory, WantedType::Auto);
        let prompt = tokens(1, 45);
        let engine = common::synthetic_engine(family, OPTIONS);
        let decoded = complete(
            &engine,
            Request {
                tokens: prompt.clone(),
                sampling: Sampling { temperature: 2.5, ..Sampling::default() },
                max_tokens: 90,
                ..Request::default()
            },
        );
        let whole = [prompt, decoded.tokens].concat();
        assert!(
            common::logits(&decoder, &whole, 1) == common::logits(&decoder, &whole, whole.len())
        );
        // A next round's prompt goes on from what was said; a fresh engine computes all of it at once.
        let next = Request {
            tokens: whole.clone(),
            max_tokens: 12,
            logprobs: Some(4),
            ..Request::default()
        };
        let resumed = complete(&engine, next.clone());
        let fresh = complete(&common::synthetic_engine(family, OPTIONS), next);
        assert_eq!(resumed.usage.cached_tokens, (whole.len() - 1) / PAGE * PAGE);
        assert!(resumed.usage.cached_tokens > 45 && fresh.usage.cached_tokens == 0);
        assert_eq!(resumed.tokens, fresh.tokens);
        let bits = |completion: &wardround::engine::Completion| -> Vec<u32> {
            let sampled = completion.logprobs.iter().flatten();
            sampled.flat_map(|one| one.top.iter().map(|(_, logprob)| logprob.to_bits())).collect()
        };
        assert_eq!(bits(&resumed), bits(&fresh), "{}", family.name());
    }
}
