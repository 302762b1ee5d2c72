//! The least that a step takes of a machine: the bytes it must read, the multiply-adds of its linear layers.

use std::ops::{AddAssign, Range};

use super::config::Config;
use crate::ops::{Machine, Precision};

/// Work of one step or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Weights once a step, keys and values, and states, once a sequence and step. Activations stay in caches.
    pub bytes_read: u64,
    /// Of the linear layers; attention is left out.
    pub multiply_adds: u64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.bytes_read += other.bytes_read;
        self.multiply_adds += other.multiply_adds;
    }
}

#[derive(Clone, Debug)]
pub struct CostModel {
    /// Numbers, and their bytes, in the layers and in the head.
    layers: (u64, u64),
    head: (u64, u64),
    /// Of the layers' numbers, those that only rows with logits need: the last layer's, but for its keys and values.
    last: u64,
    /// Of the layers that attend.
    windows: Vec<Option<usize>>,
    /// Bytes of a position's keys and values in one layer.
    kv_bytes: u64,
    /// Bytes of a sequence's states.
    state_bytes: u64,
}

impl CostModel {
    /// Of a decoder whose numbers are kept so, on this machine.
    pub fn new(config: &Config, precision: Precision, machine: Machine) -> CostModel {
        let head = config.vocab_size * config.hidden_size;
        let layers = config.parameters() - config.table_parameters();
        // Output, gate, up and down; queries, where it attends.
        let last = config.layer_count().checked_sub(1).map_or(0, |last| {
            let [(hidden, _), rest @ ..] = config.layer_matrices(last);
            let attends = config.delta_shape(last).is_none();
            let queries = if attends { hidden * config.heads * config.head_dim } else { 0 };
            queries + rest.map(|(inputs, outputs)| inputs * outputs).iter().sum::<usize>()
        });
        let windows: Vec<_> = config.attending().map(|layer| config.windows[layer]).collect();
        CostModel {
            layers: (layers as u64, config.layer_bytes(precision) as u64),
            head: (head as u64, precision.of_tables().size_bytes(head) as u64),
            last: last as u64,
            kv_bytes: (config.kv_bytes_per_token(machine, precision.kv) / windows.len().max(1))
                as u64,
            state_bytes: config.state_bytes() as u64,
            windows,
        }
    }

    /// A step over these positions of its sequences, `logit_rows` of which give logits.
    pub fn step(&self, spans: impl Iterator<Item = Range<usize>>, logit_rows: usize) -> Cost {
        let mut cost = Cost { bytes_read: self.layers.1, multiply_adds: 0 };
        for span in spans {
            cost.multiply_adds += span.len() as u64 * (self.layers.0 - self.last);
            cost.bytes_read += self.kv_bytes * self.positions_seen(&span) + self.state_bytes;
        }
        if logit_rows > 0 {
            cost.bytes_read += self.head.1;
            cost.multiply_adds += logit_rows as u64 * (self.last + self.head.0);
        }
        cost
    }

    /// Positions that the rows `span` of one sequence see together, over all layers.
    fn positions_seen(&self, span: &Range<usize>) -> u64 {
        let seen = |window: &Option<usize>| match window {
            Some(window) => span.end - (span.start + 1).saturating_sub(*window),
            None => span.end,
        };
        self.windows.iter().map(seen).sum::<usize>() as u64
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::StoredType;
    use std::path::Path;

    use super::*;

    /// Hidden 8, one head of 4 for queries and one for keys, feed-forward 16, 10 tokens; a full layer, a sliding one.
    fn config(tied: bool) -> Config {
        let json = serde_json::json!({
            "model_type": "qwen3", "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1,
            "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 4, "vocab_size": 10,
            "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "max_position_embeddings": 64, "hidden_act": "silu",
            "tie_word_embeddings": tied, "eos_token_id": 0, "attention_bias": false,
        });
        let mut config = Config::from_json(json, Path::new("config.json")).unwrap();
        config.windows = vec![None, Some(4)];
        config
    }

    #[test]
    fn a_step_reads_weights_once_and_each_sequence_once() {
        // q, k, v: 4 outputs each; o: 8 from 4; gate, up, down.
        let layer = 3 * 4 * 8 + 8 * 4 + 3 * 8 * 16;
        let last = layer - 2 * 4 * 8;
        let head = 10 * 8;
        for tied in [true, false] {
            let config = config(tied);
            let model = CostModel::new(&config, StoredType::Bf16.into(), Machine::Cpu);
            let kv = config.kv_bytes_per_token(Machine::Cpu, StoredType::Bf16) as u64 / 2;
            // One row at position 9, three at 0..3: the window of four cuts the first alone.
            let cost = model.step([9..10, 0..3].into_iter(), 2);
            assert_eq!(cost.multiply_adds, 4 * (2 * layer - last) + 2 * (last + head));
            let seen = 10 + 4 + 3 + 3;
            assert_eq!(cost.bytes_read, 2 * (2 * layer + head) + kv * seen);
            // Rows 9, 10 and 11 see positions 6 to 11 of the sliding layer.
            let chunk = model.step(std::iter::once(9..12), 0);
            assert_eq!(chunk.bytes_read, 2 * 2 * layer + kv * (12 + 6));
            assert_eq!(chunk.multiply_adds, 3 * (2 * layer - last));
        }
    }
}
