//! Mistakes of schedules as other engines make them: what a row gets depends on the rows beside it.

use std::sync::atomic::{AtomicUsize, Ordering};

use wardround::ops::{BranchNorms, Numbers};

use super::witness::Hashing;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// From eight rows on, products are of two halves of the inputs.
    SplitByBatch,
    /// From 256 rows on, a norm adds its squares in other blocks.
    BlockAt256,
    /// Parts of a product are added in the order in which threads come by.
    OrderByThread,
    /// Of up to four rows, the norm after an addition is fused with it, and adds its squares in another order.
    FusedNorm,
}

impl Fault {
    pub const ALL: [Fault; 4] =
        [Fault::SplitByBatch, Fault::BlockAt256, Fault::OrderByThread, Fault::FusedNorm];
}

/// A product in a step of so many rows, with the fault if it is one of products.
pub fn multiply<B: Hashing>(
    (fault, rows): (Fault, usize),
    ops: &B,
    x: &B::Buffer,
    weights: &B::Matrix,
    out: &mut B::Buffer,
) {
    static ARRIVALS: AtomicUsize = AtomicUsize::new(0);
    let parts = match fault {
        Fault::SplitByBatch if rows >= 8 => 2,
        Fault::OrderByThread => 3,
        _ => return ops.matmul(x, weights, out),
    };
    let first = match fault {
        Fault::OrderByThread => ARRIVALS.fetch_add(1, Ordering::Relaxed),
        _ => 0,
    };
    ops.matmul(&part_of(ops, x, first % parts, parts), weights, out);
    let [rows, width] = B::shape(out);
    let [mut product, mut normed] = [0; 2].map(|_| ops.buffer(rows, width, Numbers::Wide).unwrap());
    for part in 1..parts {
        ops.matmul(&part_of(ops, x, (first + part) % parts, parts), weights, &mut product);
        let norms = BranchNorms { post: None, next: None, epsilon: 0.0 };
        ops.add_norm(out, &product, norms, &mut normed);
    }
}

/// The inputs of one of `parts` parts, zeros for the others, which leave no trace in a sum.
fn part_of<B: Hashing>(ops: &B, x: &B::Buffer, part: usize, parts: usize) -> B::Buffer {
    let [rows, width] = B::shape(x);
    let mut own = ops.buffer(rows, width, Numbers::Narrow).unwrap();
    let mut numbers = ops.held(x, rows);
    for (index, number) in numbers.iter_mut().enumerate() {
        if index % width * parts / width != part {
            *number = 0.0;
        }
    }
    ops.put(rows, &numbers, &mut own);
    own
}

/// A norm that takes its inputs from the last on. (A GPU's tree of a sum would not know which half comes first.)
pub fn norm_backwards<B: Hashing>(
    ops: &B,
    x: &B::Buffer,
    weight: &B::Vector,
    epsilon: f32,
    out: &mut B::Buffer,
) {
    let [rows, width] = B::shape(x);
    let turned = |mut numbers: Vec<f32>| {
        numbers.chunks_mut(width).for_each(|row| row.reverse());
        numbers
    };
    let weight = ops.vector(turned(ops.numbers(weight))).unwrap();
    let mut from = ops.buffer(rows, width, Numbers::Wide).unwrap();
    ops.put(rows, &turned(ops.held(x, rows)), &mut from);
    ops.rms_norm(&from, &weight, epsilon, out);
    ops.put(rows, &turned(ops.held(out, rows)), out);
}
