//! What later rows see of the rows before them: keys and values in pages, and states in slots.

use super::config::Config;
use crate::ops::{Backend, Machine, OpsError, PageShape, Precision, StateShape};

/// Of one decoder, of all its sequences.
#[derive(Debug)]
pub struct Cache<B: Backend> {
    pub pages: B::Pages,
    /// `None`: all layers attend.
    pub states: Option<B::States>,
}

impl<B: Backend> Cache<B> {
    /// So many pages, and slots for states where the decoder has any.
    pub fn new(
        ops: &B,
        config: &Config,
        precision: Precision,
        pages: usize,
        slots: usize,
    ) -> Result<Cache<B>, OpsError> {
        let states = config.state_shape().map(|shape| ops.states(shape, slots)).transpose()?;
        Ok(Cache { pages: ops.pages(config.page_shape(), precision.kv, pages)?, states })
    }
}

impl Config {
    /// What a page of its keys and values holds.
    pub fn page_shape(&self) -> PageShape {
        let layers = self.attending().count();
        PageShape { layers, kv_heads: self.kv_heads, head_dim: self.head_dim }
    }

    /// What a slot holds; `None`: all layers attend.
    pub fn state_shape(&self) -> Option<StateShape> {
        let delta = self.delta.as_ref()?;
        let layers = self.layer_count() - self.attending().count();
        Some(StateShape { layers, of_layer: delta.shape })
    }

    /// Bytes of a sequence's states.
    pub fn state_bytes(&self) -> usize {
        self.state_shape().map_or(0, |shape| shape.bytes())
    }

    /// Bytes of so many pages and slots.
    pub fn cache_bytes(
        &self,
        machine: Machine,
        precision: Precision,
        pages: usize,
        slots: usize,
    ) -> usize {
        pages * machine.page_bytes(self.page_shape(), precision.kv) + slots * self.state_bytes()
    }
}
