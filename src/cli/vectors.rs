//! How vectors are kept, as flags name it.

use clap::ValueEnum;

use crate::ops::vectors::VectorType;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum VectorFlag {
    F16,
    F32,
    /// Whole numbers from −127 to 127 under one scale a row
    I8,
}

impl From<VectorFlag> for VectorType {
    fn from(flag: VectorFlag) -> VectorType {
        match flag {
            VectorFlag::F16 => VectorType::F16,
            VectorFlag::F32 => VectorType::F32,
            VectorFlag::I8 => VectorType::I8,
        }
    }
}
