//! A checkpoint's directory as a running engine, with what turns messages into its tokens.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::chat::ChatTemplate;
use crate::checkpoint::{CheckpointFiles, TOKENIZER, incomplete};
use crate::diagnosis::Failure;
use crate::engine::{Engine, EngineOptions, Request, Stop};
use crate::generation::Generation;
use crate::model::{Config, Decoder, WantedPrecision, precision_of};
use crate::ops::{Backend, Device, PAGE, Precision};
use crate::tokenizer::Tokenizer;

pub struct LocalModel {
    /// Takes token ids, gives text.
    pub engine: Engine,
    pub tokenizer: Arc<Tokenizer>,
    /// Messages to the text that the model was trained to see.
    pub chat: ChatTemplate,
    /// How the model's makers sample, and what ends its turns.
    pub generation: Generation,
    /// What of the files contradicts itself or is not known here, and what was made of it.
    pub warnings: Vec<String>,
}

impl LocalModel {
    /// Loads config.json, generation_config.json, the tokenizer, the chat template and the weights of `directory`, whose types it
    /// keeps, and starts an engine with room for `sequences` sequences of at most `context` tokens at a time. Nothing is fetched;
    /// whether memory suffices says [`crate::model::Footprint`].
    ///
    /// # Errors
    /// A file that is missing, damaged or of another kind of model; a device that fails.
    pub fn open(
        directory: &Path,
        device: Device,
        context: usize,
        sequences: usize,
    ) -> Result<LocalModel, Failure> {
        let files = CheckpointFiles::find(directory)?;
        let config = Config::read(&files.config)?;
        let path = files.tokenizer.as_deref();
        let path = path.ok_or_else(|| incomplete(directory, TOKENIZER))?;
        let tokenizer = Arc::new(Tokenizer::load(path)?);
        let chat = ChatTemplate::load(directory)?;
        let generation =
            Generation::of_checkpoint(directory, &files, &config, &tokenizer, Some(&chat))?;
        let context = context.min(config.max_position_embeddings);
        let options = EngineOptions {
            pages: sequences * context.div_ceil(PAGE),
            max_batch: sequences,
            prefill_rows: device.machine().prefill_rows(),
            context,
            draft: 0,
            known_logit_rows: device.machine().known_logit_rows(),
            slots: 3 * sequences,
            pages_at_start: false,
        };
        let wanted = WantedPrecision::default();
        let precision = precision_of(&config, &files.weights, wanted, device.machine())?;
        let start = Start {
            name: &directory.file_name().unwrap_or_default().to_string_lossy(),
            config: &config,
            weights: &files.weights,
            precision,
            tokenizer: &tokenizer,
            generation: &generation,
            options,
        };
        let (engine, warnings) = start.on(&device)?;
        Ok(LocalModel { engine, tokenizer, chat, generation, warnings })
    }

    /// A completion of at most `max_tokens` tokens, sampled as the model's makers say, with seed 0.
    pub fn request(&self, tokens: Vec<u32>, max_tokens: usize) -> Request {
        Request {
            tokens,
            max_tokens,
            sampling: self.generation.sampling,
            stop: Stop { ids: self.generation.eos_ids.clone(), ..Stop::default() },
            ..Request::default()
        }
    }
}

/// A checkpoint as it was read, without its weights, and the engine's options.
pub struct Start<'a> {
    /// Of the engine's thread.
    pub name: &'a str,
    pub config: &'a Config,
    pub weights: &'a [PathBuf],
    pub precision: Precision,
    pub tokenizer: &'a Arc<Tokenizer>,
    /// Whose `eos_ids` end a grammar's text.
    pub generation: &'a Generation,
    pub options: EngineOptions,
}

impl Start<'_> {
    /// Loads the weights and starts the engine. Gives what of the files contradicts itself or is not known here, too.
    pub fn on(&self, device: &Device) -> Result<(Engine, Vec<String>), Failure> {
        match device {
            Device::Cpu(cpu) => self.with(cpu.clone()),
            Device::Cuda(gpu) => self.with(gpu.for_engine()?),
            Device::Candle(candle) => self.with(candle.clone()),
        }
    }

    fn with<B: Backend>(&self, ops: B) -> Result<(Engine, Vec<String>), Failure> {
        let Start { name, config, weights, precision, tokenizer, generation, options } = *self;
        let decoder = Decoder::load(&ops, config.clone(), weights, precision, options.context)?;
        let mut warnings = decoder.warnings.clone();
        warnings.extend(generation.warning.clone());
        let eos_ids = &generation.eos_ids;
        let engine = Engine::start(name, decoder, tokenizer.clone(), eos_ids, ops, options)?;
        Ok((engine, warnings))
    }
}
