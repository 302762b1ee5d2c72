//! Numbers that stay for the life of a model, on pages of 2 MiB where the system gives them: reading a gigabyte
//! through pages of 4 KiB costs a tenth of the bandwidth.

use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

const HUGE_PAGE: usize = 2 << 20;

/// A fixed array, zeroed when made, aligned to a cache line and, from 2 MiB on, to a huge page.
#[derive(Debug)]
pub(crate) struct Slab<T: Plain> {
    map: MmapMut,
    /// Bytes before the first element.
    start: usize,
    length: usize,
    of: PhantomData<T>,
}

/// Numbers for which any bits are a value.
pub trait Plain: Copy + Send + Sync {}
impl Plain for f32 {}
impl Plain for u16 {}
impl Plain for u8 {}

impl<T: Plain> Slab<T> {
    pub fn zeroed(length: usize) -> io::Result<Slab<T>> {
        let bytes = length * size_of::<T>();
        // A mapping starts at a page of 4 KiB, so a huge one needs room to move up.
        let room = if bytes >= HUGE_PAGE { HUGE_PAGE } else { 0 };
        let map = MmapMut::map_anon((bytes + room).max(1))?;
        let start = if room > 0 { map.as_ptr().align_offset(HUGE_PAGE) } else { 0 };
        #[cfg(target_os = "linux")]
        if room > 0 {
            // A system without huge pages is slower, no worse.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        Ok(Slab { map, start, length, of: PhantomData })
    }

    /// Makes a zeroed array memory now: until it is written to, a page of a map is none.
    pub fn touch(&mut self) {
        let (start, bytes) = (self.start, self.length * size_of::<T>());
        self.map[start..][..bytes].fill(0);
    }
}

impl<T: Plain> Deref for Slab<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the map holds `length` elements from `start` on, aligned to a page, and any bits are a value.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(self.start).cast(), self.length) }
    }
}

impl<T: Plain> DerefMut for Slab<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.map.as_mut_ptr().add(self.start).cast(),
                self.length,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_zeroed_aligned_and_as_long_as_asked() {
        for length in [0, 1, 1000, HUGE_PAGE / 2 - 1, HUGE_PAGE / 2, HUGE_PAGE + 7] {
            let mut slab = Slab::<u16>::zeroed(length).unwrap();
            slab.touch();
            assert_eq!(slab.len(), length);
            assert!(slab.iter().all(|&value| value == 0));
            let alignment = if 2 * length >= HUGE_PAGE { HUGE_PAGE } else { 64 };
            assert_eq!(slab.as_ptr() as usize % alignment, 0);
            slab.fill(7);
            assert!(slab.iter().all(|&value| value == 7));
        }
    }
}
