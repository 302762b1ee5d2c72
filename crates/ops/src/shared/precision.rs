//! How a model's numbers are kept.

use serde::{Deserialize, Serialize};

use crate::OpsError;

/// The type that weights are kept as. Arithmetic is f32 in either case; widening bf16 is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoredType {
    F32,
    Bf16,
}

impl StoredType {
    pub fn size_bytes(self) -> usize {
        match self {
            StoredType::F32 => 4,
            StoredType::Bf16 => 2,
        }
    }

    /// `value` as this type would hold it.
    pub fn round(self, value: f32) -> f32 {
        match self {
            StoredType::F32 => value,
            StoredType::Bf16 => half::bf16::from_f32(value).to_f32(),
        }
    }
}

impl std::fmt::Display for StoredType {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            StoredType::F32 => "f32",
            StoredType::Bf16 => "bf16",
        })
    }
}

/// How matrices are rounded to blocks of weights when they are loaded; norms never are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantisation {
    #[default]
    None,
    /// 32 weights in bytes under one scale: 8.5 bits a weight.
    Q8_0,
    /// Bytes under one scale a row: 8 bits a weight; activations share a scale by 128.
    Int8,
    /// Halves of bytes in blocks of 32, eight of them under two scales: 4.6 bits a weight, but for a few matrices.
    Q4K,
}

impl Quantisation {
    pub const ALL: [Quantisation; 4] =
        [Quantisation::None, Quantisation::Q8_0, Quantisation::Int8, Quantisation::Q4K];

    pub fn is_none(&self) -> bool {
        *self == Quantisation::None
    }

    pub fn name(self) -> &'static str {
        match self {
            Quantisation::None => "none",
            Quantisation::Q8_0 => "q8_0",
            Quantisation::Int8 => "int8",
            Quantisation::Q4K => "q4_k",
        }
    }
}

impl std::str::FromStr for Quantisation {
    type Err = OpsError;

    fn from_str(text: &str) -> Result<Quantisation, OpsError> {
        let named = Quantisation::ALL.into_iter().find(|quantisation| quantisation.name() == text);
        named.ok_or_else(|| {
            let known = Quantisation::ALL.map(Quantisation::name).join(", ");
            OpsError::unknown(format!("`{text}` is no quantisation; known: {known}"))
        })
    }
}

impl std::fmt::Display for Quantisation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// How a model's numbers are kept: its matrices as numbers of a type, or in blocks made from the checkpoint's numbers; its keys and
/// values as numbers of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precision {
    pub stored: StoredType,
    pub quantisation: Quantisation,
    pub kv: StoredType,
}

impl Precision {
    pub fn is_f32(self) -> bool {
        (self.stored, self.quantisation) == (StoredType::F32, Quantisation::None)
    }

    pub fn size_bytes(self, weights: usize) -> usize {
        match self.quantisation {
            Quantisation::None => weights * self.stored.size_bytes(),
            Quantisation::Q8_0 => weights / 16 * 17,
            // Beside them four bytes a row.
            Quantisation::Int8 => weights / 64 * 65,
            // Per eight blocks of 32: 128 bytes of values, 16 of scales and minima, 4 of units.
            Quantisation::Q4K => weights / 64 * 37,
        }
    }

    /// How a decoder's token table and head are kept: they lose most by few bits, so that under q4_k they have eight.
    pub fn of_tables(self) -> Precision {
        match self.quantisation {
            Quantisation::Q4K => Precision { quantisation: Quantisation::Q8_0, ..self },
            Quantisation::None | Quantisation::Q8_0 | Quantisation::Int8 => self,
        }
    }

    /// How a decoder's matrix of so many inputs is kept. Where they end within a group of 256, q4_k becomes q8_0: models with such
    /// widths are small, and lose most. Rows of less than one group, which no published model has, stay.
    pub fn of_layer(self, inputs: usize) -> Precision {
        if inputs > 256 && !inputs.is_multiple_of(256) { self.of_tables() } else { self }
    }

    /// How layer `layer`'s down projection is kept. Those of the first and last eighth of the layers lose most by few bits, so that
    /// under q4_k they have eight.
    pub fn of_down(self, inputs: usize, layer: usize, layers: usize) -> Precision {
        let end = layers / 8;
        if layer < end || layer + end >= layers { self.of_tables() } else { self.of_layer(inputs) }
    }
}

impl From<StoredType> for Precision {
    fn from(stored: StoredType) -> Precision {
        Precision { stored, quantisation: Quantisation::None, kv: stored }
    }
}
