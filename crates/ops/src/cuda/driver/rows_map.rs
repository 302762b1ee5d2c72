//! Matrices of activations as Hopper's copy engine is told of them.

use cudarc::driver::sys;

use super::super::arguments::RowsMap;
use super::super::region::Region;
use super::Stream;
use super::gpu::check;

impl Stream {
    /// Of bf16 `[rows][stride]` from the start of `region` on, to be taken in boxes of `box_rows` rows by 64 numbers. A failure is
    /// told like a launch's.
    pub fn rows_map(
        &self,
        region: &Region,
        [rows, stride]: [usize; 2],
        box_rows: usize,
    ) -> RowsMap {
        assert!(2 * rows * stride <= region.bytes(), "a map beyond its region");
        let mut map = sys::CUtensorMap { opaque: [0; 16] };
        let sizes = [stride as u64, rows as u64];
        let row_bytes = [2 * stride as u64];
        let (box_sizes, steps) = ([64, box_rows as u32], [1, 1]);
        // SAFETY: places for a map, and lists as long as the matrix has dimensions; the driver reads no memory of the GPU's.
        let encoded = unsafe {
            sys::cuTensorMapEncodeTiled(
                &raw mut map,
                sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                2,
                region.address() as *mut std::ffi::c_void,
                sizes.as_ptr(),
                row_bytes.as_ptr(),
                box_sizes.as_ptr(),
                steps.as_ptr(),
                sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
                sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        };
        self.keep(check(encoded).map_err(|reason| format!("a map of activations: {reason}")));
        map.opaque
    }
}
