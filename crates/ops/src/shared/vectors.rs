//! Rows of vectors as a search reads them, queries beside them, and the best rows found.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use half::f16;

use crate::checkpoint::{RawTensor, RawType};

/// Where rows begin: at multiples of so many bytes.
pub const ALIGNMENT: usize = 64;
/// Columns that kernels take at once; queries are padded to whole groups.
const GROUP: usize = 16;

/// Bytes from one row to the next.
pub fn stride(dims: usize) -> usize {
    (dims * size_of::<f16>()).next_multiple_of(ALIGNMENT)
}

/// # Errors
/// What is wrong with the vector, to read on from its name: a number that is none or too large, length 0.
pub fn append(vector: &[f32], rows: &mut Vec<u8>) -> Result<(), &'static str> {
    if vector.iter().any(|number| !number.is_finite()) {
        return Err("has a number that is not finite");
    }
    if vector.iter().all(|number| *number == 0.0) {
        return Err("has length 0");
    }
    let end = rows.len() + stride(vector.len());
    for number in vector {
        let number = f16::from_f32(*number);
        if !number.is_finite() {
            return Err("has a number that f16 cannot hold");
        }
        rows.extend(number.to_le_bytes());
    }
    rows.resize(end, 0);
    Ok(())
}

/// A matrix of f16 in a mapped file: rows `[rows][dims]`, each at a multiple of [`ALIGNMENT`] bytes, little-endian.
#[derive(Clone, Copy, Debug)]
pub struct VectorRows<'a> {
    bytes: &'a [u8],
    dims: usize,
}

impl<'a> VectorRows<'a> {
    /// `None` where rows are cut short.
    pub fn new(bytes: &'a [u8], dims: usize) -> Option<VectorRows<'a>> {
        let is_whole = dims > 0 && bytes.len().is_multiple_of(stride(dims));
        is_whole.then_some(VectorRows { bytes, dims })
    }

    pub fn len(&self) -> usize {
        self.bytes.len() / stride(self.dims)
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn dims(&self) -> usize {
        self.dims
    }

    /// A row's bytes, its padding too.
    pub(crate) fn row(&self, row: usize) -> &'a [u8] {
        let stride = stride(self.dims);
        &self.bytes[row * stride..][..stride]
    }

    /// A row's numbers, widened exactly.
    pub fn numbers(&self, row: usize) -> Vec<f32> {
        let mut numbers = vec![0.0; self.dims];
        RawTensor { kind: RawType::F16, bytes: self.row(row) }.read_row(0, &mut numbers);
        numbers
    }

    /// A query for these rows; what it is longer than them is left out, what it is shorter is zeros.
    pub fn query(&self, vector: &[f32]) -> Query {
        let mut numbers = vector.to_vec();
        numbers.resize(self.dims, 0.0);
        numbers.resize(self.dims.next_multiple_of(GROUP), 0.0);
        Query { numbers }
    }
}

/// A query as the rows of one matrix want it.
#[derive(Clone, Debug)]
pub struct Query {
    pub(crate) numbers: Vec<f32>,
}

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

    pub fn into_sorted(self) -> Vec<Hit> {
        self.heap.into_sorted_vec()
    }
}
