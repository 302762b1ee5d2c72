//! An output that several threads write, each its own part.

pub struct Disjoint<T>(*mut T);

// SAFETY: whoever uses the pointer writes only elements that no other range of the same `split` writes.
unsafe impl<T: Send> Send for Disjoint<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Disjoint<T> {}

impl<T> Clone for Disjoint<T> {
    fn clone(&self) -> Disjoint<T> {
        *self
    }
}

impl<T> Copy for Disjoint<T> {}

impl<T> Disjoint<T> {
    pub fn new(output: &mut [T]) -> Disjoint<T> {
        Disjoint(output.as_mut_ptr())
    }

    pub fn at(self, offset: usize) -> *mut T {
        self.0.wrapping_add(offset)
    }

    /// The `length` elements from `offset` on.
    ///
    /// # Safety
    /// They lie inside the buffer, and nothing else reads or writes them while the slice lives.
    pub unsafe fn slice<'a>(self, offset: usize, length: usize) -> &'a mut [T] {
        // SAFETY: the caller vouches for bounds and exclusiveness.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(offset), length) }
    }
}
