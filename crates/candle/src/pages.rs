//! The pool of key and value pages: a tensor each a layer, written by scattering and read by gathering whole pages.

use std::ops::Range;

use candle_core::{Device, Result, Tensor};

use wardround_ops::{PAGE, PageShape};

/// Keys and values of each layer, f32 `[pages · PAGE, kv_heads · head_dim]`, zeroed.
#[derive(Debug)]
pub struct Pages {
    pub(super) layers: Vec<[Tensor; 2]>,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
}

impl Pages {
    pub fn new(shape: PageShape, pages: usize, device: &Device) -> Result<Pages> {
        let PageShape { layers, kv_heads, head_dim } = shape;
        let (slots, width) = (pages * PAGE, kv_heads * head_dim);
        // Numbers take their own size; what candle clears itself is rounded up to a power of two.
        let zeros = || Tensor::from_vec(vec![0.0f32; slots * width], (slots, width), device);
        Ok(Pages {
            layers: (0..layers).map(|_| Ok([zeros()?, zeros()?])).collect::<Result<_>>()?,
            kv_heads,
            head_dim,
        })
    }

    /// Numbers of a position's key, and of its value.
    pub fn width(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// Writes rows of keys and values, `[rows, kv_heads · head_dim]`, at their slots.
    pub fn store(
        &mut self,
        layer: usize,
        slots: &Tensor,
        keys_and_values: [&Tensor; 2],
    ) -> Result<()> {
        let shape = (slots.dim(0)?, self.width());
        let slots = slots.unsqueeze(1)?.broadcast_as(shape)?.contiguous()?;
        for (to, from) in self.layers[layer].iter().zip(keys_and_values) {
            to.scatter_set(&slots, from, 0)?;
        }
        Ok(())
    }

    /// Keys and values of `positions` of the sequence whose pages are `table`, `[kv_heads, positions, head_dim]` each.
    pub fn gather(
        &self,
        layer: usize,
        table: &[u32],
        positions: Range<usize>,
    ) -> Result<[Tensor; 2]> {
        let first = positions.start / PAGE;
        let table = &table[first..positions.end.div_ceil(PAGE)];
        let [keys, values] = &self.layers[layer];
        let table = Tensor::new(table, keys.device())?;
        let gather = |from: &Tensor| {
            from.reshape(((), PAGE * self.width()))?
                .index_select(&table, 0)?
                .reshape(((), self.kv_heads, self.head_dim))?
                .narrow(0, positions.start - first * PAGE, positions.len())?
                .transpose(0, 1)?
                .contiguous()
        };
        Ok([gather(keys)?, gather(values)?])
    }
}
