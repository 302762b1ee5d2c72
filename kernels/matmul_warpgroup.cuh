// Matmuls of many rows on Hopper, by wgmma: weights are registers, activations lie in shared memory.
//
// A CTA takes 128 outputs, sixteen to a warp, and 128 or 256 rows. No two warps share weights, so these come straight
// from memory to the registers they are multiplied from, four tiles ahead. Activations are brought by the copy engine, stage by
// stage: a barrier counts the bytes that have come, another the warps that have done with them, and no warp waits for all others
// at a tile. The sums of earlier chunks of K wait in shared memory: a thread's registers hold one chunk's alone. Where blocks are
// few, the four CTAs of a cluster take a chunk each and meet in one another's shared memory.
#pragma once

#include "matmul_block.cuh"
#include "mbarrier.cuh"
#include "weights.cuh"
#include "wgmma.cuh"

namespace matmul {

constexpr int WARPGROUP_THREADS = 256, WARPGROUP_WARPS = WARPGROUP_THREADS / 32;

// What a CTA of so many rows has in shared memory: stages of activations, two tiles to each, the totals, the barriers.
template <int ROWS>
struct WarpgroupShared {
    static constexpr int STAGES = ROWS == 256 ? 3 : 8;
    static constexpr int STAGE = ROWS * 128;
    static constexpr int TOTALS_AT = STAGES * STAGE;
    static constexpr int BARRIERS_AT = TOTALS_AT + 128 * ROWS * 4;
    static constexpr int BYTES = BARRIERS_AT + 256;
    static_assert(BlockRows<Epilogue::F32, ROWS>::BYTES <= BARRIERS_AT && 16 * STAGES <= 256);
    static_assert(BlockRows<Epilogue::F32, ROWS / 4>::BYTES <= TOTALS_AT);
};

// The stages of a CTA, of which each is filled again once all warps have done with it.
template <int ROWS>
struct StageRing {
    using Shared = WarpgroupShared<ROWS>;
    static constexpr int STAGES = Shared::STAGES, STAGE = Shared::STAGE;

    unsigned char *memory;
    Counter *full, *empty;  // [STAGES] each
    BoxSource source;
    int first_row, begin, count;  // first input, and stages
    int slot = 0, before = STAGES - 1;      // of the stage that is multiplied, and of the one before
    unsigned parity = 0, before_parity = 1;  // of their phases

    // By one thread.
    __device__ __forceinline__ void start_barriers() const {
        for (int stage = 0; stage < STAGES; ++stage) {
            start_counting(full + stage, 1);
            start_counting(empty + stage, WARPGROUP_WARPS);
        }
    }

    __device__ __forceinline__ void fill(int stage, int to_slot) const {
        expect_bytes(full + to_slot, STAGE);
        copy_box<ROWS>(memory + to_slot * STAGE, source, begin * 32 + stage * 64, first_row, full + to_slot);
    }

    // By one thread.
    __device__ __forceinline__ void fill_first() const {
        for (int stage = 0; stage < min(STAGES - 1, count); ++stage) fill(stage, stage);
    }

    // A warp has done with the stage before.
    __device__ __forceinline__ void release() const {
        if (threadIdx.x % 32 == 0) arrive(empty + before);
    }

    // Goes on from `stage`; the slot of the one before is filled again.
    __device__ __forceinline__ void advance(int stage) {
        const int next = stage + STAGES - 1;
        if (threadIdx.x == 0 && next < count) {
            if (next >= STAGES) await_phase(empty + before, before_parity);
            fill(next, before);
        }
        before = slot;
        before_parity = parity;
        if (++slot == STAGES) slot = 0, parity ^= 1;
    }
};

template <class Format, Epilogue EPILOGUE, int ROWS>
__device__ __forceinline__ void multiply_by_warpgroups(const Weights &weights, const BoxSource &activations,
                                                       const Output &output, const Chunks &chunks) {
    using Shared = WarpgroupShared<ROWS>;
    constexpr int FRAGMENTS = ROWS / 8;
    constexpr int AHEAD = 4;  // tiles of weights
    const bool split = cluster_size() > 1;
    const int begin = split ? cluster_rank() * chunks.length : 0;
    const int end = split ? min(begin + chunks.length, weights.k_tiles) : weights.k_tiles;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int group = blockIdx.y * 8 + warp, last_group = (output.n + 15) / 16 - 1;
    const int first_row = blockIdx.x / cluster_size() * ROWS;
    const Weights own = weights.of_group<Format>(min(group, last_group));
    unsigned char *memory = dynamic_shared();
    float4 *totals = reinterpret_cast<float4 *>(memory + Shared::TOTALS_AT) + threadIdx.x;  // [fragment][thread]
    Counter *barriers = reinterpret_cast<Counter *>(memory + Shared::BARRIERS_AT);
    StageRing<ROWS> ring{memory, barriers, barriers + Shared::STAGES, activations, first_row, begin, (end - begin + 1) / 2};

    let_dependents_start();
    if (threadIdx.x == 0) ring.start_barriers();
    typename Format::Share shares[AHEAD];
#pragma unroll
    for (int index = 0; index < AHEAD; ++index) shares[index] = own.share<Format>(min(begin + index, end - 1), lane);
    __syncthreads();
    wait_for_inputs();
    if (threadIdx.x == 0) ring.fill_first();

    float sums[ROWS / 2] = {};
    int chunk_end = min(begin + chunks.length, end);
    for (int first = begin; first < end; first += AHEAD) {
#pragma unroll
        for (int index = 0; index < AHEAD; ++index) {
            const int tile = first + index;
            if (tile >= end) break;
            if (index % 2 == 0) await_phase(ring.full + ring.slot, ring.parity);
            Fragment fragment = Format::fragment(shares[index], lane);
            move_operand(fragment.half[0]);
            move_operand(fragment.half[1]);
            if (tile + AHEAD < end) shares[index] = own.share<Format>(tile + AHEAD, lane);
            begin_products();
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const unsigned char *rows = memory + ring.slot * Shared::STAGE;
                multiply_async(sums, fragment.half[half], describe_rows(rows, index % 2 * 64 + half * 32));
            }
            commit_products();
            const auto move_on = [&] {
                // Products of the tile before are done.
                if (index % 2 != 0) return ring.advance((tile - begin) / 2);
                if (tile > begin) ring.release();
            };
            if (tile + 1 != chunk_end || tile + 1 == end) {
                await_products<1>();
                move_on();
                continue;
            }
            await_products<0>();
            move_on();
#pragma unroll
            for (int each = 0; each < FRAGMENTS; ++each) {
                float4 &total = totals[each * WARPGROUP_THREADS];
                const float4 sum = fragment_of(sums, each);
                total = tile < chunks.length ? sum : add(total, sum);
                put_fragment(sums, each, {0, 0, 0, 0});
            }
            chunk_end = min(chunk_end + chunks.length, end);
        }
    }
    await_products<0>();
    if (split) {
        // Each adds up all chunks of a quarter of the rows.
        constexpr int EACH = FRAGMENTS / 4;
        float4 joined[EACH];
#pragma unroll
        for (int each = 0; each < FRAGMENTS; ++each) totals[each * WARPGROUP_THREADS] = fragment_of(sums, each);
        cluster_barrier();
#pragma unroll
        for (int each = 0; each < EACH; ++each) {
            joined[each] = add_of_cluster(&totals[(cluster_rank() * EACH + each) * WARPGROUP_THREADS], chunks.count);
        }
        cluster_barrier();  // whose memory is read must stay
        const auto results = [&](int each) { return joined[each]; };
        write_block<Format, EPILOGUE, ROWS / 4>(output, results, first_row + cluster_rank() * (ROWS / 4));
        return;
    }
    if (chunks.count > 1) {
#pragma unroll
        for (int each = 0; each < FRAGMENTS; ++each) {
            put_fragment(sums, each, add(totals[each * WARPGROUP_THREADS], fragment_of(sums, each)));
        }
    }
    const auto results = [&](int each) { return fragment_of(sums, each); };
    write_block<Format, EPILOGUE, ROWS>(output, results, first_row);
}

}  // namespace matmul
