//! Norms of rows (kernels/norm.cu), and what is done number by number (kernels/elements.cu).

use super::arguments::Arguments;
use super::kernels::Epilogue;
use super::launch::Launch;
use super::stage::Step;
use super::{Buffer, Cuda, Vector};
use crate::Activation;

const THREADS: usize = 256;

impl Cuda {
    /// Of the rows of `indices`, or of so many without them.
    pub(super) fn norm(
        &self,
        x: &Buffer,
        (indices, rows): (u64, usize),
        (weight, epsilon): (&Vector, f32),
        out: &mut Buffer,
    ) {
        out.set_rows(rows);
        let arguments = Arguments::default()
            .region(&x.region)
            .address(indices)
            .region(&weight.0)
            .float(epsilon)
            .int(x.width)
            .rows(out);
        self.stream.launch(Launch::by_row(self.kernels.rms_norm, rows), arguments);
    }

    /// As products take it.
    pub(super) fn round(&self, x: &Buffer, out: &mut Buffer) {
        out.set_shape(x.rows, x.width);
        let arguments = Arguments::default().region(&x.region).int(x.width).rows(out);
        self.stream.launch(Launch::by_row(self.kernels.narrow, x.rows), arguments);
    }

    /// By columns of another buffer, from the one of that number on.
    pub(super) fn gate_columns(
        &self,
        gate: &Buffer,
        activation: Activation,
        (by, first): (&Buffer, usize),
        out: &mut Buffer,
    ) {
        out.set_shape(gate.rows, gate.width);
        let arguments = Arguments::default()
            .region(&gate.region)
            .int(gate.width)
            .address(by.address() + 4 * first as u64)
            .int(by.stride)
            .int(Epilogue::Gated(activation).gate())
            .rows(out);
        self.stream.launch(Launch::by_row(self.kernels.gate_columns, gate.rows), arguments);
    }

    /// Leaves the rows that go on, one after another.
    pub(super) fn keep(&self, buffer: &mut Buffer, few: Step) {
        let words = if buffer.is_wide { buffer.stride } else { buffer.stride / 2 };
        let arguments = Arguments::default()
            .region(&buffer.region)
            .int(words)
            .address(few.at.indices)
            .int(few.rows);
        let grid = [words.div_ceil(THREADS), few.rows.min(1), 1];
        self.stream.launch(Launch::new(self.kernels.keep_rows, grid, THREADS), arguments);
        buffer.set_rows(few.rows);
    }

    /// Between `most` and its negative.
    pub(super) fn press(&self, x: &Buffer, most: f32) {
        let arguments = Arguments::default().region(&x.region).int(x.width).float(most);
        self.stream.launch(Launch::by_row(self.kernels.cap, x.rows), arguments);
    }
}
