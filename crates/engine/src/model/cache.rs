//! What later rows see of the rows before them: keys and values in pages, and states in slots.

use super::config::Config;
use crate::ops::{Backend, Machine, OpsError, Precision, StateShape};

/// Of one decoder, of all its sequences.
#[derive(Debug)]
pub struct Cache<B: Backend> {
    /// A pool for each width of heads.
    pub pages: Vec<B::Pages>,
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
        let shapes = config.page_shapes().into_iter();
        let pages = shapes.map(|shape| ops.pages(shape, precision.kv, pages));
        Ok(Cache { pages: pages.collect::<Result<_, _>>()?, states })
    }
}

impl Config {
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
        let shapes = self.page_shapes().into_iter();
        let page: usize = shapes.map(|shape| machine.page_bytes(shape, precision.kv)).sum();
        pages * page + slots * self.state_bytes()
    }
}
