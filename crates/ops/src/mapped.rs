//! A file as bytes in memory, mapped: nothing is read before it is looked at.

use std::io;
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

/// A file that is not to be changed while it is mapped.
#[derive(Debug)]
pub struct MappedFile(Mmap);

impl MappedFile {
    /// # Errors
    /// The file cannot be opened or mapped; the message names it.
    pub fn open(path: &Path) -> io::Result<MappedFile> {
        let file = fs_err::File::open(path)?;
        // SAFETY: the mapping is read-only, and what is built is not changed while it is read.
        let map = unsafe { Mmap::map(file.file()) };
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot map {}: {error}", path.display()))
        };
        Ok(MappedFile(map.map_err(named)?))
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
