//! What is done number by number: kernels/elements.cu.

use super::arguments::Arguments;
use super::backend::row_by_row;
use super::kernels::Epilogue;
use super::{Buffer, Cuda};
use crate::Activation;

impl Cuda {
    /// As products take it.
    pub(super) fn round(&self, x: &Buffer, out: &mut Buffer) {
        out.set_shape(x.rows, x.width);
        let arguments =
            Arguments::default().region(&x.region).int(x.width).region(&out.region).int(out.stride);
        self.stream.launch(row_by_row(self.kernels.narrow, x.rows), arguments);
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
            .region(&out.region)
            .int(out.stride);
        self.stream.launch(row_by_row(self.kernels.gate_columns, gate.rows), arguments);
    }

    /// Between `most` and its negative.
    pub(super) fn press(&self, x: &Buffer, most: f32) {
        let arguments = Arguments::default().region(&x.region).int(x.width).float(most);
        self.stream.launch(row_by_row(self.kernels.cap, x.rows), arguments);
    }
}
