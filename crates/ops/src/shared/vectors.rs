//! Rows of vectors as a search reads them, queries beside them, and the best rows found.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use half::f16;
use serde::{Deserialize, Serialize};

use crate::checkpoint::{RawTensor, RawType};

/// Where rows begin: at multiples of so many bytes.
pub const ALIGNMENT: usize = 64;
/// Columns that kernels take at once; queries are padded to whole groups.
const GROUP: usize = 16;

/// How the numbers of a row are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VectorType {
    F16,
    F32,
    /// Whole numbers from −127 to 127 under one scale a row.
    I8,
}

impl VectorType {
    fn size_bytes(self) -> usize {
        match self {
            VectorType::F16 => 2,
            VectorType::F32 => 4,
            VectorType::I8 => 1,
        }
    }

    /// Bytes from one row to the next.
    pub fn stride(self, dims: usize) -> usize {
        (dims * self.size_bytes()).next_multiple_of(ALIGNMENT)
    }

    /// Appends a vector as a row; of bytes its scale to `scales`.
    ///
    /// # Errors
    /// What is wrong with the vector, to read on from its name: a number that is none or too large, length 0.
    pub fn append(
        self,
        vector: &[f32],
        rows: &mut Vec<u8>,
        scales: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        if vector.iter().any(|number| !number.is_finite()) {
            return Err("has a number that is not finite");
        }
        if vector.iter().all(|number| *number == 0.0) {
            return Err("has length 0");
        }
        let end = rows.len() + self.stride(vector.len());
        match self {
            VectorType::F16 => {
                for number in vector {
                    let number = f16::from_f32(*number);
                    if !number.is_finite() {
                        return Err("has a number that f16 cannot hold");
                    }
                    rows.extend(number.to_le_bytes());
                }
            }
            VectorType::F32 => rows.extend(vector.iter().flat_map(|number| number.to_le_bytes())),
            VectorType::I8 => {
                let (bytes, scale) = round_to_bytes(vector);
                rows.extend(bytes.into_iter().map(|byte| byte as u8));
                scales.extend(scale.to_le_bytes());
            }
        }
        rows.resize(end, 0);
        Ok(())
    }
}

/// The nearest multiples of the largest magnitude's 127th part.
fn round_to_bytes(vector: &[f32]) -> (Vec<i8>, f32) {
    let largest = vector.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    let scale = largest / 127.0;
    let round =
        |number: &f32| if scale > 0.0 { (number / scale).round_ties_even() as i8 } else { 0 };
    (vector.iter().map(round).collect(), scale)
}

/// A matrix in a mapped file: rows `[rows][dims]`, each at a multiple of [`ALIGNMENT`] bytes, little-endian.
#[derive(Clone, Copy, Debug)]
pub struct VectorRows<'a> {
    bytes: &'a [u8],
    /// f32 a row, where rows are bytes.
    scales: &'a [u8],
    pub(crate) kind: VectorType,
    dims: usize,
}

impl<'a> VectorRows<'a> {
    /// `None` where rows are cut short, or not as many as their scales.
    pub fn new(
        bytes: &'a [u8],
        scales: &'a [u8],
        kind: VectorType,
        dims: usize,
    ) -> Option<VectorRows<'a>> {
        let stride = kind.stride(dims.max(1));
        let has_scales = kind != VectorType::I8 || scales.len() / 4 == bytes.len() / stride;
        let is_whole = dims > 0 && bytes.len().is_multiple_of(stride) && has_scales;
        is_whole.then_some(VectorRows { bytes, scales, kind, dims })
    }

    pub fn len(&self) -> usize {
        self.bytes.len() / self.kind.stride(self.dims)
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn dims(&self) -> usize {
        self.dims
    }

    /// A row's bytes, its padding too.
    pub(crate) fn row(&self, row: usize) -> &'a [u8] {
        let stride = self.kind.stride(self.dims);
        &self.bytes[row * stride..][..stride]
    }

    pub(crate) fn scale(&self, row: usize) -> f32 {
        let bytes = self.scales[4 * row..].first_chunk().copied();
        f32::from_le_bytes(bytes.unwrap_or_default())
    }

    /// A row's numbers, widened exactly.
    pub fn numbers(&self, row: usize) -> Vec<f32> {
        let bytes = self.row(row);
        let kind = match self.kind {
            VectorType::F16 => RawType::F16,
            VectorType::F32 => RawType::F32,
            VectorType::I8 => {
                let (scale, bytes) = (self.scale(row), &bytes[..self.dims]);
                return bytes.iter().map(|byte| f32::from(*byte as i8) * scale).collect();
            }
        };
        let mut numbers = vec![0.0; self.dims];
        RawTensor { kind, bytes }.read_row(0, &mut numbers);
        numbers
    }

    /// A query for these rows; what it is longer than them is left out, what it is shorter is zeros.
    pub fn query(&self, vector: &[f32]) -> Query {
        let mut numbers = vector.to_vec();
        numbers.resize(self.dims, 0.0);
        let (bytes, scale) = match self.kind {
            VectorType::I8 => round_to_bytes(&numbers),
            VectorType::F16 | VectorType::F32 => (Vec::new(), 0.0),
        };
        numbers.resize(self.dims.next_multiple_of(GROUP), 0.0);
        Query { numbers, bytes, scale }
    }
}

/// A query as the rows of one matrix want it.
#[derive(Clone, Debug)]
pub struct Query {
    pub(crate) numbers: Vec<f32>,
    pub(crate) bytes: Vec<i8>,
    pub(crate) scale: f32,
}

/// A row with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    pub score: f32,
    pub row: usize,
}

impl Eq for Hit {}

impl PartialOrd for Hit {
    fn partial_cmp(&self, other: &Hit) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Hit {
    /// The better one is less: the higher score, then the lower row.
    fn cmp(&self, other: &Hit) -> Ordering {
        other.score.total_cmp(&self.score).then(self.row.cmp(&other.row))
    }
}

/// The best so far: a heap whose top is the worst of them.
#[derive(Clone, Debug)]
pub struct Best {
    count: usize,
    heap: BinaryHeap<Hit>,
}

impl Best {
    pub fn new(count: usize) -> Best {
        Best { count, heap: BinaryHeap::new() }
    }

    #[inline(always)]
    pub fn offer(&mut self, score: f32, row: usize) {
        let hit = Hit { score, row };
        if self.heap.len() < self.count {
            self.heap.push(hit);
        } else if let Some(worst) = self.heap.peek()
            && score >= worst.score
            && hit < *worst
        {
            self.heap.pop();
            self.heap.push(hit);
        }
    }

    pub fn extend(&mut self, other: Best) {
        for hit in other.heap {
            self.offer(hit.score, hit.row);
        }
    }

    /// Best first.
    pub fn into_sorted(self) -> Vec<Hit> {
        self.heap.into_sorted_vec()
    }
}
