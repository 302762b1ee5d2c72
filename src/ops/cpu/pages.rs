//! The pool of key and value pages of one model, all layers, allocated once and zeroed.

use std::io;
use std::marker::PhantomData;

use super::Disjoint;
use super::lanes::LANES;
use super::slab::Slab;
use crate::ops::PAGE;

/// Keys and values lie `[PAGE][head_dim]`, rows padded to whole lanes: a position's are written, and a short context's
/// read, in a few cache lines.
#[derive(Debug)]
pub struct KvPages {
    keys: Slab<f32>,
    values: Slab<f32>,
    kv_heads: usize,
    head_dim: usize,
    /// Length of a row.
    pub(super) stride: usize,
    pages: usize,
}

/// A page of one layer and one head: its place in both vectors.
#[derive(Clone, Copy)]
pub(super) struct PageHead<'a> {
    /// `[PAGE][stride]`, like the values.
    pub keys: &'a [f32],
    pub values: &'a [f32],
}

impl KvPages {
    /// `pages` pages of [`PAGE`] positions for each of `layers` layers.
    ///
    /// # Errors
    /// When the system has no memory for them.
    pub fn new(
        layers: usize,
        pages: usize,
        kv_heads: usize,
        head_dim: usize,
    ) -> io::Result<KvPages> {
        let stride = head_dim.next_multiple_of(LANES);
        let numbers = layers * pages * kv_heads * PAGE * stride;
        Ok(KvPages {
            keys: Slab::zeroed(numbers)?,
            values: Slab::zeroed(numbers)?,
            kv_heads,
            head_dim,
            stride,
            pages,
        })
    }

    /// Bytes that one page takes over all layers.
    pub fn page_bytes(layers: usize, kv_heads: usize, head_dim: usize) -> usize {
        layers * kv_heads * PAGE * 2 * head_dim.next_multiple_of(LANES) * size_of::<f32>()
    }

    pub fn kv_heads(&self) -> usize {
        self.kv_heads
    }

    pub fn head_dim(&self) -> usize {
        self.head_dim
    }

    pub fn pages(&self) -> usize {
        self.pages
    }

    fn index(&self, layer: usize, page: u32, head: usize) -> usize {
        (layer * self.pages + page as usize) * self.kv_heads + head
    }

    pub(super) fn page(&self, layer: usize, page: u32, head: usize) -> PageHead<'_> {
        let index = self.index(layer, page, head);
        let size = PAGE * self.stride;
        PageHead {
            keys: &self.keys[index * size..][..size],
            values: &self.values[index * size..][..size],
        }
    }

    /// For several threads to write to `layer` at once.
    pub(super) fn writer(&mut self, layer: usize) -> PageWriter<'_> {
        PageWriter {
            first: self.index(layer, 0, 0),
            pages: self.pages,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            stride: self.stride,
            keys: Disjoint::new(&mut self.keys),
            values: Disjoint::new(&mut self.values),
            of: PhantomData,
        }
    }
}

/// Writes positions of one layer's pages.
pub(super) struct PageWriter<'a> {
    /// Where the layer's first page is.
    first: usize,
    pages: usize,
    kv_heads: usize,
    head_dim: usize,
    stride: usize,
    keys: Disjoint<f32>,
    values: Disjoint<f32>,
    of: PhantomData<&'a mut KvPages>,
}

impl PageWriter<'_> {
    /// Writes a head's key and value (`[head_dim]` each) at `slot` of `page`.
    ///
    /// # Safety
    /// The page and the head are there, and no other thread writes this slot.
    pub unsafe fn write(&self, page: u32, head: usize, slot: usize, key: &[f32], value: &[f32]) {
        debug_assert!((page as usize) < self.pages && head < self.kv_heads);
        let index = self.first + page as usize * self.kv_heads + head;
        let place = (index * PAGE + slot) * self.stride;
        // SAFETY: inside the page, which is there.
        let (to_keys, to_values) = unsafe {
            (self.keys.slice(place, self.head_dim), self.values.slice(place, self.head_dim))
        };
        to_keys.copy_from_slice(key);
        to_values.copy_from_slice(value);
    }
}
