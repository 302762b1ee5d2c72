//! The arithmetic, crates of their own: on CPUs and CUDA, and beside it candle's.

mod device;

pub use wardround_candle as candle;
pub use wardround_ops::*;

pub use candle::Candle;
pub use device::Device;
