//! Activations brought to the GPU, beside a decoder's operations.

use half::bf16;

use super::{Buffer, Cuda};
use crate::{Backend, Numbers, OpsError};

impl Cuda {
    /// Rows of `width` numbers; narrow ones are rounded to bf16, with zeros beyond them.
    ///
    /// # Errors
    /// When the GPU has no room.
    pub fn hold(&self, numbers: &[f32], width: usize, kind: Numbers) -> Result<Buffer, OpsError> {
        let rows = numbers.len() / width;
        let mut buffer = self.buffer(rows, width, kind)?;
        self.put(rows, numbers, &mut buffer);
        Ok(buffer)
    }

    /// Leaves so many rows in a buffer, as an operation would.
    pub fn put(&self, rows: usize, numbers: &[f32], buffer: &mut Buffer) {
        buffer.set_rows(rows);
        let bytes: Vec<u8> = match buffer.is_wide {
            true => numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
            false => {
                let padding = vec![0.0; buffer.stride - buffer.width];
                let rows = numbers.chunks_exact(buffer.width);
                let padded = rows.flat_map(|row| row.iter().chain(&padding));
                padded.flat_map(|number| bf16::from_f32(*number).to_le_bytes()).collect()
            }
        };
        self.stream.write(&buffer.region, 0, &bytes);
    }
}
