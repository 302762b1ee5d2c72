// What matmuls have in common beside the weights: the tree over K, the activations, and what becomes of a result.
#pragma once

#include "common.cuh"

namespace matmul {

// K is summed in at most four chunks of equal length, each by mma in ascending order from zero, and the chunks' sums
// are added in order. Where the length is a quarter of K, the tree is a function of K alone, and a row has the same bits
// in every kernel and company. A greater length is for kernels that are given all of K.
struct Chunks {
    int length, count;

    __device__ __forceinline__ Chunks(int k_tiles, int length) : length(length), count((k_tiles + length - 1) / length) {}
};

struct Activations {
    const Bf16 *x;  // [rows][stride], padded with zeros to whole tiles
    int stride, rows;
};

// A CTA starts copying a stage: tiles `tile` and the next of the rows that are the CTA's; zeros where there are none, and
// from tile `end` on.
template <int ROWS, int THREADS>
__device__ __forceinline__ void copy_rows(unsigned char *to, const Activations &activations, int tile, int end) {
    const int piece = threadIdx.x % 8;
#pragma unroll
    for (int pass = 0; pass < ROWS * 8 / THREADS; ++pass) {
        const int row = pass * (THREADS / 8) + threadIdx.x / 8, from_row = blockIdx.x * ROWS + row;
        const bool valid = from_row < activations.rows && tile + piece / 4 < end;
        const Bf16 *from = activations.x + static_cast<size_t>(from_row) * activations.stride + tile * 32;
        copy_async_16(to + place_in_stage(row, piece), from + piece * 8, valid);
    }
}

enum class Epilogue {
    F32,    // out f32 [rows][n]
    Gated,  // out bf16 [rows][n/2] = activated gate · up; of a group's 16 outputs eight are gates, eight the ups of the same
};

struct Output {
    void *out;
    int stride, rows, n;
    Gate gate;  // of gates, where there are any
};

// A lane's c0 … c3 of eight rows from `row` on: c0, c1 are output g (a gate), c2, c3 output g+8 (its up), each at rows
// 2q and 2q+1. All are yet to be multiplied by `one`.
template <Epilogue EPILOGUE>
__device__ __forceinline__ void store(const Output &output, float4 c, float one, int group, int row, int lane) {
    const float first[2] = {__fmul_rn(c.x, one), __fmul_rn(c.y, one)};
    const float second[2] = {__fmul_rn(c.z, one), __fmul_rn(c.w, one)};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int to_row = row + lane % 4 * 2 + i;
        if (to_row >= output.rows) continue;
        const size_t start = static_cast<size_t>(to_row) * output.stride;
        if constexpr (EPILOGUE == Epilogue::F32) {
            float *out = static_cast<float *>(output.out) + start;
            const int column = group * 16 + lane / 4;
            if (column < output.n) out[column] = first[i];
            if (column + 8 < output.n) out[column + 8] = second[i];
        } else {
            Bf16 *out = static_cast<Bf16 *>(output.out) + start;
            const int feature = group * 8 + lane / 4;
            if (feature < output.n / 2) out[feature] = bf16_from_float(gated(output.gate, first[i], second[i]));
        }
    }
}

__device__ __forceinline__ float4 add(float4 a, float4 b) {
    return {__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z), __fadd_rn(a.w, b.w)};
}

// Sums of eight rows among a thread's, as `store` takes them.
template <int COUNT>
__device__ __forceinline__ float4 fragment_of(const float (&sums)[COUNT], int index) {
    const float *c = sums + index * 4;
    return {c[0], c[1], c[2], c[3]};
}

template <int COUNT>
__device__ __forceinline__ void put_fragment(float (&sums)[COUNT], int index, float4 sum) {
    float *c = sums + index * 4;
    c[0] = sum.x, c[1] = sum.y, c[2] = sum.z, c[3] = sum.w;
}

// The sum of `count` chunks in order, each from the CTA of the cluster whose rank it is: from where `own` lies in this one's.
__device__ __forceinline__ float4 add_of_cluster(const float4 *own, int count) {
    // All chunks are asked for at once, one that is not there in the first one's place.
    float4 chunks[4];
#pragma unroll
    for (int chunk = 0; chunk < 4; ++chunk) chunks[chunk] = *of_cta(own, chunk < count ? chunk : 0);
    float4 sum = chunks[0];
#pragma unroll
    for (int chunk = 1; chunk < 4; ++chunk) {
        if (chunk < count) sum = add(sum, chunks[chunk]);
    }
    return sum;
}

}  // namespace matmul
