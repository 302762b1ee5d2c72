//! A file as bytes in memory, mapped: nothing is read before it is looked at.
//!
//! Where another process cuts the file off, what it had is read as zeros instead of ending this process, and [`MappedFile::check`]
//! says so: whoever read from it asks before the result goes out.

use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

/// A file that is not to be changed while it is mapped.
#[derive(Debug)]
pub struct MappedFile {
    map: Mmap,
    path: PathBuf,
    guard: guard::Guard,
}

impl MappedFile {
    /// # Errors
    /// The file cannot be opened or mapped; the message names it.
    pub fn open(path: &Path) -> io::Result<MappedFile> {
        let file = crate::regular_file::open(path)?;
        // SAFETY: the mapping is read-only, and what is built is not changed while it is read; where it is cut off all the same, the guard
        // puts zeros in its place.
        let map = unsafe { Mmap::map(file.file()) };
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot map {}: {error}", path.display()))
        };
        let map = map.map_err(named)?;
        let guard = guard::Guard::over(&map);
        Ok(MappedFile { map, path: path.to_owned(), guard })
    }

    /// # Errors
    /// The file was cut off while it was read.
    pub fn check(&self) -> io::Result<()> {
        match self.guard.is_torn() {
            false => Ok(()),
            true => {
                let problem = format!("{} was cut off while it was read", self.path.display());
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem))
            }
        }
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

#[cfg(not(target_os = "linux"))]
mod guard {
    //! Elsewhere nothing is put in the place of what is gone.

    #[derive(Debug)]
    pub struct Guard;

    impl Guard {
        pub fn over(_: &[u8]) -> Guard {
            Guard
        }

        pub fn is_torn(&self) -> bool {
            false
        }
    }
}

#[cfg(target_os = "linux")]
mod guard {
    //! What the kernel says with SIGBUS: that a page of a mapping has no file behind it any more.

    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

    /// More files than any corpora have open; a further one has no guard.
    const SLOTS: usize = 1024;

    /// A mapping, by its addresses; an end of 0: the slot is free.
    struct Slot {
        start: AtomicUsize,
        end: AtomicUsize,
        is_torn: AtomicBool,
        is_taken: AtomicBool,
    }

    static TABLE: [Slot; SLOTS] = [const {
        Slot {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            is_torn: AtomicBool::new(false),
            is_taken: AtomicBool::new(false),
        }
    }; SLOTS];

    /// The size of a page, and what was done with the signal before; made before the first mapping is in the table.
    static BEFORE: OnceLock<(usize, libc::sigaction)> = OnceLock::new();

    #[derive(Debug)]
    pub struct Guard(Option<usize>);

    impl Guard {
        pub fn over(bytes: &[u8]) -> Guard {
            let (page, _) = BEFORE.get_or_init(install);
            let free = TABLE.iter().position(|slot| {
                slot.is_taken.compare_exchange(false, true, SeqCst, SeqCst).is_ok()
            });
            if let Some(free) = free {
                let slot = &TABLE[free];
                let start = bytes.as_ptr() as usize;
                slot.is_torn.store(false, SeqCst);
                slot.start.store(start, SeqCst);
                slot.end.store((start + bytes.len()).next_multiple_of(*page), SeqCst);
            }
            Guard(free)
        }

        pub fn is_torn(&self) -> bool {
            self.0.is_some_and(|slot| TABLE[slot].is_torn.load(SeqCst))
        }
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            if let Some(slot) = self.0 {
                TABLE[slot].end.store(0, SeqCst);
                TABLE[slot].is_taken.store(false, SeqCst);
            }
        }
    }

    fn install() -> (usize, libc::sigaction) {
        // SAFETY: an action is plain numbers; both are whole, and the handler does only what one may.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &action, &mut before);
            (libc::sysconf(libc::_SC_PAGESIZE) as usize, before)
        }
    }

    /// Puts zeros in the place of the rest of a mapping that is in the table; whatever else it is about goes the way that it went before.
    extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        let Some((page, before)) = BEFORE.get() else { return };
        // SAFETY: the kernel gives the address with this signal.
        let address = unsafe { (*info).si_addr() } as usize;
        for slot in &TABLE {
            let (start, end) = (slot.start.load(SeqCst), slot.end.load(SeqCst));
            if (start..end).contains(&address) {
                slot.is_torn.store(true, SeqCst);
                let from = address - address % page;
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
                // SAFETY: the addresses are of a mapping of our own that lives as long as it is in the table; a call of the kernel, which a
                // handler may make.
                let mapped = unsafe {
                    let from = from as *mut libc::c_void;
                    libc::mmap(from, end - address + address % page, libc::PROT_READ, flags, -1, 0)
                };
                if mapped != libc::MAP_FAILED {
                    return;
                }
            }
        }
        // SAFETY: as it was given to us; the access is made again, and then goes that way.
        unsafe { libc::sigaction(signal, before, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_is_cut_off_while_it_is_mapped_is_an_error_and_not_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vectors.bin");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        let [cut, whole] = [&path, &path].map(|path| MappedFile::open(path).unwrap());
        assert_eq!(cut.iter().map(|byte| usize::from(*byte)).sum::<usize>(), 7 << 20);
        cut.check().unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(100_000).unwrap();
        assert_eq!((cut[99_999], cut[cut.len() - 1], cut[500_000]), (7, 0, 0));
        assert!(cut.check().unwrap_err().to_string().contains("vectors.bin was cut off"));
        // Each by what was read of it.
        whole.check().unwrap();
        drop(cut);
        assert_eq!(whole[200_000], 0);
        assert!(whole.check().is_err());
    }
}
