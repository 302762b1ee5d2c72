// Matmuls of many rows, bound by the tensor cores, and of a few dozen, where the activations' way to the
// multiprocessors counts beside the weights'.
//
// A CTA takes 128 outputs and 128 (or 64) rows through shared memory in steps of 64 inputs; of its eight warps four
// share the rows and two the outputs, so that each multiplies 32 outputs by 64 (32) rows. Weights become bf16 on their
// way to the registers, so the fewer warps share a group the less often that is done. Where there are too few blocks
// for the device, gridDim.z = 4 gives each chunk of K a CTA of its own; it is 1 otherwise.
#pragma once

#include "matmul_join.cuh"
#include "weights.cuh"

namespace matmul {

constexpr int LARGE_THREADS = 256;
constexpr int LARGE_OUTPUTS = 128, LARGE_ROWS = 128, MEDIUM_ROWS = 64;  // of a CTA
constexpr int LARGE_SHARED_BYTES = 98304;                               // dynamic; an L4 or L40 has hardly more

// CTAs of 64 rows that share a multiprocessor: two where its shared memory has room for them.
#ifdef FEWER_CTAS
constexpr int MEDIUM_CTAS = 1;
#else
constexpr int MEDIUM_CTAS = 2;
#endif

// One CTA's stages, and a thread's share of the work. A warp multiplies ROW_TILES times eight rows.
template <class Format, int ROW_TILES>
struct Block {
    static constexpr int ROWS = ROW_TILES * 16, TILES = 2;
    using Group = Stage<Format, TILES>;
    static constexpr int X_AT = LARGE_OUTPUTS / 16 * Group::BYTES;
    static constexpr int STAGE = X_AT + ROWS * TILES * 64;
    static constexpr int STAGES = LARGE_SHARED_BYTES / STAGE;
    static_assert(STAGES >= 3);

    unsigned char *memory;
    Weights group;  // that this warp copies
    Activations activations;
    int end, warp, lane;

    __device__ __forceinline__ Block(const Weights &weights, const Activations &activations, int last_group, int end)
        : memory(dynamic_shared()), activations(activations), end(end), warp(threadIdx.x / 32), lane(threadIdx.x % 32) {
        group = weights.of_group<Format>(min(static_cast<int>(blockIdx.y) * 8 + warp, last_group));
    }

    // What this warp multiplies: two groups of the CTA's eight, and half of its rows.
    __device__ __forceinline__ int first_group() const { return blockIdx.y * 8 + warp % 4 * 2; }
    __device__ __forceinline__ int first_row() const { return blockIdx.x * ROWS + warp / 4 * (ROWS / 2); }

    __device__ __forceinline__ void copy_weights(int slot, int tile) const {
        Group::copy(memory + slot * STAGE + warp * Group::BYTES, group, tile, end, lane);
    }

    __device__ __forceinline__ void copy_x(int slot, int tile) const {
        copy_rows<ROWS, LARGE_THREADS>(memory + slot * STAGE + X_AT, activations, tile, end);
    }

    __device__ __forceinline__ void multiply(int slot, int index, float (&sums)[2][ROW_TILES][4]) const {
        const unsigned char *stage = memory + slot * STAGE;
        const unsigned char *x = stage + X_AT + place_in_stage(warp / 4 * (ROWS / 2) + lane % 8, index * 4 + lane / 8);
        Fragment weights[2];
#pragma unroll
        for (int group = 0; group < 2; ++group) {
            weights[group] = Group::fragment(stage + (warp % 4 * 2 + group) * Group::BYTES, index, lane);
        }
        uint4 inputs[ROW_TILES];
#pragma unroll
        for (int m = 0; m < ROW_TILES; ++m) inputs[m] = load_matrices(x + m * 8 * 128);
        // The second steps come after all first ones, so that none waits for a sum still in the making.
#pragma unroll
        for (int m = 0; m < ROW_TILES; ++m) {
            multiply_add(sums[0][m], weights[0].half[0], inputs[m].x, inputs[m].y);
            multiply_add(sums[1][m], weights[1].half[0], inputs[m].x, inputs[m].y);
        }
#pragma unroll
        for (int m = 0; m < ROW_TILES; ++m) {
            multiply_add(sums[0][m], weights[0].half[1], inputs[m].z, inputs[m].w);
            multiply_add(sums[1][m], weights[1].half[1], inputs[m].z, inputs[m].w);
        }
    }

    // Multiplies the tiles `begin` … `end`−1; `after(tile)` follows each.
    template <class After>
    __device__ __forceinline__ void run(int begin, float (&sums)[2][ROW_TILES][4], const After &after) const {
        constexpr int AHEAD = (STAGES - 1) * TILES;
#pragma unroll
        for (int slot = 0; slot < STAGES - 1; ++slot) copy_weights(slot, begin + slot * TILES);
        wait_for_inputs();
#pragma unroll
        for (int slot = 0; slot < STAGES - 1; ++slot) {
            copy_x(slot, begin + slot * TILES);
            commit_copies();
        }
        int slot = 0, free_slot = STAGES - 1;
        for (int tile = begin; tile < end; tile += TILES) {
            await_copies<STAGES - 2>();
            __syncthreads();  // everyone's copies have landed, and everyone has read what the free slot held
            copy_weights(free_slot, tile + AHEAD);
            copy_x(free_slot, tile + AHEAD);
            commit_copies();
#pragma unroll
            for (int index = 0; index < TILES; ++index) {
                if (tile + index >= end) break;
                multiply(slot, index, sums);
                after(tile + index);
            }
            free_slot = slot;
            slot = slot + 1 == STAGES ? 0 : slot + 1;
        }
        await_copies<0>();
    }
};

// MAY_SPLIT: whether gridDim.z may be other than 1.
template <class Format, Epilogue EPILOGUE, int ROW_TILES, bool MAY_SPLIT>
__device__ __forceinline__ void multiply_large(const Weights &weights, const Activations &activations,
                                               const Output &output, const Chunks &chunks, const Meeting &meeting) {
    let_dependents_start();
    const bool split = MAY_SPLIT && gridDim.z != 1;
    const int begin = split ? blockIdx.z * chunks.length : 0;
    const int end = split ? min(begin + chunks.length, weights.k_tiles) : weights.k_tiles;
    if (begin >= end) return;
    const Block<Format, ROW_TILES> block(weights, activations, (output.n + 15) / 16 - 1, end);

    float sums[2][ROW_TILES][4] = {};
    float4 totals[2 * ROW_TILES];
    int chunk_end = min(begin + chunks.length, end);
    block.run(begin, sums, [&](int tile) {
        if (tile + 1 != chunk_end) return;
#pragma unroll
        for (int fragment = 0; fragment < 2 * ROW_TILES; ++fragment) {
            float(&c)[4] = sums[fragment / ROW_TILES][fragment % ROW_TILES];
            const float4 sum = {c[0], c[1], c[2], c[3]};
            totals[fragment] = tile < begin + chunks.length ? sum : add(totals[fragment], sum);
            c[0] = c[1] = c[2] = c[3] = 0.0f;
        }
        chunk_end = min(chunk_end + chunks.length, end);
    });
    if (split && !join(meeting, chunks.count, totals)) return;
#pragma unroll
    for (int fragment = 0; fragment < 2 * ROW_TILES; ++fragment) {
        store<EPILOGUE>(output, totals[fragment], Format::ONE, block.first_group() + fragment / ROW_TILES,
                        block.first_row() + fragment % ROW_TILES * 8, block.lane);
    }
}

}  // namespace matmul
