//! How a kernel is launched, beside its arguments.

use super::driver::Function;

#[derive(Clone, Copy, Debug)]
pub struct Launch {
    pub function: Function,
    pub grid: [usize; 3],
    pub threads: usize,
    /// CTAs along the grid's first dimension that start together and read one another's shared memory; 1 is none.
    pub cluster: usize,
    /// Dynamic shared memory.
    pub shared_bytes: usize,
    /// Whether its CTAs may start while the kernel before still runs, as every kernel here allows; after a copy they wait.
    pub early: bool,
}

impl Launch {
    /// Early, without clusters or dynamic shared memory.
    pub fn new(function: Function, grid: [usize; 3], threads: usize) -> Launch {
        Launch { function, grid, threads, cluster: 1, shared_bytes: 0, early: true }
    }

    /// A CTA of 256 threads a row.
    pub fn by_row(function: Function, rows: usize) -> Launch {
        Launch::new(function, [rows, 1, 1], 256)
    }
}
