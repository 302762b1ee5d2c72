//! What the backend takes and measures, on candle's CPU device; whole models on it are in tests/engine/candle/ of the program.

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

#[test]
fn limits_are_rates() {
    let limits = Candle::open(Place::Cpu, 2).unwrap().measure(1 << 16, 32);
    let rates = [
        limits.bytes_per_second,
        limits.f32_multiply_adds_per_second,
        limits.bf16_multiply_adds_per_second.unwrap(),
    ];
    assert!(rates.iter().all(|rate| *rate > 1e3 && rate.is_finite()), "{limits:?}");
}
