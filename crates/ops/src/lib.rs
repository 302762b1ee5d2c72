//! A decoder's arithmetic over the rows of one step: matmul, norms, rotary, attention, behind one seam.
//!
//! A row is one position of one sequence. Every operation is a pure function of the row's own input, its position and
//! the keys and values before it: never of the rows beside it or the number of threads. That is what makes a batch of
//! sixteen give the bytes of a batch of one. (Not on candle, which is a crate beside this one: see there.)
//!
//! A backend implements [`Backend`]; the decoder is written once against it.

#![allow(unsafe_code, reason = "the one module that may: registers, mapped files, disjoint writes")]

#[cfg(not(any(feature = "cuda", feature = "cuda-emulated")))]
mod absent;
pub mod checkpoint;
pub mod cpu;
#[cfg(any(feature = "cuda", feature = "cuda-emulated"))]
pub mod cuda;
pub mod diagnosis; // what every error says, and whom it blames
mod error;
pub mod mapped;
pub mod regular_file; // how files are opened
mod shared; // the seam, and what stands below every backend
pub mod variable; // environment variables that are on or off

#[cfg(not(any(feature = "cuda", feature = "cuda-emulated")))]
use absent as cuda;
pub use cpu::Cpu;
pub use cuda::Cuda;
pub use error::OpsError;
pub use shared::{
    Activation, Angles, AttentionShape, Backend, Biased, BranchNorms, CANDLE, CANDLE_ROWS, CHUNK,
    DeltaShape, DeltaWeights, EncoderBackend, HeadNorms, HostStep, Isa, LayerNorm, LayerPages,
    LayerStates, Machine, Numbers, PAGE, PageShape, Precision, Quantisation, QueryGrowth, Rotation,
    Rows, StateRows, StateShape, StepLimits, StoredType, TextTables, blocks, sampler, sampling,
    vectors,
};
