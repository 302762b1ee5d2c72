//! The mistakes that engines for these models are known for, one test each; each fails if the mistake is made.
//!
//! Goldens expose some: transformers itself, with the mistake made, moves a checked logit by five tolerances or more
//! (`tests/goldens/README.md`), so an engine within one tolerance has not made it.

mod every_family;
mod gemma;
mod llama;
mod qwen;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use tempfile::TempDir;
use wardround::chat::{ChatTemplate, Message};
use wardround::engine::{FinishReason, Request};
use wardround::hub::{Checkpoint, CheckpointFiles};
use wardround::model::{Config, Family, WantedPrecision, WantedType};
use wardround::ops::{Cpu, Device, Machine};
use wardround::panel::backbone::Description;
use wardround::tokenizer::Tokenizer;

use crate::common::golden::{self, Golden};
use crate::common::{self, GREEDY, OPTIONS, complete, tokens};

const FAMILIES: [Family; 7] = Family::ALL;

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
        _ => unreachable!("no tokenizer of it is at hand"),
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
