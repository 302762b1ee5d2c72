//! A small tokenizer of a family's kind, trained on a few texts.

use std::path::Path;

use serde_json::{Value, json};
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::tokenizer::Trainer;

use super::{SynthError, write_json};
use crate::model::Family;
use crate::model::families::Synthetic;
use crate::outside;
use crate::tokenizer::byte_of;

/// Tokens of a synthetic vocabulary, bytes included, control tokens not.
const SIZE: usize = 1024;

/// Takes another checkpoint's tokenizer, named by its folder or its file, and the template beside it.
pub(super) fn copy(source: &Path, directory: &Path) -> Result<(), SynthError> {
    let (file, source) = match source.parent() {
        Some(parent) if source.is_file() => (source.to_owned(), parent),
        _ => (source.join("tokenizer.json"), source),
    };
    // Without their modes, which a sandbox does not change.
    let copy =
        |from: &Path, name: &str| outside::write_public(directory.join(name), outside::file(from)?);
    copy(&file, "tokenizer.json")?;
    for name in ["tokenizer_config.json", "chat_template.jinja", "chat_template.json"] {
        if source.join(name).is_file() {
            copy(&source.join(name), name)?;
        }
    }
    Ok(())
}

pub(super) fn write(family: Family, texts: &[&str], directory: &Path) -> Result<(), SynthError> {
    let made = &family.traits().synthetic;
    write_json(&directory.join("tokenizer.json"), &train(made, texts)?)?;
    let tokens = json!({"bos_token": made.bos, "eos_token": made.eos});
    write_json(&directory.join("tokenizer_config.json"), &tokens)?;
    Ok(outside::write_public(directory.join("chat_template.jinja"), made.template)?)
}

fn train(made: &Synthetic, texts: &[&str]) -> Result<Value, SynthError> {
    let control: Vec<&str> = made.control_tokens.split(' ').collect();
    let byte_level = !made.falls_back_to_bytes;
    let first: Vec<String> = match byte_level {
        // Byte tokens come first, as in a SentencePiece vocabulary with fallback.
        false => (0..=255u8).map(|byte| format!("<0x{byte:02X}>")).collect(),
        true => Vec::new(),
    };
    let fail = |error: tokenizers::Error| SynthError::Train(error.to_string());
    let alphabet = if byte_level { byte_alphabet() } else { Vec::new() };
    let mut trainer = BpeTrainer::builder()
        .vocab_size(SIZE)
        .min_frequency(2)
        .show_progress(false)
        .initial_alphabet(alphabet.iter().map(|(_, character)| *character).collect())
        .build();
    let split = |text: &str| Ok(words(text, &alphabet));
    trainer.feed(texts.iter(), split).map_err(fail)?;
    let mut model = BPE::default();
    trainer.train(&mut model).map_err(fail)?;
    let mut model =
        serde_json::to_value(&model).map_err(|error| SynthError::Train(error.to_string()))?;
    let offset = control.len() + first.len();
    let mut vocabulary = serde_json::Map::new();
    for (id, token) in control.iter().map(|token| (*token).to_owned()).chain(first).enumerate() {
        vocabulary.insert(token, json!(id));
    }
    let mut learned: Vec<(&String, u64)> = model["vocab"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(t, id)| Some((t, id.as_u64()?)))
        .collect();
    learned.sort_by_key(|(_, id)| *id);
    for (token, id) in learned {
        vocabulary.insert(token.clone(), json!(id + offset as u64));
    }
    model["vocab"] = vocabulary.into();
    model["byte_fallback"] = json!(!byte_level);
    Ok(assemble(byte_level, model, &control))
}

fn assemble(is_byte_level: bool, model: Value, control: &[&str]) -> Value {
    let added: Vec<Value> = control
        .iter()
        .enumerate()
        .map(|(id, content)| {
            json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": !content.contains("think>")})
        })
        .collect();
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true});
    let (normalizer, pre_tokenizer, decoder) = match is_byte_level {
        false => (
            json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"}),
            json!({"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": false}),
            json!({"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"}, {"type": "Fuse"}]}),
        ),
        true => (Value::Null, byte_level.clone(), byte_level),
    };
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": null,
        "decoder": decoder, "model": model,
    })
}

/// The bytes and the characters that stand for them in a byte-level vocabulary.
fn byte_alphabet() -> Vec<(u8, char)> {
    let characters =
        ('!'..='\u{143}').filter_map(|character| Some((byte_of(character)?, character)));
    let mut alphabet: Vec<(u8, char)> = characters.collect();
    alphabet.sort_unstable();
    alphabet
}

/// Runs of letters, of digits, and of anything else; a space before a run belongs to it.
fn words(text: &str, alphabet: &[(u8, char)]) -> Vec<String> {
    let kind = |c: char| (c.is_alphabetic(), c.is_numeric(), c.is_whitespace());
    let mut words: Vec<String> = Vec::new();
    let mut last: Option<char> = None;
    for character in text.chars() {
        let joins = last.is_some_and(|last| kind(last) == kind(character) || last == ' ');
        if !joins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(character);
        }
        last = Some(character);
    }
    let write = |word: String| match alphabet.is_empty() {
        true => word.replace(' ', "▁"),
        false => word.bytes().map(|byte| alphabet[byte as usize].1).collect(),
    };
    words.into_iter().map(write).collect()
}
