//! The pool of key and value pages of one model, all layers, allocated once and zeroed.

use std::io;

use super::Disjoint;
use super::kept::Kept;
use super::lanes::LANES;
use super::slab::Slab;
use crate::{PAGE, PageShape, StoredType};

/// Pages of keys and values, kept as one type or the other. Arithmetic is f32 in either case.
#[derive(Debug)]
pub enum KvPages {
    F32(PagesOf<f32>),
    /// bf16 by their bits: half the memory, and half of what a long context reads.
    Bf16(PagesOf<u16>),
}

/// A page's values lie `[PAGE][stride]`, its keys by components, so that scores of sixteen keys grow side by side:
/// `[stride / TOGETHER][PAGE][TOGETHER]` ([`Kept::TOGETHER`]). `stride` is a head's length, padded to whole lanes.
#[derive(Debug)]
pub struct PagesOf<T: Kept> {
    keys: Slab<T>,
    values: Slab<T>,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    /// Length of a row.
    pub(super) stride: usize,
    pages: usize,
}

/// A page of one layer and one head: its place in both vectors.
#[derive(Clone, Copy)]
pub struct PageHead<'a, T> {
    /// `[stride / TOGETHER][PAGE][TOGETHER]`.
    pub keys: &'a [T],
    /// `[PAGE][stride]`.
    pub values: &'a [T],
}

/// Calls `$body` with the pages of either type.
macro_rules! of_either {
    ($pages:expr, $name:ident => $body:expr) => {
        match $pages {
            KvPages::F32($name) => $body,
            KvPages::Bf16($name) => $body,
        }
    };
}
pub(super) use of_either;

impl KvPages {
    /// `pages` pages of [`PAGE`] positions for each layer of `shape`.
    pub fn new(shape: PageShape, kept: StoredType, pages: usize) -> io::Result<KvPages> {
        Ok(match kept {
            StoredType::F32 => KvPages::F32(PagesOf::new(shape, pages)?),
            StoredType::Bf16 => KvPages::Bf16(PagesOf::new(shape, pages)?),
        })
    }

    /// Writes the zeros that are there, which makes them memory.
    pub fn touch(&mut self) {
        of_either!(self, pages => {
            pages.keys.touch();
            pages.values.touch();
        });
    }
}

impl<T: Kept> PagesOf<T> {
    pub(super) fn new(shape: PageShape, pages: usize) -> io::Result<PagesOf<T>> {
        let PageShape { layers, kv_heads, head_dim } = shape;
        let stride = head_dim.next_multiple_of(LANES);
        let numbers = layers * pages * kv_heads * PAGE * stride;
        Ok(PagesOf {
            keys: Slab::zeroed(numbers)?,
            values: Slab::zeroed(numbers)?,
            kv_heads,
            head_dim,
            stride,
            pages,
        })
    }

    fn index(&self, layer: usize, page: u32, head: usize) -> usize {
        (layer * self.pages + page as usize) * self.kv_heads + head
    }

    pub fn page(&self, layer: usize, page: u32, head: usize) -> PageHead<'_, T> {
        let index = self.index(layer, page, head);
        let size = PAGE * self.stride;
        PageHead {
            keys: &self.keys[index * size..][..size],
            values: &self.values[index * size..][..size],
        }
    }

    /// For several threads to write to `layer` at once.
    pub(super) fn writer(&mut self, layer: usize) -> PageWriter<'_, T> {
        let (keys, values) = (Disjoint::new(&mut self.keys), Disjoint::new(&mut self.values));
        PageWriter { pages: self, layer, keys, values }
    }
}

/// Writes positions of one layer's pages.
pub(super) struct PageWriter<'a, T: Kept> {
    pages: &'a PagesOf<T>,
    layer: usize,
    keys: Disjoint<T>,
    values: Disjoint<T>,
}

impl<T: Kept> PageWriter<'_, T> {
    /// Writes a head's key and value (`[head_dim]` each) at `slot` of `page`.
    ///
    /// # Safety
    /// The page and the head are there, and no other thread writes this slot.
    pub unsafe fn write(&self, page: u32, head: usize, slot: usize, key: &[f32], value: &[f32]) {
        let PagesOf { pages, kv_heads, head_dim, stride, .. } = *self.pages;
        debug_assert!((page as usize) < pages && head < kv_heads);
        let start = self.pages.index(self.layer, page, head) * PAGE * stride;
        for (row, key) in key.chunks(T::TOGETHER).enumerate() {
            // SAFETY: inside the page, which is there; the slot's part of this row is this thread's.
            keep(key, unsafe {
                self.keys.slice(start + (row * PAGE + slot) * T::TOGETHER, key.len())
            });
        }
        // SAFETY: as above.
        keep(value, unsafe { self.values.slice(start + slot * stride, head_dim) });
    }
}

fn keep<T: Kept>(from: &[f32], to: &mut [T]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = T::keep(*from);
    }
}
