//! What the backend takes, on candle's CPU device; whole models on it are in tests/engine/candle/ of the program.

use candle_core::Tensor;

use wardround_ops::{Backend, Machine, PageShape, StoredType};

use super::{Candle, Place};

#[test]
fn pages_take_what_is_planned_for_them() {
    let shape = PageShape { layers: 2, kv_heads: 3, head_dim: 20 };
    let pages = Candle::open(Place::Cpu, 2).unwrap().pages(shape, StoredType::F32, 5).unwrap();
    let numbers = pages.layers.iter().flatten().map(Tensor::elem_count);
    assert_eq!(4 * numbers.sum::<usize>(), 5 * Machine::Candle.page_bytes(shape, StoredType::F32));
}
