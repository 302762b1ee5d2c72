//! Checkpoints of the true architectures with seeded random weights, laid out as published ones are.
//!
//! A benchmark needs no others, and a demonstration needs no download. Their answers are noise.

#[cfg(test)]
mod our_words;
mod tokenizer;
mod weights;

use std::path::{Path, PathBuf};

use serde_json::json;
use thiserror::Error;

use crate::checkpoint::write_whole;
use crate::fault::faults;
pub use crate::model::Shape;
use crate::model::{Config, ConfigError, Family};
use crate::outside;
use crate::tokenizer::{Tokenizer, TokenizerError};

#[cfg(test)]
pub use our_words::write_with_our_words;
pub use weights::write as write_weights;

/// The file that marks a directory as synthetic, and says how it was made.
pub const MARKER: &str = "synthetic.json";

faults! {
    /// Why no checkpoint was written.
    #[derive(Debug, Error)]
    pub enum SynthError {
        #[error("cannot write the synthetic model: {0}")]
        Write(error: #[from] std::io::Error) => error.blame(), error.hint();
        #[error("cannot write the synthetic weights: {0}")]
        Weights(error: #[from] safetensors::SafeTensorError) => Machine;
        #[error("cannot train the synthetic tokenizer: {0}")]
        Train(problem: String) => Machine;
        #[error(transparent)]
        Tokenizer(error: #[from] TokenizerError) => error.blame();
        #[error("{path} has no token `{token}`, which {family} ends its turns with")]
        ControlToken { path: PathBuf, token: &'static str, family: &'static str } => Usage;
        #[error("the family {family} has no shape `{shape}`")]
        Shape { family: &'static str, shape: &'static str } => Usage;
        #[error(transparent)]
        Config(error: #[from] ConfigError) => error.blame();
    }
}

#[derive(Clone, Debug)]
pub struct Recipe<'a> {
    pub family: Family,
    pub shape: Shape,
    /// Of its weights, which are a function of it.
    pub seed: u64,
    /// A tokenizer.json, or a directory with one, and the template beside it, to use instead of a small one that is trained.
    pub tokenizer: Option<&'a Path>,
}

/// Writes a checkpoint to `directory`, all of it or nothing. The vocabulary is learned from `texts`, unless the recipe names a
/// tokenizer.
pub fn write_checkpoint(
    recipe: &Recipe<'_>,
    texts: &[&str],
    directory: &Path,
) -> Result<(), SynthError> {
    write_whole(directory, |building| write_files(recipe, texts, building))
}

fn write_files(recipe: &Recipe<'_>, texts: &[&str], directory: &Path) -> Result<(), SynthError> {
    match recipe.tokenizer {
        Some(source) => tokenizer::copy(source, directory)?,
        None => tokenizer::write(recipe.family, texts, directory)?,
    }
    let path = directory.join("tokenizer.json");
    let tokenizer = Tokenizer::load(&path)?;
    let id = |token: &'static str| {
        let family = recipe.family.name();
        tokenizer.id(token).ok_or_else(|| SynthError::ControlToken {
            path: path.clone(),
            token,
            family,
        })
    };
    let made = &recipe.family.traits().synthetic;
    let eos_ids = made.ends.iter().map(|token| id(token)).collect::<Result<Vec<u32>, _>>()?;
    // More than there are tokens, as published tables have.
    let tokens = tokenizer.pieces().len();
    let rows = match recipe.shape {
        Shape::Full | Shape::Qwen3Small => made.vocab_size.max(tokens),
        Shape::Tiny => (tokens + 1).next_multiple_of(64),
    };
    let config = (made.config)(recipe.shape, rows, &eos_ids).ok_or_else(|| SynthError::Shape {
        family: recipe.family.name(),
        shape: recipe.shape.name(),
    })?;
    write_json(&directory.join("config.json"), &config)?;
    write_json(&directory.join("generation_config.json"), &(made.generation)(&eos_ids))?;
    let config = Config::from_json(config, &directory.join("config.json"))?;
    weights::write(&config, recipe.seed, &directory.join("model.safetensors"))?;
    let marker = json!({
        "family": recipe.family.name(),
        "shape": recipe.shape.name(),
        "seed": recipe.seed,
        "note": "seeded random weights: every answer is noise",
    });
    write_json(&directory.join(MARKER), &marker)
}

fn write_json(path: &Path, value: &serde_json::Value) -> Result<(), SynthError> {
    let text = serde_json::to_string_pretty(value).map_err(std::io::Error::from)?;
    Ok(outside::write_public(path, text + "\n")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ChatTemplate;
    use crate::chat::Message;
    use crate::model::Decoder;
    use crate::ops::{Cpu, StoredType};

    #[test]
    fn a_tiny_checkpoint_loads_is_the_same_twice_and_knows_its_turns() {
        for family in Family::ALL {
            let directory = tempfile::tempdir().unwrap();
            let paths = [directory.path().join("a"), directory.path().join("b")];
            let recipe = Recipe { family, shape: Shape::Tiny, seed: 3, tokenizer: None };
            for path in &paths {
                write_with_our_words(&recipe, path).unwrap();
            }
            for file in [
                "config.json",
                "tokenizer.json",
                "tokenizer_config.json",
                "model.safetensors",
                "chat_template.jinja",
            ] {
                let [a, b] = paths.each_ref().map(|path| std::fs::read(path.join(file)).unwrap());
                assert!(a == b, "{file} differs");
            }
            assert!(matches!(write_with_our_words(&recipe, &paths[0]), Err(SynthError::Write(_))));
            let config = Config::read(&paths[0].join("config.json")).unwrap();
            let tokenizer = Tokenizer::load(&paths[0].join("tokenizer.json")).unwrap();
            assert!(config.vocab_size > tokenizer.pieces().len(), "no padding rows");
            let weights = [paths[0].join("model.safetensors")];
            let cpu = Cpu::new(1).unwrap();
            Decoder::load(&cpu, config, &weights, StoredType::Bf16.into(), 64).unwrap();
            let text = "naïve 65-year-old: β-blocker {\"a\": [1,\n2]} 😀 ▁";
            let back = tokenizer.decode(&tokenizer.encode(text).unwrap());
            assert_eq!(back.replace(' ', "▁"), text.replace(' ', "▁"));
            let chat = ChatTemplate::load(&paths[0]).unwrap();
            let message = |role: &str| Message::new(role, format!("the {role}"));
            let prompt = chat.render(&[message("system"), message("user")], false).unwrap();
            assert!(prompt.contains("the system") && prompt.contains("the user"));
            let ids = tokenizer.encode(&prompt).unwrap();
            assert!(
                tokenizer.decode(&ids).len() < prompt.len(),
                "control tokens were read as text"
            );
        }
    }

    /// Harnesses that score whole texts begin and end them by these.
    #[test]
    fn the_tokens_that_begin_and_end_a_text_are_named_and_in_the_vocabulary() {
        for (family, bos, eos) in [
            (Family::Gemma3, Some("<bos>"), "<eos>"),
            (Family::Llama, Some("<|begin_of_text|>"), "<|eot_id|>"),
            (Family::Qwen3, None, "<|im_end|>"),
            (Family::Qwen35, None, "<|im_end|>"),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let recipe = Recipe { family, shape: Shape::Tiny, seed: 3, tokenizer: None };
            write_with_our_words(&recipe, directory.path()).unwrap();
            let text = fs_err::read_to_string(directory.path().join("tokenizer_config.json"));
            let named: serde_json::Value = serde_json::from_str(&text.unwrap()).unwrap();
            assert_eq!(
                (named["bos_token"].as_str(), named["eos_token"].as_str()),
                (bos, Some(eos))
            );
            let tokenizer = Tokenizer::load(&directory.path().join("tokenizer.json")).unwrap();
            for token in bos.into_iter().chain([eos]) {
                let ids = tokenizer.encode(token).unwrap();
                assert!(ids.len() == 1 && tokenizer.is_control(ids[0]), "{token}: {ids:?}");
            }
        }
    }

    #[test]
    fn a_tokenizer_is_named_by_its_file_or_by_its_directory() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("source");
        let mut recipe =
            Recipe { family: Family::Llama, shape: Shape::Tiny, seed: 3, tokenizer: None };
        write_with_our_words(&recipe, &source).unwrap();
        let file = source.join("tokenizer.json");
        for (name, tokenizer) in [("by-file", &file), ("by-directory", &source)] {
            let copy = directory.path().join(name);
            recipe.tokenizer = Some(tokenizer);
            write_with_our_words(&recipe, &copy).unwrap();
            for name in ["tokenizer.json", "chat_template.jinja"] {
                let bytes = |folder: &Path| fs_err::read(folder.join(name)).unwrap();
                assert!(bytes(&copy) == bytes(&source), "{name}");
            }
        }
    }
}
