// Matmuls of up to 128 rows on Hopper, by wgmma in one wave of CTAs: each has as many groups of 16 outputs, a warp each, as
// let all CTAs run at once (crates/ops/src/cuda/wave.rs).
//
// Weights come through shared memory and are the first operand, from registers, once they are bf16; rows are the second, read
// by the tensor cores from shared memory once for four groups. The copy engine brings both: barriers count a warp's own weights,
// and the activations that all warps read, so that no warp waits for another's weights, and for other warps only two stages
// behind. Where that leaves more CTAs to share the memory's latency, those of a cluster take the four chunks of K and meet in one
// another's shared memory.
#pragma once

#include "matmul_output.cuh"
#include "mbarrier.cuh"
#include "weights.cuh"
#include "wgmma.cuh"

namespace matmul {

// Groups of a CTA at most, a multiple of a warpgroup's four, by the most rows: what registers allow.
constexpr int wave_groups(int most_rows) { return most_rows <= 64 ? 12 : 8; }
// CTAs of a multiprocessor that registers have to leave room for, at the most groups.
constexpr int wave_ctas(int most_rows) { return most_rows == 16 ? 2 : 1; }

// One CTA's stages: of activations, a multiple of 1024 bytes; of every warp's weights; and barriers for each of both.
template <class Format, int ROWS>
struct WaveRing {
    static constexpr int TILES = 2, STAGES = 4;
    static constexpr int LAG = 2;  // stages until a slot of activations is filled again: by then the other warps are through
    static constexpr int PREFETCHED = 8192 / Format::VALUES;  // tiles that are called to the second cache behind those
    static constexpr int STAGE = ROWS * TILES * 64;
    using Group = Stage<Format, TILES>;

    unsigned char *memory, *shares;  // [STAGES][STAGE]; this warp's [STAGES][Group::BYTES]
    Counter *full, *empty, *own;     // [STAGES] each: activations have come, have been multiplied; this warp's weights have come
    Weights group;                   // of this warp
    BoxSource activations;
    int begin, end, lane;

    __device__ __forceinline__ WaveRing(const Weights &weights, const BoxSource &activations, int group, int begin, int end)
        : memory(dynamic_shared()), group(weights.of_group<Format>(group)), activations(activations), begin(begin), end(end),
          lane(threadIdx.x % 32) {
        const int warps = blockDim.x / 32, warp = threadIdx.x / 32;
        shares = memory + STAGES * (STAGE + warp * Group::BYTES);
        full = reinterpret_cast<Counter *>(memory + STAGES * (STAGE + warps * Group::BYTES));
        empty = full + STAGES;
        own = empty + STAGES + warp * STAGES;
        if (lane != 0) return;
        for (int slot = 0; slot < STAGES; ++slot) {
            start_counting(own + slot, 1);
            if (warp != 0) continue;
            start_counting(full + slot, 1);
            start_counting(empty + slot, warps);
        }
    }

    // By one lane; nothing from `end` on.
    __device__ __forceinline__ void bring_weights(int stage) const {
        const int slot = stage % STAGES, tile = begin + stage * TILES;
        if (tile < end) Group::bring(shares + slot * Group::BYTES, group, tile, min(end - tile, TILES), own + slot);
    }

    // By one thread.
    __device__ __forceinline__ void bring_rows(int stage) const {
        const int slot = stage % STAGES, tile = begin + stage * TILES;
        if (tile >= end) return;
        expect_bytes(full + slot, STAGE);
        copy_box<ROWS>(memory + slot * STAGE, activations, tile * 32, 0, full + slot);
    }

    // Multiplies all tiles; `after_chunk(tile)` follows the last one of a chunk. All copies have landed then.
    template <class After>
    __device__ __forceinline__ void run(int chunk, float (&sums)[ROWS / 2], const After &after_chunk) const {
        __syncthreads();  // barriers are there
        if (lane == 0) {
            for (int stage = 0; stage < STAGES; ++stage) bring_weights(stage);
        }
        prefetch<Format>(group, min(begin + STAGES * TILES, end), min(begin + STAGES * TILES + PREFETCHED, end), lane);
        wait_for_inputs();
        if (threadIdx.x == 0) {
            for (int stage = 0; stage < STAGES; ++stage) bring_rows(stage);
        }
        int chunk_end = min(begin + chunk, end);
#pragma unroll 1
        for (int stage = 0; begin + stage * TILES < end; ++stage) {
            __syncwarp();  // products are of whole warps
            const int slot = stage % STAGES;
            const unsigned parity = stage / STAGES % 2;
            await_phase(own + slot, parity);
            await_phase(full + slot, parity);
            Fragment fragments[TILES];
#pragma unroll
            for (int index = 0; index < TILES; ++index) {
                const int tile = begin + stage * TILES + index;
                if (tile >= end) break;
                Fragment &fragment = fragments[index];
                fragment = Group::fragment(shares + slot * Group::BYTES, index, lane);
                move_operand(fragment.half[0]);
                move_operand(fragment.half[1]);
                if (index + 1 == TILES) {
                    __syncwarp();  // every lane has its weights of this stage
                    if (lane == 0) bring_weights(stage + STAGES);
                }
                begin_products();
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    multiply_async(sums, fragment.half[half], describe_rows(memory + slot * STAGE, index * 64 + half * 32));
                }
                commit_products();
                // Once products of the tile before are done.
                const auto release = [&] {
                    if (index == 0 && stage > 0 && lane == 0) arrive(empty + (stage - 1) % STAGES);
                };
                if (tile + 1 != chunk_end) {
                    await_products<1>();
                    release();
                    continue;
                }
                await_products<0>();
                release();
                after_chunk(tile);
                chunk_end = min(chunk_end + chunk, end);
            }
            const int done = stage - LAG;
            if (threadIdx.x == 0 && done >= 0 && begin + (done + STAGES) * TILES < end) {
                await_phase(empty + done % STAGES, done / STAGES % 2);
                bring_rows(done + STAGES);
            }
        }
        await_products<0>();
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
__device__ __forceinline__ void multiply_in_a_wave(const Weights &weights, const BoxSource &activations,
                                                   const Output &output, const Chunks &chunks) {
    using Ring = WaveRing<Format, ROWS>;
    constexpr int FRAGMENTS = ROWS / 8;
    let_dependents_start();
    const bool split = cluster_size() > 1;
    const int begin = split ? cluster_rank() * chunks.length : 0;
    const int end = split ? min(begin + chunks.length, weights.k_tiles) : weights.k_tiles;
    const int group = blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32, last_group = (output.n + 15) / 16 - 1;
    const Ring ring(weights, activations, min(group, last_group), begin, end);
    const auto take = [&](int fragment, float4 sum) {
        store<EPILOGUE>(output, sum, Format::ONE, group, fragment * 8, ring.lane);
    };

    float sums[ROWS / 2] = {};
    if (split) {
        ring.run(chunks.length, sums, [](int) {});
        __syncthreads();  // the stages give way to the sums
        float4 *met = reinterpret_cast<float4 *>(ring.memory) + threadIdx.x;  // [fragment][thread]
#pragma unroll
        for (int each = 0; each < FRAGMENTS; ++each) met[each * blockDim.x] = fragment_of(sums, each);
        return join_cluster<FRAGMENTS>(met, chunks.count, take);
    }
    float totals[ROWS / 2];
    ring.run(chunks.length, sums, [&](int tile) {
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
