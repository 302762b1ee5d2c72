// How fast the arithmetic is when nothing is read: the rates that other kernels are compared with.
#include "common.cuh"
#include "wgmma.cuh"

// Eight independent sums a thread, f32 numbers (kind 0) or bf16 tiles (kind 1). Nothing is written unless `out` is
// given: what might be is all that the compiler must not know.
extern "C" __global__ void multiply_tiles(int rounds, int kind, float *out) {
    float sums[8][4] = {};
    const unsigned seed = threadIdx.x | 1;
    const unsigned a[4] = {seed, seed + 1, seed + 2, seed + 3};
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int index = 0; index < 8; ++index) {
            if (kind == 1) {
                multiply_add(sums[index], a, seed, seed);
            } else {
                sums[index][0] = __fmaf_rn(__uint_as_float(seed), 1.5f, sums[index][0]);
            }
        }
    }
    if (out == nullptr) return;
    for (int index = 0; index < 8; ++index) out[threadIdx.x] = __fadd_rn(out[threadIdx.x], sums[index][0]);
}
TWIN_KERNEL(multiply_tiles)

// Two sums of 64 × 128 a warpgroup, of bf16 tiles in 16 KiB of shared memory, whatever is there. `out` as above.
extern "C" __global__ void multiply_warpgroup_tiles(int rounds, float *out) {
    if constexpr (HAS_WGMMA) {
        float sums[2][64] = {};
        const unsigned seed = threadIdx.x | 1;
        const unsigned a[4] = {seed, seed + 1, seed + 2, seed + 3};
        for (int round = 0; round < rounds; ++round) {
            begin_products();
#pragma unroll
            for (int k = 0; k < 4; ++k) {
#pragma unroll
                for (int index = 0; index < 2; ++index) {
                    multiply_async(sums[index], a, describe_rows(dynamic_shared(), k * 32));
                }
            }
            commit_products();
            await_products<1>();
        }
        await_products<0>();
        if (out == nullptr) return;
        for (int index = 0; index < 64; ++index) out[threadIdx.x] += __fadd_rn(sums[0][index], sums[1][index]);
    }
}
TWIN_KERNEL(multiply_warpgroup_tiles)
