//! A GGUF file into a directory in Hugging Face's layout: all of it, or nothing.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use super::{Gguf, GgufError, config, tokenizer, weights};
use crate::chat::{ChatError, ChatTemplate};
use crate::checkpoint::{
    CHAT_TEMPLATE_JINJA, CHAT_TEMPLATE_JSON, CONFIG, GENERATION_CONFIG, SINGLE, TOKENIZER,
    TOKENIZER_CONFIG, is_occupied, write_whole,
};
use crate::hub::{PROVENANCE, Provenance, sha256_file};
use crate::model::WantedType;
use crate::outside;
use crate::tokenizer::Tokenizer;

/// What is imported, and how.
#[derive(Clone, Debug, Args)]
pub struct Import {
    /// GGUF file, whole
    pub file: PathBuf,
    /// New or empty directory to write to
    pub directory: PathBuf,
    /// Directory with the model's own tokenizer.json, to take in place of the file's tokenizer
    #[arg(long, value_name = "DIR")]
    pub tokenizer: Option<PathBuf>,
    /// How to keep the numbers: auto (as in the file, quantised ones exactly, in f32), f32, or bf16 (half as large, rounded)
    #[arg(long, default_value = "auto")]
    pub dtype: WantedType,
}

impl Import {
    /// Writes the directory. `tell` hears how many bytes of weights of how many are written.
    ///
    /// # Errors
    /// See [`GgufError`]; nothing is left behind then.
    pub fn run(&self, tell: &mut dyn FnMut(u64, u64)) -> Result<(), GgufError> {
        if is_occupied(&self.directory) {
            return Err(GgufError::Exists { path: self.directory.clone() });
        }
        let gguf = Gguf::open(&self.file)?;
        write_whole(&self.directory, |building| self.fill(&gguf, building, tell))
    }

    fn fill(
        &self,
        gguf: &Gguf,
        building: &Path,
        tell: &mut dyn FnMut(u64, u64),
    ) -> Result<(), GgufError> {
        let family = config::family(gguf)?;
        let (written, config) = config::config(gguf, family)?;
        write_json(&building.join(CONFIG), &written)?;
        write_json(&building.join(GENERATION_CONFIG), &config::generation(gguf)?)?;
        match &self.tokenizer {
            None => outside::write_public(building.join(TOKENIZER), tokenizer::tokenizer(gguf)?)?,
            Some(from) => copy_tokenizer(from, building)?,
        }
        let own = building.join(TOKENIZER_CONFIG);
        if !own.is_file() && gguf.metadata.contains_key("tokenizer.ggml.tokens") {
            write_json(&own, &tokenizer::config(gguf)?)?;
        }
        self.check(gguf, building)?;
        weights::write(gguf, &config, self.dtype, &building.join(SINGLE), tell)?;
        self.record(building)
    }

    /// Reads what was written of the tokenizer and the template, before the long part.
    fn check(&self, gguf: &Gguf, building: &Path) -> Result<(), GgufError> {
        let tokenizer = Tokenizer::load(&building.join(TOKENIZER))?;
        let other = |problem: String| GgufError::Tokenizer {
            directory: self.tokenizer.as_ref().unwrap_or(&self.file).clone(),
            problem,
        };
        if let Some(difference) = tokenizer::difference(gguf, |word| tokenizer.id(word))? {
            return Err(other(difference));
        }
        match (ChatTemplate::load(building), gguf.text("tokenizer.chat_template")?) {
            (Ok(_), _) | (Err(ChatError::Missing { .. }), None) => Ok(()),
            (Err(ChatError::Missing { .. }), Some(template)) => {
                Ok(outside::write_public(building.join(CHAT_TEMPLATE_JINJA), template)?)
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Says where the files are from, by which they can be verified.
    fn record(&self, building: &Path) -> Result<(), GgufError> {
        let mut sha256 = std::collections::BTreeMap::new();
        for entry in fs_err::read_dir(building)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            sha256.insert(name.clone(), sha256_file(&building.join(&name))?);
        }
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        // No card and no hub id has a colon.
        let repository = format!("gguf:{name}");
        let revision = sha256_file(&self.file)?;
        let provenance = Provenance { repository, revision, sha256 };
        let text = toml::to_string_pretty(&provenance).map_err(std::io::Error::other)?;
        Ok(outside::write_public(building.join(PROVENANCE), text)?)
    }
}

fn copy_tokenizer(from: &Path, to: &Path) -> Result<(), GgufError> {
    let optional =
        [TOKENIZER_CONFIG, CHAT_TEMPLATE_JINJA, CHAT_TEMPLATE_JSON, "special_tokens_map.json"];
    for name in std::iter::once(TOKENIZER).chain(optional) {
        let path = from.join(name);
        if name == TOKENIZER || path.is_file() {
            outside::write_public(to.join(name), outside::file(path)?)?;
        }
    }
    Ok(())
}

fn write_json(path: &Path, value: &Value) -> Result<(), GgufError> {
    let text = serde_json::to_string_pretty(value).map_err(std::io::Error::from)?;
    Ok(outside::write_public(path, text + "\n")?)
}
