// Matmuls of up to 32 rows, bound by the memory the weights lie in.
//
// A warp sums one chunk of K for one or two groups of 16 outputs; the four warps of a CTA are the four chunks. What a
// warp reads passes through a ring in shared memory that it shares with no other, so that until the chunks meet there
// is no barrier, and loads wait for nothing but room. The first weights are under way before the inputs are there.
#pragma once

#include "matmul_output.cuh"
#include "weights.cuh"

namespace matmul {

constexpr int SMALL_THREADS = 128;
// Outputs of a CTA, by the most rows the kernel takes. The grid is (ceil(n / small_outputs), 1, 1).
constexpr int small_outputs(int most_rows) { return most_rows >= 32 ? 32 : 16; }
// Dynamic shared memory: what lets three CTAs (8 and 16 rows) or two (32) share an H200's multiprocessor.
constexpr int small_shared_bytes(int most_rows) { return most_rows >= 32 ? 98304 : 65536; }
// Tiles of K in a stage, four at most: the fewer bytes a tile has, the more count the instructions between stages.
constexpr int small_tiles(int row_tiles, int tile_bytes) {
    return row_tiles >= 4 ? 1 : row_tiles == 2 || tile_bytes == 1024 ? 2 : 4;
}

template <class Format, int ROW_TILES>
struct Ring {
    static constexpr int GROUPS = small_outputs(8 * ROW_TILES) / 16;
    static constexpr int TILES = small_tiles(ROW_TILES, Format::VALUES);
    using Group = Stage<Format, TILES>;
    static constexpr int X_AT = GROUPS * Group::BYTES;
    static constexpr int STAGE = X_AT + TILES * ROW_TILES * 512;
    static constexpr int BYTES = small_shared_bytes(8 * ROW_TILES) / 4;
    static constexpr int STAGES = BYTES / STAGE;
    static constexpr int AHEAD = (STAGES - 1) * TILES;  // tiles under way
    static_assert(STAGES >= 3 && BYTES >= GROUPS * ROW_TILES * 512);

    unsigned char *memory;
    Weights groups[GROUPS];
    Activations activations;
    int end, lane;

    __device__ __forceinline__ void copy_weights(int slot, int tile) const {
#pragma unroll
        for (int group = 0; group < GROUPS; ++group) {
            Group::copy(memory + slot * STAGE + group * Group::BYTES, groups[group], tile, end, lane);
        }
    }

    // Eight rows of a tile lie side by side, 64 bytes each; their pieces of sixteen are exchanged so that eight rows'
    // reads of one piece meet in no bank.
    static __device__ __forceinline__ int place(int row, int piece) { return row * 64 + (piece ^ row / 2 % 4) * 16; }

    __device__ __forceinline__ void copy_x(int slot, int tile) const {
        unsigned char *to = memory + slot * STAGE + X_AT + place(lane / 4, lane % 4);
        const Bf16 *from = activations.x + lane / 4 * activations.stride + tile * 32 + lane % 4 * 8;
#pragma unroll
        for (int index = 0; index < TILES; ++index) {
#pragma unroll
            for (int m = 0; m < ROW_TILES; ++m) {
                const bool valid = m * 8 + lane / 4 < activations.rows && tile + index < end;
                const Bf16 *row = from + m * 8 * activations.stride + index * 32;
                copy_async_16_cached(to + (index * ROW_TILES + m) * 512, row, valid);
            }
        }
    }

    __device__ __forceinline__ void multiply(int slot, int tile, float (&sums)[GROUPS][ROW_TILES][4]) const {
        const unsigned char *stage = memory + slot * STAGE;
        if (tile + TILES <= end) {
#pragma unroll
            for (int index = 0; index < TILES; ++index) multiply_tile(stage, index, sums);
        } else {
#pragma unroll 1
            for (int index = 0; tile + index < end; ++index) multiply_tile(stage, index, sums);
        }
    }

    __device__ __forceinline__ void multiply_tile(const unsigned char *stage, int index,
                                                  float (&sums)[GROUPS][ROW_TILES][4]) const {
        Fragment weights[GROUPS];
#pragma unroll
        for (int group = 0; group < GROUPS; ++group) {
            weights[group] = Group::fragment(stage + group * Group::BYTES, index, lane);
        }
        const unsigned char *x = stage + X_AT + index * ROW_TILES * 512 + place(lane % 8, lane / 8);
#pragma unroll
        for (int m = 0; m < ROW_TILES; ++m) {
            const uint4 inputs = load_matrices(x + m * 512);
#pragma unroll
            for (int group = 0; group < GROUPS; ++group) {
                multiply_add(sums[group][m], weights[group].half[0], inputs.x, inputs.y);
            }
#pragma unroll
            for (int group = 0; group < GROUPS; ++group) {
                multiply_add(sums[group][m], weights[group].half[1], inputs.z, inputs.w);
            }
        }
    }
};

template <class Format, Epilogue EPILOGUE, int ROW_TILES>
__device__ __forceinline__ void multiply_small(const Weights &weights, const Activations &activations,
                                               const Output &output, const Chunks &chunks) {
    using Ring = Ring<Format, ROW_TILES>;
    constexpr int GROUPS = Ring::GROUPS;
    // As much again as is in the ring, roughly, is called to the second cache, or all of a short chunk: until the inputs
    // are there the memory has nothing else to do.
    constexpr int PREFETCHED = 8192 / Format::VALUES, SHORT_CHUNK = 32;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_group = blockIdx.x * GROUPS, last_group = (output.n + 15) / 16 - 1;
    const int begin = warp * chunks.length, end = min(begin + chunks.length, weights.k_tiles);

    let_dependents_start();
    Ring ring{dynamic_shared() + warp * Ring::BYTES, {}, activations, end, lane};
#pragma unroll
    for (int group = 0; group < GROUPS; ++group) {
        ring.groups[group] = weights.of_group<Format>(min(first_group + group, last_group));
    }
#pragma unroll
    for (int slot = 0; slot < Ring::STAGES - 1; ++slot) ring.copy_weights(slot, begin + slot * Ring::TILES);
    const int prefetch_end = chunks.length <= SHORT_CHUNK ? end : min(begin + Ring::AHEAD + PREFETCHED, end);
#pragma unroll
    for (int group = 0; group < GROUPS; ++group) {
        prefetch<Format>(ring.groups[group], begin + Ring::AHEAD, prefetch_end, lane);
    }
    wait_for_inputs();
#pragma unroll
    for (int slot = 0; slot < Ring::STAGES - 1; ++slot) {
        ring.copy_x(slot, begin + slot * Ring::TILES);
        commit_copies();
    }

    float sums[GROUPS][ROW_TILES][4] = {};
    int slot = 0, free_slot = Ring::STAGES - 1;
    for (int tile = begin; tile < end; tile += Ring::TILES) {
        await_copies<Ring::STAGES - 2>();
        __syncwarp();  // every lane's copies have landed, and every lane has read what the free slot held
        if (tile + Ring::AHEAD < end) {
            ring.copy_weights(free_slot, tile + Ring::AHEAD);
            ring.copy_x(free_slot, tile + Ring::AHEAD);
        }
        commit_copies();
        ring.multiply(slot, tile, sums);
        free_slot = slot;
        slot = slot + 1 == Ring::STAGES ? 0 : slot + 1;
    }

    // The rings give way to the chunks' sums, [chunk][group][m][lane].
    await_copies<0>();
    __syncthreads();
    float4 *met = reinterpret_cast<float4 *>(dynamic_shared());
    constexpr int FRAGMENTS = GROUPS * ROW_TILES;
#pragma unroll
    for (int fragment = 0; fragment < FRAGMENTS; ++fragment) {
        const float(&c)[4] = sums[fragment / ROW_TILES][fragment % ROW_TILES];
        met[(warp * FRAGMENTS + fragment) * 32 + lane] = {c[0], c[1], c[2], c[3]};
    }
    __syncthreads();
    for (int fragment = warp; fragment < FRAGMENTS; fragment += 4) {
        float4 total = met[fragment * 32 + lane];
        for (int chunk = 1; chunk < chunks.count; ++chunk) {
            total = add(total, met[(chunk * FRAGMENTS + fragment) * 32 + lane]);
        }
        store<EPILOGUE>(output, total, Format::ONE, first_group + fragment / ROW_TILES, fragment % ROW_TILES * 8, lane);
    }
}

}  // namespace matmul
