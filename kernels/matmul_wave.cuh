// Matmuls of a few dozen rows on Hopper, in one wave of CTAs: each has so many groups of 16 outputs that all fill the
// device once, and no round is left half empty. With few rows, too, where small CTAs would leave some multiprocessors one
// more than others (src/ops/cuda/wave.rs).
//
// A warp multiplies one group by all rows, so that its weights become bf16 once. Where a CTA for each chunk of K leaves
// fewer bytes to each, those of a cluster take the four chunks and meet in one another's shared memory.
#pragma once

#include "matmul_output.cuh"
#include "weights.cuh"

#if defined(WARDROUND_EMULATED) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900)
constexpr bool HAS_CLUSTERS = true;
#else
constexpr bool HAS_CLUSTERS = false;
#endif

namespace matmul {

// Groups of a CTA at most, a warp each, by the most rows: what registers allow.
constexpr int wave_groups(int most_rows) { return most_rows <= 64 ? 12 : 10; }
// Stages: what shared memory allows with so many groups.
constexpr int wave_stages(int most_rows) { return most_rows == 32 ? 6 : most_rows == 64 ? 5 : 4; }

// One CTA's stages, each of activations and then every warp's weights; behind them the sums of the chunks so far.
template <class Format, int ROWS>
struct WaveRing {
    static constexpr int TILES = 2, STAGES = wave_stages(ROWS), AHEAD = (STAGES - 1) * TILES;
    static constexpr int ROW_TILES = ROWS / 8, BATCH = ROWS == 64 ? 8 : 4;  // tiles of rows whose inputs are in registers at once
    using Group = Stage<Format, TILES>;
    static constexpr int WEIGHTS_AT = ROWS * TILES * 64;

    unsigned char *memory;
    Weights group;  // of this warp
    Activations activations;
    int end, stage_bytes, warp, lane;

    __device__ __forceinline__ WaveRing(const Weights &weights, const Activations &activations, int group, int end)
        : memory(dynamic_shared()), group(weights.of_group<Format>(group)), activations(activations), end(end),
          stage_bytes(WEIGHTS_AT + blockDim.x / 32 * Group::BYTES), warp(threadIdx.x / 32), lane(threadIdx.x % 32) {}

    // A thread's first; its next is a CTA's threads further.
    __device__ __forceinline__ float4 *totals() const {
        return reinterpret_cast<float4 *>(memory + STAGES * stage_bytes) + threadIdx.x;
    }

    __device__ __forceinline__ void copy_weights(int slot, int tile) const {
        Group::copy(memory + slot * stage_bytes + WEIGHTS_AT + warp * Group::BYTES, group, tile, end, lane);
    }

    __device__ __forceinline__ void copy_x(int slot, int tile) const {
        for (int at = threadIdx.x; at < ROWS * 8; at += blockDim.x) {
            const int row = at / 8, piece = at % 8;
            const bool valid = row < activations.rows && tile + piece / 4 < end;
            const Bf16 *from = activations.x + static_cast<size_t>(row) * activations.stride + tile * 32 + piece * 8;
            copy_async_16(memory + slot * stage_bytes + place_in_stage(row, piece), from, valid);
        }
    }

    __device__ __forceinline__ void multiply(int slot, int index, float (&sums)[ROW_TILES][4]) const {
        const unsigned char *stage = memory + slot * stage_bytes;
        const unsigned char *x = stage + place_in_stage(lane % 8, index * 4 + lane / 8);
        const Fragment weights = Group::fragment(stage + WEIGHTS_AT + warp * Group::BYTES, index, lane);
#pragma unroll
        for (int first = 0; first < ROW_TILES; first += BATCH) {
            uint4 inputs[BATCH];
#pragma unroll
            for (int m = 0; m < BATCH; ++m) inputs[m] = load_matrices(x + (first + m) * 8 * 128);
            // The second steps come after all first ones, so that none waits for a sum still in the making.
#pragma unroll
            for (int m = 0; m < BATCH; ++m) multiply_add(sums[first + m], weights.half[0], inputs[m].x, inputs[m].y);
#pragma unroll
            for (int m = 0; m < BATCH; ++m) multiply_add(sums[first + m], weights.half[1], inputs[m].z, inputs[m].w);
        }
    }

    // Multiplies the tiles `begin` … `end`−1; `after(tile)` follows each. All copies have landed then.
    template <class After>
    __device__ __forceinline__ void run(int begin, float (&sums)[ROW_TILES][4], const After &after) const {
#pragma unroll
        for (int slot = 0; slot < STAGES - 1; ++slot) copy_weights(slot, begin + slot * TILES);
        wait_for_inputs();
#pragma unroll 1
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

// The CTAs of a cluster, each with the sums of the chunk that its rank says in `met` [fragment][thread]: each adds up a
// quarter of the fragments, of `count` chunks in order, and gives them to `take(fragment, sum)`.
template <int FRAGMENTS, class Take>
__device__ __forceinline__ void join_cluster(const float4 *met, int count, const Take &take) {
    cluster_barrier();
#pragma unroll
    for (int first = 0; first < FRAGMENTS; first += 4) {
        const int fragment = first + cluster_rank();
        take(fragment, add_of_cluster(&met[fragment * blockDim.x], count));
    }
    cluster_barrier();  // whose memory is read must stay
}

template <class Format, Epilogue EPILOGUE, int ROWS>
__device__ __forceinline__ void multiply_in_a_wave(const Weights &weights, const Activations &activations,
                                                   const Output &output, const Chunks &chunks) {
    using Ring = WaveRing<Format, ROWS>;
    constexpr int FRAGMENTS = Ring::ROW_TILES;
    let_dependents_start();
    const bool split = cluster_size() > 1;
    const int begin = split ? cluster_rank() * chunks.length : 0;
    const int end = split ? min(begin + chunks.length, weights.k_tiles) : weights.k_tiles;
    const int group = blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32, last_group = (output.n + 15) / 16 - 1;
    const Ring ring(weights, activations, min(group, last_group), end);

    float sums[FRAGMENTS][4] = {};
    float4 *totals = ring.totals();  // [fragment][thread]
    int chunk_end = min(begin + chunks.length, end);
    ring.run(begin, sums, [&](int tile) {
        if (tile + 1 != chunk_end) return;
#pragma unroll
        for (int fragment = 0; fragment < FRAGMENTS; ++fragment) {
            float(&c)[4] = sums[fragment];
            const float4 sum = {c[0], c[1], c[2], c[3]};
            float4 &total = totals[fragment * blockDim.x];
            total = tile < begin + chunks.length ? sum : add(total, sum);
            c[0] = c[1] = c[2] = c[3] = 0.0f;
        }
        chunk_end = min(chunk_end + chunks.length, end);
    });
    const auto take = [&](int fragment, float4 sum) {
        store<EPILOGUE>(output, sum, Format::ONE, group, fragment * 8, ring.lane);
    };
    if (split) return join_cluster<FRAGMENTS>(totals, chunks.count, take);
#pragma unroll
    for (int fragment = 0; fragment < FRAGMENTS; ++fragment) take(fragment, totals[fragment * blockDim.x]);
}

}  // namespace matmul
