//! Mistakes of schedules as other engines make them: what a row gets depends on the rows beside it.

use std::sync::atomic::{AtomicUsize, Ordering};

use wardround::ops::cpu::{Buffer, Matrix, Vector};
use wardround::ops::{Backend, BranchNorms, Cpu};

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

    /// A product, with the fault if it is one of products.
    pub fn multiply(self, cpu: &Cpu, x: &Buffer, weights: &Matrix, out: &mut Buffer) {
        static ARRIVALS: AtomicUsize = AtomicUsize::new(0);
        let parts = match self {
            Fault::SplitByBatch if x.rows() >= 8 => 2,
            Fault::OrderByThread => 3,
            _ => return cpu.matmul(x, weights, out),
        };
        let first = match self {
            Fault::OrderByThread => ARRIVALS.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        for part in 0..parts {
            let (mut product, mut normed) = Default::default();
            cpu.matmul(&part_of(x, (first + part) % parts, parts), weights, &mut product);
            if part == 0 {
                *out = product;
            } else {
                let norms = BranchNorms { post: None, next: None, epsilon: 0.0 };
                cpu.add_norm(out, &product, norms, &mut normed);
            }
        }
    }
}

/// The inputs of one of `parts` parts, zeros for the others, which leave no trace in a sum.
fn part_of(x: &Buffer, part: usize, parts: usize) -> Buffer {
    let width = x.row(0).len();
    let mut own = Buffer::default();
    own.reshape(x.rows(), width);
    for row in 0..x.rows() {
        for k in 0..width {
            own.row_mut(row)[k] = if k * parts / width == part { x.row(row)[k] } else { 0.0 };
        }
    }
    own
}

/// A norm that begins with the second half of its inputs.
pub fn norm_by_halves(cpu: &Cpu, x: &Buffer, weight: &Vector, epsilon: f32, out: &mut Buffer) {
    let width = x.row(0).len();
    let mut turned = Buffer::default();
    turned.reshape(x.rows(), width);
    for row in 0..x.rows() {
        turned.row_mut(row).copy_from_slice(x.row(row));
        turned.row_mut(row).rotate_left(width / 2);
    }
    let mut weight = weight.0.clone();
    weight.rotate_left(width / 2);
    cpu.rms_norm(&turned, &Vector(weight), epsilon, out);
    out.rows_mut().for_each(|row| row.rotate_right(width / 2));
}
