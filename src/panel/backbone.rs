//! A model on the panel: described before anything of it is loaded, then an engine with its tokenizer and template.

use std::sync::Arc;

use super::PanelError;
use super::generation::Generation;
use crate::chat::ChatTemplate;
use crate::engine::{Engine, EngineOptions};
use crate::hub::{Checkpoint, digest_files, sha256_file, weights_digest};
use crate::model::{Config, Decoder, ModelError, WantedPrecision, precision_of};
use crate::ops::{Backend, Device, Machine, Precision};
use crate::synth;
use crate::tokenizer::Tokenizer;

/// A checkpoint that was read but for its weights.
pub struct Description {
    pub checkpoint: Checkpoint,
    pub config: Config,
    pub generation: Generation,
    pub precision: Precision,
    pub tokenizer: Arc<Tokenizer>,
    pub chat: ChatTemplate,
    /// Tokens that a sequence may hold: asked for, and no more than the model was made for.
    pub context: usize,
    pub is_synthetic: bool,
    /// Over the sorted `name sha256` lines of the weight files.
    pub weights_sha256: String,
    pub config_sha256: String,
    pub tokenizer_sha256: String,
}

impl Description {
    /// Reads everything small, and sums the weights.
    ///
    /// # Errors
    /// Whatever is missing, broken, or beyond what the decoder runs.
    pub fn read(
        checkpoint: Checkpoint,
        wanted: WantedPrecision,
        machine: Machine,
        context: usize,
    ) -> Result<Description, PanelError> {
        let files = &checkpoint.files;
        let config = Config::read(&files.config).map_err(ModelError::from)?;
        let tokenizer_path = checkpoint.tokenizer()?.to_owned();
        let tokenizer = Arc::new(Tokenizer::load(&tokenizer_path)?);
        let generation = Generation::of_checkpoint(&checkpoint, &config, &tokenizer)?;
        if generation.eos_ids.is_empty() {
            return Err(PanelError::NoEndOfTurn { path: checkpoint.directory.clone() });
        }
        let precision = precision_of(&config, &files.weights, wanted, machine)?;
        let chat = ChatTemplate::load(&checkpoint.directory)?;
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
    ///
    /// # Errors
    /// A tensor that is missing or of another shape; too little memory.
    pub fn load<B: Backend>(&self, ops: &B, positions: usize) -> Result<Decoder<B>, ModelError> {
        let files = &self.checkpoint.files.weights;
        Decoder::load(ops, self.config.clone(), files, self.precision, positions)
    }

    fn start<B: Backend>(&self, ops: B, options: EngineOptions) -> Result<Engine, PanelError> {
        let decoder = self.load(&ops, self.context)?;
        Ok(Engine::start(
            &self.checkpoint.name,
            decoder,
            self.tokenizer.clone(),
            &self.generation.eos_ids,
            ops,
            options,
        )?)
    }

    /// Tokens of a conversation, as the model will see it.
    ///
    /// # Errors
    /// When the template refuses the messages, or the text cannot be tokenised.
    pub fn tokenise(
        &self,
        messages: &[crate::record::Message],
        thinking: bool,
    ) -> Result<Vec<u32>, PanelError> {
        Ok(self.chat.prompt(&self.tokenizer, messages, thinking)?.tokens)
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

    /// Equal ones mean: equal requests get equal bytes. `identity`: of the loaded backbone.
    pub fn fingerprint(&self, identity: &str) -> String {
        let (template, version) = (&self.chat.sha256, env!("CARGO_PKG_VERSION"));
        let sum = crate::digest::sha256(format!("{identity} {template} {version}"));
        format!("wr_{}", &sum[..16])
    }
}

/// A loaded backbone.
pub struct Backbone {
    pub description: Description,
    pub engine: Engine,
    /// Of weights, numbers and machine: backbones with equal ones answer equal requests alike.
    pub identity: String,
    /// What ends a `<think>` section, where the vocabulary has it.
    pub think_end: Option<u32>,
}

impl Backbone {
    /// Loads the weights and starts the engine.
    ///
    /// # Errors
    /// A tensor that is missing or of another shape; an engine that cannot start.
    pub fn start(
        description: Description,
        device: &Device,
        options: EngineOptions,
    ) -> Result<Backbone, PanelError> {
        let engine = match device {
            Device::Cpu(cpu) => description.start(cpu.clone(), options)?,
            Device::Cuda(gpu) => {
                let gpu = gpu.for_engine().map_err(ModelError::from)?;
                description.start(gpu, options)?
            }
            Device::Metal(gpu) => {
                let gpu = gpu.for_engine().map_err(ModelError::from)?;
                description.start(gpu, options)?
            }
        };
        let think_end = description.tokenizer.id("</think>");
        Ok(Backbone { identity: description.identity(device), description, engine, think_end })
    }
}
