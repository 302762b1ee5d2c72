// What several kernels share: the project's exponential and gates, bf16, sums of a fixed tree.
#pragma once

#include "ptx.cuh"

// A bf16 by its bits.
using Bf16 = unsigned short;

// The position of a row that only fills a bucket; also: no row, no token.
constexpr unsigned NOTHING = 0xFFFFFFFFu;

__device__ __forceinline__ Bf16 bf16_from_float(float value) { return static_cast<Bf16>(pack_bf16(value, 0.0f)); }

constexpr float LARGEST_BF16 = 3.38953139e38f;

// The numbers of a packed pair.
__device__ __forceinline__ float low_bf16(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_bf16(unsigned pair) { return __uint_as_float(pair & 0xFFFF0000u); }

// eˣ = series · power, by the steps, and so with the bits, of `exp` in crates/ops/src/shared/lanes/mod.rs. Without a branch, and by
// sums where a conversion between float and integer would take four times as long.
struct Exponential {
    float series, power;

    // From −88.5 to 88.
    __device__ __forceinline__ explicit Exponential(float x) {
        constexpr float log2_e = 1.44269504f, ln2_high = 0.6933594f, ln2_low = -2.1219444e-4f;
        constexpr float rounder = 12582912.0f;  // 1.5 · 2²³: a sum with it is rounded to a whole number, its low bits
        const float rounded = __fadd_rn(__fmul_rn(x, log2_e), rounder);
        const float whole = __fsub_rn(rounded, rounder);
        const float rest = __fmaf_rn(whole, -ln2_low, __fmaf_rn(whole, -ln2_high, x));
        series = 1.0f / 5040.0f;
        series = __fmaf_rn(series, rest, 1.0f / 720.0f);
        series = __fmaf_rn(series, rest, 1.0f / 120.0f);
        series = __fmaf_rn(series, rest, 1.0f / 24.0f);
        series = __fmaf_rn(series, rest, 1.0f / 6.0f);
        series = __fmaf_rn(series, rest, 0.5f);
        series = __fadd_rn(__fmaf_rn(series, __fmul_rn(rest, rest), rest), 1.0f);
        // 2ⁿ, of n + 1.5 · 2²³: the low bits of that are n.
        power = __uint_as_float((__float_as_uint(rounded) << 23) + __float_as_uint(1.0f));
    }
};

// eˣ; 0 below −87.3.
__device__ __forceinline__ float exponential(float x) {
    constexpr float lowest = -87.33654f, highest = 88.0f;
    const Exponential bounded(fminf(fmaxf(x, lowest), highest));
    return __fmul_rn(bounded.series, x < lowest ? 0.0f : bounded.power);
}

// eˣ of what is not above 0, with the same bits by fewer instructions: a weight of attention. Zero of what is no number.
__device__ __forceinline__ float exponential_below_one(float x) {
    // Below −87.7 the power of two is 0; the products between that and −87.3 are subnormal.
    const Exponential bounded(fmaxf(x, -88.1f));
    return multiply_flushed(bounded.series, bounded.power);
}

// x · sigmoid(inner) · up, in the order of crates/ops/src/cpu/activation.rs.
__device__ __forceinline__ float gate_by(float x, float inner, float up) {
    const float denominator = __fadd_rn(exponential(__fsub_rn(0.0f, inner)), 1.0f);
    return __fmul_rn(__fdiv_rn(x, denominator), up);
}

// What a gate is activated by, as kernels are told it: a mask. They differ in five instructions of some forty, of which a mask takes
// what is wanted; of a condition the compiler makes two copies of all that follows.
enum Gate : unsigned {
    SILU = 0,
    GELU = ~0u,  // the tanh approximation: ½·(1 + tanh u) = sigmoid(2u), u = √(2/π)·(x + 0.044715·x³)
};

__device__ __forceinline__ float gated(Gate gate, float x, float up) {
    constexpr float twice_root = 2.0f * 0.7978846f;
    const float cube = __fmul_rn(__fmul_rn(x, x), x);
    const unsigned bent = __float_as_uint(__fmul_rn(__fmaf_rn(cube, 0.044715f, x), twice_root));
    return gate_by(x, __uint_as_float((bent & gate) | (__float_as_uint(x) & ~gate)), up);
}

// A stage of activations is rows of 64 inputs, 128 bytes in eight pieces. Pieces are exchanged as wgmma's swizzle of 128
// bytes does, so that eight rows' reads of one piece meet in no bank; the stage is aligned to eight rows.
__device__ __forceinline__ int place_in_stage(int row, int piece) { return row * 128 + (piece ^ row % 8) * 16; }

// The sum over a warp's lanes, the same in all of them: 16 apart, then 8, 4, 2, 1.
__device__ __forceinline__ float sum_over_warp(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        value = __fadd_rn(value, __shfl_xor_sync(0xFFFFFFFFu, value, distance));
    }
    return value;
}

// The sum over a CTA's first `warps` warps, the same in all threads: over each warp, then over the warps in order. The
// others have returned. Each use in a kernel has a `place` of its own.
template <int place = 0>
__device__ __forceinline__ float sum_over_cta(float value, int warps) {
    __shared__ float sums[32];
    value = sum_over_warp(value);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    float total = sums[0];
    for (int warp = 1; warp < warps; ++warp) total = __fadd_rn(total, sums[warp]);
    return total;
}

// Whether this CTA is the last of `count` to come, which then sees what the others wrote before they came. Which one is
// last depends on time; what it does must not. The ticket is zero before and after.
__device__ __forceinline__ bool comes_last(unsigned *ticket, unsigned count) {
    __shared__ bool last;
    // What all wrote comes before the barrier, and so before the ticket; what the others wrote, after it and the next one.
    __syncthreads();
    if (threadIdx.x == 0) last = draw_ticket(ticket) == count - 1;
    __syncthreads();
    if (last && threadIdx.x == 0) *ticket = 0;
    return last;
}

// 1 / √(sum / width + epsilon), `sum` the squares of a row or head.
__device__ __forceinline__ float inverse_root_mean(float sum, int width, float epsilon) {
    const float mean = __fdiv_rn(sum, static_cast<float>(width));
    return __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(mean, epsilon)));
}
