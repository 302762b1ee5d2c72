//! The tensors of a checkpoint by their published names, into what the decoder multiplies with.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::attention::Attention;
use super::config::{Config, LAYER_SCALE, stored_name};
use super::decoder::{Decoder, LayerWeights, Mixer};
use super::delta_rule::DeltaRule;
use super::{ModelError, WantedPrecision, WantedType};
use crate::ops::checkpoint::{Checkpoint, CheckpointError, RawTensor, RawType};
use crate::ops::{Backend, Machine, OpsError, Precision, Quantisation, Rotation, StoredType};

/// Where the decoder's tensors lie: alone, or inside a vision-language checkpoint, old layout and new.
const PREFIXES: [&str; 3] = ["model.", "language_model.model.", "model.language_model."];

const HEADS: [&str; 2] = ["lm_head.weight", "language_model.lm_head.weight"];

const OWN_HEAD: &str = "config.json ties the head to the embedding, and lm_head.weight differs from it: the files' own head is used";

const NAMED: usize = 4;

impl<B: Backend> Decoder<B> {
    /// Loads the decoder that `config` describes from safetensors `files`, for sequences up to `positions`.
    ///
    /// # Errors
    /// A file that is truncated or corrupt, and a tensor that is missing, of another shape or of a type that is
    /// not f32, f16 or bf16: each is named. A machine without room for it.
    pub fn load(
        ops: &B,
        config: Config,
        files: &[PathBuf],
        precision: Precision,
        positions: usize,
    ) -> Result<Decoder<B>, ModelError> {
        if B::MACHINE == Machine::Cuda && !config.fits_tiles() {
            let problem = "its layers differ in widths that no kernel for cuda takes".to_owned();
            return Err(OpsError::refused(problem, "take --device cpu or candle-cuda").into());
        }
        let checkpoint = Checkpoint::open(files)?;
        let loader = Loader {
            ops,
            config: &config,
            prefix: find_prefix(&checkpoint, files)?,
            checkpoint: &checkpoint,
            precision,
            used: RefCell::default(),
        };
        let layers =
            (0..config.layer_count()).map(|layer| loader.layer(layer)).collect::<Result<_, _>>()?;
        let embedding = loader.table()?;
        let own_head = config.tied_embeddings && loader.has_own_head()?;
        let has_head = own_head || !config.tied_embeddings;
        let head = has_head.then(|| loader.head()).transpose()?;
        let final_norm = loader.norm("norm", config.hidden_size)?;
        let inputs = (config.layer_input > 0).then(|| loader.inputs()).transpose()?;
        let embedding_scale = match config.family.traits().scales_embeddings {
            // As trained: the factor is rounded to the type of the weights (√2560 is 50.5 in bf16).
            true => precision.stored.round((config.hidden_size as f32).sqrt()),
            false => 1.0,
        };
        let own_head = own_head.then(|| OWN_HEAD.to_owned());
        let warnings = own_head.into_iter().chain(loader.left_out()).collect();
        let rope = |rope: &super::config::RopeConfig, turned_dim| {
            let inverse_frequencies = rope.inverse_frequencies(turned_dim);
            let (magnitude, growth) = (rope.magnitude(), config.query_growth);
            ops.rope(&Rotation { inverse_frequencies, magnitude, growth }, positions)
        };
        let still = || {
            let growth = config.query_growth;
            ops.rope(
                &Rotation { growth, ..Rotation::by(vec![0.0; config.turned_dim / 2]) },
                positions,
            )
        };
        Ok(Decoder {
            precision,
            embedding,
            embedding_scale,
            inputs,
            layers,
            final_norm,
            head,
            warnings,
            full_rope: rope(&config.full_rope, config.full_turned_dim())?,
            sliding_rope: rope(&config.sliding_rope, config.turned_dim)?,
            still_rope: (!config.unturned.is_empty()).then(still).transpose()?,
            config,
        })
    }
}

/// How the weights of these files are to be kept on `machine`.
pub fn precision_of(
    config: &Config,
    files: &[PathBuf],
    wanted: WantedPrecision,
    machine: Machine,
) -> Result<Precision, ModelError> {
    let WantedPrecision { dtype, quantisation, kv } = wanted;
    let checkpoint = Checkpoint::open(files)?;
    let prefix = find_prefix(&checkpoint, files)?;
    checkpoint.get(&table_name(prefix), &[config.vocab_size, config.hidden_size])?;
    // Norms are kept in f32 anyway.
    let is_wider = |(name, shape, kind): (&str, &[usize], Option<RawType>)| {
        (name.starts_with(prefix) || HEADS.contains(&name))
            && shape.len() > 1
            && matches!(kind, Some(RawType::F32 | RawType::F16))
    };
    let stored = match (dtype, machine) {
        (WantedType::Exactly(stored), _) => stored,
        (WantedType::Auto, Machine::Cuda) => StoredType::Bf16,
        (WantedType::Auto, _) if checkpoint.tensors().any(is_wider) => StoredType::F32,
        (WantedType::Auto, _) => StoredType::Bf16,
    };
    if (machine, stored) == (Machine::Cuda, StoredType::F32) {
        let problem = "a GPU cannot keep weights as f32".to_owned();
        let hint = "leave --dtype at auto, or take --device cpu";
        return Err(OpsError::refused(problem, hint).into());
    }
    let refuses = match machine {
        Machine::Cpu => None,
        Machine::Cuda => (quantisation == Quantisation::Int8).then_some("a GPU"),
        Machine::Candle => (quantisation != Quantisation::None).then_some("candle"),
    };
    if let Some(device) = refuses {
        return Err(OpsError::quantisation(device, quantisation).into());
    }
    let own = match (machine, stored, quantisation) {
        (Machine::Candle, ..) | (Machine::Cpu, StoredType::F32, Quantisation::None) => {
            StoredType::F32
        }
        _ => StoredType::Bf16,
    };
    let kv = match kv {
        WantedType::Exactly(kv) if machine != Machine::Cpu && kv != own => {
            let problem = format!("{machine} keeps keys and values as {own}, not as {kv}");
            let hint = "leave --kv-dtype at auto, or take --device cpu";
            return Err(OpsError::refused(problem, hint).into());
        }
        WantedType::Exactly(kv) => kv,
        WantedType::Auto => own,
    };
    Ok(Precision { stored, quantisation, kv })
}

fn table_name(prefix: &str) -> String {
    format!("{prefix}embed_tokens.weight")
}

fn find_prefix(checkpoint: &Checkpoint, files: &[PathBuf]) -> Result<&'static str, ModelError> {
    let prefix = PREFIXES.into_iter().find(|prefix| checkpoint.contains(&table_name(prefix)));
    prefix.ok_or_else(|| ModelError::Prefix {
        path: files.first().and_then(|file| file.parent()).unwrap_or(Path::new(".")).to_owned(),
        tried: PREFIXES.map(table_name).join(", "),
    })
}

pub(super) struct Loader<'a, B> {
    pub ops: &'a B,
    pub config: &'a Config,
    checkpoint: &'a Checkpoint,
    prefix: &'static str,
    pub precision: Precision,
    used: RefCell<BTreeSet<String>>,
}

impl<'a, B: Backend> Loader<'a, B> {
    /// Which of the decoder's tensors its config has no place for.
    fn left_out(&self) -> Option<String> {
        let used = self.used.borrow();
        // Older files have the frequencies of their ropes.
        let is_left = |name: &&str| {
            name.starts_with(self.prefix)
                && !HEADS.contains(name)
                && !name.ends_with("rotary_emb.inv_freq")
                && !used.contains(*name)
        };
        let mut names: Vec<&str> =
            self.checkpoint.tensors().map(|(name, ..)| name).filter(is_left).collect();
        names.sort_unstable();
        let more = if names.len() > NAMED { ", …" } else { "" };
        let first = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        let count = names.len();
        (count > 0).then(|| {
            format!(
                "tensors that config.json has no place for are left out ({count}): {first}{more}"
            )
        })
    }

    fn layer(&self, index: usize) -> Result<LayerWeights<B>, ModelError> {
        let config = self.config;
        let hidden = config.hidden_size;
        let inner = config.inner_of(index);
        let name = |part: &str| format!("layers.{index}.{part}");
        let norm = |part: &str| self.norm(&name(part), hidden);
        let traits = config.family.traits();
        let norms = &traits.layer_norms;
        let (mixer, output, width) = match config.delta_shape(index) {
            Some(shape) => {
                let rule = DeltaRule::load(self, index, shape)?;
                (Mixer::DeltaRule(rule), "linear_attn.out_proj", shape.values())
            }
            None => {
                let attention = Mixer::Attention(Attention::load(self, index)?);
                (attention, "self_attn.o_proj", config.heads * config.head_dim_of(index))
            }
        };
        let gate_up = ["gate_proj", "up_proj"].map(|part| name(&format!("mlp.{part}")));
        Ok(LayerWeights {
            input_norm: norm("input_layernorm")?,
            mixer,
            output: self.matrix(
                &[&name(output)],
                &[hidden],
                width,
                self.precision.of_layer(width),
            )?,
            attention_norm: norms.attention.map(norm).transpose()?,
            feed_forward_input_norm: norm(norms.feed_forward_input)?,
            gate_up: self.gated(&gate_up, inner)?,
            down: self.matrix(
                &[&name("mlp.down_proj")],
                &[hidden],
                inner,
                self.precision.of_down(inner, index, config.layer_count()),
            )?,
            feed_forward_norm: norms.feed_forward.map(norm).transpose()?,
            input: (config.layer_input > 0).then(|| self.layer_input(index)).transpose()?,
            scale: match traits.parts.scales_layers {
                true => self.numbers(&name(LAYER_SCALE), &[1])?[0],
                false => 1.0,
            },
        })
    }

    /// Takes a tensor that nothing reads for known.
    pub fn pass_over(&self, name: &str) {
        let name = stored_name(&format!("{}{name}", self.prefix));
        self.used.borrow_mut().insert(name);
    }

    /// Whether the files of a model with a tied head have a head of other weights than the embedding's all the same.
    fn has_own_head(&self) -> Result<bool, ModelError> {
        let shape = [self.config.vocab_size, self.config.hidden_size];
        let Some(name) = HEADS.into_iter().find(|name| self.checkpoint.contains(name)) else {
            return Ok(false);
        };
        let (head, table) =
            (self.checkpoint.get(name, &shape)?, self.tensor("embed_tokens", &shape)?);
        Ok((head.kind, head.bytes) != (table.kind, table.bytes))
    }

    fn head(&self) -> Result<B::Matrix, ModelError> {
        let shape = [self.config.vocab_size, self.config.hidden_size];
        let name =
            HEADS.into_iter().find(|name| self.checkpoint.contains(name)).unwrap_or(HEADS[0]);
        let tensor = self.checkpoint.get(name, &shape)?;
        Ok(self.ops.pack(&[tensor], self.config.hidden_size, self.precision.of_tables())?)
    }

    fn table(&self) -> Result<B::Matrix, ModelError> {
        let Config { vocab_size, hidden_size, .. } = *self.config;
        let table = self.tensor("embed_tokens", &[vocab_size, hidden_size])?;
        Ok(self.ops.pack(&[table], hidden_size, self.precision.of_tables())?)
    }

    pub fn tensor(&self, name: &str, shape: &[usize]) -> Result<RawTensor<'a>, CheckpointError> {
        let name = stored_name(&format!("{}{name}", self.prefix));
        let tensor = self.checkpoint.get(&name, shape);
        self.used.borrow_mut().insert(name);
        tensor
    }

    /// The matrices `names`, of `outputs` rows each, stacked.
    pub fn matrix(
        &self,
        names: &[&str],
        outputs: &[usize],
        inputs: usize,
        precision: Precision,
    ) -> Result<B::Matrix, ModelError> {
        let parts =
            names.iter().zip(outputs).map(|(name, &outputs)| self.tensor(name, &[outputs, inputs]));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        Ok(self.ops.pack(&parts, inputs, precision)?)
    }

    /// The two halves of a gated layer, of `width` outputs each.
    fn gated(&self, names: &[String; 2], width: usize) -> Result<B::Matrix, ModelError> {
        let inputs = self.config.hidden_size;
        let [gate, up] = names.each_ref().map(|name| self.tensor(name, &[width, inputs]));
        Ok(self.ops.pack_gated(&[gate?, up?], inputs, self.precision.of_layer(inputs))?)
    }

    /// All numbers of a tensor, widened.
    pub fn numbers(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let mut numbers = vec![0.0; shape.iter().product()];
        self.tensor(name, shape)?.read_row(0, &mut numbers);
        Ok(numbers)
    }

    pub fn norm(&self, name: &str, width: usize) -> Result<B::Vector, ModelError> {
        let mut weight = self.numbers(name, &[width])?;
        let offset = self.config.family.traits().norm_offset;
        if offset != 0.0 {
            weight.iter_mut().for_each(|value| *value += offset);
        }
        Ok(self.ops.vector(weight)?)
    }
}

#[cfg(test)]
mod tests {
    use safetensors::tensor::TensorView;
    use safetensors::{Dtype, SafeTensors, serialize_to_file};

    use super::*;
    use crate::checkpoint::CheckpointFiles;
    use crate::model::Family;
    use crate::ops::Cpu;
    use crate::synth::{Recipe, Shape, write_with_our_words};

    /// A tiny model, each of whose tensors `edit` may give another name, and may have widened to f32.
    fn model(edit: impl Fn(&str) -> (String, bool)) -> (tempfile::TempDir, CheckpointFiles) {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("model");
        let recipe = Recipe { family: Family::Llama, shape: Shape::Tiny, seed: 1, tokenizer: None };
        write_with_our_words(&recipe, &directory).unwrap();
        let files = CheckpointFiles::find(&directory).unwrap();
        let bytes = fs_err::read(&files.weights[0]).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let wide = |bytes: &[u8]| -> Vec<u8> {
            bytes.chunks(2).flat_map(|two| [0, 0, two[0], two[1]]).collect()
        };
        let edited: Vec<_> = tensors
            .iter()
            .map(|(name, tensor)| {
                assert_eq!(tensor.dtype(), Dtype::BF16);
                let (name, is_wide) = edit(name);
                let (kind, bytes) = match is_wide {
                    true => (Dtype::F32, wide(tensor.data())),
                    false => (Dtype::BF16, tensor.data().to_vec()),
                };
                (name, kind, tensor.shape().to_vec(), bytes)
            })
            .collect();
        let views = edited.iter().map(|(name, kind, shape, bytes)| {
            (name, TensorView::new(*kind, shape.clone(), bytes).unwrap())
        });
        serialize_to_file(views, None, &files.weights[0]).unwrap();
        (folder, files)
    }

    fn stored(is_wide: impl Fn(&str) -> bool) -> StoredType {
        let (_folder, files) = model(|name| (name.to_owned(), is_wide(name)));
        let config = Config::read(&files.config).unwrap();
        let wanted = WantedPrecision::default();
        precision_of(&config, &files.weights, wanted, Machine::Cpu).unwrap().stored
    }

    #[test]
    fn the_widest_of_the_matrices_says_how_all_are_kept() {
        assert_eq!(stored(|_| false), StoredType::Bf16);
        assert_eq!(stored(|_| true), StoredType::F32);
        assert_eq!(stored(|name| !name.contains("embed_tokens")), StoredType::F32);
        assert_eq!(stored(|name| name.ends_with("layers.1.mlp.up_proj.weight")), StoredType::F32);
        assert_eq!(stored(|name| name.contains("norm")), StoredType::Bf16);
    }

    #[test]
    fn tensors_without_a_place_are_named() {
        let (_folder, files) = model(|name| (name.to_owned(), false));
        let warnings = |config: Config| {
            let wanted = WantedPrecision::default();
            let precision = precision_of(&config, &files.weights, wanted, Machine::Cpu).unwrap();
            let ops = Cpu::new(1).unwrap();
            Decoder::load(&ops, config, &files.weights, precision, 16).unwrap().warnings
        };
        let config = Config::read(&files.config).unwrap();
        assert_eq!(warnings(config.clone()), [""; 0]);
        let windows = config.windows[..2].to_vec();
        let [warning] = &warnings(Config { windows, ..config })[..] else {
            panic!("one warning");
        };
        let said = "tensors that config.json has no place for are left out (9): model.layers.2.input_layernorm.weight, ";
        assert!(warning.starts_with(said) && warning.ends_with(", …"), "{warning}");
    }
}
