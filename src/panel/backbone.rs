//! A local model of the panel: first its description, without weights, then a running engine with tokenizer and chat template.

use std::sync::Arc;

use super::PanelError;
use crate::calls::Store;
use crate::chat::{self, ChatTemplate};
use crate::console;
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::engine::{Engine, EngineOptions};
use crate::generation::Generation;
use crate::hub::{Checkpoint, digest_files, sha256_file, weights_digest};
use crate::local_model::Start;
use crate::model::{Config, Decoder, ModelError, WantedPrecision, precision_of};
use crate::ops::{Backend, Device, Machine, Precision};
use crate::record::Message;
use crate::synth;
use crate::tokenizer::Tokenizer;

/// A checkpoint, read without its weights.
pub struct Description {
    pub checkpoint: Checkpoint,
    pub config: Config,
    pub generation: Generation,
    pub precision: Precision,
    pub tokenizer: Arc<Tokenizer>,
    pub chat: ChatTemplate,
    /// Tokens of a sequence at most: as requested, and no more than the model supports.
    pub context: usize,
    pub is_synthetic: bool,
    /// Of the sorted `name sha256` lines of the weight files.
    pub weights_sha256: String,
    pub config_sha256: String,
    pub tokenizer_sha256: String,
}

impl Description {
    /// Reads everything but the weights, which are only hashed.
    pub fn read(
        checkpoint: Checkpoint,
        wanted: WantedPrecision,
        machine: Machine,
        context: usize,
    ) -> Result<Description, Failure> {
        let files = &checkpoint.files;
        let config = Config::read(&files.config)?;
        let tokenizer_path = checkpoint.tokenizer()?.to_owned();
        let tokenizer = Arc::new(Tokenizer::load(&tokenizer_path)?);
        let directory = &checkpoint.directory;
        let chat = ChatTemplate::load(directory)?;
        let generation =
            Generation::of_checkpoint(directory, files, &config, &tokenizer, Some(&chat))?;
        if generation.eos_ids.is_empty() {
            return Err(Failure::mismatch(format!(
                "no end-of-turn token in {}: neither generation_config.json, config.json nor the tokenizer's files name one",
                directory.display()
            )));
        }
        let precision = precision_of(&config, &files.weights, wanted, machine)?;
        let weights = digest_files(&checkpoint.named_weights())?;
        let config_sha256 = sha256_file(&files.config)?;
        let tokenizer_sha256 = sha256_file(&tokenizer_path)?;
        Ok(Description {
            context: context.min(config.max_position_embeddings),
            is_synthetic: checkpoint.directory.join(synth::MARKER).is_file(),
            weights_sha256: weights_digest(&weights),
            config_sha256,
            tokenizer_sha256,
            config,
            generation,
            precision,
            tokenizer,
            chat,
            checkpoint,
        })
    }

    /// Loads the weights, for sequences up to `positions`.
    pub fn load<B: Backend>(&self, ops: &B, positions: usize) -> Result<Decoder<B>, ModelError> {
        let files = &self.checkpoint.files.weights;
        Decoder::load(ops, self.config.clone(), files, self.precision, positions)
    }

    /// The prompt's tokens: `messages` under the chat template.
    pub fn tokenise(&self, messages: &[Message], thinking: bool) -> Result<Vec<u32>, PanelError> {
        let turns = messages.iter().map(|one| chat::Message::new(&*one.role, &*one.content));
        Ok(self.chat.prompt(&self.tokenizer, &turns.collect::<Vec<_>>(), thinking)?.tokens)
    }

    /// See [`Backbone::identity`].
    pub fn identity(&self, device: &Device) -> String {
        let Description { weights_sha256, config_sha256, tokenizer_sha256, precision, .. } = self;
        let Precision { stored, quantisation, kv } = *precision;
        let kind = device.kind([*precision]);
        format!(
            "{weights_sha256} {config_sha256} {tokenizer_sha256} {stored} {quantisation} {kv} {kind}"
        )
    }

    /// Models with equal fingerprints give equal requests equal answers, byte for byte. `identity`: of the loaded backbone.
    pub fn fingerprint(&self, identity: &str) -> String {
        let (template, version) = (&self.chat.sha256, env!("CARGO_PKG_VERSION"));
        let digest = sha256(format!("{identity} {template} {version}"));
        format!("wr_{}", &digest[..16])
    }
}

/// A loaded model and its engine.
pub struct Backbone {
    pub description: Description,
    pub engine: Engine,
    /// Weights, config, tokenizer, precision and kind of device: models with equal identities give equal answers to equal requests.
    pub identity: String,
    /// The token that ends its thinking, where the vocabulary has one.
    pub think_end: Option<u32>,
    /// Where its completions are kept, and looked up.
    pub calls: Arc<Store>,
}

impl Backbone {
    /// Loads the weights and starts the engine.
    pub fn start(
        description: Description,
        device: &Device,
        options: EngineOptions,
        calls: Arc<Store>,
    ) -> Result<Backbone, Failure> {
        let name = &description.checkpoint.name;
        let start = Start {
            name,
            config: &description.config,
            weights: &description.checkpoint.files.weights,
            precision: description.precision,
            tokenizer: &description.tokenizer,
            generation: &description.generation,
            options,
        };
        let (engine, warnings) = start.on(device)?;
        for warning in warnings {
            console::note(format!("warning: {name}: {warning}"));
        }
        let think_end = description.tokenizer.think_end();
        let identity = description.identity(device);
        Ok(Backbone { identity, description, engine, think_end, calls })
    }
}
