// How fast the arithmetic is when nothing is read: the rates that other kernels are compared with.
#include "common.cuh"
#include "wgmma.cuh"

// Two bf16 of either sign from a half to two, of any bits between: `number`, stirred.
__device__ __forceinline__ unsigned random_pair(unsigned number) {
    number = (number ^ number >> 16) * 0x7FEB352Du;
    number = (number ^ number >> 15) * 0x846CA68Bu;
    number ^= number >> 16;
    return (number & 0x80FF80FFu) | 0x3F003F00u;
}

// Eight independent sums a thread. Here and below nothing is written unless `out` is given: what might be is all that
// the compiler must not know.
extern "C" __global__ void multiply_numbers(int rounds, float *out) {
    const unsigned seed = (blockIdx.x * blockDim.x + threadIdx.x) * 2;
    const float factor = low_bf16(random_pair(seed)), other = low_bf16(random_pair(seed + 1));
    float sums[8];
    // Sums that begin alike would be one sum to the compiler.
    for (int index = 0; index < 8; ++index) sums[index] = static_cast<float>(index) * other;
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int index = 0; index < 8; ++index) sums[index] = __fmaf_rn(factor, other, sums[index]);
    }
    if (out == nullptr) return;
    for (int index = 0; index < 8; ++index) out[threadIdx.x] = __fadd_rn(out[threadIdx.x], sums[index]);
}
EMULATED_KERNEL(multiply_numbers)

// Eight independent sums a warp, of bf16 tiles.
extern "C" __global__ void multiply_tiles(int rounds, float *out) {
    const unsigned seed = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
    const unsigned a[4] = {random_pair(seed), random_pair(seed + 1), random_pair(seed + 2), random_pair(seed + 3)};
    const unsigned b[2] = {random_pair(seed + 4), random_pair(seed + 5)};
    float sums[8][4] = {};
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int index = 0; index < 8; ++index) multiply_add(sums[index], a, b[0], b[1]);
    }
    if (out == nullptr) return;
    for (int index = 0; index < 8; ++index) out[threadIdx.x] = __fadd_rn(out[threadIdx.x], sums[index][0]);
}
EMULATED_KERNEL(multiply_tiles)

// Two sums of 64 × 128 a warpgroup, of bf16 tiles in 16 KiB of shared memory.
extern "C" __global__ void multiply_warpgroup_tiles(int rounds, float *out) {
    if constexpr (HAS_WGMMA) {
        const unsigned seed = (blockIdx.x * blockDim.x + threadIdx.x) * 64;
        unsigned *tiles = reinterpret_cast<unsigned *>(dynamic_shared());
        for (unsigned word = threadIdx.x; word < 4096; word += blockDim.x) tiles[word] = random_pair(seed + word);
        fence_copies();
        __syncthreads();
        float sums[2][64] = {};
        const unsigned a[4] = {random_pair(seed), random_pair(seed + 1), random_pair(seed + 2), random_pair(seed + 3)};
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
EMULATED_KERNEL(multiply_warpgroup_tiles)
