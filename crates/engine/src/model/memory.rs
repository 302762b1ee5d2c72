//! The memory that a model needs, computed before it is loaded.

use super::bert::BertConfig;
use super::config::Config;
use super::inputs::input_widths;
use super::{delta_rule, scratch};
use crate::ops::{Machine, Numbers, PAGE, Precision, StepLimits, StoredType};
use crate::outside;

/// Bytes of one loaded model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Of matrices, norms and tables.
    pub weights: usize,
    /// Of all pages of keys and values, and all slots of states.
    pub kv: usize,
    /// Of what a step computes in.
    pub scratch: usize,
}

impl Footprint {
    /// For pools of `pages` pages and `slots` states, and steps within `limits`.
    pub fn of(
        config: &Config,
        precision: Precision,
        machine: Machine,
        pages: usize,
        slots: usize,
        limits: StepLimits,
    ) -> Footprint {
        let StepLimits { rows, logit_rows, positions } = limits;
        let bytes = |(width, numbers)| machine.buffer_bytes(rows, width, numbers);
        let gates =
            if config.family.traits().gates_heads { config.heads * config.head_dim } else { 0 };
        let delta = config.delta.iter().flat_map(|delta| delta_rule::widths(delta.shape));
        let more = delta.chain([(gates, Numbers::Wide)]).chain(input_widths(config));
        let activations: usize = scratch::widths(config).into_iter().chain(more).map(bytes).sum();
        let logits = machine.buffer_bytes(logit_rows, config.vocab_size, Numbers::Wide);
        let stage = machine.stage_bytes(config.widest_page_shape(), config.heads, limits);
        // Cosines and sines of each.
        let still = if config.unturned.is_empty() { 0 } else { config.turned_dim };
        let ropes = config.turned_dim + config.full_turned_dim() + still;
        let ropes = ropes * size_of::<f32>() * positions;
        Footprint {
            weights: config.weight_bytes(precision),
            kv: config.cache_bytes(machine, precision, pages, slots),
            scratch: activations + logits + stage + ropes,
        }
    }

    /// Of BERT in steps of `rows` rows, which keeps keys and values of one layer at a time.
    pub fn of_bert(
        config: &BertConfig,
        precision: Precision,
        machine: Machine,
        rows: usize,
    ) -> Footprint {
        let BertConfig { hidden_size: hidden, intermediate_size: inner, .. } = *config;
        let shape = config.page_shape();
        let heads = shape.kv_heads;
        let limits =
            StepLimits { rows, logit_rows: rows, positions: config.max_position_embeddings };
        // A GPU that multiplies f32 keeps all as f32.
        let (numbers, wider) = match machine {
            Machine::Cuda if precision.is_f32() => (Numbers::Wide, 2),
            Machine::Cpu | Machine::Cuda | Machine::Candle => (Numbers::Narrow, 1),
        };
        // Each text begins a new page: twice as many as the rows fill.
        let pages = 2 * rows.div_ceil(PAGE);
        let wide = 2 * hidden + 3 * hidden + inner;
        let narrow = 2 * hidden + heads * shape.head_dim.next_multiple_of(32) + inner;
        Footprint {
            weights: precision.size_bytes(config.parameters()),
            kv: wider * pages * machine.page_bytes(shape, StoredType::F32),
            scratch: machine.buffer_bytes(rows, wide, Numbers::Wide)
                + machine.buffer_bytes(rows, narrow, numbers)
                + machine.stage_bytes(shape, heads, limits),
        }
    }

    pub fn total(&self) -> usize {
        self.weights + self.kv + self.scratch
    }
}

impl BertConfig {
    /// Numbers in the matrices and tables; norms and biases are too few to count.
    pub fn parameters(&self) -> usize {
        let rows = self.vocab_size + self.max_position_embeddings + self.type_vocab_size;
        self.multiply_adds() as usize + rows * self.hidden_size
    }
}

impl Config {
    /// Numbers in the matrices; norms are too few to count.
    pub fn parameters(&self) -> usize {
        let layers = (0..self.layer_count()).map(|layer| self.layer_parameters(layer));
        layers.sum::<usize>() + self.table_parameters()
    }

    /// Those of a layer.
    pub(super) fn layer_parameters(&self, layer: usize) -> usize {
        self.layer_matrices(layer).map(|(inputs, outputs)| inputs * outputs).iter().sum()
    }

    /// Inputs and outputs of a layer's matrices: queries, with their gates, keys and values, or what a delta rule projects; output; gate and
    /// up; of the layer's own input gate, projection and its part of the common projection; down.
    pub(super) fn layer_matrices(&self, layer: usize) -> [(usize, usize); 6] {
        let (hidden, inner, own) = (self.hidden_size, self.inner_of(layer), self.layer_input);
        let head_dim = self.head_dim_of(layer);
        let queries = self.heads * head_dim;
        let gates = if self.family.traits().gates_heads { queries } else { 0 };
        let keys = if self.is_sharing(layer) { 0 } else { self.kv_heads * head_dim };
        let (projected, mixed) = match self.delta_shape(layer) {
            Some(shape) => (shape.projected(), shape.values()),
            None => (queries + gates + 2 * keys, queries),
        };
        [
            (hidden, projected),
            (mixed, hidden),
            (hidden, 2 * inner),
            (hidden, 2 * own),
            (own, hidden),
            (inner, hidden),
        ]
    }

    /// Those of the token tables and of a head of its own.
    pub(super) fn table_parameters(&self) -> usize {
        let heads = if self.tied_embeddings { 1 } else { 2 };
        self.vocab_size * (heads * self.hidden_size + self.layer_count() * self.layer_input)
    }

    pub fn weight_bytes(&self, precision: Precision) -> usize {
        self.layer_bytes(precision) + precision.of_tables().size_bytes(self.table_parameters())
    }

    /// Of those in the layers.
    pub(super) fn layer_bytes(&self, precision: Precision) -> usize {
        let layers = self.layer_count();
        let bytes = |(inputs, outputs)| precision.of_layer(inputs).size_bytes(inputs * outputs);
        let layer = |layer| {
            let [rest @ .., (inner, outputs)] = self.layer_matrices(layer);
            let down = precision.of_down(inner, layer, layers).size_bytes(inner * outputs);
            rest.map(bytes).iter().sum::<usize>() + down
        };
        (0..layers).map(layer).sum()
    }

    /// Bytes of keys and values a token takes.
    pub fn kv_bytes_per_token(&self, machine: Machine, kept: StoredType) -> usize {
        let shapes = self.page_shapes().into_iter();
        shapes.map(|shape| machine.page_bytes(shape, kept)).sum::<usize>() / PAGE
    }
}

/// Peak resident memory of this process in bytes, mapped files included; `None` where the system does not report it.
pub fn peak_memory() -> Option<usize> {
    let status = outside::text("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: usize = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Quantisation;

    #[test]
    fn the_tables_of_q4_k_are_counted_in_eight_bits() {
        let json = |tied: bool| {
            serde_json::json!({
                "model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
                "num_attention_heads": 4, "vocab_size": 1000, "rms_norm_eps": 1e-6, "hidden_act": "silu",
                "tie_word_embeddings": tied, "eos_token_id": 0,
            })
        };
        for (tied, tables) in [(true, 256_000), (false, 512_000)] {
            let config =
                Config::from_json(json(tied), std::path::Path::new("config.json")).unwrap();
            let layers = config.parameters() - tables;
            let quantised = |quantisation| Precision { quantisation, ..StoredType::Bf16.into() };
            let bytes = |quantisation| config.weight_bytes(quantised(quantisation));
            assert_eq!(bytes(Quantisation::Q4K), layers / 64 * 37 + tables / 16 * 17);
            // A width within a group of 256: all but the output and down have inputs so wide.
            let odd = Config { hidden_size: 576, ..config.clone() };
            let (own, odd_tables) = (2 * 576 * (256 + 512), tables / 256 * 576);
            let rest = odd.parameters() - odd_tables - own;
            let expected = own / 64 * 37 + (rest + odd_tables) / 16 * 17;
            assert_eq!(odd.weight_bytes(quantised(Quantisation::Q4K)), expected);
            // Of sixteen layers the down projections of the first and last two.
            let deep = Config { windows: [&config.windows[..]; 8].concat(), ..config.clone() };
            let ends = 4 * 256 * 512;
            let expected = (8 * layers - ends) / 64 * 37 + (ends + tables) / 16 * 17;
            assert_eq!(deep.weight_bytes(quantised(Quantisation::Q4K)), expected);
            assert_eq!(bytes(Quantisation::Q8_0), (layers + tables) / 16 * 17);
            assert_eq!(bytes(Quantisation::None), (layers + tables) * 2);
        }
    }

    /// Gemma 4 E2B is published as 2.3 thousand million numbers, and the tables for its layers beside them.
    #[test]
    fn layers_that_share_and_differ_are_counted_one_by_one() {
        let made = &super::super::Family::Gemma4.traits().synthetic;
        let config = (made.config)(super::super::Shape::Full, made.vocab_size, &[1]).unwrap();
        let config = Config::from_json(config, std::path::Path::new("config.json")).unwrap();
        let tables = 262_144 * 35 * 256;
        assert_eq!((config.parameters() - tables) / 10_000_000, 227);
        // Twelve layers of 256 and three of 512 numbers, for keys and for values.
        let kept = config.kv_bytes_per_token(Machine::Cpu, StoredType::Bf16);
        assert_eq!(kept, 2 * 2 * (12 * 256 + 3 * 512));
    }

    #[test]
    fn encoders_in_f32_keep_all_as_f32_on_a_gpu_too() {
        let base = serde_json::json!({
            "vocab_size": 30_522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
            "intermediate_size": 3072, "max_position_embeddings": 512,
        });
        let base: BertConfig = serde_json::from_value(base).unwrap();
        let of =
            |machine, stored: StoredType| Footprint::of_bert(&base, stored.into(), machine, 2048);
        let [cpu, wide] = [Machine::Cpu, Machine::Cuda].map(|machine| of(machine, StoredType::F32));
        let narrow = of(Machine::Cuda, StoredType::Bf16);
        assert_eq!((wide.weights, wide.kv), (cpu.weights, cpu.kv));
        assert!(wide.scratch >= cpu.scratch && narrow.scratch < wide.scratch);
        assert_eq!((narrow.weights, narrow.kv), (wide.weights / 2, wide.kv / 2));
    }
}
