// Matmuls of up to 128 rows on Hopper, by wgmma in one wave of CTAs: each has as many groups of 16 outputs, a warp each, as
// let all CTAs run at once (src/ops/cuda/wave.rs).
//
// Weights come through shared memory and are the first operand, from registers, once they are bf16; rows are the second, read
// by the tensor cores from shared memory once for four groups. Where that leaves more CTAs to share the memory's latency, those
// of a cluster take the four chunks of K and meet in one another's shared memory.
#pragma once

#include "matmul_block.cuh"
#include "weights.cuh"
#include "wgmma.cuh"

namespace matmul {

// Groups of a CTA at most, a multiple of a warpgroup's four, by the most rows: what registers allow.
constexpr int wave_groups(int most_rows) { return most_rows <= 64 ? 12 : 8; }
// CTAs of a multiprocessor that registers have to leave room for, at the most groups.
constexpr int wave_ctas(int most_rows) { return most_rows == 16 ? 2 : 1; }

// One CTA's stages, each of activations and then every warp's weights, a multiple of 1024 bytes.
template <class Format, int ROWS>
struct WaveRing {
    static constexpr int TILES = 2, STAGES = 4, AHEAD = (STAGES - 1) * TILES;
    static constexpr int PREFETCHED = 8192 / Format::VALUES;  // tiles that are called to the second cache behind those
    using Group = Stage<Format, TILES>;
    static constexpr int WEIGHTS_AT = ROWS * TILES * 64;

    unsigned char *memory;
    Weights group;  // of this warp
    Activations activations;
    int end, stage_bytes, warp, lane;

    __device__ __forceinline__ WaveRing(const Weights &weights, const Activations &activations, int group, int end)
        : memory(dynamic_shared()), group(weights.of_group<Format>(group)), activations(activations), end(end),
          stage_bytes((WEIGHTS_AT + static_cast<int>(blockDim.x) / 32 * Group::BYTES + 1023) / 1024 * 1024),
          warp(threadIdx.x / 32), lane(threadIdx.x % 32) {}

    // Nothing from `end` on: what nobody multiplies must not be on its way at the end.
    __device__ __forceinline__ void copy_weights(int slot, int tile) const {
        if (tile >= end) return;
        Group::copy(memory + slot * stage_bytes + WEIGHTS_AT + warp * Group::BYTES, group, tile, end, lane);
    }

    __device__ __forceinline__ void copy_x(int slot, int tile) const {
        if (tile >= end) return;
        for (int at = threadIdx.x; at < ROWS * 8; at += blockDim.x) {
            const int row = at / 8, piece = at % 8;
            const bool valid = row < activations.rows && tile + piece / 4 < end;
            const Bf16 *from = activations.x + static_cast<size_t>(row) * activations.stride + tile * 32 + piece * 8;
            copy_async_16(memory + slot * stage_bytes + place_in_stage(row, piece), from, valid);
        }
    }

    // Starts the products of a stage's tile; `fragment` is theirs until they are done.
    __device__ __forceinline__ void multiply(int slot, int index, Fragment &fragment, float (&sums)[ROWS / 2]) const {
        const unsigned char *stage = memory + slot * stage_bytes;
        fragment = Group::fragment(stage + WEIGHTS_AT + warp * Group::BYTES, index, lane);
        move_operand(fragment.half[0]);
        move_operand(fragment.half[1]);
        begin_products();
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            multiply_async(sums, fragment.half[half], describe_rows(stage, index * 64 + half * 32));
        }
        commit_products();
    }

    // Multiplies the tiles `begin` … `end`−1; `after_chunk(tile)` follows the last one of a chunk. All copies have landed then.
    template <class After>
    __device__ __forceinline__ void run(int begin, int chunk, float (&sums)[ROWS / 2], const After &after_chunk) const {
#pragma unroll
        for (int slot = 0; slot < STAGES - 1; ++slot) copy_weights(slot, begin + slot * TILES);
        prefetch<Format>(group, min(begin + AHEAD, end), min(begin + AHEAD + PREFETCHED, end), lane);
        wait_for_inputs();
#pragma unroll 1
        for (int slot = 0; slot < STAGES - 1; ++slot) {
            copy_x(slot, begin + slot * TILES);
            commit_copies();
        }
        int slot = 0, free_slot = STAGES - 1, chunk_end = min(begin + chunk, end);
        for (int tile = begin; tile < end; tile += TILES) {
            await_copies<STAGES - 2>();
            fence_copies();
            __syncthreads();  // everyone's copies have landed, and everyone has multiplied what the free slot held
            copy_weights(free_slot, tile + AHEAD);
            copy_x(free_slot, tile + AHEAD);
            commit_copies();
            Fragment fragments[TILES];
#pragma unroll
            for (int index = 0; index < TILES; ++index) {
                if (tile + index >= end) break;
                multiply(slot, index, fragments[index], sums);
                if (tile + index + 1 == chunk_end) {
                    await_products<0>();
                    after_chunk(tile + index);
                    chunk_end = min(chunk_end + chunk, end);
                }
            }
            await_products<0>();
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
        if (fragment < FRAGMENTS) take(fragment, add_of_cluster(&met[fragment * blockDim.x], count));
    }
    cluster_barrier();  // whose memory is read must stay
}

template <class Format, Epilogue EPILOGUE, int ROWS>
__device__ __forceinline__ void multiply_in_a_wave(const Weights &weights, const Activations &activations,
                                                   const Output &output, const Chunks &chunks) {
    using Ring = WaveRing<Format, ROWS>;
    constexpr int FRAGMENTS = ROWS / 8;
    let_dependents_start();
    const bool split = cluster_size() > 1;
    const int begin = split ? cluster_rank() * chunks.length : 0;
    const int end = split ? min(begin + chunks.length, weights.k_tiles) : weights.k_tiles;
    const int group = blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32, last_group = (output.n + 15) / 16 - 1;
    const Ring ring(weights, activations, min(group, last_group), end);
    const auto take = [&](int fragment, float4 sum) {
        store<EPILOGUE>(output, sum, Format::ONE, group, fragment * 8, ring.lane);
    };

    float sums[ROWS / 2] = {};
    if (split) {
        ring.run(begin, chunks.length, sums, [](int) {});
        __syncthreads();  // the stages give way to the sums
        float4 *met = reinterpret_cast<float4 *>(ring.memory) + threadIdx.x;  // [fragment][thread]
#pragma unroll
        for (int each = 0; each < FRAGMENTS; ++each) met[each * blockDim.x] = fragment_of(sums, each);
        return join_cluster<FRAGMENTS>(met, chunks.count, take);
    }
    float totals[ROWS / 2];
    ring.run(begin, chunks.length, sums, [&](int tile) {
#pragma unroll
        for (int each = 0; each < ROWS / 2; ++each) {
            totals[each] = tile < chunks.length ? sums[each] : __fadd_rn(totals[each], sums[each]);
            sums[each] = 0.0f;
        }
    });
#pragma unroll
    for (int each = 0; each < FRAGMENTS; ++each) take(each, fragment_of(totals, each));
}

}  // namespace matmul
