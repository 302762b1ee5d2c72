// What norms over rows of the residual share, whoever computes them: a sum's tree is that of 256 threads.
#pragma once

#include "common.cuh"

namespace norms {

constexpr int THREADS = 256, WARPS = THREADS / 32;

// Warps with a part of a row, four values a thread.
__device__ __forceinline__ int warps_of(int hidden) { return min((hidden + 127) / 128, WARPS); }

// Quads of a row that a thread holds in registers: those of rows of up to 4096 values.
constexpr int HELD = 4;

// `sum` and the squares of four values.
__device__ __forceinline__ float add_squares(float sum, float4 values) {
    sum = __fmaf_rn(values.x, values.x, sum);
    sum = __fmaf_rn(values.y, values.y, sum);
    sum = __fmaf_rn(values.z, values.z, sum);
    return __fmaf_rn(values.w, values.w, sum);
}

__device__ __forceinline__ float4 scaled(float4 values, float scale, float4 weight) {
    return make_float4(
        __fmul_rn(__fmul_rn(values.x, scale), weight.x), __fmul_rn(__fmul_rn(values.y, scale), weight.y),
        __fmul_rn(__fmul_rn(values.z, scale), weight.z), __fmul_rn(__fmul_rn(values.w, scale), weight.w));
}

__device__ __forceinline__ void put(Bf16 *out, int quad, float4 value) {
    reinterpret_cast<uint2 *>(out)[quad] = make_uint2(pack_bf16(value.x, value.y), pack_bf16(value.z, value.w));
}

}  // namespace norms
