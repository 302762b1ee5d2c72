//! What weights pass through on their way to the GPU: two pinned buffers, one of which is packed while the other is copied.

use super::driver::{Pinned, Stream};
use super::region::Region;
use crate::OpsError;

/// Of one buffer. Pinning is slow, so a GPU's are kept from matrix to matrix.
const BYTES: usize = 32 << 20;

#[derive(Debug)]
pub struct Ferry {
    stream: Stream,
    buffers: [Pinned; 2],
    turn: usize,
}

/// Where a part of a buffer goes: its bytes, and the region and offset that they come to.
pub struct Freight<'a> {
    pub bytes: usize,
    pub region: &'a Region,
    pub offset: usize,
}

impl Ferry {
    /// For pieces of so many bytes, of which a buffer holds one at least.
    pub fn new(stream: &Stream, piece: usize) -> Result<Ferry, OpsError> {
        let bytes = BYTES.max(piece);
        let buffers = [stream.pin(bytes)?, stream.pin(bytes)?];
        Ok(Ferry { stream: stream.clone(), buffers, turn: 0 })
    }

    /// Pieces of so many bytes that a buffer holds.
    pub fn pieces(&self, piece: usize) -> usize {
        self.buffers[0].bytes().len() / piece.max(1)
    }

    /// Lets `pack` fill a buffer, and starts to copy its parts, which lie one after another.
    pub fn carry(&mut self, pack: impl FnOnce(&mut [u8]), freight: &[Freight<'_>]) {
        self.turn = 1 - self.turn;
        let buffer = &mut self.buffers[self.turn];
        buffer.await_upload();
        pack(buffer.bytes_mut());
        let mut from = 0;
        for Freight { bytes, region, offset } in freight {
            self.stream.upload_part(buffer, from..from + bytes, region, *offset);
            from += bytes;
        }
    }
}
