//! The least that a step takes of a machine: the bytes it must read.

use std::ops::Range;

use super::config::Config;
use crate::ops::{Machine, PAGE, PageShape, Precision};

/// Weights are read once a step, keys and values once a sequence and step. Activations stay in caches.
#[derive(Clone, Debug)]
pub struct CostModel {
    /// Bytes of the layers and of the head.
    layers: u64,
    head: u64,
    /// Of each layer that attends, with the bytes of a position's keys and values there.
    windows: Vec<(Option<usize>, u64)>,
    /// Bytes of a sequence's states.
    state_bytes: u64,
}

impl CostModel {
    /// Of a decoder whose numbers are kept so, on this machine.
    pub fn new(config: &Config, precision: Precision, machine: Machine) -> CostModel {
        let head = config.vocab_size * config.hidden_size;
        let kv_bytes = |layer| {
            let head_dim = config.head_dim_of(layer);
            let shape = PageShape { layers: 1, kv_heads: config.kv_heads, head_dim };
            (machine.page_bytes(shape, precision.kv) / PAGE) as u64
        };
        let windows = config.attending().map(|layer| (config.windows[layer], kv_bytes(layer)));
        CostModel {
            layers: config.layer_bytes(precision) as u64,
            head: precision.of_tables().size_bytes(head) as u64,
            state_bytes: config.state_bytes() as u64,
            windows: windows.collect(),
        }
    }

    /// Bytes that a step reads over these positions of its sequences, `logit_rows` of which give logits.
    pub fn step(&self, spans: impl Iterator<Item = Range<usize>>, logit_rows: usize) -> u64 {
        let of_sequences: u64 =
            spans.map(|span| self.kv_bytes_seen(&span) + self.state_bytes).sum();
        self.layers + of_sequences + if logit_rows > 0 { self.head } else { 0 }
    }

    /// Of the positions that the rows `span` of one sequence see together, over all layers.
    fn kv_bytes_seen(&self, span: &Range<usize>) -> u64 {
        let seen = |(window, kv_bytes): &(Option<usize>, u64)| {
            let first = window.map_or(0, |window| (span.start + 1).saturating_sub(window));
            (span.end - first) as u64 * kv_bytes
        };
        self.windows.iter().map(seen).sum()
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
        let head = 10 * 8;
        for tied in [true, false] {
            let config = config(tied);
            let model = CostModel::new(&config, StoredType::Bf16.into(), Machine::Cpu);
            let kv = config.kv_bytes_per_token(Machine::Cpu, StoredType::Bf16) as u64 / 2;
            // One row at position 9, three at 0..3: the window of four cuts the first alone.
            let read = model.step([9..10, 0..3].into_iter(), 2);
            let seen = 10 + 4 + 3 + 3;
            assert_eq!(read, 2 * (2 * layer + head) + kv * seen);
            // Rows 9, 10 and 11 see positions 6 to 11 of the sliding layer.
            let chunk = model.step(std::iter::once(9..12), 0);
            assert_eq!(chunk, 2 * 2 * layer + kv * (12 + 6));
        }
    }
}
