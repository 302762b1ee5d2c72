//! A file as bytes in memory, mapped: nothing is read before it is looked at.

use std::io;
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

/// A file that is not to be changed while it is mapped. Where it is cut off all the same, the system ends the process that reads on.
#[derive(Debug)]
pub struct MappedFile(Mmap);

impl MappedFile {
    pub fn open(path: &Path) -> io::Result<MappedFile> {
        let file = crate::regular_file::open(path)?;
        // SAFETY: the mapping is read-only, and what is built is not changed while it is read.
        let map = unsafe { Mmap::map(file.file()) };
        map.map(MappedFile).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot map {}: {error}", path.display()))
        })
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
