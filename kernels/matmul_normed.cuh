// Matmuls of a row or a few whose inputs are the norm of a sum, which each CTA makes for itself while its first weights are
// on their way: a kernel less between two products, and the memory is never idle. The bits are those of `add_norm` and
// `matmul_small`.
#pragma once

#include "matmul_small.cuh"
#include "norm_row.cuh"

namespace matmul {

// What becomes the inputs: norm(residual + branch), both f32 [rows][hidden]. `hidden` is at most 4096.
struct Added {
    const float *residual, *branch;
    const float *post_weight;  // of the branch's norm before it is added; null: none
    const float *next_weight;
    float *sums;  // [rows][hidden], where the residual's new rows go: not to the old ones', which other CTAs still read
    float epsilon;
    int hidden;
};

// Sums over the first `warps` of the eight warps of which each of these four is two, the n-th and the n+4-th: with the tree
// of `sum_over_cta`.
__device__ __forceinline__ float sum_by_half(const float (&values)[2], int warps, float (&sums)[norms::WARPS]) {
    const int warp = threadIdx.x / 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float sum = sum_over_warp(values[half]);
        if (threadIdx.x % 32 == 0) sums[half * 4 + warp] = sum;
    }
    __syncthreads();
    float total = sums[0];
    for (int each = 1; each < warps; ++each) total = __fadd_rn(total, sums[each]);
    return total;
}

// A thread's quads of a row, in the order of the two threads of `add_branch` that it stands for, which take turns.
constexpr int NORMED_QUADS = norms::HELD * norms::THREADS / SMALL_THREADS;
static_assert(norms::THREADS == 2 * SMALL_THREADS);

// Calls `visit` with each of the thread's quads that the row has: with its number of all that a thread may have, and its place.
template <typename Visit>
__device__ __forceinline__ void for_each_quad(int count, Visit visit) {
#pragma unroll
    for (int n = 0; n < NORMED_QUADS; ++n) {
        const int quad = n * SMALL_THREADS + static_cast<int>(threadIdx.x);
        if (quad < count) visit(n, quad);
    }
}

__device__ __forceinline__ float4 quad_of(const float *row, int quad) { return reinterpret_cast<const float4 *>(row)[quad]; }

// The norm of a row of the sum, to where `normed` is; k_tiles whole tiles, the last filled up with zeros. The first CTA
// writes the sum.
__device__ __forceinline__ void norm_row(const Added &added, int row, int k_tiles, unsigned char *normed) {
    // A row later another barrier is between, two rows later none may be.
    __shared__ float met[2][2][norms::WARPS];
    float(&sums)[2][norms::WARPS] = met[row % 2];
    const int quads = added.hidden / 4, warps = norms::warps_of(added.hidden);
    const size_t start = static_cast<size_t>(row) * added.hidden;
    float4 values[NORMED_QUADS], old[NORMED_QUADS];
    for_each_quad(quads, [&](int n, int quad) {
        values[n] = quad_of(added.branch + start, quad);
        old[n] = quad_of(added.residual + start, quad);
    });
    if (added.post_weight != nullptr) {
        float squares[2] = {};
        for_each_quad(quads, [&](int n, int) { squares[n % 2] = norms::add_squares(squares[n % 2], values[n]); });
        const float scale = inverse_root_mean(sum_by_half(squares, warps, sums[0]), added.hidden, added.epsilon);
        for_each_quad(quads, [&](int n, int quad) {
            values[n] = norms::scaled(values[n], scale, quad_of(added.post_weight, quad));
        });
    }
    float squares[2] = {};
    for_each_quad(quads, [&](int n, int quad) {
        values[n] = add(old[n], values[n]);
        squares[n % 2] = norms::add_squares(squares[n % 2], values[n]);
        if (blockIdx.x == 0) reinterpret_cast<float4 *>(added.sums + start)[quad] = values[n];
    });
    const float scale = inverse_root_mean(sum_by_half(squares, warps, sums[1]), added.hidden, added.epsilon);
    Bf16 *out = reinterpret_cast<Bf16 *>(normed);
    for_each_quad(quads, [&](int n, int quad) {
        norms::put(out, quad, norms::scaled(values[n], scale, quad_of(added.next_weight, quad)));
    });
    for (int quad = quads + threadIdx.x; quad < k_tiles * 8; quad += SMALL_THREADS) norms::put(out, quad, {0, 0, 0, 0});
}

template <class Format, Epilogue EPILOGUE>
__device__ __forceinline__ void multiply_normed(const Weights &weights, const Added &added, const Output &output,
                                                const Chunks &chunks) {
    using Ring = Ring<Format, 1, false>;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int begin = warp * chunks.length, end = min(begin + chunks.length, weights.k_tiles);

    let_dependents_start();
    // Sixteen bytes lie between rows, so that reads of several meet in no bank. Rows that are not there are the first one's:
    // what is made of them is not kept.
    unsigned char *normed = dynamic_shared() + RINGS_BESIDE_ROWS;
    const int stride = weights.k_tiles * 64 + 16, row_of_lane = lane % 8 < output.rows ? lane % 8 : 0;
    const unsigned char *x = normed + row_of_lane * stride + lane / 8 * 16;
    Ring ring{dynamic_shared() + warp * Ring::BYTES, {}, reinterpret_cast<const Bf16 *>(x), 0, 0, begin, end, lane};
    start_weights<Format>(ring, weights, chunks, output.n);
    wait_for_inputs();
#pragma unroll 1
    for (int row = 0; row < output.rows; ++row) norm_row(added, row, weights.k_tiles, normed + row * stride);
    __syncthreads();
    float sums[1][1][4] = {};
    ring.multiply(sums);
    store_sums<Format, EPILOGUE>(sums, output, chunks);
}

}  // namespace matmul
